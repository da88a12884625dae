//! Where the producer stops and leaves the decision to its caller, and how it goes on after that.

use verbatim_wire::exact_producer::{
    Advice, ExactError, ExactPartition, ExactProducer, Found, Target, Truncate, Write,
};
use verbatim_wire::tag::EpochEntry;

use crate::config;
use crate::model::{Fault, Model, TOPIC};
use crate::source::{at, batch, write};

async fn opened(model: Model) -> (ExactPartition, std::sync::Arc<Model>) {
    let (address, model) = model.serve().await;
    let mut open = ExactProducer::start(config(address)).open(Target::new(TOPIC, 0)).await.unwrap();
    let found = open.found();
    open.resume_at(found.end, found.last_epoch).await.unwrap();
    (open, model)
}

#[tokio::test]
async fn a_position_that_is_not_ours_is_the_callers_to_decide() {
    let (mut open, model) = opened(Model::new(1)).await;
    let ours = batch(0, 3, 2, "ours");
    open.write(write(0, std::slice::from_ref(&ours), at(2, 3))).await.unwrap().await.unwrap();
    // Somebody else writes.
    let theirs = batch(2, 4, 5, "theirs");
    model.change(0, |log| {
        log.begin(EpochEntry { epoch: 4, start: 2 });
        log.batches.push(theirs.clone());
        log.end = 7;
    });
    let first = open.write(write(2, &[batch(2, 3, 1, "b")], at(4, 3))).await.unwrap();
    let second = open.write(write(3, &[batch(3, 3, 1, "c")], at(4, 3))).await.unwrap();
    let found = Found { end: 7, shown_epoch: 3, last_epoch: 4 };
    assert_eq!(first.await, Err(ExactError::Realign { found }));
    assert_eq!(second.await, Err(ExactError::Realign { found }), "what is behind fails with it");
    let third = open.write(write(4, &[batch(4, 3, 1, "d")], at(5, 3))).await.unwrap();
    assert_eq!(third.await, Err(ExactError::Realign { found }), "and what comes later, until it is resumed");
    assert_eq!(model.log(0).bytes(), [ours.clone(), theirs.clone()].concat());

    assert_eq!(open.resume_at(4, 3).await, Err(ExactError::Realign { found }), "not there either");
    open.resume_at(7, 4).await.unwrap();
    let last = batch(7, 4, 1, "e");
    let written = open.write(write(7, std::slice::from_ref(&last), at(8, 4))).await.unwrap().await.unwrap();
    assert_eq!(written.end, 8);
    assert_eq!(model.log(0).bytes(), [ours, theirs, last].concat());
}

#[tokio::test]
async fn an_epoch_before_that_is_not_the_hosts_is_not_sent_for_ever() {
    let (mut open, model) = opened(Model::new(1)).await;
    open.write(write(0, &[batch(0, 3, 2, "a"), batch(2, 5, 1, "b")], at(3, 5))).await.unwrap().await.unwrap();
    open.resume_at(3, 4).await.unwrap();
    let written = open.write(write(3, &[batch(3, 5, 1, "c")], at(4, 5))).await.unwrap().await;
    assert!(matches!(written, Err(ExactError::Realign { found }) if found.end == 3), "{written:?}");
    assert_eq!(model.log(0).end, 3);
}

#[tokio::test]
async fn other_bytes_at_an_unacknowledged_place_are_named_by_offset() {
    // The connection is cut, and what is stored is not what was sent.
    let (mut open, model) = opened(Model::new(1).with_faults(|number, _| match number {
        2 => Fault::CutBefore,
        _ => Fault::None,
    }))
    .await;
    open.write(write(0, &[batch(0, 3, 1, "a")], at(1, 3))).await.unwrap().await.unwrap();
    let theirs = batch(1, 3, 2, "theirs");
    model.change(0, |log| {
        log.batches.push(theirs);
        log.end = 3;
    });
    let ours = [batch(1, 3, 2, "ours"), batch(3, 3, 1, "more")];
    let written = open.write(write(1, &ours, at(4, 3))).await.unwrap().await;
    assert!(matches!(written, Err(ExactError::Diverged { offset: 1, .. })), "{written:?}");
    assert_eq!(written.unwrap_err().advice(), Advice::Stop);
    assert_eq!(model.log(0).end, 3);
}

#[tokio::test]
async fn a_fenced_writer_and_bad_calls_are_named() {
    let (mut open, model) = opened(Model::new(1)).await;
    open.write(write(0, &[batch(0, 5, 1, "a")], at(1, 5))).await.unwrap().await.unwrap();
    let written = open.write(write(1, &[batch(1, 4, 1, "b")], at(2, 5))).await.unwrap().await;
    assert!(matches!(written, Err(ExactError::Fenced { .. })), "{written:?}");

    let good = || batch(1, 5, 2, "good");
    let cut_off = good().slice(..good().len() - 1);
    let mut old_format = good().to_vec();
    old_format[16] = 1;
    let entry = |epoch, start| EpochEntry { epoch, start };
    let bad: [(Write, &str); 8] = [
        (write(2, &[good()], at(3, 5)), "the call before leaves the end 1, from=2"),
        (write(1, &[cut_off], at(3, 5)), "the batches end with TailCut"),
        (write(1, &[old_format.into()], at(3, 5)), "format v2, magic=1"),
        (write(1, &[good(), good()], at(3, 5)), "must begin at 3 or above, baseOffset=1"),
        (Write { end_to: Some(2), ..write(1, &[good()], at(3, 5)) }, "end to must be at least 3, end to=2"),
        (
            Write { entries: vec![entry(6, 9)], ..write(1, &[good()], at(3, 5)) },
            "begins at 9, above the end 3",
        ),
        (Write { entries: vec![entry(4, 1)], ..write(1, &[good()], at(3, 5)) }, "does not rise"),
        (write(1, &[good()], at(-3, 5)), "source end is -3"),
    ];
    for (write, said) in bad {
        open.resume_at(1, 5).await.unwrap();
        let error = open.write(write).await.unwrap().await.unwrap_err();
        assert!(
            matches!(error, ExactError::InvalidWrite { .. }) && error.to_string().contains(said),
            "{error}"
        );
    }
    assert_eq!(model.log(0).end, 1);
}

