//! Batches land at the offset and epoch that their writer chose, and ordinary clients see them there.

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use verbatim_batch::Header;
use verbatim_tests::client::{Answer, Client};
use verbatim_tests::exact::{EXACT, TIMESTAMP_MS, batch, order};
use verbatim_tests::host::{Home, Host};
use verbatim_tests::{segments, tools};
use verbatim_wire::tag::RequestTag;

/// Two batches far apart: offsets 100 (epoch 5) and 5,000,000,000 (epoch 7).
const FAR: i64 = 5_000_000_000;
const FAR_END: i64 = FAR + 2;

#[test]
fn raw_bytes_offsets_and_epochs_are_the_writers_also_after_a_restart() -> anyhow::Result<()> {
    let home = Home::new()?;
    let host = home.start()?;
    let written = write_far_apart(&host, "far")?;
    check_raw(&host, &written)?;
    host.stop()?;
    assert_eq!(segments::log_bytes(&home.data(), "far", 0)?, written, "the segment files, concatenated");

    let host = home.start()?;
    check_raw(&host, &written)?;
    host.stop()
}

#[test]
fn kcat_shows_the_offsets() -> anyhow::Result<()> {
    let Some(kcat) = tools::find("kcat")? else { return Ok(()) };
    let home = Home::new()?;
    let host = home.start()?;
    write_far_apart(&host, "far")?;
    let from_start = ["-C", "-b", &host.bootstrap(), "-t", "far", "-o", "beginning", "-e", "-q"];
    let shown = kcat.succeed(&[&from_start[..], &["-f", "%o %k=%s %T\n"]].concat())?;
    assert_eq!(
        shown,
        format!(
            "100 k0=a {TIMESTAMP_MS}\n101 k1=b {}\n{FAR} k0=c {TIMESTAMP_MS}\n{} k1=d {}\n",
            TIMESTAMP_MS + 1,
            FAR + 1,
            TIMESTAMP_MS + 1
        )
    );
    host.stop()
}

#[test]
fn librdkafka_shows_offsets_and_leader_epochs() -> anyhow::Result<()> {
    let Some(read) = tools::python("read.py")? else { return Ok(()) };
    check_reader(&read)
}

#[test]
fn the_java_consumer_shows_offsets_and_leader_epochs() -> anyhow::Result<()> {
    let Some(read) = tools::find("java-read-records")? else { return Ok(()) };
    check_reader(&read)
}

#[test]
fn kafkas_own_dump_log_reads_the_segments() -> anyhow::Result<()> {
    let Some(dump_log) = tools::find("kafka-dump-log")? else { return Ok(()) };
    let home = Home::new()?;
    let host = home.start()?;
    write_far_apart(&host, "far")?;
    host.create_topic("plain", 1, &[])?;
    let answer =
        Client::connect(host.address())?.produce(("plain", 0), None, &batch(0, 0, &["x", "y", "z"])?)?;
    assert_eq!(answer.error_code, 0, "{answer:?}");
    host.stop()?;

    let mut batches = Vec::new();
    for topic in ["far", "plain"] {
        batches.extend(dumped(&dump_log, &home, topic)?);
    }
    let far = format!("{FAR} {} 7", FAR + 1);
    assert_eq!(batches, ["100 101 5", far.as_str(), "0 2 0"]);
    Ok(())
}

#[test]
fn batches_of_every_kind_are_what_they_are_to_kafkas_own_programs() -> anyhow::Result<()> {
    let (Some(dump_log), Some(java), Some(librdkafka)) =
        (tools::find("kafka-dump-log")?, tools::find("java-read-records")?, tools::python("read.py")?)
    else {
        return Ok(());
    };
    let home = Home::new()?;
    let host = home.start()?;
    host.create_topic("kinds", 1, &[EXACT])?;
    let client = Client::connect(host.address())?;
    let vectors = vectors()?;
    let headers = segments::headers(&vectors)?;
    let of_epoch_5 = headers.iter().filter(|header| header.leader_epoch == 5).filter_map(Header::total_len);
    let (fifth, sixth) = vectors.split_at(of_epoch_5.sum());
    accepted(&client.produce(("kinds", 0), Some(&order((0, -1), (100, 117), 5)), fifth)?, (117, 5))?;
    accepted(&client.produce(("kinds", 0), Some(&order((117, 5), (100, 126), 6)), sixth)?, (126, 6))?;
    assert_eq!(client.fetch_all(("kinds", 0), 100)?, vectors);
    drop(client);

    // Data alone: the gaps of compaction, the empty batch and the control batches have none.
    let record = |offset: i64, epoch: i32, timestamp: i64, key: Value, value: Value| json!({"offset": offset, "leaderEpoch": epoch, "timestamp": timestamp, "key": key, "value": value});
    let text = |text: &str| Value::from(hex(text));
    let expected = [
        record(100, 5, TIMESTAMP_MS, text("a"), text("1")),
        record(104, 5, TIMESTAMP_MS + 4, text("b"), text("2")),
        record(107, 5, TIMESTAMP_MS + 7, text("c"), text("3")),
        record(120, 6, TIMESTAMP_MS, text("k"), Value::Null),
        record(121, 6, TIMESTAMP_MS + 9_999, text("x"), text("1")),
        record(122, 6, TIMESTAMP_MS + 9_999, text("y"), text("2")),
        record(123, 6, TIMESTAMP_MS, text("k"), Value::Null),
        record(124, 6, TIMESTAMP_MS, text("k"), text("")),
    ];
    for reader in [java, librdkafka] {
        assert_eq!(
            reader.json_lines(&[&host.bootstrap(), "kinds", "0", "100", "8"])?,
            expected,
            "{reader:?}"
        );
    }
    host.stop()?;
    let places = [
        "100 109 5",
        "110 114 5",
        "115 115 5",
        "116 116 5",
        "120 120 6",
        "121 122 6",
        "123 124 6",
        "125 125 6",
    ];
    assert_eq!(dumped(&dump_log, &home, "kinds")?, places);
    Ok(())
}

