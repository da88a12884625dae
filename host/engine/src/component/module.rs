//! A module that was checked against the contract.

use std::any::{Any, TypeId};
use std::sync::{Arc, Mutex, PoisonError};

use verbatim_contract::Description;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, InstancePre, Linker};

use super::bindings::exports::verbatim::produce::{configuration, membership, produce_path};
use super::bindings::verbatim::produce::{config, log, trace, types};
use super::state::{Host, State};
use super::{Engine, Instance, Limits, LoadError, instance};
use crate::{Digest, Failure, Memory, Misconfigured, Partition};

/// The version of the contract (the package `verbatim:produce` in `wit/`) that this host speaks.
pub const CONTRACT_VERSION: &str = "1.0.0";

/// The longest module file that is looked at, in bytes.
pub const MAX_MODULE_LEN: usize = 64 << 20;

const PACKAGE: &str = "verbatim:produce/";
const MAX_NAME_LEN: usize = 128;

/// A compiled module of a known contract version that starts and says what it is. Cheap to clone.
#[derive(Clone)]
pub struct Module {
    shared: Arc<Shared>,
}

struct Shared {
    engine: Engine,
    component: Component,
    inspection: Inspection,
    /// What instances are made from, by the kind of partition.
    linked: Mutex<Vec<(TypeId, Arc<dyn Any + Send + Sync>)>>,
}

/// What can be said of a module without letting it judge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// What it says of itself.
    pub description: Description,
    /// The version of the contract that it was built for.
    pub contract_version: String,
    /// The interfaces that it imports.
    pub imports: Vec<String>,
    /// The interfaces that it exports.
    pub exports: Vec<String>,
    /// It decides itself who may join the in-sync set (R41b).
    pub decides_membership: bool,
    /// It judges itself which of its keys a topic may have, [`Module::check_configuration`].
    pub checks_configuration: bool,
    /// SHA-256 of its file.
    pub digest: Digest,
}

impl Module {
    /// Compiles a module and checks it: its contract version, its imports and exports, that it starts, and that it says
    /// what it is. It has one of the worlds of `wit/worlds.wit`.
    ///
    /// # Errors
    /// The first thing that is not as it must be, by name.
    pub fn load(engine: &Engine, bytes: &[u8]) -> Result<Self, LoadError> {
        if bytes.len() > MAX_MODULE_LEN {
            return Err(LoadError::TooLarge { len: bytes.len() });
        }
        looks_like_a_component(bytes)?;
        let component = Component::new(engine.wasmtime(), bytes)
            .map_err(|error| LoadError::Invalid { text: format!("{error:#}") })?;
        let (imports, exports) = interfaces(engine, &component);
        names_fit(&imports, &exports)?;
        let linked = Linked::<Memory>::new(engine, &component)?;
        let inspection = Inspection {
            decides_membership: linked.membership.is_some(),
            checks_configuration: linked.configuration.is_some(),
            description: described(instance::describe(engine, &linked)?)?,
            contract_version: contract_version(&exports),
            imports,
            exports,
            digest: Digest::of(bytes),
        };
        let linked = Mutex::new(Vec::new());
        Ok(Self { shared: Arc::new(Shared { engine: engine.clone(), component, inspection, linked }) })
    }

    /// What can be said of it.
    #[must_use]
    pub fn inspect(&self) -> &Inspection {
        &self.shared.inspection
    }

