//! Random keyed logs, and a cleaner that does to them what Kafka's does.

use std::collections::{BTreeMap, BTreeSet};

use verbatim_batch::{Attributes, BatchBuilder, Codec, ControlType, NewRecord, TimestampType};

/// SplitMix64.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) >> 8).unwrap() % bound
    }

    pub(super) fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kept {
    pub(super) delta: i32,
    pub(super) timestamp: i64,
    pub(super) key: Option<u32>,
    pub(super) value: Option<u32>,
}

/// A batch.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) base: i64,
    pub(super) last_delta: i32,
    pub(super) epoch: i32,
    pub(super) codec: Codec,
    pub(super) producer: Option<(i64, i32)>,
    pub(super) transactional: bool,
    pub(super) marker: Option<bool>,
    pub(super) horizon: Option<i64>,
    pub(super) max_timestamp: i64,
    pub(super) stamped: bool,
    pub(super) records: Vec<Kept>,
    pub(super) aborted: bool,
    pub(super) unstable: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Log {
    pub(super) entries: Vec<Entry>,
    next: i64,
    epoch: i32,
}

impl Entry {
    pub(super) fn last(&self) -> i64 {
        self.base + i64::from(self.last_delta)
    }

    pub(super) fn offset(&self, record: &Kept) -> i64 {
        self.base + i64::from(record.delta)
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        if let Some(commit) = self.marker.filter(|_| !self.records.is_empty()) {
            let kind = if commit { ControlType::Commit } else { ControlType::Abort };
            let (key, value) = (verbatim_batch::marker_key(kind), verbatim_batch::marker_value(3));
            let record = NewRecord::new(0, self.records[0].timestamp).key(&key).value(&value);
            return self.builder().record(record).build().unwrap();
        }
        let texts: Vec<_> = self.records.iter().map(|r| (r.key.map(text), r.value.map(text))).collect();
        let mut builder = self.builder();
        for (record, (key, value)) in self.records.iter().zip(&texts) {
            let mut new = NewRecord::new(record.delta, record.timestamp);
            new.key = key.as_deref().map(str::as_bytes);
            new.value = value.as_deref().map(str::as_bytes);
            builder = builder.record(new.header(b"h", record.key.is_some().then_some(b"x")));
        }
        let plain = builder.plain_records().unwrap();
        let codec = if self.records.is_empty() { Codec::None } else { self.codec };
        builder.build_compressed(codec, &verbatim_compression::deflate(codec, &plain).unwrap()).unwrap()
    }

    fn builder<'a>(&self) -> BatchBuilder<'a> {
        let mut attributes =
            Attributes::default().with_transactional(self.transactional).with_control(self.marker.is_some());
        if self.stamped {
            attributes = attributes.with_timestamp_type(TimestampType::LogAppendTime);
        }
        let mut builder = BatchBuilder::new(self.base)
            .attributes(attributes)
            .leader_epoch(self.epoch)
            .last_offset_delta(self.last_delta)
            .max_timestamp(self.max_timestamp);
        if let Some((id, sequence)) = self.producer {
            builder = builder.producer(id, 2, sequence);
        }
        if let Some(horizon) = self.horizon {
            builder = builder.delete_horizon(horizon);
        }
        builder
    }
}

fn text(number: u32) -> String {
    format!("text-{number}")
}

impl Log {
    pub(super) fn end(&self) -> i64 {
        self.next
    }

    pub(super) fn bytes(&self) -> Vec<Vec<u8>> {
        self.entries.iter().map(Entry::bytes).collect()
    }

    pub(super) fn offsets(&self) -> BTreeSet<i64> {
        let of = |entry: &Entry| entry.records.iter().map(|record| entry.offset(record)).collect::<Vec<_>>();
        self.entries.iter().flat_map(of).collect()
    }

    /// A log of some dozens of batches: plain and transactional ones, markers, holes, several epochs and codecs.
    pub(super) fn random(random: &mut Random) -> Self {
        let mut log = Self::default();
        let mut open: BTreeMap<i64, Vec<usize>> = BTreeMap::new();
        for _ in 0..10 + random.below(40) {
            if random.one_in(6) {
                log.epoch += 1;
            }
            if random.one_in(8) {
                log.next += 1 + i64::try_from(random.below(5)).unwrap();
            }
            let producer = 1 + i64::try_from(random.below(3)).unwrap();
            match random.below(4) {
                0 => {
                    open.entry(producer).or_default().push(log.entries.len());
                    log.random_data(Some(producer), random);
                }
                1 if open.contains_key(&producer) => {
                    let batches = open.remove(&producer).unwrap();
                    log.end_transaction(producer, &batches, random.one_in(2), random);
                }
                _ => log.random_data(None, random),
            }
        }
        for (producer, batches) in open {
            if random.one_in(2) {
                batches.iter().for_each(|index| log.entries[*index].unstable = true);
            } else {
                log.end_transaction(producer, &batches, random.one_in(2), random);
            }
        }
        log
    }

