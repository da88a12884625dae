//! Where a broker gets its judges from: modules by name, whatever they run in.

use std::collections::BTreeMap;
use std::sync::Weak;

use verbatim_contract::{Configuration, Membership, ProducePath};
use verbatim_engine::{Digest, Failure, Judge, Misconfigured, Native};

use crate::module_keys;
use crate::partition::OwnPartition;
use crate::properties::DEFAULT_MODULE;
use crate::shared::Shared;

/// The modules that a host holds.
pub trait Judges: Send + Sync + 'static {
    /// Whether there is a module of this name.
    fn knows(&self, module: &str) -> bool;

    /// What the modules describe themselves as, by the names that topics choose them by. A module's own keys begin with the
    /// former: that is what it asks for.
    fn names(&self) -> BTreeMap<String, String>;

    /// Whether the module of this name takes these keys with their values, all that a topic has of it. Blocks the thread for as
    /// long as the module may take.
    ///
    /// # Errors
    /// What it says is wrong with them, or that it failed.
    fn check_keys(&self, module: &str, keys: &[(String, String)]) -> Result<(), Misconfigured> {
        let _ = (module, keys);
        Ok(())
    }

    /// Whether the module of this name, one that is known, judges exact topics, or normal ones. Topics that it does not judge
    /// cannot choose it.
    fn judges(&self, module: &str, exact: bool) -> bool {
        let _ = (module, exact);
        true
    }

    /// By which digest failures are counted of a judge that does not say itself what it is ([`Judge::follow`]); `None` where there
    /// is no such module, or where each of its judges does.
    fn digest(&self, module: &str) -> Option<Digest>;

    /// A judge for one append thread, which keeps it: a module that can be swapped is judged by a
    /// [`Follower`](verbatim_engine::Follower).
    ///
    /// # Errors
    /// There is no such module, or no instance of it can be made.
    fn judge(&self, module: &str) -> Result<Box<dyn Judge<OwnPartition>>, Failure>;
}

/// Which topics choose a module: for a host that swaps modules. Cheap to clone; of a broker that was shut down it knows none.
#[derive(Clone, Debug)]
pub struct Choosing(pub(crate) Weak<Shared>);

impl Choosing {
    /// The names of the exact topics, or of the normal ones, whose `produce.module` is this. A topic that is being promoted is
    /// both.
    #[must_use]
    pub fn topics(&self, module: &str, exact: bool) -> Vec<String> {
        let Some(shared) = self.0.upgrade() else { return Vec::new() };
        let snapshot = shared.catalogue.snapshot();
        let chosen = snapshot.topics.values().filter(|topic| topic.settings.module == module);
        let of_mode =
            chosen.filter(|topic| if exact { topic.is_exact_on_disk() } else { !topic.settings.exact });
        of_mode.map(|topic| topic.name.clone()).collect()
    }

    /// The topics whose `produce.module` is this and that have keys of a module that describes itself so, each with these keys.
    #[must_use]
    pub fn keys(&self, module: &str, described: &str) -> Vec<(String, Vec<(String, String)>)> {
        let Some(shared) = self.0.upgrade() else { return Vec::new() };
        let (snapshot, names) = (shared.catalogue.snapshot(), shared.judges.names());
        let chosen = snapshot.topics.values().filter(|topic| topic.settings.module == module);
        let keys = |values| module_keys::of_module(values, &names, described);
        let keys = chosen.map(|topic| (topic.name.clone(), keys(&topic.values)));
        keys.filter(|(_, keys)| !keys.is_empty()).collect()
    }
}

/// One policy that is compiled in, under the default module's name: for tests, and for brokers that want no sandbox.
#[derive(Clone, Copy, Debug, Default)]
pub struct NativeJudges<R>(
    /// The policy.
    pub R,
);

impl<R: ProducePath + Membership + Configuration + Clone + Send + Sync + 'static> Judges for NativeJudges<R> {
    fn knows(&self, module: &str) -> bool {
        module == DEFAULT_MODULE
    }

    fn names(&self) -> BTreeMap<String, String> {
        BTreeMap::from([(DEFAULT_MODULE.to_owned(), self.0.describe().name)])
    }

    fn check_keys(&self, _: &str, keys: &[(String, String)]) -> Result<(), Misconfigured> {
        self.0.check(keys).map_err(Misconfigured::Refused)
    }

    fn judges(&self, _: &str, exact: bool) -> bool {
        let description = self.0.describe();
        if exact { description.supports_exact } else { description.supports_normal }
    }

    fn digest(&self, module: &str) -> Option<Digest> {
        // A compiled-in policy has no file of its own.
        self.knows(module).then(|| Digest::of(module.as_bytes()))
    }

    fn judge(&self, module: &str) -> Result<Box<dyn Judge<OwnPartition>>, Failure> {
        if self.knows(module) {
            return Ok(Box::new(Native::new(self.0.clone())));
        }
        Err(Failure::Start { text: format!("there is no module of this name, produce.module=`{module}`") })
    }
}
