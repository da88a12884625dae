//! Compiled modules by name, as a broker takes its judges from; each can be swapped while it serves.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use verbatim_broker::{Judges, OwnPartition, properties::DEFAULT_MODULE};
use verbatim_engine::{
    Before, Digest, Engine, Failure, Generation, Inspection, Judge, Limits, LoadError, Misconfigured, Module,
    ROLLBACK_WINDOW, Slot, SlotSettings,
};
use verbatim_log::DiskIo;

mod file;
mod metrics;
mod news;
mod status;
mod store;
mod swap;
mod topics;
mod underway;

pub use file::read;
pub use status::{Served, Status, Why};
pub use store::{Entry, HISTORY_MAX, Outcome, StoreError};
pub use swap::{Swap, SwapError, Swapped};
pub use topics::Topics;
pub use underway::{Asker, Beside, SHADOW_REQUESTS_WAIT, SHADOW_TIME_MAX};
pub use verbatim_engine::Bound;

use metrics::Outcomes;
use news::News;
use store::Store;
use swap::now_ms;
use underway::UnderWay;

/// The folder of compiled modules, beside the modules themselves.
const COMPILED: &str = "compiled";

/// Modules by the name that topics choose them by.
pub struct Modules {
    engine: Engine,
    named: BTreeMap<String, Named>,
    store: Arc<Store>,
    news: News,
    /// How long a number of live requests is waited for.
    shadow_requests_wait: Duration,
}

/// The place of one name.
struct Named {
    slot: Slot,
    /// What the host is started with.
    own: Module,
    /// Held by whoever swaps.
    changing: Mutex<()>,
    under_way: UnderWay,
    outcomes: Arc<Outcomes>,
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
    /// What was chosen before cannot be read.
    #[error("what was swapped before is not known: {0}")]
    Chosen(#[from] StoreError),
    /// No engine can be had.
    #[error(transparent)]
    Engine(LoadError),
}

impl Modules {
    /// The module that comes with this software, `exact-mirroring`, for a host with this data folder: what modules were
    /// swapped for is kept there.
    ///
    /// # Errors
    /// It was not built into this software, for want of a compiler; the machine cannot run it; or the folder cannot be read.
    pub fn bundled(data: &Path) -> Result<Self, ModulesError> {
        let engine = engine(data)?;
        let store = Arc::new(Store::open(data, Arc::new(DiskIo))?);
        let news = News::start(Arc::clone(&store));
        let shadow_requests_wait = SHADOW_REQUESTS_WAIT;
        let mut modules = Self { engine, named: BTreeMap::new(), store, news, shadow_requests_wait };
        modules.add(DEFAULT_MODULE, verbatim_artifact::exact_mirroring()?)?;
        Ok(modules)
    }

    /// Adds a module, in the place of one of that name. If it was swapped for another one before, that one serves; if that
    /// cannot be had any more, a line of the log says so and this one serves.
    ///
    /// # Errors
    /// It is not a module of a known contract, or does not start.
    pub fn add(&mut self, name: &str, bytes: &[u8]) -> Result<&Inspection, ModulesError> {
        let load = |source| ModulesError::Load { name: name.to_owned(), source };
        let own = Module::load(&self.engine, bytes).map_err(load)?;
        let chosen = self.store.chosen(name).map(|sha256| self.chosen(name, &sha256));
        let is_lost = matches!(chosen, Some(None));
        let serving = chosen.flatten().unwrap_or_else(|| own.clone());
        let before = if is_lost { None } else { self.watched(name, &own, &serving) };
        let outcomes = Arc::<Outcomes>::default();
        let settings = SlotSettings {
            first: self.store.generation(name),
            before,
            observer: self.news.observer(own.digest(), Arc::clone(&outcomes)),
            ..SlotSettings::default()
        };
        let slot = Slot::with(name, serving, settings);
        let (changing, under_way) = (Mutex::new(()), UnderWay::default());
        let named = Named { slot, own, changing, under_way, outcomes };
        let named = self.named.entry(name.to_owned()).insert_entry(named);
        Ok(named.into_mut().own.inspect())
    }

