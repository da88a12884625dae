//! An exact topic: its writer follows a source that goes on, skips offsets, changes its leader epoch, deletes, and is now
//! and then cut and goes on otherwise.

use tokio::task::JoinHandle;
use verbatim_test_disk::Random;
use verbatim_wire::tag::RequestTag;

use super::Life;
use super::peer::{Peer, Stored};
use crate::support::{batch, order};

pub(super) const PROPERTIES: [(&str, &str); 3] =
    [("produce.at.offset", "true"), ("produce.at.offset.rewind", "truncate"), ("segment.bytes", "2000")];

pub(super) struct Copy {
    pub(super) name: &'static str,
    /// What the copy may be one of, the latest last: a cut that was not acknowledged leaves two.
    pub(super) candidates: Vec<Source>,
    shown: i32,
}

/// The source's log, and how far it was copied.
#[derive(Clone, Debug, Default)]
pub(super) struct Source {
    elements: Vec<Element>,
    /// How many of them are acknowledged.
    acked: usize,
    /// The start that was acknowledged, and the highest one declared.
    start: i64,
    declared: i64,
    /// The highest leader epoch that the host was told of.
    told: i32,
}

/// A batch at its offset; or, without bytes, an end without one.
#[derive(Clone, Debug)]
struct Element {
    base: i64,
    end: i64,
    epoch: i32,
    bytes: Vec<u8>,
}

impl Copy {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, candidates: vec![Source { told: -1, ..Source::default() }], shown: -1 }
    }

    pub(super) fn begin(&self, life: &Life, random: &mut Random) -> JoinHandle<Vec<Source>> {
        let source = self.candidates.last().unwrap().clone();
        tokio::spawn(write(life.clone(), self.name, source, Random::new(random.number())))
    }

    pub(super) async fn check(&mut self, peer: &Peer, lost: &mut Vec<String>) {
        let name = self.name;
        let ((end, shown), (start, _)) =
            (peer.list(name, -1).await.unwrap(), peer.list(name, -2).await.unwrap());
        let stored = peer.fetch_all(name, start, end).await;
        let fitting: Vec<(&Source, usize)> = self
            .candidates
            .iter()
            .rev()
            .filter_map(|source| Some((source, source.position(end)?)))
            .filter(|(source, count)| source.holds(*count, start, &stored))
            .collect();
        let whole = fitting.iter().find(|(source, count)| *count >= source.acked);
        let Some((source, count)) = whole.or(fitting.first()).copied() else {
            panic!("{name}: {start}..{end} is none of {:?}, {stored:?}", self.candidates)
        };
        if count < source.acked {
            lost.push(format!(
                "{name}: acknowledged up to {}, and gone from {end} on",
                source.end(source.acked)
            ));
        }
        assert!((source.start..=source.declared).contains(&start), "{name}: start {start}, {source:?}");
        let acked = source.elements.iter().take(source.acked).map(|element| element.epoch).max();
        let shows = self.shown.max(acked.unwrap_or(-1))..=source.told;
        assert!(shows.contains(&shown), "{name}: epoch {shown} is shown, expected {shows:?}");
        source.check_epochs(peer, name, count, start).await;
        let source = Source { acked: count, start, declared: start, ..source.clone() };
        (self.candidates, self.shown) = (vec![source], shown);
    }
}

impl Source {
    fn end(&self, count: usize) -> i64 {
        count.checked_sub(1).map_or(0, |last| self.elements[last].end)
    }

    fn epoch(&self, count: usize) -> i32 {
        count.checked_sub(1).map_or(-1, |last| self.elements[last].epoch)
    }

    /// How many elements make this end.
    fn position(&self, end: i64) -> Option<usize> {
        (0..=self.elements.len()).find(|count| self.end(*count) == end)
    }

    fn holds(&self, count: usize, start: i64, stored: &[Stored]) -> bool {
        let batches = self.elements.iter().take(count).filter(|one| one.end > start && !one.bytes.is_empty());
        batches.map(|one| &one.bytes).eq(stored.iter().map(|one| &one.bytes))
    }

