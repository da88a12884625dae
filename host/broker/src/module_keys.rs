//! A module's own keys among a topic's properties: the name that the module describes itself by, a dot, and a name of the
//! module's choice.
//!
//! The host keeps them for the module, and asks it whether it takes them: as they are set, and as the topic chooses it. A key may
//! be set while the topic is judged by another module, so that rules are there before the switch; and it stays, to be shown and
//! removed, when its module is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use verbatim_engine::MAX_KEY_LEN;

use crate::errors::ApiError;
use crate::judges::Judges;
use crate::properties::{self, Property};
use crate::settings::{self, Values};

/// The longest value in bytes: the longest text that DescribeConfigs can show to clients of before v4.
const VALUE_BYTES_MAX: usize = 32_767;
/// Keys of modules that a topic may have.
const KEYS_MAX: usize = 256;
/// Bytes of all of them together, values included: the catalogue of topics is written as a whole with every change.
const TOTAL_BYTES_MAX: usize = 128 << 10;

/// The keys of modules among a topic's values. What is in the table of properties is the host's own, whatever modules there are.
pub(crate) fn of(values: &Values) -> impl Iterator<Item = (&String, &String)> {
    values.iter().filter(|(name, _)| Property::find(name).is_none())
}

/// The value of a key as the module asks for it, which is told nothing of the host's own properties.
pub(crate) fn get<'a>(values: &'a Values, key: &str) -> Option<&'a String> {
    values.get(key).filter(|_| Property::find(key).is_none())
}

/// Judges form and number of a topic's keys, whatever modules there are.
///
/// # Errors
/// INVALID_CONFIG naming key, value and expectation.
pub(crate) fn check_form(values: &Values) -> Result<(), ApiError> {
    let (mut count, mut total) = (0_usize, 0_usize);
    for (name, value) in of(values) {
        if !is_form(name) {
            return Err(unknown(
                name,
                "one that DescribeConfigs lists, or the name of a module, a dot and more",
            ));
        }
        if name.len() > MAX_KEY_LEN {
            let text = format!(
                "a module's key must have at most {MAX_KEY_LEN} bytes, length=`{}`, name=`{name}`",
                name.len()
            );
            return Err(ApiError::config(text));
        }
        if value.len() > VALUE_BYTES_MAX {
            let text = format!(
                "topic property {name} must have a value of at most {VALUE_BYTES_MAX} bytes, length=`{}`",
                value.len()
            );
            return Err(ApiError::config(text));
        }
        count = count.saturating_add(1);
        total = total.saturating_add(name.len()).saturating_add(value.len());
    }
    if count > KEYS_MAX {
        let text = format!("a topic must have at most {KEYS_MAX} keys of modules, number=`{count}`");
        return Err(ApiError::config(text));
    }
    if total > TOTAL_BYTES_MAX {
        let text = format!(
            "a topic's keys of modules and their values must have at most {TOTAL_BYTES_MAX} bytes together, length=`{total}`"
        );
        return Err(ApiError::config(text));
    }
    Ok(())
}

/// Judges a key that is not set yet.
///
/// # Errors
/// INVALID_CONFIG that says which keys there may be, where this is none of a module's.
pub(crate) fn check_name(judges: &dyn Judges, name: &str) -> Result<(), ApiError> {
    let names = judges.names();
    if owner(names.values(), name).is_some() {
        return Ok(());
    }
    if let Some((held, described)) = names.iter().find(|(held, _)| is_under(held, name)) {
        let text = format!(
            "unknown topic property: `{held}` is what this host calls a module that reads keys which begin with `{described}.`, \
             name=`{name}`"
        );
        return Err(ApiError::config(text));
    }
    let modules: BTreeSet<&str> = names.values().map(String::as_str).collect();
    let modules = modules.into_iter().collect::<Vec<_>>().join(", ");
    Err(unknown(
        name,
        &format!("one that DescribeConfigs lists, or a module's name, a dot and more, modules=`{modules}`"),
    ))
}

/// A topic's keys of the module that describes itself by this name, one of those names, in their order.
pub(crate) fn of_module(
    values: &Values,
    names: &BTreeMap<String, String>,
    described: &str,
) -> Vec<(String, String)> {
    let known = || names.values().map(String::as_str).chain([described]);
    let own = of(values).filter(|(name, _)| owner(known(), name) == Some(described));
    own.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Which of these modules a key belongs to: the one with the longest name, as names may have dots.
fn owner<'a>(
    described: impl Iterator<Item = &'a (impl AsRef<str> + ?Sized + 'a)>,
    key: &str,
) -> Option<&'a str> {
    described.map(AsRef::as_ref).filter(|name| is_under(name, key)).max_by_key(|name| name.len())
}

