//! Ordinary work: pipelining, sharing, splitting, back-pressure, giving up.

use std::time::Duration;

use verbatim_wire::exact_producer::{BATCHES_MAX, Config, ExactError, ExactProducer, Target, Write};
use verbatim_wire::tag::EpochEntry;

use crate::config;
use crate::model::{Fault, Model, TOPIC};
use crate::source::{at, batch, write};

#[tokio::test]
async fn writes_are_under_way_together_and_acknowledged_in_order() {
    let (address, model) = Model::new(1).serve().await;
    let mut open = ExactProducer::start(config(address)).open(Target::new(TOPIC, 0)).await.unwrap();
    open.resume_at(0, -1).await.unwrap();
    let closed = model.gate.write().await;
    let mut receipts = Vec::new();
    for i in 0..16 {
        receipts.push(open.write(write(i, &[batch(i, 0, 1, "a")], at(16, 0))).await.unwrap());
    }
    while model.seen().requests < 16 {
        model.arrived.notified().await;
    }
    drop(closed);
    for (end, receipt) in (1..).zip(receipts) {
        assert_eq!(receipt.await.unwrap().end, end);
    }
}

#[tokio::test]
async fn partitions_share_requests() {
    let (address, model) = Model::new(50).serve().await;
    let producer = ExactProducer::start(Config { in_flight_requests_max: 1, ..config(address) });
    let mut open = Vec::new();
    for partition in 0..50 {
        let mut one = producer.open(Target::new(TOPIC, partition)).await.unwrap();
        one.resume_at(0, -1).await.unwrap();
        open.push(one);
    }
    let closed = model.gate.write().await;
    let mut receipts = Vec::new();
    for one in &mut open {
        receipts.push(one.write(write(0, &[batch(0, 0, 1, "a")], at(1, 0))).await.unwrap());
    }
    drop(closed);
    for receipt in receipts {
        receipt.await.unwrap();
    }
    assert!(model.seen().partitions_max > 1, "{:?}", model.seen());
    assert!(model.seen().requests < 50, "{:?}", model.seen());
    for partition in 0..50 {
        assert_eq!(model.log(partition).end, 1);
    }
}

#[tokio::test]
async fn partitions_that_are_checked_together_share_what_is_told_of_their_topic() {
    let (address, model) = Model::new(64).serve().await;
    let producer = ExactProducer::start(config(address));
    let mut opening = tokio::task::JoinSet::new();
    for partition in 0..64 {
        let producer = producer.clone();
        opening.spawn(async move { producer.open(Target::new(TOPIC, partition)).await.unwrap() });
    }
    let _open = opening.join_all().await;
    // Each was probed, but not each asked for the whole topic.
    assert_eq!(model.seen().probes, 64);
    assert!(model.seen().topics < 32, "{}", model.seen().topics);
}

#[tokio::test]
async fn what_was_told_of_a_topic_a_moment_ago_is_asked_anew_where_it_is_wrong() {
    let (address, model) = Model::new(1).serve().await;
    let producer = ExactProducer::start(config(address));
    let first = producer.open(Target::new(TOPIC, 0)).await.unwrap();
    // A partition is added.
    model.logs.lock().unwrap().insert(1, crate::model::Log::default());
    let second = producer.open(Target::new(TOPIC, 1)).await.unwrap();
    // The topic is made anew.
    drop((first, second));
    *model.topic_id.lock().unwrap() = uuid::Uuid::from_u128(8);
    let mut open = producer.open(Target::new(TOPIC, 1)).await.unwrap();
    open.resume_at(0, -1).await.unwrap();
    open.write(write(0, &[batch(0, 0, 1, "a")], at(1, 0))).await.unwrap().await.unwrap();
    assert!(!model.log(1).bytes().is_empty());
}

