//! Removing `produce.at.offset`: a mirrored topic becomes one that anybody writes.

use verbatim_batch::{BatchBuilder, ControlType, place};
use verbatim_wire::messages::produce_request::{PartitionProduceData, TopicProduceData};
use verbatim_wire::messages::{InitProducerIdRequest, ProduceRequest};
use verbatim_wire::tag;

use crate::support::{
    DELETE, Fetch, Host, SET, TIME_MS, batch, builder, order, produce_request, told, topic,
};

const REMOVED: [(&str, i8, Option<&str>); 1] = [("produce.at.offset", DELETE, None)];

#[tokio::test(flavor = "multi_thread")]
async fn a_promoted_topic_takes_plain_writes_above_every_epoch_shown() {
    let host = Host::start().await;
    host.exact("copy", &[("compression.type", "zstd")]).await;
    host.write("copy", &batch(100, 5, &["a", "b"]), &order((0, -1), (120, 9))).await;
    assert_eq!((host.shown("copy").await, host.fetch("copy", Fetch::at(110)).await.error_code), (9, 78));
    // On a normal topic this value could not be, so it goes in the same change.
    assert_eq!(host.alter("copy", &REMOVED, false).await.0, 40);
    let changes = [REMOVED[0], ("compression.type", DELETE, None)];
    assert_eq!(host.alter("copy", &changes, false).await, (0, String::new()));
    assert_eq!(host.shown("copy").await, 10);
    assert_eq!(host.epoch_end("copy", 10, -1).await, (0, 10, 102));
    assert_eq!(host.epoch_end("copy", 5, -1).await, (0, 5, 102));
    assert_eq!(host.fetch("copy", Fetch::at(110)).await.error_code, 1, "the source's position ended");
    let answer = host.produce("copy", &batch(102, 5, &["c"]), Some(&order((102, 5), (103, 9)))).await;
    assert_eq!(answer.error_code, 44, "exact writes ended");
    let answer = host.produce("copy", &batch(0, 0, &["c"]), None).await;
    assert_eq!((answer.error_code, answer.base_offset), (0, 102));
    assert_eq!(host.list("copy", TIME_MS, false).await, (0, 100, TIME_MS, 5));
    let host = host.restart().await;
    assert_eq!(host.shown("copy").await, 11, "a normal partition's epoch rises at each start");
    assert_eq!(host.describe("copy").await["produce.at.offset"], ("false".to_owned(), 5));
    assert_eq!(host.alter("copy", &[("produce.at.offset", SET, Some("true"))], true).await.0, 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_transaction_stands_in_the_way_by_name_and_writes_go_on() {
    let host = Host::start().await;
    host.exact("copy", &[]).await;
    let open = builder(10, 1, &["a"]).producer(4_242, 0, 0).transactional().build().unwrap();
    host.write("copy", &open, &order((0, -1), (11, 1))).await;
    let (code, text) = host.alter("copy", &REMOVED, false).await;
    assert_eq!(code, 44);
    for part in ["4242", "offset 10", "copy"] {
        assert!(text.contains(part), "{text} lacks {part}");
    }
    assert_eq!(host.describe("copy").await["produce.at.offset"].0, "true");
    let mut marker = BatchBuilder::marker(11, (4_242, 0), TIME_MS, ControlType::Commit, 0).unwrap();
    place(&mut marker, 11, 1).unwrap();
    let position = host.write("copy", &marker, &order((11, 1), (12, 1))).await;
    assert_eq!(position.end, 12);
    assert_eq!(host.alter("copy", &[("produce.at.offset", SET, Some("false"))], false).await.0, 0);
    assert_eq!(host.shown("copy").await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirrored_producer_with_this_hosts_prefix_stands_in_the_way() {
    let host = Host::start().await;
    host.exact("copy", &[]).await;
    let own = host.client.call(&InitProducerIdRequest::default().with_transactional_id(None)).await.unwrap();
    assert_eq!((own.error_code, own.producer_epoch), (0, 0));
    let own = own.producer_id.0;
    assert!(own >= 1 << 32, "{own}");
    let written = builder(0, 0, &["a"]).producer(own, 0, 0).build().unwrap();
    host.write("copy", &written, &order((0, -1), (1, 0))).await;
    let (code, text) = host.alter("copy", &REMOVED, false).await;
    assert_eq!(code, 44);
    assert!(text.contains(&own.to_string()), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_copy_can_be_promoted_in_all_its_partitions() {
    let host = Host::start().await;
    assert_eq!(host.create("copy", 3, &[crate::support::EXACT]).await.0, 0);
    assert_eq!(host.alter("copy", &REMOVED, false).await.0, 0);
    let epochs: Vec<i32> =
        host.metadata("copy").await.partitions.iter().map(|part| part.leader_epoch).collect();
    assert_eq!(epochs, [0, 0, 0]);
    let answer = host.produce("copy", &batch(0, 0, &["a"]), None).await;
    assert_eq!((answer.error_code, answer.base_offset), (0, 0));
    let answer = host.produce("copy", &[], Some(&order((0, -1), (0, 0)))).await;
    assert_eq!((answer.error_code, told(&answer).end), (44, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn promotion_under_load_keeps_what_was_acknowledged_and_lets_nobody_in_between() {
    let host = Host::start().await;
    host.exact("copy", &[]).await;
    let (mirror, plain) = (host.connect().await, host.connect().await);
    let exact = tokio::spawn(async move {
        for offset in 0_i64.. {
            let epoch = if offset == 0 { -1 } else { 4 };
            let mut partition =
                PartitionProduceData::default().with_records(Some(batch(offset, 4, &["exact"]).into()));
            tag::set_request_tag(&mut partition, &order((offset, epoch), (offset + 1, 4))).unwrap();
            let data =
                TopicProduceData::default().with_name(topic("copy")).with_partition_data(vec![partition]);
            let request = ProduceRequest::default().with_acks(-1).with_topic_data(vec![data]);
            let answer = mirror.send(12, &request).await.unwrap();
            match answer.responses[0].partition_responses[0].error_code {
                0 => {}
                code => return (offset, code),
            }
        }
        (0, 0)
    });
    let normal = tokio::spawn(async move {
        loop {
            let answer = plain.send(12, &produce_request("copy", batch(0, 0, &["plain"]))).await.unwrap();
            let part = &answer.responses[0].partition_responses[0];
            match part.error_code {
                0 => return part.base_offset,
                code => assert!([44, 6].contains(&code), "{code}"),
            }
        }
    });
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert_eq!(host.alter("copy", &REMOVED, false).await, (0, String::new()));
    let ((acknowledged, code), first) = (exact.await.unwrap(), normal.await.unwrap());
    assert_eq!((code, first), (44, acknowledged));
    assert_eq!(host.epoch_end("copy", 4, -1).await, (0, 4, acknowledged));
    assert_eq!(host.shown("copy").await, 5);
    let host = host.restart().await;
    assert_eq!(host.epoch_end("copy", 4, -1).await, (0, 4, acknowledged));
    assert_eq!(host.epoch_end("copy", 5, -1).await, (0, 5, first + 1));
}
