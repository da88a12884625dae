//! Records that a module hands back: what is stored of them, how retries are recognised, which limits hold. Judged by the
//! module `redact`, compiled in.

use std::sync::Arc;

use redact::Redact;
use verbatim_batch::{Batch, BatchBuilder, Codec, ControlType, NewRecord, Records, frames, place};
use verbatim_broker::NativeJudges;
use verbatim_compression::{deflate, inflate};
use verbatim_contract::{
    self as contract, Callbacks, Configuration, Description, EpochEntry, Membership, Placement, Policy,
    Position, ProducePath, Refusal, Replica, Request,
};
use verbatim_log::{Config, DiskIo, Log, Together, folder};
use verbatim_wire::tag::RequestTag;

use crate::support::{DELETE, Fetch, Host, SET, TIME_MS, batch, builder, order, told};

const ALLOW: (&str, &str) = ("produce.at.offset.rewrite", "allow");
const DROP: (&str, &str) = ("redact.drop.json", "$.drop");
const MASK: (&str, &str) = ("redact.mask.json", "$.mask");
const REMOVED: (&str, i8, Option<&str>) = ("produce.at.offset", DELETE, None);

async fn host() -> Host {
    Host::with(Arc::new(NativeJudges(Redact))).await
}

/// Offset and value of each record that is readable from the start on.
async fn left(host: &Host, name: &str) -> Vec<(i64, String)> {
    let mut offset = host.list(name, -2, false).await.1;
    let mut left = Vec::new();
    loop {
        let bytes = host.fetch(name, Fetch::at(offset)).await.records.unwrap_or_default();
        let Some(next) = frames(&bytes).last() else { return left };
        for frame in frames(&bytes) {
            left.extend(records(frame.bytes()));
        }
        offset = next.header().unwrap().next_offset().unwrap();
    }
}

fn records(bytes: &[u8]) -> Vec<(i64, String)> {
    let batch = Batch::parse(bytes).unwrap();
    let header = batch.header();
    let plain = inflate(header.attributes, batch.payload().to_vec().into(), 1 << 20).unwrap();
    let of = |record: Result<verbatim_batch::Record<'_>, _>| {
        let record = record.unwrap();
        let value = String::from_utf8(record.value.unwrap_or_default().to_vec()).unwrap();
        (header.base_offset + i64::from(record.offset_delta), value)
    };
    Records::new(&plain, header.record_count).map(of).collect()
}

