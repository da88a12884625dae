//! What is tested.

use std::fmt;

use verbatim_engine::contract::{Membership, ProducePath};
use verbatim_engine::{Engine, Failure, Judge, Limits, LoadError, Memory, Misconfigured, Module, Native};

type Make = dyn Fn() -> Result<Box<dyn Judge<Memory>>, Failure> + Send + Sync;
/// Whether a topic may have these keys.
pub(crate) type Check = dyn Fn(&[(String, String)]) -> Result<(), Misconfigured> + Send + Sync;

/// A module or a policy that is compiled in: something that makes as many judges as a test needs.
pub struct Subject {
    make: Box<Make>,
    check: Option<Box<Check>>,
}

impl Subject {
    /// Something that makes judges in its own way.
    pub fn new(make: impl Fn() -> Result<Box<dyn Judge<Memory>>, Failure> + Send + Sync + 'static) -> Self {
        Self { make: Box::new(make), check: None }
    }

    /// A module that was loaded.
    #[must_use]
    pub fn module(module: &Module) -> Self {
        let checks = module.inspect().checks_configuration;
        let (asked, module) = (module.clone(), module.clone());
        let subject = Self::new(move || Ok(Box::new(module.instance::<Memory>()?)));
        Self {
            check: checks.then(|| Box::new(move |keys: &_| asked.check_configuration(keys)) as _),
            ..subject
        }
    }

    /// A component's bytes, loaded within the default limits.
    ///
    /// # Errors
    /// It is not a module of a known contract, or does not start.
    pub fn component(bytes: &[u8]) -> Result<Self, LoadError> {
        Ok(Self::module(&Module::load(&Engine::new(Limits::default())?, bytes)?))
    }

    /// A policy that is compiled in; it is cloned for each judge.
    pub fn native<R>(policy: R) -> Self
    where
        R: ProducePath + Membership + Clone + Send + Sync + 'static,
    {
        Self::new(move || Ok(Box::new(Native::new(policy.clone()))))
    }

    /// What it says of a topic's keys, if it checks its configuration; asked in an instance of its own each time.
    pub(crate) fn check(&self) -> Option<&Check> {
        self.check.as_deref()
    }

    /// A new judge.
    ///
    /// # Errors
    /// The module does not start, although it did before.
    pub fn judge(&self) -> Result<Box<dyn Judge<Memory>>, Failure> {
        (self.make)()
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subject").finish_non_exhaustive()
    }
}
