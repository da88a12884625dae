//! Consumer groups by real clients: members share partitions, offsets outlive the host's end, Kafka's own tool sees and moves
//! them, and a group goes on at a mirror's destination at the very next record.

#![expect(clippy::indexing_slicing, reason = "a JSON value gives null for what it lacks")]

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::Value;
use tokio::runtime::Runtime;
use verbatim_mirror::cluster::{Cluster, ClusterConfig, GroupOffset, Partition};
use verbatim_tests::BesideLog as _;
use verbatim_tests::client::Client;
use verbatim_tests::exact::batch;
use verbatim_tests::host::{Home, Host};
use verbatim_tests::kafka::Kafka;
use verbatim_tests::tools::{self, Tool};

/// How long a member may take for anything; a busy machine is slow.
const PATIENCE: Duration = Duration::from_secs(120);
const FAMILIES: &[&str] = &["Java", "librdkafka", "kafka-python"];

fn program(family: &str) -> anyhow::Result<Option<Tool>> {
    match family {
        "Java" => tools::find("java-group-member"),
        "librdkafka" => tools::python("group_confluent.py"),
        _ => tools::python("group_kafka_py.py"),
    }
}

/// A member that reads until it is told to leave.
struct Member {
    child: Child,
    input: ChildStdin,
    lines: Receiver<Value>,
    partitions: Vec<i64>,
}

impl Member {
    fn start(program: &Tool, bootstrap: &str, group: &str, topic: &str) -> anyhow::Result<Self> {
        let mut command = Command::new(program.program());
        command.args(program.script()).args([bootstrap, group, topic, "0"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let input = child.stdin.take().context("no standard input")?;
        let output = BufReader::new(child.stdout.take().context("no standard output")?);
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            let values =
                output.lines().map_while(Result::ok).filter_map(|line| serde_json::from_str(&line).ok());
            values.map(|value: Value| sender.send(value)).take_while(Result::is_ok).count()
        });
        Ok(Self { child, input, lines, partitions: Vec::new() })
    }

    /// Takes what it printed so far; its partitions are those of the last assignment.
    fn look(&mut self) {
        while let Ok(line) = self.lines.recv_timeout(Duration::from_millis(50)) {
            if let Some(assigned) = line["assigned"].as_array() {
                self.partitions = assigned.iter().filter_map(Value::as_i64).collect();
            }
        }
    }

    fn leave(mut self) -> anyhow::Result<()> {
        writeln!(self.input)?;
        self.input.flush()?;
        let status = verbatim_tests::run::wait(&mut self.child, PATIENCE)?;
        ensure!(status.success(), "{status}");
        Ok(())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until all four partitions are assigned, each once, to so many members.
fn shared(members: &mut [Member]) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        members.iter_mut().for_each(Member::look);
        let mut all: Vec<i64> = members.iter().flat_map(|member| member.partitions.clone()).collect();
        all.sort_unstable();
        if all == [0, 1, 2, 3] && members.iter().all(|member| !member.partitions.is_empty()) {
            return Ok(());
        }
        ensure!(began.elapsed() < PATIENCE, "{} members have {all:?}", members.len());
    }
}

/// The offsets that one member reads before it commits and leaves.
fn read(program: &Tool, bootstrap: &str, group: &str, topic: &str, count: usize) -> anyhow::Result<Vec<i64>> {
    let lines = program.json_lines(&[bootstrap, group, topic, &count.to_string()])?;
    Ok(lines.iter().filter_map(|line| line["offset"].as_i64()).collect())
}

/// Writes a batch of so many records.
fn fill(address: SocketAddr, topic: &str, records: usize) -> anyhow::Result<()> {
    let values = vec!["value"; records];
    let answer = Client::connect(address)?.produce((topic, 0), None, &batch(0, 0, &values)?)?;
    ensure!(answer.error_code == 0, "{answer:?}");
    Ok(())
}

