//! Exact writes as a writer sees them: who may, what the answer's tag tells, what survives a restart.

use bytes::Bytes;
use verbatim_broker::{FlushPolicy, format_topic_id};
use verbatim_wire::messages::produce_request::PartitionProduceData;
use verbatim_wire::tag::{AnswerTag, EpochEntry, RequestTag, TAG};

use crate::support::{EXACT, Fetch, Host, batch, order, told};

#[tokio::test(flavor = "multi_thread")]
async fn r26_an_exact_topic_takes_tagged_writes_of_its_source_for_all_replicas_only() {
    let host = Host::start().await;
    let source = uuid::Uuid::from_u128(7);
    host.exact("copy", &[("produce.at.offset.source.topic.id", &format_topic_id(source))]).await;
    host.create("plain", 1, &[]).await;
    let written = batch(100, 5, &["a"]);
    let tagged = order((0, -1), (101, 5));
    assert_eq!(host.produce("copy", &written, None).await.error_code, 44);
    assert_eq!(host.produce("plain", &batch(0, 0, &["a"]), Some(&tagged)).await.error_code, 44);
    let (answer, _) = host.produce_as(12, 1, "copy", &written, Some(&tagged)).await;
    assert_eq!((answer.error_code, told(&answer).end), (44, 0));
    let other = RequestTag { source_topic_id: [9; 16], ..tagged.clone() };
    let answer = host.produce("copy", &written, Some(&other)).await;
    assert_eq!((answer.error_code, told(&answer).end), (103, 0));
    let right = RequestTag { source_topic_id: *source.as_bytes(), ..tagged.clone() };
    assert_eq!(host.write("copy", &written, &right).await.end, 101);
    // An unknown id is nobody's: it is taken.
    assert_eq!(host.write("copy", &batch(101, 5, &["b"]), &order((101, 5), (102, 5))).await.end, 102);
}

