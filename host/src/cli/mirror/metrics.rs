//! The figures of mirrors for `/metrics`, of the host that they copy into or of `verbatim mirror` itself.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use verbatim::broker::metrics::{Family, Kind, More, Out};
use verbatim::mirror::mirror::state::{PartitionStatus, Snapshot, State};

use super::figures::Totals;

/// Partitions that are shown one by one, of all mirrors.
const PARTITIONS_MAX: usize = 20_000;

const PARTITIONS: Family = Family {
    name: "verbatim_mirror_partitions",
    kind: Kind::Gauge,
    labels: &["mirror", "state"],
    help: "Partitions by state; the states are those of verbatim mirror.",
};
const LEFT_OUT: Family = Family {
    name: "verbatim_mirror_partitions_left_out",
    kind: Kind::Gauge,
    labels: &["mirror"],
    help: "Partitions that are not shown one by one below, because there are too many.",
};
const RECORDS: Family = Family {
    name: "verbatim_mirror_records_total",
    kind: Kind::Counter,
    labels: &["mirror"],
    help: "Records that were copied.",
};
const BATCHES: Family = Family {
    name: "verbatim_mirror_batches_total",
    kind: Kind::Counter,
    labels: &["mirror"],
    help: "Batches that were copied.",
};
const BYTES: Family = Family {
    name: "verbatim_mirror_bytes_total",
    kind: Kind::Counter,
    labels: &["mirror"],
    help: "Bytes of batches that were copied.",
};
const SKIPPED: Family = Family {
    name: "verbatim_mirror_skipped_offsets_total",
    kind: Kind::Counter,
    labels: &["mirror"],
    help: "Offsets that the copies lack because the source had deleted them, where that is to be borne.",
};
const STATE: Family = Family {
    name: "verbatim_mirror_state",
    kind: Kind::Gauge,
    labels: &["mirror", "topic", "partition", "state"],
    help: "1 for the state that the partition is in; other states have no series.",
};
const LAG_RECORDS: Family = Family {
    name: "verbatim_mirror_lag_records",
    kind: Kind::Gauge,
    labels: &["mirror", "topic", "partition"],
    help: "Offsets between the copy's end and the source's.",
};
const LAG_TIME: Family = Family {
    name: "verbatim_mirror_lag_seconds",
    kind: Kind::Gauge,
    labels: &["mirror", "topic", "partition"],
    help: "How long the copy has been behind.",
};

/// Where each mirror stood a moment ago.
#[derive(Debug, Default)]
pub(in super::super) struct Figures(Mutex<BTreeMap<String, Arc<Snapshot>>>);

impl Figures {
    /// Where a mirror stands now.
    pub(in super::super) fn set(&self, mirror: &str, snapshot: Snapshot) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(mirror.to_owned(), Arc::new(snapshot));
    }
}

impl More for Figures {
    fn write(&self, out: &mut Out<'_>) -> fmt::Result {
        // The lock is not held while the text is made.
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut room = PARTITIONS_MAX;
        let mirrors: Vec<Mirror<'_>> =
            all.iter().map(|(name, snapshot)| Mirror::new(name, snapshot, &mut room)).collect();
        by_mirror(out, &mirrors)?;
        by_partition(out, &mirrors)
    }
}

/// A mirror as it is shown.
struct Mirror<'a> {
    name: &'a str,
    totals: Totals,
    skipped: u64,
    shown: &'a [PartitionStatus],
    left_out: u64,
}

impl<'a> Mirror<'a> {
    /// Takes of the room for partitions.
    fn new(name: &'a str, snapshot: &'a Snapshot, room: &mut usize) -> Self {
        let all = &snapshot.partitions;
        let shown = all.get(..*room).unwrap_or(all);
        *room = room.saturating_sub(shown.len());
        let holes = all.iter().flat_map(|status| &status.skipped);
        let offsets = holes.map(|hole| u64::try_from(hole.to.saturating_sub(hole.from)).unwrap_or_default());
        Self {
            name,
            totals: Totals::of(all),
            skipped: offsets.fold(0, u64::saturating_add),
            shown,
            left_out: u64::try_from(all.len().saturating_sub(shown.len())).unwrap_or(u64::MAX),
        }
    }
}

/// One figure of a mirror.
type Figure = fn(&Mirror<'_>) -> u64;

fn by_mirror(out: &mut Out<'_>, mirrors: &[Mirror<'_>]) -> fmt::Result {
    out.family(&PARTITIONS, |series| {
        for mirror in mirrors {
            for state in State::ALL {
                let count = mirror.totals.states.get(&state).copied().unwrap_or_default();
                series.number(&[mirror.name, state.name()], count)?;
            }
        }
        Ok(())
    })?;
    let numbers: [(&Family, Figure); 5] = [
        (&LEFT_OUT, |mirror| mirror.left_out),
        (&RECORDS, |mirror| mirror.totals.records),
        (&BATCHES, |mirror| mirror.totals.batches),
        (&BYTES, |mirror| mirror.totals.bytes),
        (&SKIPPED, |mirror| mirror.skipped),
    ];
    numbers.into_iter().try_for_each(|(family, number)| {
        out.family(family, |series| {
            mirrors.iter().try_for_each(|mirror| series.number(&[mirror.name], number(mirror)))
        })
    })
}

fn by_partition(out: &mut Out<'_>, mirrors: &[Mirror<'_>]) -> fmt::Result {
    let each =
        || mirrors.iter().flat_map(|mirror| mirror.shown.iter().map(move |status| (mirror.name, status)));
    out.family(&STATE, |series| {
        each().try_for_each(|(mirror, status)| {
            let partition = status.partition.to_string();
            series.gauge(&[mirror, &status.topic, &partition, status.state.name()], 1)
        })
    })?;
    out.family(&LAG_RECORDS, |series| {
        each().try_for_each(|(mirror, status)| {
            series.gauge(&[mirror, &status.topic, &status.partition.to_string()], status.lag_records)
        })
    })?;
    out.family(&LAG_TIME, |series| {
        each().try_for_each(|(mirror, status)| {
            let behind = Duration::from_millis(u64::try_from(status.lag_ms).unwrap_or_default());
            series.time(&[mirror, &status.topic, &status.partition.to_string()], behind)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::status;
    use super::*;

    #[test]
    fn partitions_are_shown_up_to_a_bound() {
        let snapshot = |count| Snapshot {
            partitions: (0..count).map(|index| status("a", index, State::CaughtUp)).collect(),
            ..Snapshot::default()
        };
        let (first, second) = (snapshot(3), snapshot(4));
        let mut room = 5;
        let first = Mirror::new("first", &first, &mut room);
        let second = Mirror::new("second", &second, &mut room);
        assert_eq!((first.shown.len(), first.left_out), (3, 0));
        assert_eq!((second.shown.len(), second.left_out, room), (2, 2, 0));
        assert_eq!(second.totals.partitions, 4);
    }

    #[test]
    fn families_have_base_units() {
        assert_eq!((LAG_TIME.unit(), BYTES.unit(), RECORDS.unit()), ("seconds", "bytes", ""));
    }
}