#[tokio::test]
async fn a_write_is_split_at_batches_by_number_and_by_bytes() {
    let (address, model) = Model::new(1).serve().await;
    let mut open = ExactProducer::start(Config { request_bytes_max: 1 << 20, ..config(address) })
        .open(Target::new(TOPIC, 0))
        .await
        .unwrap();
    open.resume_at(0, -1).await.unwrap();
    let count = i64::try_from(BATCHES_MAX).unwrap() + 10;
    let batches: Vec<_> = (0..count).map(|base| batch(base, 0, 1, "a")).collect();
    let entries = vec![EpochEntry { epoch: 1, start: count }];
    let all = Write { entries, ..write(0, &batches, at(count, 1)) };
    assert_eq!(open.write(all).await.unwrap().await.unwrap().end, count);
    assert_eq!((model.seen().requests, model.seen().batches_max), (2, BATCHES_MAX));
    assert_eq!(model.log(0).bytes(), batches.concat());
    assert_eq!(model.log(0).entries.last(), Some(&EpochEntry { epoch: 1, start: count }));

    let large = "x".repeat(400 << 10);
    let batches: Vec<_> = (count..count + 5).map(|base| batch(base, 1, 1, &large)).collect();
    open.write(write(count, &batches, at(count + 5, 1))).await.unwrap().await.unwrap();
    assert_eq!(model.seen().requests, 2 + 3, "two batches each fit, and one is left");
}

#[tokio::test]
async fn a_writer_waits_for_room_and_a_dropped_call_is_not_taken_for_a_hole() {
    let (address, model) = Model::new(1).serve().await;
    let producer = ExactProducer::start(Config { in_flight_bytes_max: 4096, ..config(address) });
    let mut open = producer.open(Target::new(TOPIC, 0)).await.unwrap();
    open.resume_at(0, -1).await.unwrap();
    let closed = model.gate.write().await;
    let first = batch(0, 0, 1, &"x".repeat(10_000));
    let first = open.write(write(0, &[first], at(3, 0))).await.unwrap();
    let second = open.write(write(1, &[batch(1, 0, 1, "b")], at(3, 0)));
    assert!(tokio::time::timeout(Duration::from_millis(50), second).await.is_err(), "there is no room");
    drop(closed);
    assert_eq!(first.await.unwrap().end, 1);
    let third = open.write(write(2, &[batch(2, 0, 1, "c")], at(3, 0))).await.unwrap().await;
    assert!(matches!(third, Err(ExactError::InvalidWrite { .. })), "{third:?}");
    open.resume_at(1, 0).await.unwrap();
    open.write(write(1, &[batch(1, 0, 1, "b")], at(3, 0))).await.unwrap().await.unwrap();
    assert_eq!(model.log(0).end, 2);
}

#[tokio::test]
async fn what_was_queued_is_carried_out_also_when_everything_is_dropped() {
    let (address, model) = Model::new(1)
        .with_faults(|number, _| if number < 3 { Fault::CutBefore } else { Fault::None })
        .serve()
        .await;
    let producer = ExactProducer::start(config(address));
    let mut open = producer.open(Target::new(TOPIC, 0)).await.unwrap();
    open.resume_at(0, -1).await.unwrap();
    let mut last = None;
    for i in 0..10 {
        last = Some(open.write(write(i, &[batch(i, 0, 1, "a")], at(10, 0))).await.unwrap());
    }
    drop((open, producer));
    assert_eq!(last.unwrap().await.unwrap().end, 10);
    assert_eq!(model.log(0).end, 10);
}

#[tokio::test]
async fn a_partition_can_be_opened_again_once_it_was_dropped() {
    let (address, _model) = Model::new(1).serve().await;
    let producer = ExactProducer::start(config(address));
    drop(producer.open(Target::new(TOPIC, 0)).await.unwrap());
    producer.open(Target::new(TOPIC, 0)).await.unwrap();
}