#[tokio::test(flavor = "multi_thread")]
async fn r26a_a_tag_that_cannot_be_read_is_an_invalid_request() {
    let host = Host::start().await;
    host.exact("copy", &[]).await;
    host.write("copy", &batch(7, 3, &["a"]), &order((0, -1), (8, 3))).await;
    for bytes in [&b""[..], &[2; 67], &[1; 66]] {
        let mut partition =
            PartitionProduceData::default().with_records(Some(Bytes::from(batch(0, 0, &["a"]))));
        partition.unknown_tagged_fields.insert(TAG, Bytes::copy_from_slice(bytes));
        let (answer, _) = host.produce_raw(12, -1, "copy", partition).await;
        let text = answer.error_message.clone().unwrap_or_default();
        assert_eq!(answer.error_code, 42, "{text:?}");
        assert!(text.contains("12486"), "{text:?}");
        assert_eq!(told(&answer), AnswerTag { end: 8, shown_epoch: 3, last_epoch: 3, diverged: None });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answers_tag_tells_where_the_partition_stands() {
    let host = Host::start().await;
    host.exact("copy", &[]).await;
    let (near, far) = (batch(100, 5, &["a", "b"]), batch(5_000_000_000, 7, &["c"]));
    let position = host.write("copy", &near, &order((0, -1), (102, 6))).await;
    assert_eq!(position, AnswerTag { end: 102, shown_epoch: 6, last_epoch: 5, diverged: None });
    let position = host.write("copy", &far, &order((102, 5), (5_000_000_001, 7))).await;
    assert_eq!(position, AnswerTag { end: 5_000_000_001, shown_epoch: 7, last_epoch: 7, diverged: None });

    // R22: the true end and epoch come back.
    let answer = host.produce("copy", &batch(102, 5, &["x"]), Some(&order((102, 5), (103, 7)))).await;
    assert_eq!((answer.error_code, told(&answer)), (1, position));
    // R23: so does the first difference.
    let answer = host
        .produce("copy", &batch(100, 5, &["a", "z"]), Some(&order((5_000_000_001, 7), (5_000_000_001, 7))))
        .await;
    assert_eq!((answer.error_code, told(&answer).end), (87, 5_000_000_001));
    assert!(matches!(told(&answer).diverged, Some(100 | 101)), "{:?}", told(&answer));
    // R21: what is stored is acked where it is, and nothing is appended.
    let answer = host.produce("copy", &near, Some(&order((0, -1), (102, 6)))).await;
    assert_eq!((answer.error_code, answer.base_offset, told(&answer).end), (0, 100, 5_000_000_001));
    // The two lie in different segments, and a read stays in one.
    assert_eq!(host.fetch("copy", Fetch::at(0)).await.records, Some(Bytes::from(near)));
    assert_eq!(host.fetch("copy", Fetch::at(102)).await.records, Some(Bytes::from(far)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_names_the_batch_and_leaves_other_partitions_alone() {
    let host = Host::start().await;
    host.exact("copy", &[]).await;
    let batches = [batch(10, 5, &["a"]), batch(11, 4, &["b"])].concat();
    let answer = host.produce("copy", &batches, Some(&order((0, -1), (12, 5)))).await;
    assert_eq!((answer.error_code, answer.base_offset, answer.log_start_offset), (74, -1, -1));
    assert_eq!(answer.record_errors[0].batch_index, 1);
    assert!(answer.error_message.is_some());
    assert_eq!((told(&answer).end, told(&answer).last_epoch), (0, -1));
    assert_eq!(host.list("copy", -1, false).await.1, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn r36b_transactional_writes_to_normal_topics_are_refused_and_repetitions_are_not_stored() {
    let host = Host::start().await;
    host.create("plain", 1, &[]).await;
    let idempotent = crate::support::builder(0, 0, &["a", "b"]).producer(9, 0, 0).build().unwrap();
    for _ in 0..2 {
        let answer = host.produce("plain", &idempotent, None).await;
        assert_eq!((answer.error_code, answer.base_offset), (0, 0));
    }
    let gap = crate::support::builder(0, 0, &["c"]).producer(9, 0, 5).build().unwrap();
    assert_eq!(host.produce("plain", &gap, None).await.error_code, 45);
    let transactional =
        crate::support::builder(0, 0, &["c"]).producer(9, 0, 2).transactional().build().unwrap();
    assert_eq!(host.produce("plain", &transactional, None).await.error_code, 53);
    assert_eq!(host.list("plain", -1, false).await.1, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn facts_and_epochs_of_a_copy_are_its_sources_after_a_restart() {
    let host = Host::start().await;
    host.exact("copy", &[]).await;
    host.create("plain", 1, &[]).await;
    let written = batch(100, 5, &["a", "b"]);
    host.write("copy", &written, &order((0, -1), (102, 5))).await;
    // No records: the end moves on, an epoch begins without data, the source's start is behind the first batch.
    let tail = RequestTag {
        source_start: 101,
        end_to: Some(110),
        entries: vec![EpochEntry { epoch: 8, start: 110 }],
        ..order((102, 5), (120, 9))
    };
    let told = host.write("copy", &[], &tail).await;
    assert_eq!(told, AnswerTag { end: 110, shown_epoch: 9, last_epoch: 8, diverged: None });
    let host = host.restart().await;
    assert_eq!(host.shown("copy").await, 9);
    assert_eq!(host.list("copy", -2, false).await, (0, 101, -1, 5));
    assert_eq!(host.list("copy", -1, false).await, (0, 110, -1, 9));
    assert_eq!(host.epoch_end("copy", 5, -1).await, (0, 5, 110));
    assert_eq!(host.fetch("copy", Fetch::at(101)).await.records, Some(Bytes::from(written)));
    let told = host.write("copy", &batch(115, 9, &["c"]), &order((110, 5), (120, 9))).await;
    assert_eq!(told.end, 116);
    // A normal partition's epoch rises with each start.
    assert_eq!(host.shown("plain").await, 1);
    let host = host.restart().await;
    assert_eq!((host.shown("plain").await, host.shown("copy").await), (2, 9));
}

#[tokio::test(flavor = "multi_thread")]
async fn r30_one_request_brings_several_epochs() {
    let host = Host::start().await;
    host.exact("copy", &[]).await;
    let written = [batch(10, 3, &["a"]), batch(20, 5, &["b"]), batch(21, 6, &["c"])].concat();
    let tag = RequestTag {
        // Epoch 4 has no data left, epoch 5 began before what is left of it, epoch 7 has none yet.
        entries: [(4, 15), (5, 18), (7, 22)].map(|(epoch, start)| EpochEntry { epoch, start }).into(),
        ..order((0, -1), (22, 7))
    };
    let told = host.write("copy", &written, &tag).await;
    assert_eq!(told, AnswerTag { end: 22, shown_epoch: 7, last_epoch: 7, diverged: None });
    assert_eq!(host.fetch("copy", Fetch::at(10)).await.records, Some(Bytes::from(written)));
    for (asked, told) in [(3, (0, 3, 15)), (4, (0, 4, 18)), (5, (0, 5, 21)), (6, (0, 6, 22)), (7, (0, 7, 22))]
    {
        assert_eq!(host.epoch_end("copy", asked, -1).await, told, "epoch {asked}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r31_a_rewind_is_followed_only_where_the_topic_says_so() {
    let host = Host::start().await;
    host.exact("copy", &[]).await;
    host.write("copy", &[batch(0, 1, &["a"]), batch(1, 1, &["b"])].concat(), &order((0, -1), (2, 1))).await;
    let rewind = RequestTag { truncate_to: Some(1), ..order((2, 1), (1, 2)) };
    assert_eq!(host.produce("copy", &[], Some(&rewind)).await.error_code, 44);
    let allowed = [("produce.at.offset.rewind", crate::support::SET, Some("truncate"))];
    assert_eq!(host.alter("copy", &allowed, false).await.0, 0);
    let answer = host.produce("copy", &batch(1, 2, &["c"]), Some(&rewind)).await;
    assert_eq!((answer.error_code, told(&answer).end, told(&answer).last_epoch), (0, 2, 2));
    let expected = [batch(0, 1, &["a"]), batch(1, 2, &["c"])].concat();
    assert_eq!(host.fetch("copy", Fetch::at(0)).await.records, Some(Bytes::from(expected)));
    assert_eq!(host.create("other", 1, &[EXACT, ("produce.at.offset.rewind", "sometimes")]).await.0, 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn r12_an_exact_topic_knows_the_hosts_own_cap_only() {
    let large = batch(5, 1, &["a", &"x".repeat(2_000)]);
    let host = Host::with_config(|config| config.limits.exact_batch_bytes_max = large.len() - 1).await;
    host.exact("copy", &[("max.message.bytes", "10"), ("segment.bytes", "100")]).await;
    let answer =
        host.produce("copy", &[batch(4, 1, &["b"]), large].concat(), Some(&order((0, -1), (7, 1)))).await;
    assert_eq!((answer.error_code, told(&answer).end, answer.record_errors[0].batch_index), (10, 0, 1));
    let fits = batch(5, 1, &["a", &"x".repeat(1_999)]);
    assert_eq!(host.write("copy", &fits, &order((0, -1), (7, 1))).await.end, 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_the_flush_policy_what_is_acked_is_readable_and_survives_a_clean_restart() {
    for flush in [FlushPolicy::Always, FlushPolicy::Interval, FlushPolicy::Never] {
        let host = Host::with_config(|config| {
            config.flush = flush;
            config.append_threads = Some(1);
        })
        .await;
        host.exact("copy", &[]).await;
        let written = batch(5, 1, &["a"]);
        host.write("copy", &written, &order((0, -1), (6, 1))).await;
        let fetched = host.fetch("copy", Fetch::at(0)).await;
        assert_eq!(
            (fetched.high_watermark, fetched.records),
            (6, Some(Bytes::from(written.clone()))),
            "{flush:?}"
        );
        let host = host.restart().await;
        assert_eq!(host.fetch("copy", Fetch::at(0)).await.records, Some(Bytes::from(written)), "{flush:?}");
    }
}
