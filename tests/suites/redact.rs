//! The module `redact` in a whole system: its rules on topics, and what readers get of what it took.

use std::fs;

use verbatim_tests::host::Home;

mod keys;

/// A home whose hosts have the module `redact`.
fn home() -> anyhow::Result<Home> {
    let home = Home::new()?;
    let file = home.data().with_file_name("redact.wasm");
    fs::write(&file, verbatim_artifact::redact()?)?;
    Ok(home.arguments(&["--module", &format!("redact={}", file.display())]))
}
