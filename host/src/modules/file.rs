//! Where the bytes of a module come from: a file, or this software itself.

use std::borrow::Cow;
use std::io;
use std::path::Path;

/// Stands before the name of a module that comes with this software, where a file may be named: `bundled:redact`.
const BUNDLED: &str = "bundled:";

/// The bytes of the module in this file, or of `bundled:exact-mirroring` or `bundled:redact`.
///
/// # Errors
/// What the operating system says; no such module comes with this software; or it was not built into it.
pub fn read(file: &Path) -> io::Result<Cow<'static, [u8]>> {
    let Some(name) = file.to_str().and_then(|file| file.strip_prefix(BUNDLED)) else {
        return std::fs::read(file).map(Cow::Owned);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_bundled_is_named_and_nothing_else_is() {
        for name in ["bundled:exact-mirroring", "bundled:redact"] {
            assert!(read(Path::new(name)).is_ok_and(|bytes| bytes.starts_with(b"\0asm")), "{name}");
        }
        let unknown = read(Path::new("bundled:nobody")).map_err(|error| error.to_string());
        assert!(unknown.is_err_and(|text| text.contains("`nobody`")));
    }
}
