//! `verbatim mirror` and mirrors inside `verbatim serve`, as real processes between real hosts: what they print, what they
//! leave, how they end.

#![expect(clippy::indexing_slicing, reason = "a JSON value without such a field is null")]

use super::metrics::get;
use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use verbatim_tests::BesideLog as _;
use verbatim_tests::client::Client;
use verbatim_tests::exact::{EXACT, batch, order};
use verbatim_tests::host::{Home, Host, free_address};
use verbatim_tests::run::{self, Output};
use verbatim_tests::{programs, segments, wait_for};

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn once_copies_everything_and_ends_well() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    let written = pair.fill()?;
    let first = pair.mirror(&["--topics", "ord.*", "--exclude", ".*x", "--once"])?.success()?;
    let row = row(&first, "orders", 0)?;
    ensure!(
        row == ["orders", "0", "caught-up", "0", "104", "104", "0", "2", "4", &written.len().to_string()],
        "{row:?}"
    );
    ensure!(!first.contains("other"), "{first}");

    let folder = TempDir::new()?;
    let file = folder.path().join("verbatim.toml");
    fs::write(&file, "[mirror]\ntopics = ['none', 'orders']\nonce = true\non-data-lost = 'skip'\n")?;
    let again = Command::new(programs::verbatim()?)
        .args(["mirror", "--config-file", utf8(&file)?, "--target", &pair.target.bootstrap()])
        .env("VERBATIM_MIRROR_SOURCE", pair.source.bootstrap())
        .stdin(Stdio::null())
        .output()?;
    ensure!(again.status.success(), "{again:?}");
    let again = String::from_utf8(again.stdout)?;
    ensure!(self::row(&again, "orders", 0)?.get(7..) == Some(&["0", "0", "0"].map(str::to_owned)), "{again}");

    let Pair { target, source, home, source_home } = pair;
    target.stop()?;
    source.stop()?;
    ensure!(segments::log_bytes(&home.data(), "orders", 0)? == written, "the copy's segments differ");
    ensure!(
        segments::log_bytes(&source_home.data(), "orders", 0)? == written,
        "the source's segments differ"
    );
    Ok(())
}

#[test]
fn programs_get_one_json_object_a_line() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    pair.fill()?;
    let told = pair.mirror(&["--topics", "orders", "--once", "--output", "json"])?.success()?;
    let lines: Vec<Value> = told.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    for line in &lines {
        ensure!(line["time_ms"].is_u64(), "{line}");
        let event = line["event"].as_str().context("no event")?;
        ensure!(["state", "note", "topic", "snapshot", "final"].contains(&event), "{line}");
    }
    let created = lines.iter().find(|line| line["event"] == "topic" && line["topic"] == "orders");
    let created = created.and_then(|line| line["text"].as_str()).with_context(|| told.clone())?;
    // As Kafka's own tools write it.
    let described =
        pair.source.verbatim(&["topic", "describe", "orders", "--output", "json"], b"")?.success()?;
    let id = created.rsplit(' ').next().filter(|id| id.len() == 22).with_context(|| created.to_owned())?;
    ensure!(described.contains(&format!("\"{id}\"")), "{id} in {described}");
    let caught_up = |line: &&Value| line["event"] == "state" && line["state"] == "caught-up";
    ensure!(lines.iter().filter(caught_up).any(|line| line["partition"] == 1), "{told}");
    let last = lines.last().context("no line")?;
    ensure!(last["event"] == "final" && last["totals"]["states"]["caught-up"] == 2, "{last}");
    ensure!(last["partitions"][0]["end"] == 104 && last["totals"]["records"] == 4, "{last}");
    ensure!(!told.contains("payload"), "records are nobody's business: {told}");
    Ok(())
}

