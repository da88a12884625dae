//! Files that are replaced as a whole and carry a checksum; public through [`crate::folder`].

use std::io::IoSlice;
use std::path::{Path, PathBuf};

use verbatim_batch::{crc32c, crc32c_append};

use crate::io::{read_full, write_all};
use crate::{Io, LogError};

/// The longest first line that is looked for.
const LINE_MAX: usize = 256;

/// Replaces a checked file as a whole: after a crash there is the old one or the new one.
///
/// # Errors
/// What failed; the file is then the old one or the new one.
pub fn atomic_replace(
    io: &dyn Io,
    path: &Path,
    kind: &str,
    version: u32,
    content: &[u8],
) -> Result<(), LogError> {
    let checksum = checksum(kind, version, content);
    let line = format!("#verbatim {kind} version={version} length={} crc32c={checksum:08x}\n", content.len());
    let mut bytes = line.into_bytes();
    bytes.extend_from_slice(content);
    replace_file(io, path, &bytes, true)
}

/// Version and content of a checked file; `None` if there is none.
///
/// # Errors
/// [`LogError::Corrupt`] where line, kind, length or checksum are wrong, [`LogError::Newer`] above `newest`.
pub fn read_checked(
    io: &dyn Io,
    path: &Path,
    kind: &str,
    newest: u32,
) -> Result<Option<(u32, Vec<u8>)>, LogError> {
    let Some(mut bytes) = read_whole(io, path)? else { return Ok(None) };
    let damaged = |detail: &str| LogError::corrupt(path, 0, detail);
    let line_len = bytes.iter().take(LINE_MAX).position(|byte| *byte == b'\n');
    let line_len = line_len.ok_or_else(|| damaged("the first line is missing"))?;
    let line = bytes.get(..line_len).and_then(|line| std::str::from_utf8(line).ok());
    let line = line.ok_or_else(|| damaged("the first line is not text"))?.to_owned();
    let content = bytes.split_off(line_len.saturating_add(1));
    let mut words = line.split(' ');
    if words.next() != Some("#verbatim") || words.next() != Some(kind) {
        return Err(LogError::corrupt(
            path,
            0,
            format!("expected a file of kind {kind}, first line=`{line}`"),
        ));
    }
    let number = |word: Option<&str>, name: &str, radix| {
        let value = word.and_then(|word| word.strip_prefix(name)).and_then(|word| word.strip_prefix('='));
        value
            .and_then(|value| u32::from_str_radix(value, radix).ok())
            .ok_or_else(|| damaged("the first line is damaged"))
    };
    let version = number(words.next(), "version", 10)?;
    if version > newest {
        return Err(LogError::Newer { kind: kind.to_owned(), version, newest, file: path.to_owned() });
    }
    let length = number(words.next(), "length", 10)?;
    let stored = number(words.next(), "crc32c", 16)?;
    if u32::try_from(content.len()) != Ok(length) || checksum(kind, version, &content) != stored {
        return Err(damaged("length or checksum of the content differ from the first line"));
    }
    Ok(Some((version, content)))
}

/// Replaces any file as a whole; without `durable` a power loss may leave it empty.
pub(crate) fn replace_file(io: &dyn Io, path: &Path, bytes: &[u8], durable: bool) -> Result<(), LogError> {
    let temporary = beside(path, ".tmp");
    let replaced = write_file(io, &temporary, bytes, durable)
        .and_then(|()| io.rename(&temporary, path).map_err(LogError::io("rename", path)));
    if replaced.is_err() {
        // What is there of it would only take room, of which there may be none.
        let _ = io.remove(&temporary);
    }
    replaced?;
    if durable { sync_parent(io, path) } else { Ok(()) }
}

/// Writes a file in place, from its first byte; torn by a crash in the middle.
pub(crate) fn write_file(io: &dyn Io, path: &Path, bytes: &[u8], durable: bool) -> Result<(), LogError> {
    let file = io.open(path, true).map_err(LogError::io("create", path))?;
    file.set_len(0).map_err(LogError::io("truncate", path))?;
    write_all(&*file, &mut [IoSlice::new(bytes)], 0).map_err(LogError::io("write", path))?;
    if durable { file.sync().map_err(LogError::io("sync", path)) } else { Ok(()) }
}

/// All bytes of a file; `None` if there is none.
pub(crate) fn read_whole(io: &dyn Io, path: &Path) -> Result<Option<Vec<u8>>, LogError> {
    let file = match io.open_read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(LogError::io("open", path))?,
    };
    let length = file.len().map_err(LogError::io("read the length", path))?;
    let length = usize::try_from(length).map_err(|_| LogError::corrupt(path, 0, "the file is too large"))?;
    let mut bytes = vec![0; length];
    let filled = read_full(&*file, &mut bytes, 0).map_err(LogError::io("read", path))?;
    bytes.truncate(filled);
    Ok(Some(bytes))
}

/// Removes a file; that it is not there is fine.
pub(crate) fn remove_file(io: &dyn Io, path: &Path) -> Result<(), LogError> {
    match io.remove(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(LogError::io("remove", path)),
    }
}

/// Makes a file's name durable.
pub(crate) fn sync_parent(io: &dyn Io, path: &Path) -> Result<(), LogError> {
    let parent = path.parent().unwrap_or(Path::new("."));
    io.sync_folder(parent).map_err(LogError::io("sync the folder", parent))
}

fn checksum(kind: &str, version: u32, content: &[u8]) -> u32 {
    crc32c_append(crc32c(format!("{kind} {version}\n").as_bytes()), content)
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
