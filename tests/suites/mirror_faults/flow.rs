//! Who writes to a host's growing topic while it is mirrored: a log as a source has it, which only an exact topic takes. Plain
//! batches, idempotent ones, transactions that are committed, aborted or left open, leader epochs, and a start that moves.

use super::source::FLOW;
use anyhow::Context;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};
use tokio::runtime::Runtime;
use verbatim_batch::{BatchBuilder, ControlType, NewRecord, place};
use verbatim_tests::random::Random;
use verbatim_wire::exact_producer::{Config, ExactPartition, ExactProducer, Source, Target, Write};

/// Producers of each partition: an idempotent one, one whose transactions end, and one that begins the last one and leaves it.
const IDEMPOTENT: i64 = 1_000;
const ENDING: i64 = 2_000;
const LEAVING: i64 = 3_000;

/// A thread that writes to all partitions of the growing topic.
#[derive(Debug)]
pub(super) struct Flow {
    halted: Arc<AtomicBool>,
    start: Arc<AtomicI64>,
    writer: JoinHandle<anyhow::Result<()>>,
}

impl Flow {
    /// Begins to write; what it writes follows from the seed.
    pub(super) fn start(address: SocketAddr, partitions: u32, seed: u64) -> Self {
        let (halted, start) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicI64::new(0)));
        let (until, from) = (Arc::clone(&halted), Arc::clone(&start));
        let writer = thread::spawn(move || {
            Runtime::new()?.block_on(async {
                let producer = ExactProducer::start(Config::new(address.to_string()));
                let mut logs = Vec::new();
                for index in 0..i32::try_from(partitions)? {
                    logs.push(Log::open(&producer, index, seed).await?);
                }
                while !until.load(Ordering::Relaxed) {
                    for log in &mut logs {
                        let batch = log.next()?;
                        log.write(batch, from.load(Ordering::Relaxed)).await?;
                    }
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                for log in &mut logs {
                    let batch = log.data(Some((LEAVING, true)))?;
                    log.write(batch, from.load(Ordering::Relaxed)).await?;
                }
                Ok(())
            })
        });
        Self { halted, start, writer }
    }

    /// Lets the first partition start here from now on.
    pub(super) fn trim(&self, start: i64) {
        self.start.fetch_max(start, Ordering::Relaxed);
    }

    /// Ends it.
    pub(super) fn halt(self) -> anyhow::Result<()> {
        self.halted.store(true, Ordering::Relaxed);
        self.writer.join().map_err(|_| anyhow::anyhow!("the writer panicked"))?
    }
}

/// One partition, as its leader would write it.
struct Log {
    copy: ExactPartition,
    index: i32,
    /// A producer of long ago would be forgotten where a host starts again, and be remembered where none does.
    begun_ms: i64,
    random: Random,
    batches: u64,
    end: i64,
    epoch: i32,
    /// The next sequence of each producer.
    sequences: [i32; 3],
    /// The transaction of the one that ends them is open.
    is_open: bool,
}

impl Log {
    async fn open(producer: &ExactProducer, index: i32, seed: u64) -> anyhow::Result<Self> {
        let mut copy = producer.open(Target::new(FLOW, index)).await?;
        copy.resume_at(0, -1).await?;
        let random = Random::seeded(seed.wrapping_add(index.unsigned_abs().into()));
        let begun_ms = i64::try_from(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_millis())?;
        let nothing = Self {
            copy,
            index,
            begun_ms,
            random,
            batches: 0,
            end: 0,
            epoch: 0,
            sequences: [0; 3],
            is_open: false,
        };
        Ok(nothing)
    }

    /// Writes a batch of so many offsets and waits until it is kept.
    async fn write(&mut self, (batch, count): (Vec<u8>, i32), start: i64) -> anyhow::Result<()> {
        let from = self.end;
        self.end += i64::from(count);
        self.batches += 1;
        // The others keep all they have.
        let start = if self.index == 0 { start } else { 0 };
        let source = Source { start, end: self.end, epoch: self.epoch };
        let write = Write { from, batches: batch.into(), entries: Vec::new(), end_to: None, source };
        let written = self.copy.write(write).await?.await.with_context(|| format!("batch at {from}"))?;
        anyhow::ensure!(written.end == self.end, "the batch at {from}: {written:?}");
        Ok(())
    }

    /// The next batch, and how many offsets it takes.
    fn next(&mut self) -> anyhow::Result<(Vec<u8>, i32)> {
        if self.batches % 60 == 59 {
            self.epoch += 1;
        }
        match self.random.below(6) {
            0 | 1 => self.data(None),
            2 => self.data(Some((IDEMPOTENT, false))),
            3 if self.is_open => {
                self.is_open = false;
                let kind = if self.random.below(2) == 0 { ControlType::Commit } else { ControlType::Abort };
                self.marker(kind)
            }
            _ => {
                self.is_open = true;
                self.data(Some((ENDING, true)))
            }
        }
    }

    fn data(&mut self, producer: Option<(i64, bool)>) -> anyhow::Result<(Vec<u8>, i32)> {
        let count = 1 + i32::try_from(self.random.below(4))?;
        let value = "x".repeat(usize::try_from(self.random.below(900))?);
        let mut builder = BatchBuilder::new(self.end).leader_epoch(self.epoch);
        if let Some((id, is_transactional)) = producer {
            let at = usize::try_from(id / 1_000 - 1)?;
            let sequence = self.sequences.get_mut(at).context("no such producer")?;
            builder = builder.producer(id + i64::from(self.index), 0, *sequence);
            *sequence += count;
            if is_transactional {
                builder = builder.transactional();
            }
        }
        for delta in 0..count {
            builder = builder.record(NewRecord::new(delta, self.time()).value(value.as_bytes()));
        }
        Ok((builder.build().map_err(|error| anyhow::anyhow!("{error:?}"))?, count))
    }

    fn marker(&self, kind: ControlType) -> anyhow::Result<(Vec<u8>, i32)> {
        let id = ENDING + i64::from(self.index);
        let marker = BatchBuilder::marker(self.end, (id, 0), self.time(), kind, 0);
        let mut marker = marker.map_err(|error| anyhow::anyhow!("{error:?}"))?;
        place(&mut marker, self.end, self.epoch).map_err(|error| anyhow::anyhow!("{error:?}"))?;
        Ok((marker, 1))
    }

    fn time(&self) -> i64 {
        self.begun_ms.saturating_add(self.end)
    }
}
