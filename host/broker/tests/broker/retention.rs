//! Retention of normal topics: by size, by time, changed at run time, and never on an exact one.

use std::time::{Duration, Instant};

use verbatim_batch::frames;
use verbatim_broker::Config;

use crate::support::{DELETE, EXACT, Fetch, Host, SET, TIME_MS, batch, order};

/// Long enough for anything that is only waited for.
const PATIENCE: Duration = Duration::from_secs(60);
const NEVER: &str = "-1";

fn often(config: &mut Config) {
    config.retention_check_interval = Duration::from_millis(20);
}

/// Two batches of this fit into a segment.
fn values() -> [&'static str; 3] {
    ["0123456789", "0123456789", "0123456789"]
}

async fn fill(host: &Host, name: &str, batches: i64) {
    for index in 0..batches {
        let answer = host.produce(name, &batch(0, 0, &values()), None).await;
        assert_eq!((answer.error_code, answer.base_offset % 3), (0, 0), "batch {index}");
    }
}

async fn create(host: &Host, name: &str, more: &[(&str, &str)]) {
    let length = batch(0, 0, &values()).len();
    let segment = (2 * length).to_string();
    let configs = [&[("segment.bytes", segment.as_str())], more].concat();
    assert_eq!(host.create(name, 1, &configs).await, (0, String::new()));
}

async fn start(host: &Host, name: &str) -> i64 {
    let (code, offset, ..) = host.list(name, -2, false).await;
    assert_eq!(code, 0);
    offset
}

/// Waits until the start is there.
async fn reaches(host: &Host, name: &str, offset: i64) {
    let begun = Instant::now();
    loop {
        let now = start(host, name).await;
        assert!(now <= offset, "the start went to {now}, expected {offset}");
        if now == offset {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "the start stays at {now}, expected {offset}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Waits until another topic was seen to lose its data twice: whatever was due before is gone then.
async fn looked_twice(host: &Host, name: &str) {
    create(host, name, &[("retention.ms", "1")]).await;
    for round in 1..=2 {
        fill(host, name, 1).await;
        reaches(host, name, 3 * round).await;
    }
}

fn segments(host: &Host, folder: &str) -> usize {
    let names = std::fs::read_dir(host.data().join(folder)).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_str().unwrap().ends_with(".log")).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn by_size_the_oldest_segments_go_and_readers_are_told() {
    let host = Host::with_config(often).await;
    let kept = (5 * batch(0, 0, &values()).len()).to_string();
    create(&host, "t", &[("retention.ms", NEVER), ("retention.bytes", &kept)]).await;
    fill(&host, "t", 9).await;
    // 9 batches in segments of 2: without the first 4, 5 remain, without the first 6 fewer than are to be kept.
    reaches(&host, "t", 12).await;
    looked_twice(&host, "other").await;
    assert_eq!(start(&host, "t").await, 12);
    assert_eq!(host.fetch("t", Fetch::at(11)).await.error_code, 1);
    let whole = host.fetch("t", Fetch::at(13)).await;
    let first = frames(whole.records.as_ref().unwrap()).next().unwrap().header().unwrap();
    assert_eq!((whole.error_code, first.base_offset), (0, 12));
    assert_eq!(host.list("t", TIME_MS, false).await, (0, 12, TIME_MS, 0));
    assert_eq!(segments(&host, "t-0"), 3);
    let host = host.restart().await;
    assert_eq!((start(&host, "t").await, segments(&host, "t-0")), (12, 3));
    assert_eq!(host.produce("t", &batch(0, 0, &values()), None).await.base_offset, 27);
}

#[tokio::test(flavor = "multi_thread")]
async fn by_time_everything_goes_and_offsets_go_on() {
    let host = Host::with_config(often).await;
    create(&host, "t", &[("retention.ms", NEVER)]).await;
    fill(&host, "t", 5).await;
    looked_twice(&host, "other").await;
    assert_eq!((start(&host, "t").await, segments(&host, "t-0")), (0, 3), "kept for ever");
    // The records are years old.
    assert_eq!(host.alter("t", &[("retention.ms", SET, Some("3600000"))], false).await.0, 0);
    reaches(&host, "t", 15).await;
    assert_eq!(host.list("t", -1, false).await.1, 15);
    assert_eq!(host.list("t", TIME_MS, false).await, (0, -1, -1, -1));
    assert_eq!(host.fetch("t", Fetch::at(14)).await.error_code, 1);
    assert_eq!(host.fetch("t", Fetch::at(15)).await.error_code, 0);
    let host = host.restart().await;
    assert_eq!((start(&host, "t").await, segments(&host, "t-0")), (15, 1));
    assert_eq!(host.produce("t", &batch(0, 0, &values()), None).await.base_offset, 15);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compacted_topic_keeps_what_is_old() {
    let host = Host::with_config(often).await;
    create(&host, "t", &[("retention.ms", "1"), ("cleanup.policy", "compact")]).await;
    let keyed = |key: &'static str| {
        let record = verbatim_batch::NewRecord::new(0, TIME_MS).key(key.as_bytes()).value(b"v");
        verbatim_batch::BatchBuilder::new(0).leader_epoch(0).record(record).build().unwrap()
    };
    for key in ["a", "b", "c"] {
        assert_eq!(host.produce("t", &keyed(key), None).await.error_code, 0);
    }
    looked_twice(&host, "other").await;
    assert_eq!(start(&host, "t").await, 0);
    let both = [("cleanup.policy", SET, Some("compact,delete"))];
    assert_eq!(host.alter("t", &both, false).await.0, 0);
    reaches(&host, "t", 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exact_topic_is_left_alone_until_it_is_promoted() {
    let host = Host::with_config(often).await;
    let short = [("retention.ms", "1"), ("retention.bytes", "0"), ("segment.bytes", "300")];
    let configs = [&[EXACT], &short[..]].concat();
    assert_eq!(host.create("copy", 1, &configs).await, (0, String::new()));
    let (mut end, mut epoch) = (0, -1);
    for _ in 0..6 {
        host.write("copy", &batch(end, 4, &values()), &order((end, epoch), (end + 3, 4))).await;
        (end, epoch) = (end + 3, 4);
    }
    looked_twice(&host, "other").await;
    assert_eq!((start(&host, "copy").await, segments(&host, "copy-0")), (0, 3));
    for segment in [0, 6, 12] {
        let whole = host.fetch("copy", Fetch::at(segment)).await.records.unwrap();
        assert_eq!(frames(&whole).count(), 2, "from {segment} on");
    }
    assert_eq!(host.alter("copy", &[("produce.at.offset", DELETE, None)], false).await, (0, String::new()));
    reaches(&host, "copy", 18).await;
    let answer = host.produce("copy", &batch(0, 0, &values()), None).await;
    assert_eq!((answer.error_code, answer.base_offset), (0, 18));
}
