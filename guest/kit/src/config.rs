//! A module's own configuration.

use alloc::string::String;
use alloc::vec::Vec;
use core::str::FromStr;

use verbatim_contract::{Callbacks, Reason, Refusal};

use crate::refuse;

/// The value of one of the module's own keys, or `default` where the operator has set none.
///
/// ```
/// use verbatim_kit::{setting, testing::Log};
///
/// let mut log = Log::default().config("strict.records.max", "20");
/// assert_eq!(setting(&mut log, "strict.records.max", 10), Ok(20));
/// assert_eq!(setting(&mut log, "strict.bytes.max", 10), Ok(10));
/// ```
///
/// # Errors
/// A value that is none of its type refuses the request with INVALID_CONFIG (40): a writer must not go on by settings that
/// the operator did not mean.
pub fn setting<T: FromStr>(log: &mut dyn Callbacks, key: &str, default: T) -> Result<T, Refusal> {
    let Some(value) = log.config(key) else { return Ok(default) };
    let wrong = || {
        let expectation =
            alloc::format!("the module's configuration must be a {}", core::any::type_name::<T>());
        refuse(Reason::Other(INVALID_CONFIG), expectation, key, &value)
    };
    value.trim().parse().map_err(|_| wrong())
}

/// The value of one of the module's own keys as a list: what stands between commas, without blanks around it. Empty where
/// the operator has set nothing.
pub fn list(log: &mut dyn Callbacks, key: &str) -> Vec<String> {
    items(&log.config(key).unwrap_or_default()).map(String::from).collect()
}

/// The items of a value that is a list, as [`list`] has them.
pub fn items(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// Kafka's code for a configuration that is wrong.
const INVALID_CONFIG: u16 = 40;