#[tokio::test]
async fn an_answer_that_does_not_come_ends_the_connection_and_what_it_did_is_found_again() {
    let (address, model) = Model::new(1)
        .with_faults(|number, _| if number == 1 { Fault::Unanswered } else { Fault::None })
        .serve()
        .await;
    let mut config = config(address);
    config.client.answer_max = Duration::from_millis(100);
    let mut open = ExactProducer::start(config).open(Target::new(TOPIC, 0)).await.unwrap();
    open.resume_at(0, -1).await.unwrap();
    let written = open.write(write(0, &[batch(0, 0, 1, "a")], at(1, 0))).await.unwrap().await.unwrap();
    assert_eq!(written.end, 1);
    assert_eq!(model.log(0).batches.len(), 1);
}

#[tokio::test]
async fn too_many_failures_in_a_row_end_in_an_error_and_it_can_be_resumed() {
    let (address, model) = Model::new(1)
        .with_faults(|number, _| if number <= 4 { Fault::Fails(0, 56) } else { Fault::None })
        .serve()
        .await;
    let mut config = config(address);
    config.retry.attempts_max = 3;
    let mut open = ExactProducer::start(config).open(Target::new(TOPIC, 0)).await.unwrap();
    open.resume_at(0, -1).await.unwrap();
    let one = || write(0, &[batch(0, 0, 1, "a")], at(1, 0));
    let error = open.write(one()).await.unwrap().await.unwrap_err();
    assert_eq!(error, ExactError::Unavailable { attempts: 4, message: "on demand".to_owned() });
    open.resume_at(0, -1).await.unwrap();
    open.write(one()).await.unwrap().await.unwrap();
    assert_eq!(model.log(0).end, 1);
}

#[tokio::test]
async fn ends_and_the_sources_position_are_declared_without_data() {
    let (address, model) = Model::new(1).serve().await;
    let mut open = ExactProducer::start(config(address)).open(Target::new(TOPIC, 0)).await.unwrap();
    open.resume_at(0, -1).await.unwrap();
    let entries = vec![EpochEntry { epoch: 2, start: 4 }, EpochEntry { epoch: 3, start: 9 }];
    let end = open.declare_end(0, 9, entries.clone(), at(9, 3)).await.unwrap();
    assert_eq!(end.await.unwrap().end, 9);
    let same_end = vec![EpochEntry { epoch: 4, start: 9 }];
    open.declare_end(9, 9, same_end.clone(), at(9, 4)).await.unwrap().await.unwrap();
    assert_eq!((model.log(0).end, model.log(0).entries), (9, vec![entries[0], same_end[0]]));
    let written = open.declare_source(at(30, 5)).await.unwrap().await.unwrap();
    assert_eq!((written.end, written.shown_epoch), (9, 5));
    assert_eq!(model.log(0).source, (0, 30));
    open.write(write(9, &[batch(12, 4, 1, "a")], at(30, 5))).await.unwrap().await.unwrap();
    assert_eq!(model.log(0).end, 13);
}

#[tokio::test]
async fn an_idle_partition_without_a_connection_can_be_resumed() {
    let (address, _model) = Model::new(2).with_faults(|_, _| Fault::CutBefore).serve().await;
    let mut config = config(address);
    config.retry.attempts_max = 0;
    let producer = ExactProducer::start(config);
    let mut idle = producer.open(Target::new(TOPIC, 0)).await.unwrap();
    let mut busy = producer.open(Target::new(TOPIC, 1)).await.unwrap();
    idle.resume_at(0, -1).await.unwrap();
    busy.resume_at(0, -1).await.unwrap();
    let written = busy.write(write(0, &[batch(0, 0, 1, "a")], at(1, 0))).await.unwrap().await;
    assert!(matches!(written, Err(ExactError::Unavailable { .. })), "{written:?}");
    idle.resume_at(0, -1).await.unwrap();
    assert!(matches!(idle.resume_at(1, 0).await, Err(ExactError::Realign { .. })));
}