fn owned(records: &[(i64, &str)]) -> Vec<(i64, String)> {
    records.iter().map(|(offset, value)| (*offset, (*value).to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_left_is_stored_and_a_retry_is_recognised_by_what_was_received() {
    let host = host().await;
    host.exact("copy", &[ALLOW, DROP, MASK]).await;
    let values = [r#"{"a":1}"#, r#"{"drop":1}"#, r#"{"mask":1,"b":2}"#];
    let first = [batch(100, 5, &values), batch(103, 5, &values[1..2])].concat();
    let at_start = order((0, -1), (104, 5));
    assert_eq!(host.write("copy", &first, &at_start).await.end, 104);
    let expected = owned(&[(100, values[0]), (102, r#"{"mask":"***","b":2}"#)]);
    assert_eq!(left(&host, "copy").await, expected);
    let stored = host.fetch("copy", Fetch::at(0)).await.records.unwrap();
    let mut host = host;
    for _ in 0..2 {
        let answer = host.produce("copy", &first, Some(&at_start)).await;
        assert_eq!((answer.error_code, answer.base_offset, told(&answer).end), (0, 100, 104));
        // What was stored is not what was received, and neither is another batch.
        for other in [&stored[..], &batch(100, 5, &[values[0], values[1], r#"{"mask":2,"b":2}"#])] {
            let answer = host.produce("copy", other, Some(&order((104, 5), (104, 5)))).await;
            assert_eq!((answer.error_code, told(&answer).diverged), (87, Some(100)));
        }
        // Rules that have changed change nothing of it.
        host.alter("copy", &[(MASK.0, SET, Some("$.b")), (DROP.0, DELETE, None)], false).await;
        host = host.restart().await;
        assert_eq!(left(&host, "copy").await, expected);
    }
    let next = [batch(103, 5, &values[1..2]), batch(104, 5, &values)].concat();
    assert_eq!(host.write("copy", &next, &order((104, 5), (107, 5))).await.end, 107);
    let expected = [(104, values[0]), (105, values[1]), (106, r#"{"mask":1,"b":"***"}"#)];
    assert_eq!(left(&host, "copy").await[2..], owned(&expected));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_stored_where_the_topic_does_not_allow_it() {
    let host = host().await;
    host.exact("copy", &[MASK]).await;
    host.create("plain", 1, &[MASK]).await;
    let (kept, masked) = (batch(0, 0, &[r#"{"a":1}"#]), batch(0, 0, &[r#"{"mask":1}"#]));
    let tag = order((0, -1), (1, 0));
    for (name, tag) in [("copy", Some(&tag)), ("plain", None)] {
        let answer = host.produce(name, &masked, tag).await;
        assert_eq!(answer.error_code, 44, "{name}: {:?}", answer.error_message);
        assert!(answer.error_message.unwrap().contains("produce.at.offset.rewrite"));
        assert_eq!(host.list(name, -1, false).await.1, 0);
        assert_eq!(host.produce(name, &kept, tag).await.error_code, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_takes_the_digests_with_the_log() {
    let host = host().await;
    host.exact("copy", &[ALLOW, MASK, ("produce.at.offset.rewind", "truncate")]).await;
    let value = |number: i32| format!(r#"{{"mask":{number}}}"#);
    let one = |base: i64, epoch, number| batch(base, epoch, &[&value(number)]);
    host.write("copy", &[one(0, 1, 0), one(1, 1, 1)].concat(), &order((0, -1), (2, 1))).await;
    let truncate = |to| RequestTag { truncate_to: Some(to), ..order((2, 1), (2, 2)) };
    let other = one(1, 2, 7);
    assert_eq!(host.write("copy", &other, &truncate(1)).await.end, 2);
    let mut host = host;
    for _ in 0..2 {
        let again = |bytes: Vec<u8>| {
            let host = &host;
            async move {
                let answer = host.produce("copy", &bytes, Some(&order((2, 2), (2, 2)))).await;
                (answer.error_code, told(&answer).diverged)
            }
        };
        assert_eq!(again(other.clone()).await, (0, None));
        assert_eq!(again(one(1, 1, 1)).await, (87, Some(1)), "what was cut is not known any more");
        assert_eq!(again(one(0, 1, 0)).await, (0, None));
        host = host.restart().await;
    }
    assert_eq!(
        host.write("copy", &[], &RequestTag { truncate_to: Some(0), ..order((2, -1), (0, 3)) }).await.end,
        0
    );
    assert_eq!(host.write("copy", &one(0, 3, 0), &order((0, -1), (1, 3))).await.end, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn normal_topics_may_be_redacted_and_promoted_ones_still_are() {
    let host = host().await;
    host.exact("copy", &[ALLOW, DROP, MASK]).await;
    assert_eq!(host.create("plain", 1, &[ALLOW, DROP, MASK]).await, (0, String::new()));
    host.write("copy", &batch(0, 3, &[r#"{"mask":1}"#]), &order((0, -1), (1, 3))).await;
    assert_eq!(host.alter("copy", &[REMOVED], false).await, (0, String::new()));
    let sent = builder(0, 0, &[r#"{"drop":1}"#, r#"{"mask":2}"#]).producer(1 << 40, 0, 0).build().unwrap();
    for (name, base) in [("copy", 1), ("plain", 0)] {
        // R33: a producer's own retry is known by its sequence.
        for _ in 0..2 {
            let answer = host.produce(name, &sent, None).await;
            assert_eq!((answer.error_code, answer.base_offset), (0, base), "{name}");
        }
        assert_eq!(left(&host, name).await.last(), Some(&(base + 1, r#"{"mask":"***"}"#.to_owned())));
        assert_eq!(host.list(name, -1, false).await.1, base + 2);
    }
    let host = host.restart().await;
    assert_eq!(left(&host, "copy").await, owned(&[(0, r#"{"mask":"***"}"#), (2, r#"{"mask":"***"}"#)]));
    assert_eq!(host.alter("plain", &[(ALLOW.0, SET, Some("refuse"))], false).await.0, 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_codec_is_written_as_it_came_and_control_batches_and_transactions_are_untouched() {
    let host = host().await;
    host.exact("copy", &[ALLOW, DROP, MASK]).await;
    let (mut sent, mut end) = (Vec::new(), 0);
    for (sequence, codec) in (0..).step_by(3).zip(Codec::ALL) {
        let values = [r#"{"mask":"a"}"#, r#"{"drop":1}"#, r#"{"c":3}"#];
        let builder = builder(end, 2, &values).producer(9, 0, sequence).transactional();
        let payload = deflate(codec, &builder.plain_records().unwrap()).unwrap();
        sent.extend(builder.build_compressed(codec, &payload).unwrap());
        end += 3;
    }
    let dropped = builder(end, 2, &[r#"{"drop":1}"#]).producer(9, 0, 15).transactional().build().unwrap();
    let mut marker = BatchBuilder::marker(end + 1, (9, 0), TIME_MS, ControlType::Abort, 0).unwrap();
    place(&mut marker, end + 1, 2).unwrap();
    sent.extend([&dropped[..], &marker].concat());
    host.write("copy", &sent, &order((0, -1), (end + 2, 2))).await;
    let stored = host.fetch("copy", Fetch::at(0)).await.records.unwrap();
    let (came, are): (Vec<_>, Vec<_>) = frames(&sent).zip(frames(&stored)).unzip();
    assert_eq!(came.len(), 7);
    for (came, is) in came.iter().zip(&are).take(5) {
        let (before, after) = (came.header().unwrap(), is.header().unwrap());
        let put_back = verbatim_batch::Header {
            batch_length: before.batch_length,
            crc: before.crc,
            record_count: before.record_count,
            ..after
        };
        assert_eq!((before, after.record_count), (put_back, 2));
        let base = before.base_offset;
        assert_eq!(records(is.bytes()), owned(&[(base, r#"{"mask":"***"}"#), (base + 2, r#"{"c":3}"#)]));
    }
    let empty = are[5].header().unwrap();
    assert_eq!((empty.record_count, empty.base_offset, empty.last_sequence()), (0, end, 15));
    assert_eq!(are[6].bytes(), came[6].bytes());
    let committed = host.fetch("copy", Fetch { committed: true, ..Fetch::at(0) }).await;
    let aborted = committed.aborted_transactions.unwrap();
    assert_eq!((aborted[0].producer_id.0, aborted[0].first_offset, aborted.len()), (9, 0, 1));
    assert_eq!(host.list("copy", -1, true).await.1, end + 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_those_of_what_is_stored() {
    let cap = 2_000;
    let host = Host::with_all(Arc::new(DiskIo), Arc::new(NativeJudges(Redact)), |config| {
        config.limits.exact_batch_bytes_max = cap;
    })
    .await;
    // Each mask makes it four bytes longer.
    let grows = |count: usize| {
        let value = format!(r#"{{"mask":[{}]}}"#, vec!["1"; count].join(","));
        batch(0, 0, &[&value])
    };
    let each = ("redact.mask.json", "$.mask[*]");
    let (sent, large) = (grows(300), grows(450));
    let (fits, too_small) = ((sent.len() + 4 * 300 + 5).to_string(), (sent.len() + 100).to_string());
    host.create("fits", 1, &[ALLOW, each, ("max.message.bytes", &fits)]).await;
    host.create("message", 1, &[ALLOW, each, ("max.message.bytes", &too_small)]).await;
    host.create("segment", 1, &[ALLOW, each, ("segment.bytes", &too_small)]).await;
    host.exact("copy", &[ALLOW, each]).await;
    assert_eq!(host.produce("fits", &sent, None).await.error_code, 0);
    assert!(large.len() < cap);
    let tag = order((0, -1), (1, 0));
    for (name, sent, tag, code, part) in [
        ("message", &sent, None, 10, "max.message.bytes"),
        ("segment", &sent, None, 18, "segment.bytes"),
        ("copy", &large, Some(&tag), 10, "exact topics"),
    ] {
        let answer = host.produce(name, sent, tag).await;
        assert_eq!(answer.error_code, code, "{name}: {:?}", answer.error_message);
        let text = answer.error_message.unwrap();
        assert!(text.contains(part) && text.contains("length=`"), "{text}");
        assert_eq!(host.list(name, -1, false).await.1, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_was_made_before_digests_were_kept_is_served_and_never_redacted() {
    let host = host().await;
    host.exact("copy", &[ALLOW, MASK]).await;
    let id = host.metadata("copy").await.topic_id;
    let path = host.data().join("copy-0");
    let stopped = host.stop().await;
    let together = Together::new(Arc::new(DiskIo));
    folder::remove_partition(&together, &path).unwrap();
    let config = Config { exact: true, topic_id: id.as_u64_pair(), ..Config::default() };
    Log::create(&path, config, Arc::new(DiskIo)).unwrap().close().unwrap();
    let host = Host::start_in(stopped).await;
    let tag = order((0, -1), (1, 0));
    assert_eq!(host.produce("copy", &batch(0, 0, &[r#"{"mask":1}"#]), Some(&tag)).await.error_code, 44);
    assert_eq!(host.write("copy", &batch(0, 0, &[r#"{"a":1}"#]), &tag).await.end, 1);
    assert_eq!(host.alter("copy", &[REMOVED], false).await, (0, String::new()));
    assert_eq!(host.produce("copy", &batch(0, 0, &[r#"{"mask":1}"#]), None).await.error_code, 0);
    assert_eq!(left(&host, "copy").await[1..], owned(&[(1, r#"{"mask":"***"}"#)]));
}

/// Hands back what no compaction would leave of two records, as the first one's value says.
#[derive(Clone)]
struct Lying;

impl ProducePath for Lying {
    fn produce(
        &self,
        _: &Policy,
        _: &Position,
        _: &Request,
        _: &[EpochEntry],
        batches: &[contract::Batch],
        log: &mut dyn Callbacks,
    ) -> Result<(), Refusal> {
        for (index, batch) in (0..).zip(batches) {
            let plain = log.records(index, 1 << 20).unwrap();
            let first = Records::new(&plain, 1).next().unwrap().unwrap();
            let lie = |records: &[(i32, i64)]| {
                let builder = BatchBuilder::new(0).base_timestamp(TIME_MS);
                let record = |(delta, ms): &(i32, i64)| NewRecord::new(*delta, TIME_MS + ms);
                records.iter().map(record).fold(builder, BatchBuilder::record).plain_records().unwrap()
            };
            let records = match first.value.unwrap_or_default() {
                b"more" => lie(&[(0, 0), (1, 1), (2, 2)]),
                b"twice" => lie(&[(0, 0), (0, 0)]),
                b"backwards" => lie(&[(1, 1), (0, 0)]),
                b"shifted" => lie(&[(0, 0), (2, 1)]),
                b"before" => lie(&[(-1, 0)]),
                b"stamped" => lie(&[(0, 0), (1, 2)]),
                b"cut" => plain[..plain.len() - 1].to_vec(),
                b"zeros" => vec![0; 100],
                _ => plain,
            };
            let placement = Placement {
                base_offset: batch.header.base_offset,
                leader_epoch: batch.header.leader_epoch,
                log_append_time: false,
                max_timestamp: batch.header.max_timestamp,
            };
            log.rewrite(index, placement, records);
        }
        Ok(())
    }

    fn describe(&self) -> Description {
        Redact.describe()
    }
}

impl Membership for Lying {
    fn may_join(&self, replica: &Replica, end: i64, position: &Position) -> Result<(), String> {
        Redact.may_join(replica, end, position)
    }
}

impl Configuration for Lying {}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_compaction_could_not_leave_is_never_stored() {
    let tag = order((0, -1), (2, 0));
    let mut marker = BatchBuilder::marker(0, (9, 0), TIME_MS, ControlType::Commit, 0).unwrap();
    place(&mut marker, 0, 0).unwrap();
    let lies = ["more", "twice", "backwards", "shifted", "before", "stamped", "cut", "zeros"];
    let lies = lies.map(|lie| batch(0, 0, &[lie, "x"]));
    let honest = batch(0, 0, &["honest", "x"]);
    for lie in lies.iter().chain([&marker]) {
        // A host of its own: one that fails makes its client wait.
        let host = Host::with(Arc::new(NativeJudges(Lying))).await;
        host.exact("copy", &[ALLOW]).await;
        host.exact("refuses", &[]).await;
        host.create("plain", 1, &[ALLOW]).await;
        for (name, sent, tag) in
            [("copy", lie, Some(&tag)), ("plain", lie, None), ("refuses", &honest, Some(&tag))]
        {
            let answer = host.produce(name, sent, tag).await;
            assert_eq!(answer.error_code, 56, "{name} {sent:?}: {:?}", answer.error_message);
            assert_eq!(host.list(name, -1, false).await.1, 0);
        }
        for (name, tag) in [("copy", Some(&tag)), ("plain", None)] {
            assert_eq!(host.produce(name, &honest, tag).await.error_code, 0, "{name}");
            assert_eq!(host.fetch(name, Fetch::at(0)).await.records.as_deref(), Some(&honest[..]));
        }
    }
}
