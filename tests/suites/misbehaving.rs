//! A module that traps, spins for ever, takes memory or settles wrongly costs one partition's request an error and nobody
//! else anything: not the other partitions of its topic, not other topics, not the host.
//!
//! The host has one append thread, so that everybody shares it with the module that misbehaves.

use anyhow::{Context, ensure};
use hostile_module::Behaviour;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tempfile::TempDir;
use verbatim_tests::BesideLog as _;
use verbatim_tests::client::{Answer, Client, Write};
use verbatim_tests::exact::{EXACT, batch, order};
use verbatim_tests::host::{Home, Host};
use verbatim_tests::wait_for;

const STORAGE_ERROR: i16 = 56;
const INVALID_RECORD: i16 = 87;
/// The code that the hostile module itself refuses with.
const ITS_REFUSAL: i16 = 42;
const FAILURES_MAX: usize = 3;
const GROWTH_KIB_MAX: u64 = 64 << 10;

/// Everything that is a failure of the module.
const FAILING: [Behaviour; 18] = [
    Behaviour::Traps,
    Behaviour::Spins,
    Behaviour::AsksForEver,
    Behaviour::GrowsMemory,
    Behaviour::Recurses,
    Behaviour::SettlesNothing,
    Behaviour::SettlesTwice,
    Behaviour::PlacesElsewhere,
    Behaviour::ChangesEpoch,
    Behaviour::ClaimsDuplicates,
    Behaviour::SettlesBeyond,
    Behaviour::AsksBeyond,
    Behaviour::RefusesTooLong,
    Behaviour::RefusesEndlessly,
    Behaviour::WritesEndlessLine,
    Behaviour::Rewrites,
    Behaviour::RewritesTwice,
    Behaviour::CallsAfterRefusing,
];

#[test]
fn a_module_that_misbehaves_costs_one_request_an_error_and_nobody_else_anything() -> anyhow::Result<()> {
    let (folder, home) = home_with_the_hostile_module()?;
    let mut host = home.start()?;
    create_topics(&host)?;
    let client = Client::connect(host.address())?;
    let others = Others::start(host.address())?;
    others.wait_for_progress()?;
    let before_kib = host.status_kib("VmRSS")?;

    for behaviour in FAILING {
        fails(&client, behaviour)
            .with_context(|| format!("{behaviour:?}"))
            .beside("the host", || host.log())?;
        others.wait_for_progress().with_context(|| format!("{behaviour:?}"))?;
    }
    let wild = |behaviour| Wild { client: &client, partition: number(behaviour) };
    for attempt in 0..=FAILURES_MAX {
        let answer = wild(Behaviour::RefusesAfterPlacing).write("a")?;
        assert_eq!(answer.error_code, ITS_REFUSAL, "a refusal never poisons, attempt {attempt}: {answer:?}");
    }
    others_in_the_same_request(&client)?;
    others.finish()?;

    let growth_kib = host.status_kib("VmRSS")?.saturating_sub(before_kib);
    ensure!(growth_kib < GROWTH_KIB_MAX, "the host grew by {growth_kib} KiB");
    ensure!(host.is_running() && !host.log().contains("panicked"), "{}", host.log());
    each_failure_is_logged_once(&host.log())?;
    drop(client);
    host.stop()?;
    drop(folder);
    Ok(())
}

#[test]
fn a_module_that_is_not_there_costs_its_topic_alone() -> anyhow::Result<()> {
    let (folder, home) = home_with_the_hostile_module()?;
    let host = home.start()?;
    create_topics(&host)?;
    host.stop()?;

    let home = home.without_arguments();
    let host = home.start()?;
    let client = Client::connect(host.address())?;
    let answer = Wild { client: &client, partition: 0 }.write("a")?;
    assert_eq!(answer.error_code, STORAGE_ERROR, "{answer:?}");
    ensure!(answer.error_message.contains("produce.module=`hostile`"), "{answer:?}");
    assert_eq!(client.produce(("plain", 0), None, &batch(0, 0, &["a"])?)?.error_code, 0);
    let unknown = host.verbatim(&["topic", "create", "t", "--config", "produce.module=hostile"], b"")?;
    ensure!(!unknown.status.success() && unknown.stderr.contains("INVALID_CONFIG (40)"), "{unknown}");
    drop(client);
    host.stop()?;
    drop(folder);
    Ok(())
}

/// A home whose hosts know the module `hostile`, and the folder that its file is in.
fn home_with_the_hostile_module() -> anyhow::Result<(TempDir, Home)> {
    let folder = tempfile::Builder::new().prefix("verbatim-module-").tempdir()?;
    let file = folder.path().join("hostile.wasm");
    std::fs::write(&file, verbatim_artifact::hostile()?)?;
    let module = named(&file);
    let home = Home::new()?.arguments(&["--append-threads", "1", "--module", &module]);
    Ok((folder, home))
}

fn named(file: &Path) -> String {
    format!("hostile={}", file.display())
}

fn create_topics(host: &Host) -> anyhow::Result<()> {
    // One more partition than there are behaviours: it is a well-behaved one.
    let partitions = u32::try_from(Behaviour::ALL.len())?.saturating_add(1);
    // So that what is handed back is looked at.
    let rewrite = "produce.at.offset.rewrite=allow";
    host.create_topic("wild", partitions, &[EXACT, "produce.module=hostile", rewrite])?;
    host.create_topic("calm", 2, &[EXACT])?;
    host.create_topic("plain", 1, &[])
}

