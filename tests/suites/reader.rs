//! The reader of verbatim-mirror, on a host and on Apache Kafka: the same records as other clients see, and what becomes of
//! positions that their logs no longer have.

mod faults;
mod positions;
mod records;

use anyhow::{Context, ensure};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use verbatim_mirror::cluster::{Cluster, ClusterConfig, Partition};
use verbatim_mirror::reader::{Position, ReadError, Reader, ReaderConfig, Record, Seek};

/// How long something that must come may take.
const PATIENCE: Duration = Duration::from_secs(240);

/// A reader and the runtime it lives in, without async: the test's own client has none.
struct Reading {
    reader: Reader,
    runtime: Runtime,
}

impl Reading {
    fn start(bootstrap: &str, config: ReaderConfig) -> anyhow::Result<Self> {
        let runtime = Runtime::new()?;
        let cluster = Cluster::new(ClusterConfig::new(bootstrap.split(',')));
        let reader = runtime.block_on(async { Reader::new(cluster, config) });
        Ok(Self { reader, runtime })
    }

    fn assign(&mut self, partition: &Partition, from: Seek) {
        let _in_runtime = self.runtime.enter();
        self.reader.assign(partition, from);
    }

    fn position(&self, partition: &Partition) -> Option<Position> {
        self.reader.position(partition)
    }

    fn poll(&mut self, wait: Duration) -> Result<Vec<Record>, ReadError> {
        self.runtime.block_on(self.reader.poll(wait))
    }

    /// The next record or error; `None` if it takes too long.
    fn next(&mut self, wait: Duration) -> Option<Result<Record, ReadError>> {
        self.runtime.block_on(async { tokio::time::timeout(wait, self.reader.next()).await.ok() })
    }

    /// Reads until a partition's position is there or beyond.
    fn read_until(&mut self, partition: &Partition, end: i64) -> anyhow::Result<Vec<Record>> {
        let start = Instant::now();
        let mut records = Vec::new();
        while self.position(partition).is_none_or(|position| position.offset < end) {
            records.extend(self.poll(Duration::from_millis(100))?);
            ensure!(start.elapsed() < PATIENCE, "at {:?}, not at {end}", self.position(partition));
        }
        Ok(records)
    }

    /// The next error, with the records before it.
    fn read_until_error(&mut self) -> anyhow::Result<(Vec<Record>, ReadError)> {
        let mut records = Vec::new();
        loop {
            match self.next(PATIENCE).context("neither record nor error")? {
                Ok(record) => records.push(record),
                Err(error) => return Ok((records, error)),
            }
        }
    }

    /// Where a partition comes to rest that is sought to a position: the next one it has, a record's, or the error.
    fn settled(&mut self, partition: &Partition, sought: Position) -> anyhow::Result<Result<i64, ReadError>> {
        self.assign(partition, Seek::To(sought));
        let start = Instant::now();
        loop {
            match self.poll(Duration::from_millis(20)) {
                Err(error) => return Ok(Err(error)),
                Ok(records) => {
                    if let Some(first) = records.first() {
                        return Ok(Ok(first.offset));
                    }
                }
            }
            if let Some(position) = self.position(partition).filter(|position| *position != sought) {
                return Ok(Ok(position.offset));
            }
            ensure!(start.elapsed() < PATIENCE, "{partition} stays at {sought}");
        }
    }
}

fn partition(topic: &str, index: i32) -> Partition {
    Partition { topic: topic.to_owned(), index }
}

fn values(records: &[Record]) -> Vec<(i64, String)> {
    let text =
        |record: &Record| String::from_utf8_lossy(record.value.as_deref().unwrap_or_default()).into_owned();
    records.iter().map(|record| (record.offset, text(record))).collect()
}