#[test]
fn programs_get_nothing_but_json_of_calls_that_fail_too() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    pair.fill()?;
    pair.target.create_topic("other", 1, &[])?;
    let nobody = free_address()?.to_string();
    let (source, target) = (pair.source.bootstrap(), pair.target.bootstrap());
    let call = |command: &str, source: &str, target: &str, more: &[&str]| -> anyhow::Result<Output> {
        let fixed = [command, "--output", "json", "--source", source, "--target", target];
        run::run(Command::new(programs::verbatim()?).args(fixed).args(more), b"")
    };
    let mirror = |source: &str, target: &str, more: &[&str]| call("mirror", source, target, more);
    let verify = |source: &str, target: &str, more: &[&str]| call("verify", source, target, more);
    let once = ["--topics", "orders", "--once"];
    for (ended, code) in [
        (mirror(&nobody, &target, &once)?, 1),
        (mirror(&source, &nobody, &once)?, 1),
        (mirror(&nobody, &target, &["--topics", "orders", "--dry-run"])?, 1),
        (mirror(&source, &target, &["--topics", "none", "--once"])?, 1),
        (mirror(&source, &target, &["--topics", "(", "--once"])?, 2),
        (mirror(&source, &target, &["--topics", "orders", "--connections", "0"])?, 2),
        (mirror(&source, &target, &["--topics", "orders", "--refresh-ms", "soon"])?, 2),
        (mirror(&source, &target, &["--topics", "other", "--once"])?, 1),
        (mirror(&source, &target, &["--topics", "other,orders", "--dry-run"])?, 1),
        (verify(&nobody, &target, &once[..2])?, 2),
        (verify(&source, &nobody, &once[..2])?, 2),
        (verify(&source, &target, &["--topics", "none"])?, 2),
        (verify(&source, &target, &["--topics", "("])?, 2),
        (verify(&source, &target, &["--topics", "orders", "--sample", "2"])?, 2),
        (verify(&source, &target, &["--topics", "orders"])?, 1),
    ] {
        ensure!(ended.status.code() == Some(code), "{ended}");
        ensure!(code != 1 || !ended.stdout.is_empty() || !ended.stderr.is_empty(), "{ended}");
        for line in ended.stdout.lines() {
            let value: Value = serde_json::from_str(line).with_context(|| ended.to_string())?;
            ensure!(value.is_object(), "{ended}");
        }
    }
    Ok(())
}

#[test]
fn a_dry_run_tells_what_would_be_done_and_does_nothing() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    pair.fill()?;
    let dry = ["--topics", "orders", "--dry-run"];
    let told = pair.mirror(&dry)?.success()?;
    for expected in
        ["is not there: it would be created and copied, partitions 2", "orders: retention.ms=1000000"]
    {
        ensure!(told.contains(expected), "no {expected} in {told}");
    }
    ensure!(row(&told, "orders", 0)? == ["orders", "0", "0", "104", "none", "104"], "{told}");
    let own = ["--target-config", "produce.at.offset.rewrite=allow", "--target-config", "a=b=c"];
    let told = pair.mirror(&[&dry[..], &own].concat())?.success()?;
    for expected in
        ["orders: produce.at.offset.rewrite=allow", "orders: a=b=c", "orders: retention.ms=1000000"]
    {
        ensure!(told.contains(expected), "no {expected} in {told}");
    }
    ensure!(pair.target.verbatim(&["topic", "list"], b"")?.success()?.is_empty(), "something was created");

    pair.mirror(&["--topics", "orders", "--once"])?.success()?;
    let told = pair.mirror(&[&dry[..], &["--output", "json"]].concat())?.success()?;
    let plan: Value = serde_json::from_str(&told)?;
    ensure!(
        plan["topic"] == "orders" && plan["step"] == "go-on" && plan["partitions"][0]["end"] == 104,
        "{plan}"
    );
    ensure!(
        plan["settings"].as_object().is_some_and(serde_json::Map::is_empty),
        "nothing is to be changed: {plan}"
    );

    ensure!(plan["copy"] == serde_json::json!({ "exact": true, "partitions": 2 }), "{plan}");

    pair.source.create_topic("grown", 3, &[])?;
    pair.target.create_topic("grown", 1, &[EXACT])?;
    let told = pair.mirror(&["--topics", "grown", "--dry-run"])?.success()?;
    for expected in [
        "is there, exact, partitions 1: its copy would go on, partitions added 2",
        "does not say which topic it is a copy of",
    ] {
        ensure!(told.contains(expected), "no {expected} in {told}");
    }
    pair.target.create_topic("other", 1, &[])?;
    let refused = pair.mirror(&["--topics", "other", "--dry-run"])?;
    ensure!(refused.status.code() == Some(1), "{refused}");
    ensure!(
        ["is there, not exact, partitions 1: it cannot be mirrored: ", "; remedy: "]
            .iter()
            .all(|expected| refused.stdout.contains(expected)),
        "{refused}"
    );
    Ok(())
}