/// What Kafka's dump-log finds in the segments of a topic that no host serves: each batch's first and last offset and its
/// epoch. Every batch must be valid, and every index agree with its segment.
fn dumped(dump_log: &tools::Tool, home: &Home, topic: &str) -> anyhow::Result<Vec<String>> {
    let mut batches = Vec::new();
    for file in segments::log_files(&home.data(), topic, 0)? {
        let log = file.display().to_string();
        let text = dump_log.succeed(&["--deep-iteration", "--files", &log])?;
        for line in text.lines().filter(|line| line.starts_with("baseOffset:")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let after = |name: &str| words.iter().skip_while(|word| **word != name).nth(1).copied();
            ensure!(after("isvalid:") == Some("true"), "{line}");
            let fields = ["baseOffset:", "lastOffset:", "partitionLeaderEpoch:"].map(after);
            batches.push(fields.map(|field| field.unwrap_or("?").to_owned()).join(" "));
        }
        for index in ["index", "timeindex"].map(|extension| file.with_extension(extension)) {
            let index = index.display().to_string();
            let text = dump_log.succeed(&["--verify-index-only", "--files", &format!("{index},{log}")])?;
            ensure!(!text.to_lowercase().contains("mismatch"), "{text}");
        }
    }
    Ok(batches)
}

/// The reference vectors, one after the other: compacted, empty, markers, a tombstone with its delete horizon,
/// LogAppendTime, nulls, and a control type that nobody knows.
fn vectors() -> anyhow::Result<Vec<u8>> {
    let text = include_str!("../../guest/batch/tests/data/batches.txt");
    let lines = text.lines().filter(|line| line.starts_with("0000"));
    let digits: Vec<u8> = lines.collect::<String>().into_bytes();
    digits.chunks(2).map(|pair| Ok(u8::from_str_radix(std::str::from_utf8(pair)?, 16)?)).collect()
}

#[test]
fn refusals_name_the_rule_and_change_nothing() -> anyhow::Result<()> {
    let home = Home::new()?;
    let host = home.start()?;
    host.create_topic("exact", 1, &[EXACT])?;
    host.create_topic("plain", 1, &[])?;
    let client = Client::connect(host.address())?;
    let first = batch(100, 5, &["a", "b"])?;
    let first_order = order((0, -1), (100, 102), 5);
    let write = |tag: &RequestTag, bytes: &[u8]| client.produce(("exact", 0), Some(tag), bytes);
    accepted(&write(&first_order, &first)?, (102, 5))?;

    // A retry of the same request is acknowledged and appends nothing.
    accepted(&write(&first_order, &first)?, (102, 5))?;

    // R28: an epoch below the last entry's.
    refused(&write(&order((102, 5), (100, 104), 5), &batch(102, 4, &["c", "d"])?)?, 74)?;
    // R22: another end than ours; the answer tells the true one.
    let answer = write(&order((103, 5), (100, 105), 5), &batch(103, 5, &["c", "d"])?)?;
    refused(&answer, 1)?;
    assert_eq!(answer.tag.context("no tag in the answer")?.end, 102);
    // R23: other bytes where something is stored; the answer tells where they differ.
    let answer = write(&order((102, 5), (100, 102), 5), &batch(100, 5, &["a", "B"])?)?;
    refused(&answer, 87)?;
    ensure!(answer.tag.is_some_and(|tag| tag.diverged.is_some()), "no first diverged offset: {answer:?}");
    // R4: a false checksum.
    let mut broken = batch(102, 5, &["c", "d"])?;
    *broken.last_mut().context("an empty batch")? ^= 1;
    refused(&write(&order((102, 5), (100, 104), 5), &broken)?, 2)?;
    // R26: no tag on an exact topic; a tag on a normal one.
    refused(&client.produce(("exact", 0), None, &batch(0, 0, &["c"])?)?, 44)?;
    refused(&client.produce(("plain", 0), Some(&first_order), &first)?, 44)?;

    assert_eq!(client.fetch_all(("exact", 0), 100)?, first);
    assert_eq!(client.latest(("exact", 0))?, (102, 5));
    assert_eq!(client.latest(("plain", 0))?.0, 0);
    host.stop()
}

