//! Three brokers: leaders move and their epochs rise while the mirror copies, and a leader is elected that has less than
//! was copied.

use super::compare::{PATIENCE, Side, config, differences, once, same_files};
use anyhow::{Context, bail, ensure};
use std::path::PathBuf;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use verbatim_mirror::cluster::{Cluster, ClusterConfig, Partition};
use verbatim_mirror::mirror::state::{PartitionStatus, State};
use verbatim_mirror::mirror::{Mirror, MirrorConfig, OnDivergence};
use verbatim_mirror::reader::{Position, ReadErrorKind, Reader, ReaderConfig, Seek};
use verbatim_tests::BesideLog as _;
use verbatim_tests::answers::{Answers, leader};
use verbatim_tests::host::{Home, Host};
use verbatim_tests::kafka::maker::Maker;
use verbatim_tests::kafka::{Kafka, LIVELY};
use verbatim_tests::segments;

#[test]
fn leaders_move_during_the_copy_and_one_is_elected_that_has_less_than_was_copied() -> anyhow::Result<()> {
    let Some(kafka) = Kafka::start_with(3, LIVELY)? else { return Ok(()) };
    let Some(maker) = Maker::start(&kafka.bootstrap(), 1)? else { return Ok(()) };
    let home = Home::new()?;
    let host = home.start()?;
    let mut pair = Pair { kafka, maker, home, host, runtime: Runtime::new()? };
    let done = pair.leaders_move().and_then(|()| pair.an_unclean_election());
    done.beside("Kafka", || pair.kafka.log()).beside("the host", || pair.host.log())?;
    pair.host.stop()
}

fn only(statuses: Vec<PartitionStatus>) -> anyhow::Result<PartitionStatus> {
    statuses.into_iter().next().context("no partition")
}

/// A cluster and a host.
struct Pair {
    kafka: Kafka,
    maker: Maker,
    home: Home,
    host: Host,
    runtime: Runtime,
}

impl Pair {
    fn leaders_move(&mut self) -> anyhow::Result<()> {
        self.maker.run_all(
            "create moving 3 3 retention.ms=-1
             lead moving 0 1,2,3
             lead moving 1 2,3,1
             lead moving 2 3,1,2
             stream moving 3 enable.idempotence=true linger.ms=2 retries=2147483647",
        )?;
        let mirror = self.start(config(&self.kafka, &self.host, &["moving"])?);
        self.more_is_written("moving")?;
        self.maker.run_all(
            "lead moving 0 2,3,1
             lead moving 1 3,1,2
             lead moving 2 1,2,3
             lead moving 0 3,1,2",
        )?;
        self.kafka.stop(3)?;
        self.kafka.start_again(3)?;
        self.maker.run("lead moving 1 1,2,3")?;
        self.kafka.kill(2)?;
        self.kafka.start_again(2)?;
        self.maker.run("lead moving 2 2,1,3")?;
        self.more_is_written("moving")?;
        self.maker.run_all(
            "halt
             lead moving 0 1,2,3",
        )?;
        for index in 0..3 {
            self.caught_up(&mirror, ("moving", index))?;
        }
        for status in self.runtime.block_on(mirror.stop()).partitions {
            ensure!(!status.state.is_stopped() && status.batches > 0, "{status:#?}");
        }
        (0..3).try_for_each(|index| self.same(("moving", index)))
    }

    /// Broker 3 lags behind and is elected all the same.
    fn an_unclean_election(&mut self) -> anyhow::Result<()> {
        let name = ("unclean", 0);
        self.maker.run_all(
            "create unclean 1 1 retention.ms=-1 unclean.leader.election.enable=true
             lead unclean 0 2,3
             write unclean 0 1 4 10",
        )?;
        self.kafka.kill(3)?;
        // Acknowledged by the only replica in sync, and copied.
        self.maker.run("write unclean 0 2 4 10 client.id=alone")?;
        let mirror = self.start(config(&self.kafka, &self.host, &["unclean"])?);
        self.caught_up(&mirror, name)?;
        let addresses = self.kafka.addresses();
        let (_, before) = leader(&addresses, name)?;
        let copied = segments::log_bytes(&self.home.data(), name.0, 0)?;
        self.kafka.kill(2)?;
        self.kafka.start_again(3)?;
        let stopped = verbatim_tests::wait_for("state that stays", PATIENCE, || {
            let status = mirror.snapshot().partitions.into_iter().next();
            Ok(status.filter(|status| status.state.is_stopped()))
        });
        let status = stopped.with_context(|| format!("{:#?}", mirror.snapshot()))?;
        ensure!(status.state == State::SourceTruncated && status.end == 80, "{status:#?}");
        let expected = format!(
            "the source was truncated: the first truncated offset is 40, the copy goes on to 80 under leader epoch \
             {before}, the source's epoch up to there is {before} and ends at 40"
        );
        ensure!(status.reason.as_deref() == Some(&expected), "not {expected:?}: {status:#?}");
        self.runtime.block_on(mirror.stop());
        ensure!(segments::log_bytes(&self.home.data(), name.0, 0)? == copied, "the copy has changed");

        self.maker.run("write unclean 0 3 2 10 client.id=after")?;
        self.a_reader_is_told(name, Position::new(80, Some(before)))?;
        let config = config(&self.kafka, &self.host, &["unclean"])?;
        let follow = OnDivergence::Follow;
        let status = only(once(MirrorConfig { on_divergence: follow, ..config })?)?;
        ensure!(status.state == State::CaughtUp && status.end == 60, "{status:#?}");
        self.same(name)
    }

