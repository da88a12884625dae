//! A module that comes with this command, as a file: for a broker that embeds the engine, or to look into it.

use std::path::{Path, PathBuf};

use clap::Args;

use super::super::output::Output;

/// Write a module that comes with this command to a file
#[derive(Debug, Args)]
pub(in super::super) struct Export {
    /// Its name: `exact-mirroring` or `redact`
    name: String,
    /// The module's file
    #[arg(short = 'o', long, value_name = "FILE")]
    out: PathBuf,
}

impl Export {
    pub(super) fn run(self, output: Output) -> anyhow::Result<()> {
        let bundled = format!("bundled:{}", self.name);
        let bundled = Path::new(&bundled);
        let component = super::read(bundled)?;
        super::build::write(&component, &super::load(bundled, &component)?, &self.out, output)
    }
}
