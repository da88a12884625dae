//! Throughput of mirroring: `verbatim mirror` from Kafka into a host, beside a consumer-producer pipeline from Kafka into a
//! second Kafka. The same topics, on one machine, in one run, three times in turn; medians are printed, and their ratio.
//!
//! The pipeline is `tests/tools/kafka/Pipeline.java`: what record-copying mirrors do, without their framework, and set for
//! throughput. It stands in for MirrorMaker 2, whose artifact connect-mirror could not be fetched. All of Java runs with its
//! optimising compiler here, and 1 GiB of heap each.
//!
//! What acknowledged data has to survive differs: Kafka acknowledges what the system has; a host with `flush = always` what the
//! disk has. So the mirror is measured with both.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use anyhow::{Context as _, ensure};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use verbatim_tests::client::Client;
use verbatim_tests::host::Home;
use verbatim_tests::kafka::Kafka;
use verbatim_tests::{programs, random::Random, segments, tools, workspace};

const RECORDS: u32 = 524_288;
const RECORD_BYTES: usize = 1_024;
const PARTITIONS: u32 = 8;
const CODECS: [&str; 2] = ["none", "lz4"];
/// Pairs of a consumer and a producer in the pipeline, each with threads of its own.
const PIPELINE_THREADS: u32 = 1;
const ROUNDS: usize = 3;
/// Taken by the virtual machine after its command line, on which the test tools switch the optimising compiler off.
const JAVA: (&str, &str) = ("_JAVA_OPTIONS", "-XX:TieredStopAtLevel=4 -Xms1g -Xmx1g");
/// How many ticks of `/proc/<pid>/stat` are a second, on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// One copy of a topic.
#[derive(Debug, Clone, Copy)]
struct Run {
    seconds: f64,
    cpu_seconds: f64,
}

fn main() -> anyhow::Result<()> {
    if std::env::var_os(JAVA.0).is_none() {
        let status = Command::new(std::env::current_exe()?).env(JAVA.0, JAVA.1).status()?;
        ensure!(status.success(), "{status}");
        return Ok(());
    }
    let (Some(source), Some(target)) = (Kafka::start()?, Kafka::start()?) else { return Ok(()) };
    println!(
        "{RECORDS} records of {RECORD_BYTES} bytes in {PARTITIONS} partitions, written by Kafka's producer with its defaults; \
         medians of {ROUNDS} runs"
    );
    for codec in CODECS {
        fill(&source, codec)?;
        compare(&source, &target, codec)?;
    }
    Ok(())
}

fn compare(source: &Kafka, target: &Kafka, codec: &str) -> anyhow::Result<()> {
    let bytes = log_bytes(&source.data(), codec)?;
    let mut runs = [const { Vec::new() }; 3];
    let [always, never, pipeline] = &mut runs;
    for round in 1..=ROUNDS {
        always.push(mirrored(source, codec, "always", bytes)?);
        never.push(mirrored(source, codec, "never", bytes)?);
        pipeline.push(piped(source, target, codec, round)?);
    }
    let megabytes = megabytes(bytes);
    println!(
        "\n{codec}: {megabytes:.0} MB in the source's log\n{:<44} {:>8} {:>12} {:>8}",
        "", "MB/s", "records/s", "CPU s"
    );
    let name = [
        "verbatim mirror, host with flush = always",
        "verbatim mirror, host with flush = never",
        "pipeline, Kafka",
    ];
    let mut seconds = Vec::new();
    for (name, runs) in name.iter().zip(&mut runs) {
        runs.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
        let run = runs.get(runs.len() / 2).context("no runs")?;
        let rates = (megabytes / run.seconds, f64::from(RECORDS) / run.seconds);
        println!("{name:<44} {:>8.1} {:>12.0} {:>8.2}", rates.0, rates.1, run.cpu_seconds);
        seconds.push(run.seconds);
    }
    let [always, never, pipeline] = seconds[..] else { return Ok(()) };
    println!(
        "mirror to pipeline: {:.2} (flush = always), {:.2} (flush = never)",
        pipeline / always,
        pipeline / never
    );
    Ok(())
}

/// Writes the topic, whose name is its codec.
fn fill(source: &Kafka, codec: &str) -> anyhow::Result<()> {
    let producer = tools::find("kafka-producer-perf-test")?.context("no kafka-producer-perf-test")?;
    let folder = tempfile::tempdir()?;
    let payloads = folder.path().join("payloads");
    fs::write(&payloads, texts()?)?;
    client(source)?.create_topic(codec, i32::try_from(PARTITIONS)?, &[])?;
    let (bootstrap, records) = (source.bootstrap(), RECORDS.to_string());
    let codec_property = format!("compression.type={codec}");
    producer.succeed(&[
        "--topic",
        codec,
        "--num-records",
        &records,
        "--throughput",
        "-1",
        "--payload-file",
        &payloads.display().to_string(),
        "--bootstrap-server",
        &bootstrap,
        "--command-property",
        &codec_property,
    ])?;
    Ok(())
}