    /// Adds a module from a file, or a bundled one, as [`read`] has it.
    ///
    /// # Errors
    /// As [`Self::add`], and what the operating system says.
    pub fn add_file(&mut self, name: &str, file: &Path) -> Result<&Inspection, ModulesError> {
        let io = |source| ModulesError::File { file: file.to_owned(), source };
        let bytes = read(file).map_err(io)?;
        self.add(name, &bytes)
    }

    /// What serves at present, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Arc<Generation>)> {
        self.named.iter().map(|(name, named)| (name.as_str(), named.slot.current()))
    }

    /// The module that this name was swapped for.
    fn chosen(&self, name: &str, sha256: &str) -> Option<Module> {
        match self.stored(sha256) {
            Ok(module) => {
                tracing::info!(module = name, sha256, "the module that it was swapped for serves");
                Some(module)
            }
            Err(error) => {
                tracing::error!(module = name, %error, "the module that it was swapped for cannot be had: the one that the host is started with serves");
                None
            }
        }
    }

    /// The module that served before, if what serves may still be taken back by itself: a restart does not end that.
    fn watched(&self, name: &str, own: &Module, serving: &Module) -> Option<Before> {
        let (at_ms, previous) = self.store.last_swap(name, &serving.digest().to_string())?;
        // A clock that was set back leaves it the whole time.
        let elapsed = Duration::from_millis(u64::try_from(now_ms().saturating_sub(at_ms)).unwrap_or(0));
        if elapsed >= ROLLBACK_WINDOW {
            return None;
        }
        let module = match previous.map(|sha256| self.stored(&sha256)) {
            None => own.clone(),
            Some(Ok(module)) => module,
            Some(Err(error)) => {
                tracing::warn!(module = name, %error, "the module that served before cannot be had: what serves is not taken back by itself");
                return None;
            }
        };
        let was_taken_back = self.store.was_taken_back(name, &module.digest().to_string());
        (!was_taken_back).then_some(Before { module, elapsed })
    }

    fn stored(&self, sha256: &str) -> Result<Module, SwapError> {
        Ok(Module::load(&self.engine, &self.store.bytes(sha256)?)?)
    }
}

/// An engine that keeps what it compiled in the data folder, where the host alone writes. A start without that takes longer
/// and is no other.
fn engine(data: &Path) -> Result<Engine, ModulesError> {
    let modules = data.join(store::FOLDER);
    // The folder of compiled modules is for this user alone; the others are as ever. What fails here fails below, too.
    let _ = std::fs::create_dir_all(&modules);
    let folder = modules.join(COMPILED);
    Engine::with_cache(Limits::default(), &folder).or_else(|error| {
        tracing::warn!(%error, "modules are compiled at every start");
        Engine::new(Limits::default()).map_err(ModulesError::Engine)
    })
}

impl Judges for Modules {
    fn knows(&self, module: &str) -> bool {
        self.named.contains_key(module)
    }

    fn names(&self) -> BTreeMap<String, String> {
        let said = |generation: &Generation| generation.module().inspect().description.name.clone();
        self.iter().map(|(name, generation)| (name.to_owned(), said(&generation))).collect()
    }

    fn check_keys(&self, module: &str, keys: &[(String, String)]) -> Result<(), Misconfigured> {
        let named = self.named.get(module);
        named.map_or(Ok(()), |named| named.slot.current().module().check_configuration(keys))
    }

    fn judges(&self, module: &str, exact: bool) -> bool {
        let named = self.named.get(module);
        named.is_some_and(|named| swap::judges(named.slot.current().module(), exact))
    }

    fn digest(&self, _: &str) -> Option<Digest> {
        // Each of these judges says itself what it is.
        None
    }

    fn judge(&self, module: &str) -> Result<Box<dyn Judge<OwnPartition>>, Failure> {
        match self.named.get(module) {
            Some(found) => Ok(Box::new(found.slot.follower::<OwnPartition>())),
            None => Err(Failure::Start {
                text: format!("there is no module of this name, produce.module=`{module}`"),
            }),
        }
    }
}

impl fmt::Debug for Modules {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.named.iter().map(|(name, named)| (name, &named.slot))).finish()
    }
}
