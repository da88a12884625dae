//! DeleteRecords, and what readers are told by time and position afterwards.

use verbatim_batch::{BatchBuilder, Codec, NewRecord};
use verbatim_wire::ApiKey;
use verbatim_wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use verbatim_wire::messages::*;

use crate::support::{Fetch, Host, TIME_MS, batch, fetch_on, order, topic};

/// Code and low watermark of each answered partition, by its index.
async fn delete(host: &Host, name: &str, asks: &[(i32, i64)]) -> Vec<(i32, i16, i64)> {
    delete_as(host, ApiKey::DeleteRecords.api().max, name, asks).await
}

async fn delete_as(host: &Host, version: i16, name: &str, asks: &[(i32, i64)]) -> Vec<(i32, i16, i64)> {
    let part = |(index, offset): &(i32, i64)| {
        DeleteRecordsPartition::default().with_partition_index(*index).with_offset(*offset)
    };
    let asked =
        DeleteRecordsTopic::default().with_name(topic(name)).with_partitions(asks.iter().map(part).collect());
    let request = DeleteRecordsRequest::default().with_topics(vec![asked]).with_timeout_ms(1_000);
    let mut answer = host.client.send(version, &request).await.unwrap();
    let parts = answer.topics.remove(0).partitions;
    parts.iter().map(|part| (part.partition_index, part.error_code, part.low_watermark)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_start_moves_where_it_is_told_and_stays_there() {
    let host = Host::start().await;
    host.create("t", 2, &[]).await;
    for _ in 0..2 {
        host.produce("t", &batch(0, 0, &["a", "b", "c", "d"]), None).await;
    }
    for (offset, expected) in
        [(9, (1, -1)), (-2, (1, -1)), (0, (0, 0)), (2, (0, 2)), (1, (0, 2)), (6, (0, 6)), (6, (0, 6))]
    {
        assert_eq!(delete(&host, "t", &[(0, offset)]).await, [(0, expected.0, expected.1)], "{offset}");
    }
    // Inside a batch: it is given whole, what lies below is not there any more.
    assert_eq!(host.list("t", -2, false).await, (0, 6, -1, 0));
    assert_eq!(host.fetch("t", Fetch::at(5)).await.error_code, 1);
    let part = host.fetch("t", Fetch::at(6)).await;
    assert_eq!((part.error_code, part.log_start_offset), (0, 6));
    assert_eq!(part.records.unwrap()[..8], 4_i64.to_be_bytes());
    assert_eq!(host.list("t", 0, false).await, (0, 6, TIME_MS + 2, 0));
    let host = host.restart().await;
    assert_eq!(host.list("t", -2, false).await.1, 6);
    assert_eq!(delete(&host, "t", &[(0, -1)]).await, [(0, 0, 8)]);
    assert_eq!(host.list("t", 0, false).await, (0, -1, -1, -1));
    assert_eq!(host.list("t", -3, false).await, (0, -1, -1, -1));
    assert_eq!((host.list("t", -2, false).await.1, host.list("t", -1, false).await.1), (8, 8));
    assert_eq!(host.produce("t", &batch(0, 0, &["e"]), None).await.base_offset, 8);
    assert_eq!(delete(&host, "t", &[(1, -1), (2, 0)]).await, [(1, 0, 0), (2, 3, -1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_that_is_named_twice_is_answered_once_for_its_last_offset() {
    let host = Host::start().await;
    host.create("t", 1, &[]).await;
    host.produce("t", &batch(0, 0, &["a", "b", "c", "d"]), None).await;
    assert_eq!(delete(&host, "t", &[(0, 3), (0, 1)]).await, [(0, 0, 1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_and_compacted_topics_keep_their_records() {
    let host = Host::start().await;
    host.exact("copy", &[]).await;
    host.write("copy", &batch(0, 5, &["a"]), &order((0, -1), (1, 5))).await;
    assert_eq!(delete(&host, "copy", &[(0, 1)]).await, [(0, 44, -1)]);
    assert_eq!(host.list("copy", -2, false).await.1, 0);
    for (name, policy, code) in [("kept", "compact", 44), ("both", "compact,delete", 0)] {
        host.create(name, 1, &[("cleanup.policy", policy)]).await;
        assert_eq!(delete(&host, name, &[(0, -1)]).await[0].1, code, "{policy}");
    }
    assert_eq!(delete(&host, "none", &[(0, 1)]).await, [(0, 3, -1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_reader_learns_that_its_offset_is_gone() {
    let host = Host::start().await;
    host.create("t", 1, &[]).await;
    host.produce("t", &batch(0, 0, &["a", "b"]), None).await;
    let reader = host.connect().await;
    let waiting = Fetch { wait_ms: 20_000, min_bytes: 1_000_000, ..Fetch::at(0) };
    let asks = [("t", waiting)];
    let (part, _) = tokio::join!(fetch_on(&reader, &asks, waiting), delete(&host, "t", &[(0, -1)]));
    assert_eq!(part[0].error_code, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn deletions_are_answered_in_every_version() {
    let host = Host::start().await;
    host.create("t", 1, &[]).await;
    host.produce("t", &batch(0, 0, &["a", "b", "c", "d"]), None).await;
    let api = ApiKey::DeleteRecords.api();
    for (to, version) in (1..).zip(api.min..=api.max) {
        assert_eq!(delete_as(&host, version, "t", &[(0, to)]).await, [(0, 0, to)], "v{version}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn times_are_found_whatever_their_order_and_codec() {
    let host = Host::start().await;
    host.create("t", 1, &[]).await;
    let times = [[50, 10, 30], [90, 20, 40], [60, 60, 100]];
    for (codec, times) in [Codec::Zstd, Codec::None, Codec::Gzip].into_iter().zip(times) {
        let builder = (0_i32..).zip(times).fold(BatchBuilder::new(0), |builder, (delta, time)| {
            builder.record(NewRecord::new(delta, TIME_MS + time).value(b"value"))
        });
        let sent = if codec == Codec::None { builder.build().unwrap() } else { compressed(&builder, codec) };
        assert_eq!(host.produce("t", &sent, None).await.error_code, 0);
    }
    let found = async |time: i64| {
        let (code, offset, at, epoch) = host.list("t", TIME_MS + time, false).await;
        assert_eq!((code, epoch), (0, if offset < 0 { -1 } else { 0 }));
        (offset, if offset < 0 { -1 } else { at - TIME_MS })
    };
    for (time, expected) in
        [(0, (0, 50)), (50, (0, 50)), (51, (3, 90)), (90, (3, 90)), (91, (8, 100)), (101, (-1, -1))]
    {
        assert_eq!(found(time).await, expected, "{time}");
    }
    assert_eq!(host.list("t", -3, false).await, (0, 8, TIME_MS + 100, 0));
    // Into the first batch, which is compressed: what is deleted is not found.
    assert_eq!(delete(&host, "t", &[(0, 2)]).await, [(0, 0, 2)]);
    assert_eq!(found(10).await, (2, 30));
    assert_eq!(found(31).await, (3, 90));
    assert_eq!(delete(&host, "t", &[(0, 4)]).await, [(0, 0, 4)]);
    assert_eq!(found(31).await, (5, 40));
    assert_eq!(found(41).await, (6, 60));
}

fn compressed(builder: &BatchBuilder<'_>, codec: Codec) -> Vec<u8> {
    let payload = verbatim_compression::deflate(codec, &builder.plain_records().unwrap()).unwrap();
    builder.build_compressed(codec, &payload).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn records_stamped_by_the_broker_are_found_by_that_time() {
    let host = Host::start().await;
    host.create("t", 1, &[("message.timestamp.type", "LogAppendTime")]).await;
    host.produce("t", &batch(0, 0, &["a", "b", "c"]), None).await;
    let (code, offset, stamped, _) = host.list("t", TIME_MS, false).await;
    assert_eq!((code, offset), (0, 0));
    assert!(stamped > TIME_MS + 2);
    // All records of the batch carry that time; of several the first counts, or the first that is left.
    assert_eq!(host.list("t", -3, false).await.1, 0);
    assert_eq!(delete(&host, "t", &[(0, 1)]).await, [(0, 0, 1)]);
    assert_eq!(host.list("t", stamped, false).await, (0, 1, stamped, 0));
    assert_eq!(host.list("t", -3, false).await, (0, 1, stamped, 0));
    assert_eq!(host.list("t", stamped + 1, false).await.1, -1);
}

#[tokio::test(flavor = "multi_thread")]
async fn stand_ins_for_times_are_known_from_their_version_on() {
    use list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
    let host = Host::start().await;
    host.create("t", 1, &[]).await;
    host.produce("t", &batch(0, 0, &["a", "b"]), None).await;
    let api = ApiKey::ListOffsets.api();
    for version in api.min..=api.max {
        for (timestamp, from, offset) in
            [(-1, 1, 2), (-2, 1, 0), (-3, 7, 1), (-4, 8, 0), (-5, 9, -1), (-6, 99, -1), (i64::MIN, 99, -1)]
        {
            let partition = ListOffsetsPartition::default().with_timestamp(timestamp);
            let asked = ListOffsetsTopic::default().with_name(topic("t")).with_partitions(vec![partition]);
            let request =
                ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![asked]);
            let answer = host.client.send(version, &request).await.unwrap();
            let part = &answer.topics[0].partitions[0];
            let expected = if version >= from { (0, offset) } else { (35, -1) };
            assert_eq!((part.error_code, part.offset), expected, "v{version} {timestamp}");
        }
    }
}
