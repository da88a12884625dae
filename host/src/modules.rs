//! Compiled modules by name, as a broker takes its judges from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use verbatim_broker::{Judges, OwnPartition, properties::DEFAULT_MODULE};
use verbatim_engine::{Digest, Engine, Failure, Inspection, Judge, Limits, LoadError, Module};

/// Modules by the name that topics choose them by.
#[derive(Debug)]
pub struct Modules {
    engine: Engine,
    named: BTreeMap<String, Module>,
}

/// A module that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum ModulesError {
    /// The module that comes with this software was not built into it.
    #[error(transparent)]
    Missing(#[from] verbatim_artifact::MissingModule),
    /// The file cannot be read.
    #[error("module file cannot be read, file=`{}`: {source}", .file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What the operating system says.
        source: std::io::Error,
    },
    /// It is not a module of a known contract.
    #[error("module `{name}` cannot be used: {source}")]
    Load {
        /// Its name.
        name: String,
        /// Why.
        source: LoadError,
    },
    /// No engine can be had.
    #[error(transparent)]
    Engine(LoadError),
}

impl Modules {
    /// The module that comes with this software, `exact-mirroring`.
    ///
    /// # Errors
    /// It was not built into this software, for want of a compiler; or the machine cannot run it.
    pub fn bundled() -> Result<Self, ModulesError> {
        let engine = Engine::new(Limits::default()).map_err(ModulesError::Engine)?;
        let mut modules = Self { engine, named: BTreeMap::new() };
        modules.add(DEFAULT_MODULE, verbatim_artifact::exact_mirroring()?)?;
        Ok(modules)
    }

    /// Adds a module, in the place of one of that name.
    ///
    /// # Errors
    /// It is not a module of a known contract, or does not start.
    pub fn add(&mut self, name: &str, bytes: &[u8]) -> Result<&Inspection, ModulesError> {
        let load = |source| ModulesError::Load { name: name.to_owned(), source };
        let module = Module::load(&self.engine, bytes).map_err(load)?;
        let named = self.named.entry(name.to_owned()).insert_entry(module);
        Ok(named.into_mut().inspect())
    }

    /// Adds a module from a file.
    ///
    /// # Errors
    /// As [`Self::add`], and what the operating system says.
    pub fn add_file(&mut self, name: &str, file: &Path) -> Result<&Inspection, ModulesError> {
        let io = |source| ModulesError::File { file: file.to_owned(), source };
        let bytes = std::fs::read(file).map_err(io)?;
        self.add(name, &bytes)
    }

    /// All modules, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Inspection)> {
        self.named.iter().map(|(name, module)| (name.as_str(), module.inspect()))
    }
}

impl Judges for Modules {
    fn knows(&self, module: &str) -> bool {
        self.named.contains_key(module)
    }

    fn digest(&self, module: &str) -> Option<Digest> {
        self.named.get(module).map(|module| module.inspect().digest)
    }

    fn judge(&self, module: &str) -> Result<Box<dyn Judge<OwnPartition>>, Failure> {
        match self.named.get(module) {
            Some(found) => Ok(Box::new(found.instance::<OwnPartition>()?)),
            None => Err(Failure::Start {
                text: format!("there is no module of this name, produce.module=`{module}`"),
            }),
        }
    }
}