#[tokio::test]
async fn a_bad_call_fails_what_is_behind_it_and_nothing_before() {
    let (mut open, model) = opened(Model::new(1)).await;
    let closed = model.gate.write().await;
    let before = open.write(write(0, &[batch(0, 5, 1, "a")], at(1, 5))).await.unwrap();
    let bad = open.write(write(9, &[batch(9, 5, 1, "b")], at(1, 5))).await.unwrap().await;
    let behind = open.write(write(1, &[batch(1, 5, 1, "c")], at(1, 5))).await.unwrap().await;
    assert_eq!(bad, behind);
    drop(closed);
    // Waits for what is under way.
    open.resume_at(1, 5).await.unwrap();
    assert_eq!(before.await.unwrap().end, 1);
    open.write(write(1, &[batch(1, 5, 1, "c")], at(2, 5))).await.unwrap().await.unwrap();
}

#[tokio::test]
async fn damaged_data_fails_from_there_on_and_what_was_before_is_acknowledged() {
    let (mut open, model) = opened(Model::new(1).with_faults(|number, _| match number {
        2 => Fault::Fails(0, 2),
        _ => Fault::None,
    }))
    .await;
    let mut receipts = Vec::new();
    for i in 0..3 {
        receipts.push(open.write(write(i, &[batch(i, 0, 1, "a")], at(3, 0))).await.unwrap());
    }
    let mut results = Vec::new();
    for receipt in receipts {
        results.push(receipt.await);
    }
    assert_eq!(results[0].as_ref().unwrap().end, 1);
    assert!(matches!(results[1], Err(ExactError::InvalidRecord { .. })), "{results:?}");
    assert_eq!(results[1], results[2]);
    open.resume_at(1, 0).await.unwrap();
    open.write(write(1, &[batch(1, 0, 1, "b")], at(2, 0))).await.unwrap().await.unwrap();
    assert_eq!(model.log(0).end, 2);
}

#[tokio::test]
async fn a_truncation_stands_between_what_is_before_and_behind_it() {
    // Every answer of a truncation is lost once, before and after it is done.
    for fault in [Fault::None, Fault::CutBefore, Fault::CutAfter, Fault::Twice, Fault::Fails(0, 56)] {
        let (mut open, model) =
            opened(Model::new(1).with_faults(move |number, _| if number == 3 { fault } else { Fault::None }))
                .await;
        let kept = batch(0, 5, 2, "kept");
        let cut = open.write(write(0, std::slice::from_ref(&kept), at(2, 5))).await.unwrap();
        let gone = open.write(write(2, &[batch(2, 6, 2, "gone")], at(4, 6))).await.unwrap();
        let order = Truncate { from: 4, to: 2, epoch_before: 5, source: at(2, 7) };
        let truncated = open.truncate(order).await.unwrap();
        let new = batch(2, 7, 1, "new");
        let behind = open.write(write(2, std::slice::from_ref(&new), at(3, 7))).await.unwrap();
        assert_eq!(cut.await.unwrap().end, 2);
        assert_eq!(gone.await.unwrap().end, 4);
        assert_eq!(truncated.await.unwrap().end, 2);
        assert_eq!(behind.await.unwrap().end, 3);
        assert_eq!(model.log(0).bytes(), [kept, new].concat(), "{fault:?}");
        let entries = [EpochEntry { epoch: 5, start: 0 }, EpochEntry { epoch: 7, start: 2 }];
        assert_eq!(model.log(0).entries, entries);
    }
}

#[tokio::test]
async fn the_same_end_under_an_epoch_that_is_not_ours_is_the_callers_to_decide() {
    let (mut open, model) = opened(Model::new(1).with_faults(|number, _| match number {
        2 => Fault::CutBefore,
        _ => Fault::None,
    }))
    .await;
    open.write(write(0, &[batch(0, 3, 1, "a")], at(1, 3))).await.unwrap().await.unwrap();
    model.change(0, |log| {
        log.begin(EpochEntry { epoch: 8, start: 1 });
        log.batches.push(batch(1, 8, 2, "theirs"));
        log.end = 3;
    });
    let written = open.write(write(1, &[batch(1, 3, 2, "ours")], at(3, 3))).await.unwrap().await;
    assert!(matches!(written, Err(ExactError::Realign { found }) if found.last_epoch == 8), "{written:?}");
    assert_eq!(model.seen().requests, 2, "nothing was sent again");
}

#[tokio::test]
async fn what_comes_behind_declared_epochs_waits_for_them() {
    let (mut open, model) = opened(Model::new(1).with_faults(|number, _| match number {
        1 => Fault::Fails(0, 56),
        _ => Fault::None,
    }))
    .await;
    let entry = EpochEntry { epoch: 3, start: 0 };
    let declared = open.declare_end(0, 0, vec![entry], at(0, 3)).await.unwrap();
    // Behind a hole: this one would fit without the epoch, and the epoch would not fit any more.
    let behind = open.write(write(0, &[batch(2, 4, 1, "a")], at(3, 4))).await.unwrap();
    declared.await.unwrap();
    behind.await.unwrap();
    assert_eq!(model.log(0).entries, [entry, EpochEntry { epoch: 4, start: 2 }]);
}