#[test]
fn two_members_share_and_when_one_leaves_the_other_gets_all() -> anyhow::Result<()> {
    let home = Home::new()?;
    let host = home.start()?;
    host.create_topic("shared", 4, &[])?;
    for family in FAMILIES {
        let Some(program) = program(family)? else { continue };
        let start = || Member::start(&program, &host.bootstrap(), &format!("share-{family}"), "shared");
        let take = || {
            let mut members = vec![start()?];
            shared(&mut members)?;
            members.push(start()?);
            shared(&mut members)?;
            members.remove(0).leave()?;
            shared(&mut members)?;
            members.remove(0).leave()
        };
        take().context(family.to_owned()).beside("the host", || host.log())?;
    }
    host.stop()
}

#[test]
fn a_group_goes_on_exactly_after_the_host_was_killed() -> anyhow::Result<()> {
    let home = Home::new()?;
    let mut host = home.start()?;
    host.create_topic("numbers", 1, &[])?;
    fill(host.address(), "numbers", 20)?;
    for family in FAMILIES {
        let Some(program) = program(family)? else { continue };
        let group = format!("kill-{family}");
        let first = read(&program, &host.bootstrap(), &group, "numbers", 7).context(*family)?;
        ensure!(first == (0..7).collect::<Vec<_>>(), "{family}: {first:?}");
        host.kill()?;
        host = home.start()?;
        let rest = read(&program, &host.bootstrap(), &group, "numbers", 13).context(*family)?;
        ensure!(rest == (7..20).collect::<Vec<_>>(), "{family}: {rest:?}");
    }
    host.stop()
}

#[test]
fn kafkas_own_tool_lists_describes_moves_and_deletes_groups() -> anyhow::Result<()> {
    let (Some(member), Some(tool)) = (program("Java")?, tools::find("kafka-consumer-groups")?) else {
        return Ok(());
    };
    let home = Home::new()?;
    let host = home.start()?;
    host.create_topic("numbers", 1, &[])?;
    fill(host.address(), "numbers", 20)?;
    let bootstrap = host.bootstrap();
    read(&member, &bootstrap, "tooled", "numbers", 7)?;
    let run = |arguments: &[&str]| tool.succeed(&[&["--bootstrap-server", &bootstrap], arguments].concat());
    ensure!(run(&["--list"])?.lines().any(|line| line == "tooled"));
    let described = run(&["--describe", "--group", "tooled"])?;
    let row: Vec<&str> = described.lines().last().unwrap_or_default().split_whitespace().collect();
    ensure!(row.get(..6) == Some(&["tooled", "numbers", "0", "7", "20", "13"]), "{described}");
    let state = run(&["--describe", "--group", "tooled", "--state"])?;
    ensure!(state.contains("Empty"), "{state}");
    run(&["--reset-offsets", "--group", "tooled", "--topic", "numbers", "--to-offset", "11", "--execute"])?;
    let rest = read(&member, &bootstrap, "tooled", "numbers", 9)?;
    ensure!(rest == (11..20).collect::<Vec<_>>(), "{rest:?}");
    run(&["--delete-offsets", "--group", "tooled", "--topic", "numbers"])?;
    run(&["--delete", "--group", "tooled"]).or_else(|error| {
        // Without offsets there may be nothing left to delete.
        if run(&["--list"])?.is_empty() { Ok(String::new()) } else { Err(error) }
    })?;
    ensure!(!run(&["--list"])?.contains("tooled"));
    host.stop()
}

#[test]
fn a_group_goes_on_at_the_destination_at_the_very_next_record() -> anyhow::Result<()> {
    let Some(kafka) = Kafka::start()? else { return Ok(()) };
    let (source, address) = (kafka.bootstrap(), *kafka.addresses().first().context("no broker")?);
    let client = Client::connect(address)?;
    client.create_topic("numbers", 1, &[])?;
    // The broker may not lead it yet.
    verbatim_tests::wait_for("a leader", PATIENCE, || Ok(client.latest(("numbers", 0)).ok()))?;
    fill(address, "numbers", 20)?;
    let home = Home::new()?;
    let host = home.start()?;
    for (family, count) in FAMILIES.iter().zip([9, 13, 17]) {
        let Some(program) = program(family)? else { continue };
        let first = read(&program, &source, &format!("moves-{family}"), "numbers", count).context(*family)?;
        ensure!(first == (0..).take(count).collect::<Vec<_>>(), "{family}: {first:?}");
    }
    let mirrored = ["mirror", "--source", &source, "--topics", "numbers", "--groups", "moves-.*", "--once"];
    host.verbatim(&mirrored, b"")?.success()?;
    let (mut code, mut differ) = compare(&source, &host, "moves-.*")?;
    for (family, count) in FAMILIES.iter().zip([9_usize, 13, 17]) {
        let Some(program) = program(family)? else { continue };
        let group = format!("moves-{family}");
        // Those that have moved are further by now, and no others.
        ensure!(code == i32::from(!differ.is_empty()) && !differ.contains(&group), "{code}: {differ:?}");
        let before = differ.len();
        let rest = read(&program, &host.bootstrap(), &group, "numbers", 20 - count).context(*family)?;
        ensure!(rest == (0..20).skip(count).collect::<Vec<_>>(), "{family}: {rest:?}");
        (code, differ) = compare(&source, &host, "moves-.*")?;
        ensure!(code == 1 && differ.contains(&group) && differ.len() == before + 1, "{code}: {differ:?}");
    }
    host.stop()
}

