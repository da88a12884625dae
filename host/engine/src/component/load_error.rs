//! Why a file is not a module that this host can use.

use crate::Failure;

use super::module::{CONTRACT_VERSION, MAX_MODULE_LEN};

/// Why a module was not loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// This machine cannot run modules.
    #[error("modules cannot run here: {text}")]
    Engine {
        /// Why.
        text: String,
    },
    /// The file is too large.
    #[error("a module has at most {MAX_MODULE_LEN} bytes, length=`{len}`")]
    TooLarge {
        /// Its length in bytes.
        len: usize,
    },
    /// The file is something else.
    #[error("expected a WebAssembly component, found {found}")]
    NotAComponent {
        /// What it looks like.
        found: &'static str,
    },
    /// The component is damaged or uses what this host does not know.
    #[error("the component is not valid: {text}")]
    Invalid {
        /// Where and why.
        text: String,
    },
    /// The module was built for another version of the contract.
    #[error("the module is built for {found}, this host has verbatim:produce@{CONTRACT_VERSION}")]
    ContractVersion {
        /// The name in the module that carries the version.
        found: String,
    },
    /// The module wants something that this host does not offer.
    #[error(
        "the module imports what verbatim:produce@{CONTRACT_VERSION}, which this host has, does not offer: {symbol}"
    )]
    UnknownImport {
        /// The import.
        symbol: String,
    },
    /// The module lacks something that the contract asks for, or has it with another type.
    #[error("the module does not export what verbatim:produce@{CONTRACT_VERSION} asks for: {symbol}")]
    MissingExport {
        /// The export.
        symbol: String,
    },
    /// What the module says of itself is not acceptable.
    #[error("the module's description is not acceptable: {text}")]
    Description {
        /// Field, value and expectation.
        text: String,
    },
    /// The module fails as it is started or asked what it is.
    #[error(transparent)]
    Failed(#[from] Failure),
}
