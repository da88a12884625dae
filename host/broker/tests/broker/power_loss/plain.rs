//! A normal topic: two writers at once, one of them idempotent, a reader, and somebody who deletes records.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::task::JoinHandle;
use verbatim_test_disk::Random;

use super::Life;
use super::peer::{Peer, Stored};
use crate::support::builder;

pub(super) const PROPERTIES: [(&str, &str); 2] = [("segment.bytes", "3000"), ("retention.ms", "-1")];

pub(super) struct Plain {
    pub(super) name: &'static str,
    /// What was stored after the last start.
    before: Vec<Stored>,
    /// The start that was acknowledged, and the highest one asked for.
    start: i64,
    asked: i64,
    epoch: i32,
    written: Vec<Written>,
    /// What a reader got.
    seen: Vec<Stored>,
    producers: BTreeSet<i64>,
}

/// What one writer sent, in order.
#[derive(Default)]
pub(super) struct Written {
    producer: Option<i64>,
    /// Each batch, and the offset that was acknowledged.
    batches: Vec<(Vec<u8>, Option<i64>)>,
}

pub(super) struct Begun {
    writers: [JoinHandle<Written>; 2],
    reader: JoinHandle<Vec<Stored>>,
    deleter: JoinHandle<(i64, i64)>,
}

impl Plain {
    pub(super) fn new(name: &'static str) -> Self {
        Self {
            name,
            before: Vec::new(),
            start: 0,
            asked: 0,
            epoch: -1,
            written: Vec::new(),
            seen: Vec::new(),
            producers: BTreeSet::new(),
        }
    }

    pub(super) fn begin(&self, life: &Life, random: &mut Random, round: u64) -> Begun {
        let name = self.name;
        let mut writer = |idempotent: bool| {
            let (label, random) = (format!("{round}-{idempotent}"), Random::new(random.number()));
            tokio::spawn(write(life.clone(), name, label, idempotent, random))
        };
        let writers = [writer(true), writer(false)];
        let reader = tokio::spawn(read(life.clone(), name, self.start));
        let deleter = tokio::spawn(delete(life.clone(), name, self.start, Random::new(random.number())));
        Begun { writers, reader, deleter }
    }

    pub(super) async fn end(&mut self, begun: Begun) {
        for writer in begun.writers {
            let written = writer.await.unwrap();
            if let Some(id) = written.producer {
                assert!(self.producers.insert(id), "a producer id is handed out again: {id}");
            }
            self.written.push(written);
        }
        self.seen = begun.reader.await.unwrap();
        (self.start, self.asked) = begun.deleter.await.unwrap();
    }

    pub(super) async fn check(&mut self, peer: &Peer, lost: &mut Vec<String>) {
        let name = self.name;
        let ((end, epoch), (start, _)) =
            (peer.list(name, -1).await.unwrap(), peer.list(name, -2).await.unwrap());
        assert!(
            (self.start..=self.asked.max(self.start)).contains(&start),
            "{name}: start {start}, {}",
            self.start
        );
        assert!(epoch > self.epoch, "{name}: epoch {epoch} after {}", self.epoch);
        let stored = peer.fetch_all(name, start, end).await;
        let mut at = start.max(stored.first().map_or(end, |first| first.base));
        for batch in &stored {
            assert!(batch.base == at || batch.base <= start, "{name}: a hole at {at}");
            at = batch.next;
        }
        assert_eq!(at, end, "{name}: the end is where the batches end");
        self.check_origin(&stored, start);
        self.find_lost(&stored, start, lost);
        check_epochs(peer, name, &stored, (epoch, end)).await;
        self.check_repetition(peer, &stored).await;
        assert_eq!(peer.list(name, -1).await, Ok((end, epoch)), "{name}: a repetition changes nothing");
        (self.before, self.start, self.asked, self.epoch) = (stored, start, start, epoch);
        self.written.clear();
        self.seen.clear();
    }

    /// What was stored before is first, and after it what was sent since, each writer's in its order and without a gap.
    fn check_origin(&self, stored: &[Stored], start: i64) {
        let before: Vec<&Stored> = self.before.iter().filter(|batch| batch.next > start).collect();
        let (old, new) = stored.split_at(before.len().min(stored.len()));
        assert!(old.iter().eq(before), "{}: what was stored at the last start is not there now", self.name);
        let last = self.before.last().map_or(0, |last| last.next);
        let mut next: Vec<Option<usize>> = vec![None; self.written.len()];
        for batch in new {
            let found = self.written.iter().enumerate().find_map(|(writer, written)| {
                let index = written.batches.iter().position(|(body, _)| body == batch.body())?;
                Some((writer, index))
            });
            let (writer, index) = found.expect("stored, and sent by nobody");
            // Its first ones may lie below the start.
            let fits = next[writer].map_or(index == 0 || start > last, |next| index == next);
            assert!(fits, "{}: batch {index} of writer {writer} follows {:?}", self.name, next[writer]);
            assert_eq!(batch.epoch, self.epoch.max(0), "{}: {batch:?}", self.name);
            next[writer] = Some(index + 1);
        }
    }

