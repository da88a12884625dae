//! What a module must know of the topics that choose it.

use verbatim_broker::Choosing;
use verbatim_engine::Module;

use super::SwapError;
use super::status::described;

/// The topics of a host, as far as their module is concerned.
pub trait Topics {
    /// The names of the exact topics (true) or the normal ones (false) that choose a module by this name.
    fn of_mode(&self, module: &str, exact: bool) -> Vec<String>;

    /// The topics that choose a module by this name and have keys of one that describes itself so, each with these keys.
    fn keys(&self, module: &str, described: &str) -> Vec<(String, Vec<(String, String)>)>;
}

impl Topics for Choosing {
    fn of_mode(&self, module: &str, exact: bool) -> Vec<String> {
        self.topics(module, exact)
    }

    fn keys(&self, module: &str, described: &str) -> Vec<(String, Vec<(String, String)>)> {
        Self::keys(self, module, described)
    }
}

/// Whether the module takes the keys, under its own name, of the topics that choose it by `name`.
pub(super) fn takes_keys(name: &str, module: &Module, topics: &dyn Topics) -> Result<(), SwapError> {
    let inspection = module.inspect();
    if !inspection.checks_configuration {
        return Ok(());
    }
    for (topic, keys) in topics.keys(name, &inspection.description.name) {
        if let Err(source) = module.check_configuration(&keys) {
            return Err(SwapError::Keys {
                name: name.to_owned(),
                described: described(module),
                topic,
                source,
            });
        }
    }
    Ok(())
}