#[test]
fn a_partition_that_stops_is_told_with_reason_and_remedy_and_others_go_on() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    pair.fill()?;
    pair.target.create_topic("other", 1, &[])?;
    let ended = pair.mirror(&["--topics", "orders,other", "--once"])?;
    ensure!(ended.status.code() == Some(1), "{ended}");
    let line = ended.stdout.lines().find(|line| line.starts_with("other-0 is target-not-exact"));
    let line = line.with_context(|| ended.to_string())?;
    ensure!(line.contains("produce.at.offset=false, expected true") && line.contains("; remedy: "), "{line}");
    ensure!(ended.stderr.contains("error: 1 of 3 partitions are not copied; other-0"), "{ended}");
    ensure!(row(&ended.stdout, "orders", 0)?.get(2).is_some_and(|state| state == "caught-up"), "{ended}");
    let json = pair.mirror(&["--topics", "other", "--once", "--output", "json"])?;
    ensure!(json.status.code() == Some(1), "{json}");
    let last: Value = serde_json::from_str(json.stdout.lines().last().context("no line")?)?;
    let partition = &last["partitions"][0];
    ensure!(partition["state"] == "target-not-exact" && partition["remedy"].is_string(), "{last}");
    Ok(())
}

#[test]
fn sigterm_ends_a_live_mirror_in_order() -> anyhow::Result<()> {
    let pair = Pair::new()?;
    pair.fill()?;
    let folder = TempDir::new()?;
    let log = folder.path().join("mirror.log");
    let mut child = pair
        .command(&["--topics", "orders", "--report-interval-ms", "100"])?
        .stdout(File::create(&log)?)
        .stderr(Stdio::null())
        .spawn()?;
    let target = Client::connect(pair.target.address())?;
    let source = Client::connect(pair.source.address())?;
    let copied = |end: i64| {
        wait_for("copy", PATIENCE, || Ok(target.latest(("orders", 0)).ok().filter(|found| found.0 == end)))
    };
    copied(104)?;
    let more = batch(104, 4, &["payload"])?;
    ensure!(source.produce(("orders", 0), Some(&order((104, 3), (0, 105), 4)), &more)?.error_code == 0);
    copied(105)?;
    wait_for("summary", PATIENCE, || Ok(fs::read_to_string(&log)?.contains(" partitions: ").then_some(())))?;
    kill_process(Pid::from_child(&child), Signal::TERM)?;
    let status = run::wait(&mut child, PATIENCE)?;
    let told = fs::read_to_string(&log)?;
    ensure!(status.success(), "{status}\n{told}");
    ensure!(told.contains("orders-0 is caught-up at "), "{told}");
    let row = row(&told, "orders", 0)?;
    ensure!(row.get(5).is_some_and(|end| end == "105"), "{row:?}");
    Ok(())
}

