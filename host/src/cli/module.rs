//! `verbatim module`: a module's file looked at, tested and measured, and modules of a running host.

use std::path::Path;

use anyhow::Context as _;
use clap::Subcommand;
use verbatim::engine::{Engine, Inspection, Limits, Module as Loaded};

use super::output::Output;
use super::{Usage, file};

mod bench;
mod inspect;
mod running;
mod test;

#[derive(Debug, Subcommand)]
pub(super) enum Module {
    /// Check a module's file and show what it is; exit code 1 if it cannot be used
    Inspect(inspect::Inspect),
    /// Hold a module's file to suites and scenarios; exit code 0 if all passed, 1 if not, 2 if the call is wrong
    Test(test::Test),
    /// Measure what judging costs with a module's file, beside this software's own rules run natively
    Bench(bench::Bench),
    /// Put another module in the place of a named one of a running host, without a gap
    Swap(running::Swap),
    /// Show which modules a running host has in service
    Status(running::Status),
    /// Have a running host go back to the module that served before
    Rollback(running::Rollback),
    /// Show what became of each swap in a running host
    History(running::History),
}

impl Module {
    pub(super) fn run(self, serve: &file::Serve, output: Output) -> anyhow::Result<()> {
        match self {
            Self::Inspect(inspect) => inspect.run(output),
            Self::Test(test) => test.run(output),
            Self::Bench(bench) => bench.run(output),
            Self::Swap(swap) => swap.run(serve, output),
            Self::Status(status) => status.run(serve, output),
            Self::Rollback(rollback) => rollback.run(serve, output),
            Self::History(history) => history.run(serve, output),
        }
    }
}

/// The bytes of a module's file.
fn read(file: &Path) -> Result<Vec<u8>, Usage> {
    std::fs::read(file).map_err(|error| Usage(format!("cannot read, file=`{}`: {error}", file.display())))
}

/// Compiles and checks what was read from this file.
fn load(file: &Path, bytes: &[u8]) -> anyhow::Result<Loaded> {
    let engine = Engine::new(Limits::default())?;
    Loaded::load(&engine, bytes).with_context(|| format!("cannot be used, file=`{}`", file.display()))
}

/// What a module is, in a line.
fn title(inspection: &Inspection) -> String {
    let Inspection { description, digest, .. } = inspection;
    format!("module {} {} sha256:{}", description.name, description.version, digest)
}