/// Lines of JSON of which records are made; a codec halves them or so.
fn texts() -> anyhow::Result<String> {
    let mut random = Random::seeded(1);
    let mut text = String::new();
    for _ in 0..5_000 {
        let mut line = String::from("{");
        while line.len() < RECORD_BYTES - 60 {
            let (field, number) = (random.below(40), random.number());
            line += &format!("\"field_{field}\":\"{number:x}\",");
        }
        let rest = RECORD_BYTES.saturating_sub(line.len() + 2);
        text += &format!("{line}{}}}\n", " ".repeat(rest + 1));
    }
    Ok(text)
}

/// One run of the mirror into an empty host.
fn mirrored(source: &Kafka, topic: &str, flush: &str, bytes: u64) -> anyhow::Result<Run> {
    let home = Home::new()?.arguments(&["--flush", flush]);
    let host = home.start()?;
    let mut command = Command::new(programs::verbatim()?);
    command.args(["mirror", "--source", &source.bootstrap(), "--target", &host.bootstrap()]);
    let run = run(command.args(["--topics", topic, "--once"]))?.0;
    ensure!(log_bytes(&home.data(), topic)? == bytes, "the copy has another size than its source");
    host.stop()?;
    Ok(run)
}

/// One run of the pipeline, to a new topic; the program tells its time, without the start of its virtual machine.
fn piped(source: &Kafka, target: &Kafka, topic: &str, round: usize) -> anyhow::Result<Run> {
    // It keeps the topic's name; what is there from the round before has to go.
    let client = client(target)?;
    let partitions = PARTITIONS.to_string();
    if round > 1 {
        let topics = tools::find("kafka-topics")?.context("no kafka-topics")?;
        topics.succeed(&["--bootstrap-server", &target.bootstrap(), "--delete", "--topic", topic])?;
        let gone = || Ok(client.latest((topic, 0)).is_err().then_some(()));
        verbatim_tests::wait_for("end of the topic", Duration::from_secs(30), gone)?;
    }
    client.create_topic(topic, i32::try_from(PARTITIONS)?, &[])?;
    let kafka = workspace().join("target/tools/kafka");
    let classes = format!("{0}/classes:{0}/libs/*", kafka.display());
    let log = format!("-Dlog4j2.configurationFile={}/log4j2.properties", kafka.display());
    let threads = PIPELINE_THREADS.to_string();
    let mut command = Command::new("java");
    command.args([log.as_str(), "-cp", &classes, "Pipeline"]);
    command.args([&source.bootstrap(), &target.bootstrap(), topic, &partitions, &threads, topic]);
    let (run, output) = run(&mut command)?;
    let told: serde_json::Value = serde_json::from_str(output.trim()).with_context(|| output.clone())?;
    let told = |field| told.get(field).and_then(serde_json::Value::as_f64);
    ensure!(told("records") == Some(f64::from(RECORDS)), "{output}");
    let millis = told("ms").context("no time")?;
    Ok(Run { seconds: millis / 1_000.0, ..run })
}

/// Runs a program to its end: its time, and what it printed.
fn run(command: &mut Command) -> anyhow::Result<(Run, String)> {
    let (output, errors) = (tempfile::NamedTempFile::new()?, tempfile::NamedTempFile::new()?);
    command.stdin(Stdio::null()).stdout(output.reopen()?).stderr(errors.reopen()?);
    let began = Instant::now();
    let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    let cpu_seconds = wait(&child)?;
    let seconds = began.elapsed().as_secs_f64();
    let status = child.wait()?;
    let output = fs::read_to_string(output.path())?;
    ensure!(status.success(), "{command:?}: {status}\n{output}\n{}", fs::read_to_string(errors.path())?);
    Ok((Run { seconds, cpu_seconds }, output))
}

/// Waits until a child has ended, and tells the CPU time that it took. It still has to be waited for.
fn wait(child: &Child) -> anyhow::Result<f64> {
    let stat = format!("/proc/{}/stat", child.id());
    loop {
        let text = fs::read_to_string(&stat)?;
        // Fields from the third on follow the name in parentheses: the state, and ten others before the two times.
        let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        if fields.first() == Some(&"Z") {
            let ticks = fields.get(11..13).context("no times")?.iter().map(|ticks| ticks.parse::<f64>());
            return Ok(ticks.sum::<Result<f64, _>>()? / TICKS_PER_SECOND);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn client(kafka: &Kafka) -> anyhow::Result<Client> {
    let address: SocketAddr = *kafka.addresses().first().context("no broker")?;
    Client::connect(address)
}

/// The size of a topic's logs.
fn log_bytes(data: &Path, topic: &str) -> anyhow::Result<u64> {
    let mut bytes = 0_u64;
    for partition in 0..PARTITIONS {
        for file in segments::log_files(data, topic, partition)? {
            bytes = bytes.saturating_add(fs::metadata(file)?.len());
        }
    }
    Ok(bytes)
}

/// A size in megabytes, whose last digits nobody needs.
fn megabytes(bytes: u64) -> f64 {
    f64::from(u32::try_from(bytes / 1_000).unwrap_or(u32::MAX)) / 1_000.0
}