#[test]
fn a_wrong_call_names_field_value_and_expectation() -> anyhow::Result<()> {
    let folder = TempDir::new()?;
    let file = folder.path().join("verbatim.toml");
    let good = ["--source", "127.0.0.1:1", "--topics", "a"];
    let with = |more: &[&str]| run::run(Command::new(programs::verbatim()?).arg("mirror").args(more), b"");
    for (more, told) in [
        (&["--topics", "a"][..], "source is missing"),
        (&good[..2], "topics is missing"),
        (
            &["--source", "x", "--topics", "a"],
            "source must be HOST:PORT, several of them separated by commas, source=`x`",
        ),
        (
            &["--source", "127.0.0.1:1", "--topics", "("],
            "topics must be a regular expression (unclosed group), topics=`(`",
        ),
        (
            &[&good[..], &["--on-data-lost", "go"]].concat(),
            "on-data-lost must be stop or skip, on-data-lost=`go`",
        ),
        (
            &[&good[..], &["--connections", "0"]].concat(),
            "connections must be a number from 1 to 1000, connections=`0`",
        ),
        (&[&good[..], &["--refresh-ms", "soon"]].concat(), "--refresh-ms"),
        (
            &[&good[..], &["--target-config", "produce.at.offset=false"]].concat(),
            "target-config must be another property than produce.at.offset, which the mirror itself sets, \
             target-config=`produce.at.offset=false`",
        ),
        (
            &[&good[..], &["--bootstrap-server", "127.0.0.1:1"]].concat(),
            "source must be another cluster than the target",
        ),
    ] {
        let ended = with(more)?;
        ensure!(ended.status.code() == Some(2) && ended.stderr.contains(told), "no {told} in {ended}");
        ensure!(ended.stdout.is_empty(), "{ended}");
    }
    for (command, text, told) in [
        ("mirror", "[mirror]\nsource = 'x'\ntopics = ['a']\n", "source=`x`"),
        ("mirror", "[mirror]\nsauce = 'x'\n", "sauce"),
        (
            "serve",
            "[[serve.mirror]]\nsource = '127.0.0.1:1'\ntopics = ['a']\n",
            "[[serve.mirror]]: name is missing",
        ),
        (
            "serve",
            "[[serve.mirror]]\nname = 'eu'\nsource = 'x'\ntopics = ['a']\n",
            "[[serve.mirror]] `eu`: source must be HOST:PORT",
        ),
        (
            "serve",
            "[[serve.mirror]]\nname = 'eu'\nonce = true\n",
            "[[serve.mirror]] `eu`: once must be left out",
        ),
    ] {
        fs::write(&file, text)?;
        let mut ended = Command::new(programs::verbatim()?);
        ended.args([command, "--config-file", utf8(&file)?]);
        if command == "serve" {
            ended.arg("--data").arg(folder.path().join("data"));
        }
        let ended = run::run(&mut ended, b"")?;
        ensure!(ended.status.code() == Some(2) && ended.stderr.contains(told), "no {told} in {ended}");
    }
    Ok(())
}