    /// SHA-256 of its file.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.shared.inspection.digest
    }

    /// What its instances may have.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.shared.engine.limits()
    }

    /// Links the host's functions for this kind of partition, once: instances are then made in microseconds.
    ///
    /// # Errors
    /// When it cannot be linked, although it could as it was loaded.
    pub fn prepare<P: Partition>(&self) -> Result<(), Failure> {
        self.linked::<P>().map(|_| ())
    }

    /// Makes an instance: the judge of one append thread, for one kind of partition.
    ///
    /// # Errors
    /// When the module does not start, although it did as it was loaded.
    pub fn instance<P: Partition>(&self) -> Result<Instance<P>, Failure> {
        let description = self.inspect().description.clone();
        Instance::start(self.shared.engine.clone(), self.linked()?, description)
    }

    /// Asks the module whether a topic may have these keys, all of those under the name that it describes itself by, with their
    /// values. It is asked in an instance of its own, within the limits of any call; one that does not check its configuration
    /// takes any. Blocks the thread for as long as the module may take.
    ///
    /// # Errors
    /// What the module says is wrong with them, or that it failed.
    pub fn check_configuration(&self, keys: &[(String, String)]) -> Result<(), Misconfigured> {
        if !self.inspect().checks_configuration {
            return Ok(());
        }
        let linked = self.linked::<Memory>()?;
        instance::check_configuration(&self.shared.engine, &linked, keys)
    }

    fn linked<P: Partition>(&self) -> Result<Arc<Linked<P>>, Failure> {
        let find = |all: &[(TypeId, Arc<dyn Any + Send + Sync>)]| {
            let found = all.iter().find(|(kind, _)| *kind == TypeId::of::<P>())?;
            Arc::clone(&found.1).downcast::<Linked<P>>().ok()
        };
        let all = || self.shared.linked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(linked) = find(&all()) {
            return Ok(linked);
        }
        // Without the lock: who only looks must not wait for who links.
        let linked = Linked::<P>::new(&self.shared.engine, &self.shared.component);
        let linked = Arc::new(linked.map_err(|error| Failure::Start { text: error.to_string() })?);
        let mut all = all();
        if let Some(linked) = find(&all) {
            return Ok(linked);
        }
        all.push((TypeId::of::<P>(), Arc::<Linked<P>>::clone(&linked)));
        Ok(linked)
    }
}

impl std::fmt::Debug for Module {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Module").field("inspection", self.inspect()).finish_non_exhaustive()
    }
}

/// A component with the host's functions linked in: what instances are made from in a few microseconds.
pub(super) struct Linked<P: Partition> {
    pub(super) pre: InstancePre<State<P>>,
    pub(super) produce_path: produce_path::GuestIndices,
    pub(super) membership: Option<membership::GuestIndices>,
    pub(super) configuration: Option<configuration::GuestIndices>,
}

impl<P: Partition> Linked<P> {
    fn new(engine: &Engine, component: &Component) -> Result<Self, LoadError> {
        let pre = linker(engine)
            .and_then(|linker| linker.instantiate_pre(component))
            .map_err(|error| LoadError::UnknownImport { symbol: format!("{error:#}") })?;
        let missing = |error: wasmtime::Error| LoadError::MissingExport { symbol: format!("{error:#}") };
        let produce_path = produce_path::GuestIndices::new(&pre).map_err(missing)?;
        let has = |name| component.get_export_index(None, interface(name).as_str()).is_some();
        let membership = has("membership").then(|| membership::GuestIndices::new(&pre).map_err(missing));
        let configuration =
            has("configuration").then(|| configuration::GuestIndices::new(&pre).map_err(missing));
        let (membership, configuration) = (membership.transpose()?, configuration.transpose()?);
        Ok(Self { pre, produce_path, membership, configuration })
    }
}

fn linker<P: Partition>(engine: &Engine) -> wasmtime::Result<Linker<State<P>>> {
    let mut linker = Linker::new(engine.wasmtime());
    config::add_to_linker::<_, Host<P>>(&mut linker, |state| state)?;
    log::add_to_linker::<_, Host<P>>(&mut linker, |state| state)?;
    trace::add_to_linker::<_, Host<P>>(&mut linker, |state| state)?;
    types::add_to_linker::<_, Host<P>>(&mut linker, |state| state)?;
    Ok(linker)
}

/// By the first eight bytes: magic, version and layer.
fn looks_like_a_component(bytes: &[u8]) -> Result<(), LoadError> {
    let found = match bytes {
        [0, b'a', b's', b'm', _, _, 1, 0, ..] => return Ok(()),
        [0, b'a', b's', b'm', 1, 0, 0, 0, ..] => {
            "a core WebAssembly module, which `verbatim module wrap` wraps as one"
        }
        [0, b'a', b's', b'm', ..] => "WebAssembly of another version",
        [] => "an empty file",
        _ => "something else",
    };
    Err(LoadError::NotAComponent { found })
}