#[test]
fn an_ordinary_producer_is_refused_by_name() -> anyhow::Result<()> {
    let Some(kcat) = tools::find("kcat")? else { return Ok(()) };
    let home = Home::new()?;
    let host = home.start()?;
    host.create_topic("exact", 1, &[EXACT])?;
    let output = kcat.output(&["-P", "-b", &host.bootstrap(), "-t", "exact", "-p", "0"], b"no\n")?;
    ensure!(output.to_string().to_lowercase().contains("policy violation"), "{output}");
    assert_eq!(Client::connect(host.address())?.latest(("exact", 0))?.0, 0);
    host.stop()
}

#[test]
fn verbatim_produce_writes_runs_of_lines_at_rising_offsets() -> anyhow::Result<()> {
    let Some(kcat) = tools::find("kcat")? else { return Ok(()) };
    let home = Home::new()?;
    let host = home.start()?;
    host.create_topic("by-hand", 1, &[EXACT])?;
    for (offset, epoch, lines) in [("10", "3", "a\nb\n"), ("12", "3", "c\n"), ("1000", "4", "d\n")] {
        let place = ["--offset", offset, "--epoch", epoch];
        let command = [&["produce", "--topic", "by-hand", "--partition", "0"][..], &place].concat();
        host.verbatim(&command, lines.as_bytes())?.success()?;
    }
    let from_start = ["-C", "-b", &host.bootstrap(), "-t", "by-hand", "-o", "beginning", "-e", "-q"];
    let shown = kcat.succeed(&[&from_start[..], &["-f", "%o %s\n"]].concat())?;
    assert_eq!(shown, "10 a\n11 b\n12 c\n1000 d\n");
    let client = Client::connect(host.address())?;
    assert_eq!(client.epoch_end(("by-hand", 0), 3)?, (3, 1000));
    assert_eq!(client.epoch_end(("by-hand", 0), 4)?, (4, 1001));
    host.stop()
}

/// Creates an exact topic by `verbatim topic create` and writes the two batches; returns their bytes.
fn write_far_apart(host: &Host, topic: &str) -> anyhow::Result<Vec<u8>> {
    host.create_topic(topic, 1, &[EXACT])?;
    let client = Client::connect(host.address())?;
    let (near, far) = (batch(100, 5, &["a", "b"])?, batch(FAR, 7, &["c", "d"])?);
    let answer = client.produce((topic, 0), Some(&order((0, -1), (100, 102), 5)), &near)?;
    accepted(&answer, (102, 5))?;
    let answer = client.produce((topic, 0), Some(&order((102, 5), (100, FAR_END), 7)), &far)?;
    accepted(&answer, (FAR_END, 7))?;
    Ok([near, far].concat())
}

fn check_raw(host: &Host, written: &[u8]) -> anyhow::Result<()> {
    let client = Client::connect(host.address())?;
    let far = ("far", 0);
    assert_eq!(client.fetch_all(far, 100)?, written, "the bytes");
    assert_eq!(client.earliest(far)?, (100, 5));
    assert_eq!(client.latest(far)?, (FAR_END, 7));
    assert_eq!(client.epoch_end(far, 5)?, (5, FAR));
    assert_eq!(client.epoch_end(far, 6)?, (5, FAR));
    assert_eq!(client.epoch_end(far, 7)?, (7, FAR_END));
    Ok(())
}

/// Checks a program that prints records as lines of JSON.
fn check_reader(read: &tools::Tool) -> anyhow::Result<()> {
    let home = Home::new()?;
    let host = home.start()?;
    write_far_apart(&host, "far")?;
    let records = read.json_lines(&[&host.bootstrap(), "far", "0", "100", "4"])?;
    let record = |offset: i64, epoch: i32, i: i64, value: &str| -> Value {
        let (key, value) = (hex(&format!("k{i}")), hex(value));
        json!({"offset": offset, "leaderEpoch": epoch, "timestamp": TIMESTAMP_MS + i, "key": key, "value": value})
    };
    let expected =
        [record(100, 5, 0, "a"), record(101, 5, 1, "b"), record(FAR, 7, 0, "c"), record(FAR + 1, 7, 1, "d")];
    assert_eq!(records, expected);
    host.stop()
}

fn accepted(answer: &Answer, (end, epoch): (i64, i32)) -> anyhow::Result<()> {
    assert_eq!(answer.error_code, 0, "{answer:?}");
    let tag = answer.tag.context("no tag in the answer")?;
    assert_eq!((tag.end, tag.shown_epoch, tag.last_epoch), (end, epoch, epoch), "{answer:?}");
    Ok(())
}

fn refused(answer: &Answer, error_code: i16) -> anyhow::Result<()> {
    ensure!(answer.error_code == error_code, "expected {error_code}: {answer:?}");
    ensure!(!answer.error_message.is_empty(), "a refusal without a text: {answer:?}");
    Ok(())
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}
