//! Whatever fails on the way: what is acknowledged is stored, what is stored is a leading part of what was written, and
//! in the end everything is there.

use std::sync::Arc;

use verbatim_wire::exact_producer::{Config, ExactProducer, Target};

use crate::config;
use crate::model::{Fault, Log, Model, TOPIC};
use crate::random::Random;
use crate::source::{Call, History};

const PARTITIONS: i32 = 3;

#[tokio::test]
async fn any_faults_leave_a_prefix_with_all_that_was_acknowledged_and_in_the_end_everything() {
    let mut random = Random::announced("any_faults");
    let rounds = if std::env::var_os("VERBATIM_SOAK").is_some() { 1_000 } else { 25 };
    for round in 1..=rounds {
        println!("round {round} of {rounds}");
        one_round(&mut random).await;
    }
}

async fn one_round(random: &mut Random) {
    let one_in = 2 + random.below(12);
    let mut choice = random.fork();
    let model = Model::new(PARTITIONS).with_faults(move |_, batches| fault(&mut choice, one_in, batches));
    let (address, model) = model.serve().await;
    let producer = ExactProducer::start(Config {
        in_flight_requests_max: 1 + random.below(8),
        in_flight_bytes_max: 1024 << random.below(6),
        request_bytes_max: 100 + random.below(900),
        ..config(address)
    });
    let mut writers = Vec::new();
    for partition in 0..PARTITIONS {
        let history = History::random(random, 40);
        writers.push(tokio::spawn(copy(producer.clone(), Arc::clone(&model), partition, history)));
    }
    for writer in writers {
        writer.await.unwrap();
    }
}

/// Writes a history; looks after every acknowledgement.
async fn copy(producer: ExactProducer, model: Arc<Model>, partition: i32, history: History) {
    let mut writer = producer.open(Target::new(TOPIC, partition)).await.unwrap();
    writer.resume_at(0, -1).await.unwrap();
    let mut receipts = Vec::new();
    let everything = history.log.bytes();
    let mut end = 0;
    for call in history.calls {
        let (receipt, bytes) = match call {
            Call::Write(write) => {
                end += write.batches.len();
                (writer.write(write).await.unwrap(), end)
            }
            Call::Source(source) => (writer.declare_source(source).await.unwrap(), end),
        };
        receipts.push((receipt, bytes));
        let stored = model.log(partition).bytes();
        assert!(everything.starts_with(&stored), "what is stored is no prefix of what is written");
    }
    for (receipt, bytes) in receipts {
        receipt.await.unwrap();
        let stored = model.log(partition).bytes();
        assert!(stored.len() >= bytes, "{bytes} bytes are acknowledged, {} are stored", stored.len());
    }
    let log = model.log(partition);
    let seen = |log: &Log| (log.end, log.entries.clone());
    assert_eq!(seen(&log), seen(&history.log), "end and epochs");
    assert!(log.bytes() == everything, "the bytes");
}

fn fault(random: &mut Random, one_in: usize, batches: &[usize]) -> Fault {
    if !random.one_in(one_in) {
        return Fault::None;
    }
    let which = random.below(batches.len());
    match random.below(6) {
        0 => Fault::CutBefore,
        1 => Fault::CutAfter,
        2 => Fault::Twice,
        3 => Fault::Killed(random.below(batches[which] + 1)),
        4 => Fault::Fails(which, 56),
        _ => Fault::Fails(which, 19),
    }
}