    /// Each epoch ends where the next one begins at the source.
    async fn check_epochs(&self, peer: &Peer, name: &str, count: usize, start: i64) {
        let batches: Vec<_> =
            self.elements.iter().take(count).filter(|one| one.end > start && !one.bytes.is_empty()).collect();
        for pair in batches.windows(2).filter(|pair| pair[0].epoch != pair[1].epoch) {
            assert_eq!(peer.epoch_end(name, pair[0].epoch).await, (pair[0].epoch, pair[1].base), "{name}");
        }
    }

    /// The next one, which may be there already from a life before.
    fn grow(&mut self, at: usize, random: &mut Random) {
        if at < self.elements.len() {
            return;
        }
        let (end, epoch) = (self.end(at), self.epoch(at));
        let gap = if random.one_in(5) { 1 + random.below(9) } else { 0 };
        let base = end + i64::try_from(gap).unwrap();
        if at > 0 && random.one_in(9) {
            self.elements.push(Element { base, end: base + 4, epoch, bytes: Vec::new() });
            return;
        }
        let epoch = epoch.max(1) + i32::from(random.one_in(8));
        let filler = "y".repeat(random.below(500) as usize);
        let bytes = batch(base, epoch, &[&format!("{at}-{epoch}-{}", random.number()), &filler]);
        self.elements.push(Element { base, end: base + 2, epoch, bytes });
    }

    /// Some more elements, as one request: how many are there then, its records and its tag.
    fn request(&mut self, from: usize, random: &mut Random) -> (usize, Vec<u8>, RequestTag) {
        let (mut to, mut records, mut end_to) = (from, Vec::new(), None);
        for _ in 0..=random.below(3) {
            self.grow(to, random);
            records.extend_from_slice(&self.elements[to].bytes);
            to += 1;
            if self.elements[to - 1].bytes.is_empty() {
                end_to = Some(self.end(to));
                break;
            }
        }
        if from > 1 && random.one_in(6) {
            let start = self.elements[random.below(from as u64 - 1) as usize].base;
            self.declared = self.declared.max(start);
        }
        let tag = RequestTag {
            source_start: self.declared,
            end_to,
            // A source's epoch does not fall, whatever came of the last request.
            ..order((self.end(from), self.epoch(from)), (self.end(to), self.epoch(to).max(self.told)))
        };
        self.told = tag.source_epoch;
        (to, records, tag)
    }

    /// The source is cut somewhere above its start and goes on under the next epoch; the request that says so.
    fn rewound(&self, random: &mut Random) -> Option<(Self, usize, Vec<u8>, RequestTag)> {
        let first = (1..self.acked).find(|count| self.end(*count) > self.declared)?;
        let to = first + random.below((self.acked - first) as u64) as usize;
        let mut source = Self { elements: self.elements[..to].to_vec(), acked: to, ..self.clone() };
        let epoch = self.elements.iter().map(|element| element.epoch).max()?.max(self.told) + 1;
        let base = source.end(to);
        let bytes = batch(base, epoch, &[&format!("rewound-{}", random.number())]);
        source.elements.push(Element { base, end: base + 1, epoch, bytes });
        let (count, records, tag) = source.request(to, random);
        let tag = RequestTag { expected_end: self.end(self.acked), truncate_to: Some(base), ..tag };
        Some((source, count, records, tag))
    }
}

async fn write(life: Life, name: &'static str, mut source: Source, mut random: Random) -> Vec<Source> {
    let peer = life.peer().await;
    loop {
        let rewound = if random.one_in(10) { source.rewound(&mut random) } else { None };
        let (mut next, count, records, tag) = rewound.unwrap_or_else(|| {
            let mut next = source.clone();
            let (count, records, tag) = next.request(source.acked, &mut random);
            (next, count, records, tag)
        });
        match peer.produce(name, &records, Some(&tag)).await {
            Ok(answer) if answer.error_code == 0 => {
                (next.acked, next.start) = (count, next.declared);
                source = next;
            }
            refused => {
                life.refused(&format!("{name}, {tag:?}"), &refused);
                source.told = next.told;
                return if tag.truncate_to.is_some() { vec![source, next] } else { vec![next] };
            }
        }
    }
}
