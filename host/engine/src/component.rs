//! Modules in a sandbox: an [`Engine`] compiles, a [`Module`] is checked, an [`Instance`] judges.

mod bindings;
#[cfg(feature = "cache")]
mod cache;
mod convert;
mod deadline;
mod engine;
mod instance;
mod limits;
mod load_error;
mod module;
mod state;

pub use engine::Engine;
pub use instance::Instance;
pub use limits::Limits;
pub use load_error::LoadError;
pub use module::{CONTRACT_VERSION, Inspection, MAX_MODULE_LEN, Module};
