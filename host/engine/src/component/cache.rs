//! The folder of compiled modules.

use std::fs::{self, DirBuilder, Metadata};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

use rustix::process::geteuid;
use wasmtime::{Cache, CacheConfig};

use super::LoadError;

/// What is kept at most, about; the longest unused goes first.
const MAX_BYTES: u64 = 64 << 20;
const MAX_FILES: u64 = 256;

/// Opens the folder, or makes it for this user alone.
pub(super) fn open(folder: &Path) -> Result<Cache, LoadError> {
    let refused = |text: &dyn std::fmt::Display| LoadError::Engine {
        text: format!("the folder of compiled modules cannot be used, folder=`{}`: {text}", folder.display()),
    };
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| refused(&error))?;
    let folder = fs::canonicalize(folder).map_err(|error| refused(&error))?;
    is_ours(&fs::metadata(&folder).map_err(|error| refused(&error))?).map_err(|text| refused(&text))?;
    let mut config = CacheConfig::new();
    config.with_directory(folder);
    config.with_files_total_size_soft_limit(MAX_BYTES);
    config.with_file_count_soft_limit(MAX_FILES);
    Cache::new(config).map_err(|error| refused(&error))
}

/// What lies there is run.
fn is_ours(folder: &Metadata) -> Result<(), String> {
    let (owner, we) = (folder.uid(), geteuid().as_raw());
    if owner != we {
        return Err(format!("expected this process's user {we}, owner=`{owner}`"));
    }
    let mode = folder.mode() & 0o777;
    if mode & 0o022 != 0 {
        return Err(format!("others may write to it, mode=`{mode:03o}`"));
    }
    Ok(())
}