fn is_under(module: &str, key: &str) -> bool {
    let rest = key.strip_prefix(module).and_then(|rest| rest.strip_prefix('.'));
    !module.is_empty() && rest.is_some_and(|rest| !rest.is_empty())
}

/// What a module is to be asked.
struct Ask {
    /// The names by which the host holds modules that read these keys, one of which must take them.
    held: Vec<String>,
    keys: Vec<(String, String)>,
}

/// Asks the modules whether they take what a change makes of their keys: those under whose names it sets any, and the one that
/// the topic chooses from now on. What is only removed nobody is asked about, so that it can be removed always. Of several
/// modules that read the same keys the chosen one is asked; while none of them is, one that takes the keys is enough.
///
/// # Errors
/// INVALID_CONFIG with the module's text.
pub(crate) async fn check_values(
    judges: &Arc<dyn Judges>,
    (before, after): (&Values, &Values),
) -> Result<(), ApiError> {
    let asks = asks(&judges.names(), (before, after));
    if asks.is_empty() {
        return Ok(());
    }
    let judges = Arc::clone(judges);
    // A module may take its time.
    let asked = tokio::task::spawn_blocking(move || asks.iter().try_for_each(|ask| ask.put(judges.as_ref())));
    asked
        .await
        .map_err(|error| ApiError::storage(format!("a module cannot be asked about its keys: {error}")))?
}

fn asks(names: &BTreeMap<String, String>, (before, after): (&Values, &Values)) -> Vec<Ask> {
    let set = of(after).filter(|(name, value)| before.get(*name) != Some(value));
    let mut concerned: BTreeSet<&str> = set.filter_map(|(name, _)| owner(names.values(), name)).collect();
    let chosen = settings::text(after, properties::MODULE);
    let chosen_reads = names.get(chosen).map(String::as_str);
    if settings::text(before, properties::MODULE) != chosen {
        concerned.extend(chosen_reads);
    }
    let ask = |described: &str| {
        let held = names.iter().filter(|(_, reads)| *reads == described).map(|(held, _)| held.clone());
        let held = if chosen_reads == Some(described) { vec![chosen.to_owned()] } else { held.collect() };
        Ask { held, keys: of_module(after, names, described) }
    };
    concerned.into_iter().map(ask).filter(|ask| !ask.keys.is_empty()).collect()
}

impl Ask {
    fn put(&self, judges: &dyn Judges) -> Result<(), ApiError> {
        let mut refused = None;
        for module in &self.held {
            match judges.check_keys(module, &self.keys) {
                Ok(()) => return Ok(()),
                Err(error) => refused = refused.or(Some((module, error))),
            }
        }
        refused.map_or(Ok(()), |(module, error)| {
            Err(ApiError::config(format!("the module `{module}` does not take the topic's keys: {error}")))
        })
    }
}

/// Judges what a change does to the keys: new values need a module of that name, and none is a mirror's business, which would
/// carry over the source's rules, or remove the copy's.
///
/// # Errors
/// INVALID_CONFIG that names the modules there are; POLICY_VIOLATION if a mirror asks for it.
pub(crate) fn check_change(
    judges: &dyn Judges,
    (before, after): (&Values, &Values),
    by_mirror: bool,
) -> Result<(), ApiError> {
    let removed = of(before).find(|(name, _)| !after.contains_key(*name));
    let mut set = of(after).filter(|(name, value)| before.get(*name) != Some(value)).peekable();
    if by_mirror && let Some((name, _)) = removed.or(set.peek().copied()) {
        let text = format!("a module's keys are set on this host, not by a mirror, name=`{name}`");
        return Err(ApiError::policy(text));
    }
    set.try_for_each(|(name, _)| check_name(judges, name))
}

fn is_form(name: &str) -> bool {
    name.split_once('.').is_some_and(|(module, rest)| !module.is_empty() && !rest.is_empty())
}

fn unknown(name: &str, expected: &str) -> ApiError {
    ApiError::config(format!("unknown topic property, expected {expected}, name=`{name}`"))
}
