//! The rates that clients may use, by client id, as they stand in the catalogue.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Bytes that a client moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Direction {
    /// Produce: `producer_byte_rate`.
    Write,
    /// Fetch: `consumer_byte_rate`.
    Read,
}

impl Direction {
    /// Both.
    pub(crate) const ALL: [Self; 2] = [Self::Write, Self::Read];

    /// Kafka's name of the quota.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Write => "producer_byte_rate",
            Self::Read => "consumer_byte_rate",
        }
    }
}

/// All quotas: by client id, `None` for the default of all others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rates(BTreeMap<Option<String>, Rate>);

/// Bytes a second, at least 1, in each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Rate {
    write: Option<u64>,
    read: Option<u64>,
}

impl Rates {
    /// The rate that holds for a client: its own, else the default.
    pub(crate) fn of(&self, direction: Direction, client: &str) -> Option<u64> {
        if self.0.is_empty() {
            return None;
        }
        let own = (!client.is_empty()).then(|| Some(client.to_owned()));
        own.and_then(|own| self.get(&own, direction)).or_else(|| self.get(&None, direction))
    }

    /// The rate of one entry.
    pub(crate) fn get(&self, client: &Option<String>, direction: Direction) -> Option<u64> {
        self.0.get(client).and_then(|rate| match direction {
            Direction::Write => rate.write,
            Direction::Read => rate.read,
        })
    }

    /// Sets or removes the rate of one entry.
    pub(crate) fn set(&mut self, client: Option<&str>, direction: Direction, value: Option<u64>) {
        let client = client.map(str::to_owned);
        let rate = self.0.entry(client.clone()).or_default();
        match direction {
            Direction::Write => rate.write = value,
            Direction::Read => rate.read = value,
        }
        if *rate == Rate::default() {
            self.0.remove(&client);
        }
    }

    /// Client ids with a rate of their own, the default (`None`) first.
    pub(crate) fn clients(&self) -> impl Iterator<Item = &Option<String>> {
        self.0.keys()
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// As the catalogue keeps them.
    pub(crate) fn to_stored(&self) -> Vec<StoredRate> {
        let stored = |(client, rate): (&Option<String>, &Rate)| StoredRate {
            client_id: client.clone(),
            producer_byte_rate: rate.write,
            consumer_byte_rate: rate.read,
        };
        self.0.iter().map(stored).collect()
    }

    /// From what the catalogue kept.
    pub(crate) fn from_stored(stored: Vec<StoredRate>) -> Self {
        let rate = |one: StoredRate| {
            (one.client_id, Rate { write: one.producer_byte_rate, read: one.consumer_byte_rate })
        };
        Self(stored.into_iter().map(rate).collect())
    }
}

/// One entry in the catalogue's file; no client id stands for the default.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StoredRate {
    client_id: Option<String>,
    producer_byte_rate: Option<u64>,
    consumer_byte_rate: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_its_own_rate_else_the_default_in_each_direction() {
        let mut rates = Rates::default();
        rates.set(Some("a"), Direction::Write, Some(5));
        rates.set(None, Direction::Write, Some(7));
        rates.set(None, Direction::Read, Some(9));
        let both = |client| Direction::ALL.map(|direction| rates.of(direction, client));
        assert_eq!(both("a"), [Some(5), Some(9)]);
        assert_eq!(both("b"), [Some(7), Some(9)]);
        assert_eq!(both(""), [Some(7), Some(9)]);
        assert_eq!(Rates::from_stored(rates.to_stored()), rates);
    }

    #[test]
    fn an_entry_goes_with_its_last_rate() {
        let mut rates = Rates::default();
        rates.set(Some("a"), Direction::Write, Some(5));
        rates.set(Some("a"), Direction::Read, None);
        assert_eq!(rates.len(), 1);
        rates.set(Some("a"), Direction::Write, None);
        assert_eq!(rates, Rates::default());
    }
}