/// The names of what is imported and exported, instances only: that is what an interface is.
fn interfaces(engine: &Engine, component: &Component) -> (Vec<String>, Vec<String>) {
    let component = component.component_type();
    let imports = component.imports(engine.wasmtime()).map(|(name, item)| shown(name, &item.ty)).collect();
    let exports = component.exports(engine.wasmtime()).map(|(name, item)| shown(name, &item.ty)).collect();
    (imports, exports)
}

fn shown(name: &str, item: &ComponentItem) -> String {
    match item {
        ComponentItem::ComponentInstance(_) => name.to_owned(),
        ComponentItem::ComponentFunc(_) | ComponentItem::CoreFunc(_) => format!("function {name}"),
        ComponentItem::Module(_) => format!("core module {name}"),
        ComponentItem::Component(_) => format!("component {name}"),
        ComponentItem::Type(_) | ComponentItem::Resource(_) => format!("type {name}"),
    }
}

/// Every import must be the contract's, and everything of the contract must be of a version that this host speaks; other
/// exports are the module's own affair.
fn names_fit(imports: &[String], exports: &[String]) -> Result<(), LoadError> {
    for name in imports.iter().chain(exports).filter(|name| name.starts_with(PACKAGE)) {
        let version = name.split_once('@').map_or("", |(_, version)| version);
        if compatible(version) != compatible(CONTRACT_VERSION) {
            return Err(LoadError::ContractVersion { found: name.clone() });
        }
    }
    match imports.iter().find(|name| !name.starts_with(PACKAGE)) {
        Some(foreign) => Err(LoadError::UnknownImport { symbol: foreign.clone() }),
        None => Ok(()),
    }
}

/// The version in the name of the export that was found before.
fn contract_version(exports: &[String]) -> String {
    let mut names =
        exports.iter().filter_map(|name| name.strip_prefix(PACKAGE)?.strip_prefix("produce-path@"));
    names.next().unwrap_or(CONTRACT_VERSION).to_owned()
}

/// What must be equal for two versions to fit: the major version and, before 1.0, the minor one.
fn compatible(version: &str) -> Option<(u64, u64)> {
    let mut numbers = version.split('.').map(|number| number.parse().ok());
    let (major, minor) = (numbers.next()??, numbers.next()??);
    Some(if major == 0 { (0, minor) } else { (major, 0) })
}

fn interface(name: &str) -> String {
    format!("{PACKAGE}{name}@{CONTRACT_VERSION}")
}

fn described(description: Description) -> Result<Description, LoadError> {
    for (field, value) in [("name", &description.name), ("version", &description.version)] {
        let printable = value.chars().all(|char| !char.is_control());
        if value.is_empty() || value.len() > MAX_NAME_LEN || !printable {
            let start = crate::stage::cut_text(value, MAX_NAME_LEN).escape_debug();
            let text = format!("expected 1 to {MAX_NAME_LEN} printable bytes, {field}=`{start}`");
            return Err(LoadError::Description { text });
        }
    }
    Ok(description)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_fit_by_major_and_before_1_0_by_minor() {
        let fit = |a, b| compatible(a) == compatible(b) && compatible(a).is_some();
        assert!(fit("0.1.0", "0.1.7") && fit("1.0.0", "1.4.2"));
        assert!(!fit("0.1.0", "0.2.0") && !fit("1.0.0", "2.0.0") && !fit("0.1.0", "1.1.0"));
        for odd in ["", "1", "x.y.z", "1.", "-1.0.0", "99999999999999999999.0.0"] {
            assert_eq!(compatible(odd), None, "{odd}");
        }
    }

    #[test]
    fn the_version_is_that_of_the_contract() {
        let wit = include_str!("../../../../wit/worlds.wit");
        assert!(wit.contains(&format!("package verbatim:produce@{CONTRACT_VERSION};")));
    }
}
