//! What is tested.

use std::fmt;

use verbatim_engine::contract::{Membership, ProducePath};
use verbatim_engine::{Engine, Failure, Judge, Limits, LoadError, Memory, Module, Native};

type Make = dyn Fn() -> Result<Box<dyn Judge<Memory>>, Failure> + Send + Sync;

/// A module or a policy that is compiled in: something that makes as many judges as a test needs.
pub struct Subject {
    make: Box<Make>,
}

impl Subject {
    /// Something that makes judges in its own way.
    pub fn new(make: impl Fn() -> Result<Box<dyn Judge<Memory>>, Failure> + Send + Sync + 'static) -> Self {
        Self { make: Box::new(make) }
    }

    /// A module that was loaded.
    #[must_use]
    pub fn module(module: &Module) -> Self {
        let module = module.clone();
        Self::new(move || Ok(Box::new(module.instance::<Memory>()?)))
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
