//! The module `redact` in a whole system: its rules on topics, and what readers get of what it took.

use std::fs;

use verbatim_tests::host::Home;

mod copies;
mod keys;
mod mistakes;
mod retries;
mod source;

/// The permission, as a command line has it.
const ALLOW: &str = "produce.at.offset.rewrite=allow";
/// The choice of the module, likewise.
const MODULE: &str = "produce.module=redact";

/// A home whose hosts have the module `redact`.
fn home() -> anyhow::Result<Home> {
    let home = Home::new()?;
    let file = module_file(&home)?;
    Ok(home.arguments(&["--module", &format!("redact={file}")]))
}

/// The module's file, beside the home's data.
fn module_file(home: &Home) -> anyhow::Result<String> {
    let file = home.data().with_file_name("redact.wasm");
    fs::write(&file, verbatim_artifact::redact()?)?;
    Ok(file.display().to_string())
}