/// The exit code of `verbatim verify`, and the groups whose commits differ.
fn compare(source: &str, target: &Host, groups: &str) -> anyhow::Result<(i32, Vec<String>)> {
    let sides = ["--source", source, "--target", &target.bootstrap()];
    let what = ["--topics", "numbers", "--groups", groups, "--output", "json"];
    let output = target.verbatim(&[&["verify"], &sides[..], &what].concat(), b"")?;
    let report: Value = serde_json::from_str(&output.stdout).with_context(|| output.to_string())?;
    let compared = report["groups"].as_array().context("no groups")?;
    ensure!(!compared.is_empty() && report["partitions"][0]["verdict"] == "identical", "{report}");
    let differ = compared.iter().filter(|one| one["verdict"] != "identical");
    let differ = differ.map(|one| one["group"].as_str().unwrap_or_default().to_owned()).collect();
    Ok((output.status.code().context("no exit code")?, differ))
}

#[test]
fn offsets_come_once_their_data_is_there_and_nobody_reads_at_the_destination() -> anyhow::Result<()> {
    let Some(program) = program("librdkafka")? else { return Ok(()) };
    let homes = (Home::new()?, Home::new()?);
    let (source, host) = (homes.0.start()?, homes.1.start()?);
    source.create_topic("numbers", 1, &[])?;
    fill(source.address(), "numbers", 20)?;
    commit(&source, "ahead", 25)?;
    let first = commit(&source, "live", 9)?;
    let told = carry(&source, &host)?;
    ensure!(told["ahead"]["offset"] == -1, "{told}");
    let reason = told["ahead"]["reason"].as_str().unwrap_or_default();
    ensure!(reason.contains("the copy ends before it, at 20"), "{told}");
    ensure!(committed(&host, "ahead")?.is_empty() && committed(&host, "live")? == [first.clone()], "{told}");
    ensure!(told["live"]["offset"] == 9 && told["live"]["reason"].is_null(), "{told}");

    fill(source.address(), "numbers", 10)?;
    commit(&source, "live", 13)?;
    let mut member = Member::start(&program, &host.bootstrap(), "live", "numbers")?;
    assigned(&mut member)?;
    let told = carry(&source, &host)?;
    let reason = told["live"]["reason"].as_str().unwrap_or_default();
    ensure!(told["live"]["offset"] == 9 && reason.contains("has members"), "{told}");
    ensure!(committed(&host, "live")? == [first], "{told}");
    ensure!(told["ahead"]["offset"] == 25 && told["ahead"]["reason"].is_null(), "{told}");
    ensure!(committed(&host, "ahead")? == committed(&source, "ahead")?, "{told}");
    drop(member);
    host.stop()?;
    source.stop()
}

/// Mirrors once; what the mirror told of each group at the end.
fn carry(source: &Host, target: &Host) -> anyhow::Result<Value> {
    let (source, what) = (source.bootstrap(), ["--topics", "numbers", "--groups", "ahead,live"]);
    let arguments = [&["mirror", "--once", "--output", "json", "--source", &source], &what[..]].concat();
    let told = target.verbatim(&arguments, b"")?.success()?;
    let last: Value = serde_json::from_str(told.lines().last().context("no line")?)?;
    ensure!(last["event"] == "final", "{last}");
    let groups = last["groups"].as_array().context("no groups")?;
    Ok(groups.iter().map(|one| (one["group"].as_str().unwrap_or_default(), one.clone())).collect())
}

