//! Where the bytes of a module come from: a file, or this software itself.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use verbatim_engine::MAX_MODULE_LEN;

/// Stands before the name of a module that comes with this software, where a file may be named: `bundled:redact`.
const BUNDLED: &str = "bundled:";

/// The bytes of the module in this file, or of `bundled:exact-mirroring` or `bundled:redact`.
///
/// # Errors
/// What the operating system says; it is no regular file, or a larger one than a module may be; no such module comes with this
/// software, or it was not built into it.
pub fn read(file: &Path) -> io::Result<Cow<'static, [u8]>> {
    let Some(name) = file.to_str().and_then(|file| file.strip_prefix(BUNDLED)) else {
        return read_file(file).map(Cow::Owned);
    };
    let bundled = match name {
        "exact-mirroring" => verbatim_artifact::exact_mirroring(),
        "redact" => verbatim_artifact::redact(),
        _ => {
            let text = format!("bundled are `exact-mirroring` and `redact`, not `{name}`");
            return Err(io::Error::new(io::ErrorKind::NotFound, text));
        }
    };
    bundled.map(Cow::Borrowed).map_err(io::Error::other)
}

fn read_file(file: &Path) -> io::Result<Vec<u8>> {
    let invalid = |text| io::Error::new(io::ErrorKind::InvalidInput, text);
    // Looked at first: to open a pipe would wait for somebody to write.
    if !std::fs::metadata(file)?.is_file() {
        return Err(invalid("not a regular file".to_owned()));
    }
    let most = u64::try_from(MAX_MODULE_LEN).unwrap_or(u64::MAX);
    let mut bytes = Vec::new();
    File::open(file)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_MODULE_LEN {
        return Err(invalid(format!("a module has at most {MAX_MODULE_LEN} bytes, and this file has more")));
    }
    Ok(bytes)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_not_read() {
        let large = tempfile::NamedTempFile::new().unwrap();
        large.as_file().set_len(1 << 30).unwrap();
        for (file, expected) in [
            (Path::new("/dev/zero"), "not a regular file"),
            (Path::new("/"), "not a regular file"),
            (large.path(), "at most"),
        ] {
            let error = read(file).map_err(|error| error.to_string()).unwrap_err();
            assert!(error.contains(expected), "{}: {error}", file.display());
        }
    }

    #[test]
    fn what_is_bundled_is_named_and_nothing_else_is() {
        for name in ["bundled:exact-mirroring", "bundled:redact"] {
            assert!(read(Path::new(name)).is_ok_and(|bytes| bytes.starts_with(b"\0asm")), "{name}");
        }
        let unknown = read(Path::new("bundled:nobody")).map_err(|error| error.to_string());
        assert!(unknown.is_err_and(|text| text.contains("`nobody`")));
    }
}
