//! What compiles modules and keeps their time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Resource, getrlimit};
use wasmtime::Config;

#[cfg(feature = "cache")]
use super::cache;
use super::{Limits, LoadError};

const TICK: Duration = Duration::from_millis(1);

/// Below this limit of the process's address space, memories reserve no more than they may use: 4 GiB each, which makes
/// bounds checks free, would soon not fit.
const AMPLE_ADDRESS_SPACE: u64 = 1 << 40;

/// Compiles modules. Cheap to clone; one serves a whole process. Its ticker thread ends with the last clone and the last
/// module and instance made from it.
#[derive(Clone, Debug)]
pub struct Engine {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    wasmtime: wasmtime::Engine,
    limits: Limits,
    #[cfg(feature = "cache")]
    cache: Option<wasmtime::Cache>,
    _ticker: Ticker,
}

impl Engine {
    /// An engine whose modules get these limits.
    ///
    /// # Errors
    /// When this machine cannot compile or no thread can be started.
    pub fn new(limits: Limits) -> Result<Self, LoadError> {
        Self::build(
            limits,
            &config(limits),
            #[cfg(feature = "cache")]
            None,
        )
    }

    /// The same, with a folder where compiled modules are kept, so that the same file is not compiled again by the same
    /// version of this software with the same settings. It is made if it is not there.
    ///
    /// What lies there is machine code that is run: nobody else may be able to write to the folder, and its files are not to be
    /// given to others. What cannot be read, or written, is compiled.
    ///
    /// # Errors
    /// As [`Self::new`]; and where the folder cannot be made, or others may write to it.
    #[cfg(feature = "cache")]
    pub fn with_cache(limits: Limits, folder: &std::path::Path) -> Result<Self, LoadError> {
        let cache = cache::open(folder)?;
        let mut config = config(limits);
        config.cache(Some(cache.clone()));
        Self::build(limits, &config, Some(cache))
    }

    /// How many modules came out of the folder, and how many had to be compiled; none without a folder.
    #[cfg(feature = "cache")]
    #[must_use]
    pub fn cached(&self) -> Option<(usize, usize)> {
        self.shared.cache.as_ref().map(|cache| (cache.cache_hits(), cache.cache_misses()))
    }

    fn build(
        limits: Limits,
        config: &Config,
        #[cfg(feature = "cache")] cache: Option<wasmtime::Cache>,
    ) -> Result<Self, LoadError> {
        let wasmtime = wasmtime::Engine::new(config)
            .map_err(|error| LoadError::Engine { text: format!("{error:#}") })?;
        let ticker = Ticker::start(wasmtime.clone())
            .map_err(|error| LoadError::Engine { text: format!("no ticker thread: {error}") })?;
        let shared = Shared {
            wasmtime,
            limits,
            #[cfg(feature = "cache")]
            cache,
            _ticker: ticker,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// What its modules may have.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.shared.limits
    }

    pub(super) fn wasmtime(&self) -> &wasmtime::Engine {
        &self.shared.wasmtime
    }
}

fn config(limits: Limits) -> Config {
    let mut config = Config::new();
    config.epoch_interruption(true);
    // On by default, and two to three times the cost of a call.
    config.concurrency_support(false);
    let address_space = getrlimit(Resource::As).current.unwrap_or(u64::MAX);
    if address_space < AMPLE_ADDRESS_SPACE {
        config.memory_reservation(u64::try_from(limits.memory_bytes).unwrap_or(u64::MAX));
        config.memory_reservation_for_growth(0);
        config.memory_guard_size(64 << 10);
    }
    config
}

/// Raises the epoch every millisecond, until dropped.
#[derive(Debug)]
struct Ticker {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    fn start(engine: wasmtime::Engine) -> std::io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let ticker = std::thread::Builder::new().name("module-ticker".to_owned());
        let thread = ticker.spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                std::thread::park_timeout(TICK);
                engine.increment_epoch();
            }
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It cannot have panicked, and a drop could not say so.
            let _ = thread.join();
        }
    }
}