#[test]
fn who_is_no_member_cannot_move_the_offsets_of_a_group_that_has_some() -> anyhow::Result<()> {
    let home = Home::new()?;
    let host = home.start()?;
    host.create_topic("numbers", 1, &[])?;
    for family in FAMILIES {
        let Some(program) = program(family)? else { continue };
        let first = commit(&host, family, 9)?;
        let mut member = Member::start(&program, &host.bootstrap(), family, "numbers")?;
        assigned(&mut member)?;
        // UNKNOWN_MEMBER_ID, as Kafka has it; and what a mirror takes for a group that is active here.
        ensure!(try_commit(&host, &at(13), family)? == [25], "{family}");
        ensure!(committed(&host, family)? == [first], "{family}");
        member.leave()?;
        commit(&host, family, 13).with_context(|| format!("{family} has left"))?;
    }
    host.stop()
}

#[test]
fn damage_within_the_journal_is_told_and_takes_no_other_commits() -> anyhow::Result<()> {
    let home = Home::new()?;
    let host = home.start()?;
    host.create_topic("numbers", 1, &[])?;
    let committed_before: Vec<_> = ["first", "second", "third"]
        .into_iter()
        .map(|group| Ok((group, commit(&host, group, 5)?)))
        .collect::<anyhow::Result<_>>()?;
    host.kill()?;
    let journal = home.data().join("group-offsets.1.journal");
    let mut bytes = std::fs::read(&journal)?;
    let second = bytes.windows(6).position(|bytes| bytes == b"second").context("no second record")?;
    bytes[second] ^= 1;
    std::fs::write(&journal, &bytes)?;
    let host = home.start()?;
    let look = || {
        for (group, before) in &committed_before {
            let expected = if *group == "second" { Vec::new() } else { vec![before.clone()] };
            ensure!(committed(&host, group)? == expected, "{group}");
        }
        let log = host.log();
        let told =
            log.lines().find(|line| line.contains("ERROR") && line.contains("journal")).context("untold")?;
        let names = ["group-offsets.1.journal", "position=", "skipped="];
        ensure!(names.iter().all(|name| told.contains(name)), "{told}");
        let aside = journal.with_extension("journal.damaged");
        ensure!(std::fs::read(aside)? == bytes, "the damaged journal is not kept");
        Ok(())
    };
    look().beside("the host", || host.log())?;
    host.stop()
}

/// Waits until a member has its one partition.
fn assigned(member: &mut Member) -> anyhow::Result<()> {
    verbatim_tests::wait_for("assignment", PATIENCE, || {
        member.look();
        Ok((member.partitions == [0]).then_some(()))
    })
}

fn at(offset: i64) -> GroupOffset {
    let partition = Partition { topic: "numbers".to_owned(), index: 0 };
    GroupOffset { partition, offset, leader_epoch: 0, metadata: "by hand".to_owned() }
}

/// Commits for a group that has no members.
fn commit(host: &Host, group: &str, offset: i64) -> anyhow::Result<GroupOffset> {
    let committed = at(offset);
    let codes = try_commit(host, &committed, group)?;
    ensure!(codes == [0], "{codes:?}");
    Ok(committed)
}

/// Commits as one who is no member; the error code.
fn try_commit(host: &Host, offset: &GroupOffset, group: &str) -> anyhow::Result<Vec<i16>> {
    let cluster = Cluster::new(ClusterConfig::new([host.bootstrap()]));
    let codes = Runtime::new()?.block_on(async {
        let node = cluster.coordinator(group).await?;
        cluster.commit_group_offsets(node, group, std::slice::from_ref(offset)).await
    })?;
    Ok(codes)
}

/// What a group has committed.
fn committed(host: &Host, group: &str) -> anyhow::Result<Vec<GroupOffset>> {
    let cluster = Cluster::new(ClusterConfig::new([host.bootstrap()]));
    let offsets = Runtime::new()?.block_on(async {
        let node = cluster.coordinator(group).await?;
        cluster.group_offsets(node, group).await
    })?;
    Ok(offsets)
}