    fn random_data(&mut self, producer: Option<i64>, random: &mut Random) {
        let records: Vec<(u32, Option<u32>)> = (0..1 + random.below(4))
            .map(|_| {
                let value = (!random.one_in(5)).then(|| u32::try_from(random.below(1_000_000)).unwrap());
                (u32::try_from(random.below(12)).unwrap(), value)
            })
            .collect();
        self.data(&records, producer, random);
    }

    pub(super) fn data(
        &mut self,
        records: &[(u32, Option<u32>)],
        producer: Option<i64>,
        random: &mut Random,
    ) {
        let base = self.next;
        let records: Vec<Kept> = (0_i32..)
            .zip(records)
            .map(|(delta, (key, value))| {
                let timestamp = 1_000 + base * 10 - i64::try_from(random.below(30)).unwrap();
                Kept { delta, timestamp, key: Some(*key), value: *value }
            })
            .collect();
        self.entries.push(Entry {
            base,
            last_delta: i32::try_from(records.len()).unwrap() - 1,
            epoch: self.epoch,
            codec: Codec::ALL[random.below(5)],
            producer: producer.map(|id| (id, i32::try_from(base).unwrap())),
            transactional: producer.is_some(),
            marker: None,
            horizon: None,
            max_timestamp: records.iter().map(|record| record.timestamp).max().unwrap(),
            stamped: random.one_in(4),
            records,
            aborted: false,
            unstable: false,
        });
        self.next = self.entries.last().unwrap().last() + 1;
    }

    fn end_transaction(&mut self, producer: i64, batches: &[usize], commit: bool, random: &mut Random) {
        batches.iter().for_each(|index| self.entries[*index].aborted = !commit);
        let timestamp = 1_000 + self.next * 10;
        self.data(&[(0, Some(0))], Some(producer), random);
        let marker = self.entries.last_mut().unwrap();
        marker.marker = Some(commit);
        marker.codec = Codec::None;
        marker.producer = Some((producer, -1));
        marker.stamped = false;
        marker.max_timestamp = timestamp;
        marker.records[0].timestamp = timestamp;
    }

    /// What a run of the cleaner leaves: it works up to some place below the first open transaction.
    pub(super) fn cleaned(&self, random: &mut Random) -> Self {
        let stable = self.entries.iter().position(|entry| entry.unstable).unwrap_or(self.entries.len());
        let upto = self.whole_transactions(stable.min(random.below(self.entries.len() + 1)));
        let (expired, retained) = (random.one_in(2), random.one_in(2));
        let mut last = BTreeMap::new();
        for entry in self.entries[..upto].iter().filter(|entry| !entry.aborted && entry.marker.is_none()) {
            last.extend(entry.records.iter().map(|record| (record.key, entry.offset(record))));
        }
        let mut log = Self { entries: Vec::new(), ..*self };
        let mut observed: BTreeSet<i64> = BTreeSet::new();
        for (index, entry) in self.entries.iter().enumerate() {
            if index >= upto {
                log.entries.push(entry.clone());
                continue;
            }
            let mut kept = entry.clone();
            let producer = entry.producer.map(|(id, _)| id);
            if entry.marker.is_some() {
                let is_last_of_transaction = producer.is_some_and(|id| observed.remove(&id));
                if !is_last_of_transaction && expired {
                    kept.records.clear();
                } else if entry.horizon.is_none() && !is_last_of_transaction {
                    kept.horizon = Some(9_999);
                }
            } else {
                kept.records.retain(|record| {
                    let is_last = last.get(&record.key).is_none_or(|last| *last == entry.offset(record));
                    !entry.aborted && is_last && !(record.value.is_none() && expired)
                });
                if kept.horizon.is_none() && kept.records.iter().any(|record| record.value.is_none()) {
                    kept.horizon = Some(7_777);
                }
            }
            if kept.records.len() != entry.records.len() && !kept.records.is_empty() && !entry.stamped {
                kept.max_timestamp = kept.records.iter().map(|record| record.timestamp).max().unwrap();
            }
            // The batch with a producer's last sequence may stay, empty.
            if kept.records.is_empty() {
                kept.horizon = None;
                if !(retained && producer.is_some() && self.is_last_of_producer(index)) {
                    continue;
                }
            }
            if entry.transactional && entry.marker.is_none() {
                observed.extend(producer);
            }
            log.entries.push(kept);
        }
        log
    }

    fn is_last_of_producer(&self, index: usize) -> bool {
        let id = |entry: &Entry| entry.producer.map(|(id, _)| id);
        self.entries[index + 1..].iter().all(|later| id(later) != id(&self.entries[index]))
    }

    /// The largest place at or below `upto` that lies within no transaction: no stable offset does.
    fn whole_transactions(&self, upto: usize) -> usize {
        let is_open = |upto: &usize| {
            let mut open = BTreeSet::new();
            for entry in &self.entries[..*upto] {
                match (entry.marker, entry.producer) {
                    (Some(_), Some((id, _))) => drop(open.remove(&id)),
                    (None, Some((id, _))) => drop(open.insert(id)),
                    _ => {}
                }
            }
            open.is_empty()
        };
        (0..=upto).rev().find(is_open).unwrap_or(0)
    }
}
