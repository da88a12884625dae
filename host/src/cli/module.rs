//! `verbatim module`: what can be said of a module's file without letting it judge, and modules of a running host.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Subcommand;
use serde::Serialize;
use verbatim::engine;

use super::file;
use super::output::Output;

mod running;

#[derive(Debug, Subcommand)]
pub(super) enum Module {
    /// Check a module's file and show what it is; exit code 1 if it cannot be used
    Inspect {
        /// The module, a WebAssembly component
        file: PathBuf,
    },
    /// Put another module in the place of a named one of a running host, without a gap
    Swap(running::Swap),
    /// Show which modules a running host has in service
    Status(running::Status),
    /// Have a running host go back to the module that served before
    Rollback(running::Rollback),
    /// Show what became of each swap in a running host
    History(running::History),
}

#[derive(Serialize)]
struct Inspected {
    name: String,
    version: String,
    contract_version: String,
    supports_exact: bool,
    supports_normal: bool,
    rewrites: bool,
    decides_membership: bool,
    imports: Vec<String>,
    exports: Vec<String>,
    sha256: String,
}

impl Module {
    pub(super) fn run(self, serve: &file::Serve, output: Output) -> anyhow::Result<()> {
        match self {
            Self::Inspect { file } => Self::inspect(&file, output),
            Self::Swap(swap) => swap.run(serve, output),
            Self::Status(status) => status.run(serve, output),
            Self::Rollback(rollback) => rollback.run(serve, output),
            Self::History(history) => history.run(serve, output),
        }
    }

    fn inspect(file: &Path, output: Output) -> anyhow::Result<()> {
        let shown = file.display();
        let bytes = std::fs::read(file).with_context(|| format!("cannot read, file=`{shown}`"))?;
        let engine = engine::Engine::new(engine::Limits::default())?;
        let module = engine::Module::load(&engine, &bytes)
            .with_context(|| format!("cannot be used, file=`{shown}`"))?;
        let inspected = Inspected::new(module.inspect());
        output.write(&inspected, || inspected.text())
    }
}

impl Inspected {
    fn new(inspection: &engine::Inspection) -> Self {
        let description = &inspection.description;
        Self {
            name: description.name.clone(),
            version: description.version.clone(),
            contract_version: inspection.contract_version.clone(),
            supports_exact: description.supports_exact,
            supports_normal: description.supports_normal,
            rewrites: description.rewrites,
            decides_membership: inspection.decides_membership,
            imports: inspection.imports.clone(),
            exports: inspection.exports.clone(),
            sha256: inspection.digest.to_string(),
        }
    }

    fn text(&self) -> String {
        let judges = [(self.supports_exact, "exact topics"), (self.supports_normal, "normal topics")];
        let judges: Vec<&str> = judges.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
        let yes_no = |yes| if yes { "yes" } else { "no" };
        format!(
            "module {} {}\ncontract {}\njudges {}\nrewrites records {}\n\
             decides who may join the in-sync set {}\nimports {}\nexports {}\nsha256 {}",
            self.name,
            self.version,
            self.contract_version,
            judges.join(", "),
            yes_no(self.rewrites),
            yes_no(self.decides_membership),
            self.imports.join(", "),
            self.exports.join(", "),
            self.sha256,
        )
    }
}
