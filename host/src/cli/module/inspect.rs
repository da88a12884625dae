//! What can be said of a module's file without letting it judge.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use serde::Serialize;
use verbatim::engine;

use super::super::output::Output;

/// Check a module's file and show what it is; exit code 1 if it cannot be used
#[derive(Debug, Args)]
pub(in super::super) struct Inspect {
    /// The module, a WebAssembly component; bundled:exact-mirroring and bundled:redact are those that come along
    file: PathBuf,
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
    checks_configuration: bool,
    imports: Vec<String>,
    exports: Vec<String>,
    sha256: String,
}

impl Inspect {
    pub(super) fn run(self, output: Output) -> anyhow::Result<()> {
        let shown = self.file.display();
        let bytes =
            verbatim::modules::read(&self.file).with_context(|| format!("cannot read, file=`{shown}`"))?;
        let inspected = Inspected::new(super::load(&self.file, &bytes)?.inspect());
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
            checks_configuration: inspection.checks_configuration,
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
             decides who may join the in-sync set {}\nchecks its configuration {}\nimports {}\nexports {}\nsha256 {}",
            self.name,
            self.version,
            self.contract_version,
            judges.join(", "),
            yes_no(self.rewrites),
            yes_no(self.decides_membership),
            yes_no(self.checks_configuration),
            self.imports.join(", "),
            self.exports.join(", "),
            self.sha256,
        )
    }
}
