//! Targets that are not exact get no records.

use std::net::SocketAddr;

use tokio::net::TcpListener;
use uuid::Uuid;
use verbatim_wire::exact_producer::{Advice, ExactError, ExactProducer, Target};
use verbatim_wire::frame;

use crate::config;
use crate::model::{Fault, Model, TOPIC};
use crate::source::{at, batch, write};

async fn refused(address: SocketAddr, target: Target) -> ExactError {
    ExactProducer::start(config(address)).open(target).await.unwrap_err()
}

#[tokio::test]
async fn a_topic_without_the_property_is_not_even_probed() {
    for (property, said) in [(None, "no property"), (Some("false"), "produce.at.offset=false")] {
        let (address, model) = Model { property, ..Model::new(1) }.serve().await;
        let error = refused(address, Target::new(TOPIC, 0)).await;
        assert!(matches!(&error, ExactError::NotExact { message } if message.contains(said)), "{error}");
        assert_eq!(error.advice(), Advice::Operator);
        assert_eq!((model.seen().probes, model.seen().requests), (0, 0));
    }
}

#[tokio::test]
async fn a_broker_that_ignores_the_tag_gets_a_probe_and_no_records() {
    let (address, model) = Model { knows_tag: false, ..Model::new(1) }.serve().await;
    let error = refused(address, Target::new(TOPIC, 0)).await;
    assert!(
        matches!(&error, ExactError::NotExact { message } if message.contains("without the tag")),
        "{error}"
    );
    assert_eq!((model.seen().probes, model.seen().with_records), (1, 0));
    assert!(model.log(0).bytes().is_empty());
}

#[tokio::test]
async fn a_missing_partition_or_topic_and_another_source_are_told_apart() {
    let (address, _model) = Model { source_topic_id: [1; 16], ..Model::new(1) }.serve().await;
    for target in [Target::new(TOPIC, 1), Target::new("nobody", 0)] {
        let error = refused(address, target).await;
        assert!(matches!(error, ExactError::UnknownPartition { .. }), "{error}");
    }
    let error = refused(address, Target::new(TOPIC, 0)).await;
    assert!(matches!(error, ExactError::SourceTopicIdMismatch { .. }), "{error}");
    let right = Target { source_topic_id: [1; 16], ..Target::new(TOPIC, 0) };
    let producer = ExactProducer::start(config(address));
    let open = producer.open(right.clone()).await.unwrap();
    assert_eq!((open.found().end, open.found().last_epoch), (0, -1));
    let error = producer.open(right).await.unwrap_err();
    assert!(matches!(&error, ExactError::InvalidWrite { message } if message.contains("already")), "{error}");
}

#[tokio::test]
async fn a_broker_without_tagged_fields_is_refused_by_its_versions() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        frame::read(&mut stream, 1_000).await.unwrap();
        // ApiVersions v4: no error, Produce 0 to 8 alone.
        let answer = [0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0];
        frame::write(&mut stream, &answer).await.unwrap();
        frame::read(&mut stream, 1_000).await.unwrap();
    });
    let error = refused(address, Target::new(TOPIC, 0)).await;
    assert!(error.to_string().contains("no Produce version from 9 on, its range is Some((0, 8))"), "{error}");
}

#[tokio::test]
async fn a_host_that_is_not_there_is_given_up() {
    let address = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let mut config = config(address);
    config.retry.attempts_max = 2;
    let error = ExactProducer::start(config).open(Target::new(TOPIC, 0)).await.unwrap_err();
    assert!(matches!(error, ExactError::Unavailable { attempts: 3, .. }), "{error}");
    assert_eq!(error.advice(), Advice::Retry);
}

#[tokio::test]
async fn the_next_address_is_tried() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let (address, _model) = Model::new(1).serve().await;
    let mut config = config(nobody);
    config.bootstrap.push(address.to_string());
    ExactProducer::start(config).open(Target::new(TOPIC, 0)).await.unwrap();
}

#[tokio::test]
async fn a_topic_that_was_re_created_meanwhile_is_noticed() {
    for fault in [Fault::None, Fault::CutBefore] {
        let (address, model) = Model::new(1)
            .with_faults(move |number, _| if number == 2 { fault } else { Fault::None })
            .serve()
            .await;
        let producer = ExactProducer::start(config(address));
        let mut open = producer.open(Target::new(TOPIC, 0)).await.unwrap();
        open.resume_at(0, -1).await.unwrap();
        open.write(write(0, &[batch(0, 0, 1, "a")], at(1, 0))).await.unwrap().await.unwrap();
        *model.topic_id.lock().unwrap() = Uuid::from_u128(8);
        model.change(0, |log| *log = crate::model::Log::default());
        let written = open.write(write(1, &[batch(1, 0, 1, "b")], at(2, 0))).await.unwrap().await;
        assert!(matches!(written, Err(ExactError::UnknownPartition { .. })), "{written:?}");
        assert!(model.log(0).bytes().is_empty());
    }
}