    /// One that had read to the end before the election hears of it from Kafka, and goes on where the log is another.
    fn a_reader_is_told(&self, (topic, index): (&str, i32), stored: Position) -> anyhow::Result<()> {
        let cluster = Cluster::new(ClusterConfig::new(self.kafka.bootstrap().split(',')));
        let partition = Partition { topic: topic.to_owned(), index };
        self.runtime.block_on(async {
            let mut reader = Reader::new(cluster, ReaderConfig::default());
            reader.assign(&partition, Seek::To(stored));
            let told = timeout(PATIENCE, reader.next()).await?;
            let error = told.err().context("a record, though the log was truncated")?;
            let first = Position::new(40, stored.leader_epoch);
            let ReadErrorKind::TruncatedPartition { position, first_truncated } = error.kind else {
                bail!("{error}")
            };
            ensure!((position, first_truncated) == (stored, Some(first)), "{position}, {first_truncated:?}");
            reader.seek(&partition, Seek::To(first));
            for offset in 40..60 {
                let record = timeout(PATIENCE, reader.next()).await??;
                ensure!(record.offset == offset && record.leader_epoch > stored.leader_epoch, "{record:?}");
            }
            Ok(())
        })
    }

    /// Waits until each partition has grown at the source under its present leader.
    fn more_is_written(&self, topic: &str) -> anyhow::Result<()> {
        let ask = |index| Answers::ask(&self.kafka.addresses(), (topic, index), &[]);
        (0..3).try_for_each(|index| {
            let before = verbatim_tests::wait_for("answers", PATIENCE, || Ok(ask(index).ok()))?;
            verbatim_tests::wait_for("growth of the source", PATIENCE, || {
                let Ok(now) = ask(index) else { return Ok(None) };
                Ok((now.ends()?.1 > before.ends()?.1).then_some(()))
            })
        })
    }

    fn start(&self, config: MirrorConfig) -> Mirror {
        self.runtime.block_on(async { Mirror::start(config) })
    }

    /// Waits until the copy ends where the source does, under the source's leader epoch.
    fn caught_up(&self, mirror: &Mirror, name: (&str, i32)) -> anyhow::Result<()> {
        let caught_up = verbatim_tests::wait_for("end of the copy", PATIENCE, || {
            let Ok(copy) = Answers::ask(&[self.host.address()], name, &[]) else { return Ok(None) };
            let source = Answers::ask(&self.kafka.addresses(), name, &[])?;
            let same = copy.ends()? == source.ends()? && copy.leader_epoch == source.leader_epoch;
            Ok(same.then_some(()))
        });
        caught_up.with_context(|| format!("{:#?}", mirror.snapshot()))
    }

    /// The copy's files are the leader's, and it answers as the leader does.
    fn same(&self, name: (&str, i32)) -> anyhow::Result<()> {
        let data = self.leaders_data(name)?;
        let side = Side { addresses: self.kafka.addresses(), data: &data };
        same_files(&side, &self.home, name)?;
        let found = differences(&side, &self.host, name, true)?;
        let source = segments::headers(&segments::log_bytes(&data, name.0, u32::try_from(name.1)?)?)?;
        let (first, last) = (source.first().context("empty")?, source.last().context("empty")?);
        ensure!(first.leader_epoch < last.leader_epoch, "the leader of {name:?} never changed");
        ensure!(found.is_empty(), "source and copy differ\n{}", found.join("\n"));
        Ok(())
    }

    fn leaders_data(&self, name: (&str, i32)) -> anyhow::Result<PathBuf> {
        let addresses = self.kafka.addresses();
        let (leader, _) = leader(&addresses, name)?;
        let at = addresses.iter().position(|address| *address == leader).context("a stranger leads")?;
        Ok(self.kafka.data_of(at + 1))
    }
}
