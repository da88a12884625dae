//! Clients that write at a pace and note how long each answer took: what benchmarks measure others by.

use anyhow::{Context as _, ensure};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};
use verbatim_wire::client::{ClientConfig, Connection};
use verbatim_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use verbatim_wire::messages::{ProduceRequest, TopicName};
use verbatim_wire::protocol::StrBytes;

use crate::exact;

/// Connections that write to partitions of normal topics, each a batch of one kilobyte at a time.
#[derive(Debug)]
pub struct Load {
    workers: Vec<Worker>,
    pause: Duration,
}

#[derive(Debug, Clone)]
struct Worker {
    connection: Arc<Connection>,
    topic: String,
    partition: i32,
}

impl Load {
    /// A connection for each place, which is to write once every `pause`.
    ///
    /// # Errors
    /// If one does not connect.
    pub async fn connect(
        address: SocketAddr,
        places: impl IntoIterator<Item = (&str, i32)>,
        pause: Duration,
    ) -> anyhow::Result<Self> {
        let mut workers = Vec::new();
        for (topic, partition) in places {
            let connection = Arc::new(Connection::connect(address, ClientConfig::default()).await?);
            workers.push(Worker { connection, topic: topic.to_owned(), partition });
        }
        Ok(Self { workers, pause })
    }

    /// Writes on every connection for so long.
    ///
    /// # Errors
    /// An answer that is none, or that tells an error.
    pub async fn write(&self, seconds: Duration) -> anyhow::Result<Times> {
        self.write_while(async { tokio::time::sleep(seconds).await }).await
    }

    /// Writes on every connection until `other` is done.
    ///
    /// # Errors
    /// An answer that is none, or that tells an error.
    pub async fn write_while(&self, other: impl Future<Output = ()>) -> anyhow::Result<Times> {
        let (done, _) = tokio::sync::watch::channel(false);
        let mut running = JoinSet::new();
        let count = u32::try_from(self.workers.len())?;
        for (worker, index) in self.workers.iter().zip(0_u32..) {
            // Spread over the pause, so that they do not come all at once.
            let begin = self.pause.mul_f64(f64::from(index) / f64::from(count));
            running.spawn(worker.clone().write(begin, self.pause, done.subscribe()));
        }
        other.await;
        done.send_replace(true);
        let mut times = Vec::new();
        while let Some(written) = running.join_next().await {
            times.extend(written??);
        }
        times.sort_by(f64::total_cmp);
        Ok(Times(times))
    }
}

impl Worker {
    async fn write(
        self,
        begin: Duration,
        pause: Duration,
        done: tokio::sync::watch::Receiver<bool>,
    ) -> anyhow::Result<Vec<f64>> {
        let partition = PartitionProduceData::default()
            .with_index(self.partition)
            .with_records(Some(exact::batch(0, 0, &[&"v".repeat(1_000)])?.into()));
        let topic = TopicProduceData::default()
            .with_name(TopicName(StrBytes::from_string(self.topic)))
            .with_partition_data(vec![partition]);
        let request = ProduceRequest::default().with_acks(-1).with_topic_data(vec![topic]);
        tokio::time::sleep(begin).await;
        let mut pace = interval(pause);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut times = Vec::new();
        while !*done.borrow() {
            pace.tick().await;
            let began = Instant::now();
            let answer = self.connection.send(12, &request).await?;
            times.push(began.elapsed().as_secs_f64() * 1_000.0);
            let code = answer.responses.first().and_then(|topic| topic.partition_responses.first());
            ensure!(code.is_some_and(|answer| answer.error_code == 0), "{answer:?}");
        }
        Ok(times)
    }
}

/// How long answers took, in milliseconds, sorted.
#[derive(Debug, Default, Clone)]
pub struct Times(Vec<f64>);

impl Times {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The time within which this share of the answers came; none of none.
    pub fn percentile(&self, share: f64) -> f64 {
        let mut below = 0.0;
        let count = self.0.iter().fold(0.0, |count, _| count + 1.0);
        for time in &self.0 {
            below += 1.0;
            if below >= share * count {
                return *time;
            }
        }
        f64::NAN
    }

    /// These as lines of a table, each beside the quiet stretches before and after it, with its ratio to their mean.
    pub fn table(name: &str, [before, during, after]: [&Self; 3]) -> String {
        let mut lines = format!("{name:<26} quiet   during    quiet    ratio\n");
        for (name, share) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)] {
            let [before, during, after] = [before, during, after].map(|times| times.percentile(share));
            let ratio = 2.0 * during / (before + after);
            lines.push_str(&format!("  {name:<20} {before:>9.3} {during:>8.3} {after:>8.3} {ratio:>8.2}\n"));
        }
        lines
    }
}

/// A number that the environment may set.
///
/// # Errors
/// If it is set to something else.
pub fn setting(name: &str, default: u64) -> anyhow::Result<u64> {
    match std::env::var(name) {
        Ok(text) => text.parse().with_context(|| format!("{name}=`{text}` is not a number")),
        Err(_) => Ok(default),
    }
}
