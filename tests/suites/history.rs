//! A source's random history, sent in requests of any length, some of them twice or with what was sent before: bytes, end
//! and leader epochs of the copy are the source's, also after restarts.

use anyhow::ensure;
use verbatim_tests::client::Client;
use verbatim_tests::exact::{EXACT, batch, order};
use verbatim_tests::host::Home;
use verbatim_tests::random::Random;
use verbatim_wire::tag::{EpochEntry, RequestTag};

const COPY: (&str, i32) = ("copy", 0);
const RESTARTS: usize = 3;

/// A batch of the source, with the end after it.
struct Sent {
    bytes: Vec<u8>,
    end: i64,
}

/// What the source has: batches at rising offsets, and where its leader epochs begin.
#[derive(Default)]
struct Source {
    batches: Vec<Sent>,
    epochs: Vec<EpochEntry>,
}

#[test]
fn a_history_arrives_as_it_was_in_whatever_requests_it_comes() -> anyhow::Result<()> {
    let mut random = Random::announced("a_history_arrives_as_it_was_in_whatever_requests_it_comes")?;
    let source = Source::new(&mut random, if verbatim_tests::soak() { 5_000 } else { 300 })?;
    let home = Home::new()?;
    let mut host = home.start()?;
    host.create_topic(COPY.0, 1, &[EXACT])?;
    let mut client = Client::connect(host.address())?;
    let (mut sent, mut repeated, mut several) = (0, 0, 0);
    while sent < source.batches.len() {
        // With some of what is stored already, or without.
        let from = sent.saturating_sub(usize::try_from(random.below(8))?.saturating_sub(5));
        let to = source.batches.len().min(sent + 1 + usize::try_from(random.below(7))?);
        for time in 0..=random.below(2) {
            let answer = client.produce(COPY, Some(&source.order(from, to)), &source.bytes(from, to))?;
            ensure!(answer.error_code == 0, "batches {from}..{to}, time {time}: {answer:?}");
            ensure!(answer.tag.as_ref().is_some_and(|tag| tag.end == source.end(to)), "{answer:?}");
            repeated += time;
        }
        several +=
            usize::from(source.epoch_before(source.end(to)) > source.epoch_before(source.end(from) + 1));
        if sent / (source.batches.len() / RESTARTS) < to / (source.batches.len() / RESTARTS) {
            drop(client);
            host.stop()?;
            host = home.start()?;
            client = Client::connect(host.address())?;
        }
        sent = to;
    }
    ensure!(repeated > 0 && several > 0, "{repeated} requests were repeated, {several} had several epochs");
    source.check(&client)?;
    drop(client);
    host.stop()
}

impl Source {
    fn new(random: &mut Random, batches: usize) -> anyhow::Result<Self> {
        let mut source = Self::default();
        let mut end = 0;
        for i in 0..batches {
            let gap = match random.below(12) {
                0 => 5_000_000_000,
                1..4 => i64::try_from(random.below(20))?,
                _ => 0,
            };
            // Leader epochs that left no data in the hole, and the batch's own, which may have begun in it too.
            let new_epochs = if i == 0 { 1 } else { random.below(6).saturating_sub(3) };
            let mut start = end;
            for _ in 0..new_epochs {
                let left = u64::try_from(end + gap - start)?;
                start += i64::try_from(random.below(left + 1))?;
                source.begin(1 + i32::try_from(random.below(2))?, start);
            }
            let base = end + gap;
            let values = ["x"; 3];
            let count = 1 + usize::try_from(random.below(3))?;
            let bytes = batch(base, source.last_epoch(), values.get(..count).unwrap_or_default())?;
            end = base + i64::try_from(count)?;
            source.batches.push(Sent { bytes, end });
        }
        Ok(source)
    }

    /// An epoch so much above the last one begins; one that began at the same offset leaves no entry.
    fn begin(&mut self, above: i32, start: i64) {
        let epoch = self.last_epoch() + above;
        self.epochs.retain(|entry| entry.start < start);
        self.epochs.push(EpochEntry { epoch, start });
    }

    fn last_epoch(&self) -> i32 {
        self.epochs.last().map_or(-1, |entry| entry.epoch)
    }

    /// Where the log ends that holds so many batches.
    fn end(&self, count: usize) -> i64 {
        count.checked_sub(1).and_then(|last| self.batches.get(last)).map_or(0, |sent| sent.end)
    }

    /// The epoch of the offset before.
    fn epoch_before(&self, end: i64) -> i32 {
        self.epochs.iter().rfind(|entry| entry.start < end).map_or(-1, |entry| entry.epoch)
    }

    fn bytes(&self, from: usize, to: usize) -> Vec<u8> {
        self.batches.get(from..to).into_iter().flatten().flat_map(|sent| sent.bytes.clone()).collect()
    }

    /// The order for the batches `from..to`, with every epoch that begins among them.
    fn order(&self, from: usize, to: usize) -> RequestTag {
        let (before, after) = (self.end(from), self.end(to));
        let entries = self.epochs.iter().filter(|entry| entry.start >= before && entry.start < after);
        RequestTag {
            entries: entries.copied().collect(),
            ..order((before, self.epoch_before(before)), (0, after), self.epoch_before(after))
        }
    }

    fn check(&self, client: &Client) -> anyhow::Result<()> {
        let end = self.end(self.batches.len());
        ensure!(client.fetch_all(COPY, 0)? == self.bytes(0, self.batches.len()), "the bytes differ");
        assert_eq!(client.latest(COPY)?, (end, self.last_epoch()));
        for asked in 0..=self.last_epoch() {
            let next = self.epochs.iter().find(|entry| entry.epoch > asked);
            let of = self.epochs.iter().rfind(|entry| entry.epoch <= asked);
            // Below the first epoch: the one asked for, ending where the first begins.
            let expected = (of.map_or(asked, |entry| entry.epoch), next.map_or(end, |entry| entry.start));
            assert_eq!(client.epoch_end(COPY, asked)?, expected, "where epoch {asked} ends");
        }
        Ok(())
    }
}
