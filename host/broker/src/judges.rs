//! Where a broker gets its judges from: modules by name, whatever they run in.

use std::collections::BTreeSet;

use verbatim_contract::{Membership, ProducePath};
use verbatim_engine::{Digest, Failure, Judge, Native};

use crate::partition::OwnPartition;
use crate::properties::DEFAULT_MODULE;

/// The modules that a host holds.
pub trait Judges: Send + Sync + 'static {
    /// Whether there is a module of this name.
    fn knows(&self, module: &str) -> bool;

    /// What the modules are called: as topics choose them, and as they call themselves where that differs. A module's own keys
    /// begin with such a name.
    fn names(&self) -> BTreeSet<String>;

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

/// One policy that is compiled in, under the default module's name: for tests, and for brokers that want no sandbox.
#[derive(Clone, Copy, Debug, Default)]
pub struct NativeJudges<R>(
    /// The policy.
    pub R,
);

impl<R: ProducePath + Membership + Clone + Send + Sync + 'static> Judges for NativeJudges<R> {
    fn knows(&self, module: &str) -> bool {
        module == DEFAULT_MODULE
    }

    fn names(&self) -> BTreeSet<String> {
        BTreeSet::from([DEFAULT_MODULE.to_owned(), self.0.describe().name])
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
