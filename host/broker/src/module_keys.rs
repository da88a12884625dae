//! A module's own keys among a topic's properties: the module's name, a dot, and a name of the module's choice.
//!
//! The host neither reads nor judges their values, it keeps them for the module. A key may be set while the topic is judged by
//! another module, so that rules are there before the switch; and it stays, to be shown and removed, when its module is gone.

use verbatim_engine::MAX_KEY_LEN;

use crate::errors::ApiError;
use crate::judges::Judges;
use crate::properties::Property;
use crate::settings::Values;

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
/// INVALID_CONFIG that names the modules there are, where the key is none of theirs.
pub(crate) fn check_name(judges: &dyn Judges, name: &str) -> Result<(), ApiError> {
    let modules = judges.names();
    let is_of = |module: &String| {
        let rest = name.strip_prefix(module.as_str()).and_then(|rest| rest.strip_prefix('.'));
        !module.is_empty() && rest.is_some_and(|rest| !rest.is_empty())
    };
    if modules.iter().any(is_of) {
        return Ok(());
    }
    let modules: Vec<String> = modules.into_iter().collect();
    let modules = modules.join(", ");
    Err(unknown(
        name,
        &format!("one that DescribeConfigs lists, or a module's name, a dot and more, modules=`{modules}`"),
    ))
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
