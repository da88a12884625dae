//! Builds the modules for wasm32 and hands their component bytes to the host.
//!
//! Only the command, tests and dev-dependencies use this crate, so that the engine builds without a wasm compiler. Where
//! no such compiler was found, this crate still builds, and each function returns the error that says what to run.
//!
//! The environment variable `VERBATIM_WASM_COMPILER` (`rustup` or `distribution`) restricts the search to one kind of
//! compiler.

// One `const NAME: Result<&[u8], &str>` for each module of the build script's list.
include!(concat!(env!("OUT_DIR"), "/modules.rs"));

/// The `exact-mirroring` module, as a component.
///
/// # Errors
/// When no compiler for wasm32 was found as this crate was built.
pub fn exact_mirroring() -> Result<&'static [u8], MissingModule> {
    EXACT_MIRRORING.map_err(|reason| MissingModule { module: "exact-mirroring", reason })
}

/// The `redact` module, as a component.
///
/// # Errors
/// When no compiler for wasm32 was found as this crate was built.
pub fn redact() -> Result<&'static [u8], MissingModule> {
    REDACT.map_err(|reason| MissingModule { module: "redact", reason })
}

/// The module that misbehaves as its partition's number says, as a component; for tests of hosts.
///
/// # Errors
/// When no compiler for wasm32 was found as this crate was built.
#[cfg(feature = "hostile")]
pub fn hostile() -> Result<&'static [u8], MissingModule> {
    HOSTILE.map_err(|reason| MissingModule { module: "hostile-module", reason })
}

/// The module `exact-mirroring` with two flaws, as a component; for tests of hosts.
///
/// # Errors
/// When no compiler for wasm32 was found as this crate was built.
#[cfg(feature = "hostile")]
pub fn flawed() -> Result<&'static [u8], MissingModule> {
    FLAWED.map_err(|reason| MissingModule { module: "flawed-module", reason })
}

/// A module that was not built, with the command that makes it so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingModule {
    module: &'static str,
    reason: &'static str,
}

impl std::fmt::Display for MissingModule {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "module `{}` is not built: {}", self.module, self.reason)
    }
}

impl std::error::Error for MissingModule {}

#[cfg(test)]
mod tests {
    #[test]
    fn each_module_is_a_component_or_says_what_to_run() {
        for module in [super::exact_mirroring(), super::redact()] {
            match module {
                // The preamble of a component: magic, version 13, layer 1.
                Ok(bytes) => assert!(bytes.starts_with(b"\0asm\x0d\0\x01\0")),
                Err(missing) => assert!(missing.to_string().contains("make setup"), "{missing}"),
            }
        }
    }
}
