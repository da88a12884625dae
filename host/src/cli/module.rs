//! `verbatim module`: a module begun, built, looked at, written out, tested and measured, and modules of a running host.

use std::borrow::Cow;
use std::path::Path;

use anyhow::Context as _;
use clap::Subcommand;
use verbatim::engine::{Engine, Inspection, Limits, Module as Loaded};

use super::output::Output;
use super::{Usage, file};

mod bench;
mod build;
mod export;
mod inspect;
mod new;
mod running;
mod test;

#[derive(Debug, Subcommand)]
pub(super) enum Module {
    /// Check a module's file and show what it is; exit code 1 if it cannot be used
    Inspect(inspect::Inspect),
    /// Write the crate of a new module in Rust: a rule to begin with, its tests and scenarios
    New(new::New),
    /// Build a module of a crate in Rust, by cargo for wasm32, and wrap it as a component
    Build(build::Build),
    /// Wrap a core module, which any compiler made, as a component
    Wrap(build::Wrap),
    /// Write a module that comes with this command to a file
    Export(export::Export),
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
            Self::New(new) => new.run(output),
            Self::Build(build) => build.run(output),
            Self::Wrap(wrap) => wrap.run(output),
            Self::Export(export) => export.run(output),
            Self::Test(test) => test.run(output),
            Self::Bench(bench) => bench.run(output),
            Self::Swap(swap) => swap.run(serve, output),
            Self::Status(status) => status.run(serve, output),
            Self::Rollback(rollback) => rollback.run(serve, output),
            Self::History(history) => history.run(serve, output),
        }
    }
}

/// The bytes of a module, of a file or bundled.
fn read(file: &Path) -> Result<Cow<'static, [u8]>, Usage> {
    verbatim::modules::read(file)
        .map_err(|error| Usage(format!("cannot read, file=`{}`: {error}", file.display())))
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