#[test]
fn a_mirror_inside_a_host_bears_the_absence_of_its_source() -> anyhow::Result<()> {
    let source_home = Home::new()?;
    let source = source_home.start()?;
    let written = fill(&source)?;
    let bootstrap = source.bootstrap();
    source.stop()?;

    let folder = TempDir::new()?;
    let file = folder.path().join("verbatim.toml");
    fs::write(
        &file,
        format!(
            "[[serve.mirror]]\nname = 'eu'\nsource = '{bootstrap}'\ntopics = ['orders']\nrefresh-ms = 200\n"
        ),
    )?;
    let home = Home::new()?.arguments(&["--config-file", utf8(&file)?, "--metrics-listen", "127.0.0.1:0"]);
    let mut host = home.start()?;
    host.create_topic("own", 1, &[])?;
    let client = Client::connect(host.address())?;
    ensure!(client.produce(("own", 0), None, &batch(0, 0, &["a"])?)?.error_code == 0, "it serves by itself");

    let source = source_home.start()?;
    let copied = |end: i64| {
        wait_for("copy", PATIENCE, || Ok(client.latest(("orders", 0)).ok().filter(|found| found.0 == end)))
    };
    copied(104).beside("the host", || host.log())?;
    source.kill()?;
    ensure!(client.fetch_all(("orders", 0), 0)? == written && host.is_running());

    let source = source_home.start()?;
    let more = batch(104, 4, &["payload"])?;
    let order = order((104, 3), (0, 105), 4);
    let answer = Client::connect(source.address())?.produce(("orders", 0), Some(&order), &more)?;
    ensure!(answer.error_code == 0, "{answer:?}");
    copied(105).beside("the host", || host.log())?;
    wait_for("line of the log", PATIENCE, || {
        let told = |line: &str| {
            ["mirror=\"eu\"", "topic=\"orders\"", "state=caught-up"].iter().all(|field| line.contains(field))
        };
        Ok(host.log().lines().any(told).then_some(()))
    })
    .beside("the host", || host.log())?;
    let metrics = host.metrics_address()?;
    wait_for("figures", PATIENCE, || {
        let text = get(metrics, "/metrics")?;
        let all = [
            "verbatim_mirror_partitions{mirror=\"eu\",state=\"diverged\"} 0",
            "verbatim_mirror_lag_records{mirror=\"eu\",topic=\"orders\",partition=\"0\"} 0",
            "verbatim_mirror_state{mirror=\"eu\",topic=\"orders\",partition=\"0\",state=\"caught-up\"} 1",
        ];
        Ok(all.iter().all(|wanted| text.lines().any(|line| line == *wanted)).then_some(()))
    })?;
    host.stop()?;
    let log = home.log();
    let at = |text: &str| log.find(text).with_context(|| format!("no {text} in {log}"));
    ensure!(at("the mirror has stopped")? < at("INFO verbatim::cli::serve: shut down")?, "{log}");
    Ok(())
}

/// A source and a host to copy to.
struct Pair {
    source: Host,
    source_home: Home,
    target: Host,
    home: Home,
}

impl Pair {
    fn new() -> anyhow::Result<Self> {
        let (source_home, home) = (Home::new()?, Home::new()?);
        Ok(Self { source: source_home.start()?, source_home, target: home.start()?, home })
    }

    fn fill(&self) -> anyhow::Result<Vec<u8>> {
        fill(&self.source)
    }

    /// `verbatim mirror` from one to the other.
    fn command(&self, arguments: &[&str]) -> anyhow::Result<Command> {
        let mut command = Command::new(programs::verbatim()?);
        command.args(["mirror", "--source", &self.source.bootstrap(), "--target", &self.target.bootstrap()]);
        command.args(arguments);
        Ok(command)
    }

    fn mirror(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        run::run(&mut self.command(arguments)?, b"")
    }
}

/// An exact topic `orders` of two partitions, with two batches in the first, which are returned; and a topic `other`.
fn fill(source: &Host) -> anyhow::Result<Vec<u8>> {
    source.create_topic("orders", 2, &[EXACT, "retention.ms=1000000"])?;
    source.create_topic("other", 1, &[])?;
    let client = Client::connect(source.address())?;
    let (first, second) = (batch(100, 2, &["payload", "payload"])?, batch(102, 3, &["payload", "payload"])?);
    let written = [first, second].concat();
    let answer = client.produce(("orders", 0), Some(&order((0, -1), (0, 104), 3)), &written)?;
    ensure!(answer.error_code == 0, "{answer:?}");
    Ok(written)
}

/// The last row of a partition in a table.
fn row(text: &str, topic: &str, partition: i32) -> anyhow::Result<Vec<String>> {
    let mut rows = text.lines().map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    let wanted = |row: &Vec<String>| {
        row.len() > 2
            && row.first().is_some_and(|name| name == topic)
            && row.get(1).is_some_and(|index| *index == partition.to_string())
    };
    rows.rfind(wanted).with_context(|| format!("no row of {topic} {partition} in {text}"))
}

fn utf8(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("a path that is no text")
}