/// The batch on which the module fails is refused as poisoned once it failed three times; another batch is not.
fn fails(client: &Client, behaviour: Behaviour) -> anyhow::Result<()> {
    let wild = Wild { client, partition: number(behaviour) };
    for attempt in 0..FAILURES_MAX {
        let answer = wild.write("poison")?;
        ensure!(answer.error_code == STORAGE_ERROR, "attempt {attempt}: {answer:?}");
        let names = answer.error_message.contains(&format!("topic=`wild`, partition=`{}`", wild.partition));
        ensure!(names, "the text names the partition: {answer:?}");
        ensure!(answer.tag.as_ref().is_some_and(|tag| tag.end == 0), "nothing is written: {answer:?}");
    }
    let answer = wild.write("poison")?;
    ensure!(answer.error_code == INVALID_RECORD, "failed {FAILURES_MAX} times before: {answer:?}");
    let answer = wild.write("another")?;
    ensure!(answer.error_code == STORAGE_ERROR, "another batch: {answer:?}");
    assert_eq!(client.latest(("wild", wild.partition))?, (0, -1), "the partition is untouched");
    Ok(())
}

/// One request for a partition on which the module traps and for two on which it does not.
fn others_in_the_same_request(client: &Client) -> anyhow::Result<()> {
    let bytes = batch(0, 3, &["together"])?;
    let tag = order((0, -1), (0, 1), 3);
    let partitions =
        [("wild", number(Behaviour::Traps)), ("wild", i32::try_from(Behaviour::ALL.len())?), ("calm", 1)];
    let writes = partitions.map(|partition| Write { partition, tag: Some(&tag), batches: &bytes });
    let answers = client.produce_together(&writes)?;
    let codes: Vec<i16> = answers.iter().map(|answer| answer.error_code).collect();
    assert_eq!(codes, [STORAGE_ERROR, 0, 0], "{answers:?}");
    for (topic, partition) in partitions.into_iter().skip(1) {
        assert_eq!(client.fetch_all((topic, partition), 0)?, bytes, "{topic}-{partition}");
    }
    Ok(())
}

fn each_failure_is_logged_once(log: &str) -> anyhow::Result<()> {
    for behaviour in FAILING {
        let partition = format!("partition={} ", behaviour.partition());
        let lines =
            |what: &str| log.lines().filter(|line| line.contains(what) && line.contains(&partition)).count();
        // The batch that was poisoned, and another; for one partition the request together with others, too.
        let failures = FAILURES_MAX + if behaviour == Behaviour::Traps { 2 } else { 1 };
        ensure!(
            lines("module failure") == failures,
            "{behaviour:?}: {} lines\n{log}",
            lines("module failure")
        );
    }
    Ok(())
}

/// A partition of the topic that the hostile module judges, empty as yet.
struct Wild<'a> {
    client: &'a Client,
    partition: i32,
}

impl Wild<'_> {
    fn write(&self, value: &str) -> anyhow::Result<Answer> {
        let tag = order((0, -1), (0, 1), 3);
        self.client.produce(("wild", self.partition), Some(&tag), &batch(0, 3, &[value])?)
    }
}

fn number(behaviour: Behaviour) -> i32 {
    i32::try_from(behaviour.partition()).unwrap_or(i32::MAX)
}

/// Those who share the host with the module: writers that go on all the time and take no error.
struct Others {
    done: Arc<AtomicBool>,
    writers: Vec<(Arc<AtomicI64>, JoinHandle<anyhow::Result<()>>)>,
}

impl Others {
    fn start(address: SocketAddr) -> anyhow::Result<Self> {
        let done = Arc::new(AtomicBool::new(false));
        // A topic of its own in either mode, and a partition of the same topic, judged by the same module.
        let writers = [("calm", true), ("plain", false), ("wild", true)].map(|(topic, exact)| {
            let (done, written) = (Arc::clone(&done), Arc::new(AtomicI64::new(0)));
            let count = Arc::clone(&written);
            (written, thread::spawn(move || go_on(address, (topic, exact), &done, &count)))
        });
        Ok(Self { done, writers: writers.into() })
    }

    /// Waits until each of them has written something more.
    fn wait_for_progress(&self) -> anyhow::Result<()> {
        for (written, writer) in &self.writers {
            let before = written.load(Ordering::Relaxed);
            wait_for("progress of the others", Duration::from_secs(30), || {
                let goes_on = written.load(Ordering::Relaxed) > before;
                Ok((goes_on || writer.is_finished()).then_some(()))
            })?;
        }
        Ok(())
    }

    /// Ends them; an error that one of them had on the way comes out here.
    fn finish(self) -> anyhow::Result<()> {
        self.done.store(true, Ordering::Relaxed);
        for (_, writer) in self.writers {
            writer.join().map_err(|_| anyhow::anyhow!("a writer panicked"))??;
        }
        Ok(())
    }
}

/// Writes to partition 0 of a topic until it is done; then everything written must be there.
fn go_on(
    address: SocketAddr,
    (topic, exact): (&str, bool),
    done: &AtomicBool,
    written: &AtomicI64,
) -> anyhow::Result<()> {
    let client = Client::connect(address)?;
    let mut count = 0;
    while !done.load(Ordering::Relaxed) {
        let tag = exact.then(|| order((count, if count == 0 { -1 } else { 3 }), (0, count + 1), 3));
        let bytes = if exact { batch(count, 3, &["x"])? } else { batch(0, 0, &["x"])? };
        let answer = client.produce((topic, 0), tag.as_ref(), &bytes)?;
        ensure!(answer.error_code == 0, "{topic}, batch {count}: {answer:?}");
        count += 1;
        written.store(count, Ordering::Relaxed);
    }
    assert_eq!(client.latest((topic, 0))?.0, count, "{topic}");
    Ok(())
}