    fn find_lost(&self, stored: &[Stored], start: i64, lost: &mut Vec<String>) {
        for written in &self.written {
            for (body, offset) in &written.batches {
                let Some(offset) = offset else { continue };
                let there = stored.iter().any(|batch| batch.base == *offset && batch.body() == body);
                // A batch has at most three records.
                if !there && *offset >= start {
                    lost.push(format!("{}: acknowledged at offset {offset}, and gone", self.name));
                }
            }
        }
        for seen in self.seen.iter().filter(|seen| seen.next > start && !stored.contains(seen)) {
            lost.push(format!("{}: was read at offset {}, and gone", self.name, seen.base));
        }
    }

    /// R33: the last batch of a producer that is stored is known after the start.
    async fn check_repetition(&self, peer: &Peer, stored: &[Stored]) {
        for written in self.written.iter().filter(|written| written.producer.is_some()) {
            let is_stored = |(body, _): &&(Vec<u8>, _)| stored.iter().any(|batch| batch.body() == body);
            let Some((body, _)) = written.batches.iter().rev().find(is_stored) else { continue };
            let batch = stored.iter().find(|batch| batch.body() == body).unwrap();
            let mut again = batch.bytes.clone();
            verbatim_batch::place(&mut again, 0, 0).unwrap();
            let answer = peer.produce(self.name, &again, None).await.unwrap();
            assert_eq!(
                (answer.error_code, answer.base_offset),
                (0, batch.base),
                "{:?}",
                answer.error_message
            );
        }
    }
}

/// Each epoch of the batches ends where the next one's begin; so a reader who had more learns of it.
async fn check_epochs(peer: &Peer, name: &str, stored: &[Stored], (epoch, end): (i32, i64)) {
    assert_eq!(peer.epoch_end(name, epoch).await, (epoch, end), "{name}");
    let nexts = stored.iter().skip(1).map(|batch| (batch.base, batch.epoch)).chain([(end, epoch)]);
    for (batch, (base, next)) in stored.iter().zip(nexts) {
        if batch.epoch != next {
            assert_eq!(peer.epoch_end(name, batch.epoch).await, (batch.epoch, base), "{name}");
        }
    }
}

async fn write(
    life: Life,
    name: &'static str,
    label: String,
    idempotent: bool,
    mut random: Random,
) -> Written {
    let peer = life.peer().await;
    let mut written = Written::default();
    if idempotent {
        match peer.producer_id().await {
            Ok(id) => written.producer = Some(id),
            Err(code) => {
                life.refused("a producer id", &code);
                return written;
            }
        }
    }
    let mut sequence = 0;
    for number in 0.. {
        let filler = "x".repeat(random.below(700) as usize);
        let values = [format!("{label}-{number}-{filler}"), "second".to_owned(), "third".to_owned()];
        let count = 1 + random.below(3) as usize;
        let values: Vec<&str> = values.iter().take(count).map(String::as_str).collect();
        let mut batch = builder(0, 0, &values);
        if let Some(id) = written.producer {
            batch = batch.producer(id, 0, sequence);
            sequence += i32::try_from(count).unwrap();
        }
        let batch = batch.build().unwrap();
        written.batches.push((batch[21..].to_vec(), None));
        match peer.produce(name, &batch, None).await {
            Ok(answer) if answer.error_code == 0 => {
                written.batches.last_mut().unwrap().1 = Some(answer.base_offset);
            }
            refused => {
                life.refused(name, &refused);
                break;
            }
        }
    }
    written
}

async fn read(life: Life, name: &'static str, start: i64) -> Vec<Stored> {
    let peer = life.peer().await;
    let (mut seen, mut at) = (Vec::new(), start);
    loop {
        match peer.fetch(name, at).await {
            Ok(stored) => {
                at = stored.last().map_or(at, |last| last.next);
                seen.extend(stored);
            }
            // Deleted meanwhile.
            Err(1) => match peer.list(name, -2).await {
                Ok((start, _)) => at = at.max(start),
                Err(code) => life.refused("the start", &code),
            },
            Err(code) => life.refused("a fetch", &code),
        }
        if life.is_over() {
            return seen;
        }
    }
}

/// The start that was acknowledged, and the highest one asked for.
async fn delete(life: Life, name: &'static str, mut start: i64, mut random: Random) -> (i64, i64) {
    let peer = life.peer().await;
    let mut asked = start;
    while !life.is_over() {
        tokio::time::sleep(Duration::from_millis(1 + random.below(8))).await;
        let Ok((end, _)) = peer.list(name, -1).await else { break };
        let ahead = u64::try_from(end - start).unwrap() / 2;
        asked = start + i64::try_from(random.below(ahead + 1)).unwrap();
        match peer.delete_records(name, asked).await {
            Ok(now) => start = now,
            Err(code) => {
                life.refused("DeleteRecords", &code);
                break;
            }
        }
    }
    (start, asked)
}
