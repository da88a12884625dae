//! One request, failed at its first operation, its second, and so on: each time it is undone or the partition offline,
//! and what follows finds a sound log.

use verbatim_contract::EpochEntry;
use verbatim_log::{ApplyError, Config, Log, Retention};

use crate::batches::{marker, plain, produced};
use crate::cases::{create, exact, segments, try_open};
use crate::disk::{Disk, Fault, Loss};
use crate::model::{Model, Request, read_all};

fn config() -> Config {
    Config { segment_bytes: 350, index_interval_bytes: 0, ..exact() }
}

fn apply(log: &mut Log, request: &Request) -> Result<(), ApplyError> {
    let batches = request.placed();
    let (cut, end, start, source) = (request.cut, request.end, request.start, request.source);
    let entries = &request.entries[..];
    let commit =
        verbatim_log::Commit { cut, entries, batches: &batches, end, start, source, ..Default::default() };
    log.apply(&commit)
}

fn applied(model: &Model, request: &Request) -> Model {
    model.steps(request).pop().unwrap()
}

/// Applies `before`, then `failing` with a fault at each of its operations, then `after`; how many operations there were.
fn sweep(before: &[Request], failing: &Request, after: &Request, fault: Fault) -> u64 {
    let plain = sweep_with(&config(), before, failing, after, fault);
    let rewriting = sweep_with(&Config { keeps_received: true, ..config() }, before, failing, after, fault);
    assert!(rewriting > plain, "digests take operations of their own");
    plain
}

fn sweep_with(config: &Config, before: &[Request], failing: &Request, after: &Request, fault: Fault) -> u64 {
    for operation in 0.. {
        let disk = Disk::default();
        let mut log = create(&disk, config);
        let mut model = Model::new(true);
        for request in before {
            apply(&mut log, request).unwrap();
            model = applied(&model, request);
        }
        log.flush().unwrap();
        model.high_watermark = model.end;
        let operations = disk.operations();
        disk.set_fault(operation, fault);
        let result = apply(&mut log, failing);
        disk.clear_faults();
        let done = disk.operations() - operations <= operation;
        let hint = format!("{fault:?} at operation {operation}, {result:?}");
        let mut states = vec![model.clone()];
        states.extend(model.steps(failing));
        match result {
            _ if fault == Fault::Stop && !done => log = restart((&disk, config), &states, &mut model, &hint),
            Ok(()) => model = states.pop().unwrap(),
            Err(ApplyError::Failed { cut, .. }) => model = states.swap_remove(usize::from(cut.is_some())),
            Err(ApplyError::Offline { .. }) => {
                assert!(apply(&mut log, after).is_err() && log.offline().is_some(), "{hint}");
                log = restart((&disk, config), &states, &mut model, &hint);
            }
            Err(error) => panic!("{error}, {hint}"),
        }
        model.check(&log, &hint);
        let after = Request { cut: after.cut.filter(|to| *to <= model.end), ..after.clone() };
        if after.batches.first().is_none_or(|batch| crate::batches::header(batch).base_offset >= model.end) {
            apply(&mut log, &after).unwrap();
            model = applied(&model, &after);
        }
        log.flush().unwrap();
        model.high_watermark = model.end;
        model.check(&log, &hint);
        drop(log);
        let (log, _) = try_open(&disk, config).unwrap();
        model.check(&log, &hint);
        if done {
            return operation;
        }
    }
    0
}

/// Opens the log again, which is in one of the states.
fn restart((disk, config): (&Disk, &Config), states: &[Model], model: &mut Model, hint: &str) -> Log {
    let (log, recovery) = try_open(disk, config).unwrap();
    assert!(!recovery.clean);
    let position = log.position();
    let fits = |state: &&Model| {
        (state.start, state.end) == (position.start, position.end) && state.has_digests(&log, hint)
    };
    *model = states.iter().find(fits).expect(hint).clone();
    (model.epochs, model.shown_epoch) = (log.epochs().clone(), position.shown_epoch);
    model.high_watermark = model.end;
    log
}

fn data(from: i64, epoch: i32, count: i64) -> Vec<Vec<u8>> {
    (0..count)
        .map(|index| produced(from + 3 * index, epoch, 3, (9, 0, 3 * index as i32), index % 2 == 0))
        .collect()
}

#[test]
fn a_request_with_everything_is_undone_wherever_it_fails() {
    let before = [Request { batches: data(0, 1, 8), ..Request::default() }];
    let failing = Request {
        cut: Some(15),
        entries: vec![EpochEntry { epoch: 4, start: 16 }],
        batches: [data(17, 4, 6), vec![marker(35, 5, (9, 0), true), plain(5_000_000_000, 6, 2)]].concat(),
        end: Some(5_000_000_020),
        start: Some(20),
        source: None,
        original: 1,
    };
    let after = Request { cut: Some(15), batches: vec![plain(5_000_000_020, 9, 3)], ..Request::default() };
    let appending = Request { cut: None, ..after.clone() };
    for fault in [Fault::Fail, Fault::Full, Fault::Tear, Fault::Late, Fault::Stop] {
        assert!(sweep(&before, &failing, &appending, fault) > 30);
        let plain_cut = Request { cut: Some(24), ..Request::default() };
        assert!(
            sweep(
                &before,
                &Request {
                    cut: None,
                    start: None,
                    batches: data(24, 4, 6),
                    entries: vec![],
                    ..failing.clone()
                },
                &plain_cut,
                fault
            ) > 10
        );
    }
}

#[test]
fn a_restart_below_the_end_is_undone_wherever_it_fails() {
    let before = [
        Request { batches: data(0, 1, 8), ..Request::default() },
        Request { start: Some(24), ..Request::default() },
    ];
    let failing = Request { batches: [vec![plain(20, 1, 5)], data(25, 2, 5)].concat(), ..Request::default() };
    let after = Request { cut: Some(25), ..Request::default() };
    for fault in [Fault::Fail, Fault::Full, Fault::Tear, Fault::Late, Fault::Stop] {
        assert!(sweep(&before, &failing, &after, fault) > 10);
    }
}

/// Normal logs of several segments with an open transaction, of which retention takes some or all.
fn normal(disk: &Disk) -> (Log, Config) {
    let config = Config { exact: false, segment_ms: i64::MAX, ..config() };
    let mut log = create(disk, &config);
    let batches: Vec<_> = data(0, 0, 9);
    apply(&mut log, &Request { batches, ..Request::default() }).unwrap();
    log.flush().unwrap();
    (log, config)
}

#[test]
fn retention_is_undone_or_finished_wherever_it_fails() {
    for (bytes, start) in [(Some(600), 12), (Some(0), 27)] {
        let retention = Retention { bytes, ms: None, segments_max: usize::MAX };
        for fault in [Fault::Fail, Fault::Tear, Fault::Late, Fault::Stop] {
            for operation in 0.. {
                let disk = Disk::new(operation);
                let (mut log, config) = normal(&disk);
                let (bytes_before, producer) = (read_all(&log), log.producer(9).cloned());
                let (before, position) = (disk.operations(), log.position());
                disk.set_fault(operation, fault);
                let result = log.retain(0, &retention);
                disk.clear_faults();
                let hint = format!("{fault:?} at operation {operation}, {result:?}");
                let done = disk.operations() - before <= operation;
                let moved = match &result {
                    Ok(removed) => {
                        assert_eq!((removed.start, log.position().start), (start, start), "{hint}");
                        true
                    }
                    Err(ApplyError::Failed { .. }) => {
                        assert_eq!((log.position(), read_all(&log)), (position, bytes_before), "{hint}");
                        false
                    }
                    Err(_) => log.offline().is_some() && log.position().start == start,
                };
                drop(log);
                let (mut log, _) = try_open(&disk, &config).unwrap();
                assert!(log.position().start == start || !moved, "{hint}");
                assert!([0, start].contains(&log.position().start), "{hint}");
                assert_eq!((log.position().end, log.producer(9).cloned()), (27, producer), "{hint}");
                assert_eq!(log.retain(0, &retention).unwrap().start, start, "{hint}");
                assert!(log.position().stable_offset >= position.stable_offset.max(start), "{hint}");
                let names = segments(&disk);
                assert_eq!(names.first(), Some(&format!("{start:020}.log")), "{hint}");
                let next = Request { batches: vec![plain(27, 9, 1)], ..Request::default() };
                apply(&mut log, &next).unwrap();
                if done {
                    assert!(operation > 5, "{hint}");
                    break;
                }
            }
        }
    }
}

/// Whatever a request made before it failed is gone for good, new segments with its batches included.
#[test]
fn a_power_loss_brings_back_nothing_of_a_refused_request() {
    let tiny = Config { segment_bytes: 1, ..config() };
    for operation in 0.. {
        let disk = Disk::default();
        let mut log = create(&disk, &tiny);
        apply(&mut log, &Request { batches: vec![plain(0, 1, 2)], ..Request::default() }).unwrap();
        log.flush().unwrap();
        let operations = disk.operations();
        disk.set_fault(operation, Fault::Fail);
        let batches = vec![plain(2, 1, 2), plain(4, 1, 2), plain(6, 1, 2)];
        let result = apply(&mut log, &Request { batches, ..Request::default() });
        let done = disk.operations() - operations <= operation;
        disk.clear_faults();
        let refused = matches!(result, Err(ApplyError::Failed { .. }));
        assert!(refused || result.is_ok() || log.offline().is_some(), "{result:?}");
        drop(log);
        disk.power_loss(Loss::Everything);
        let (log, _) = try_open(&disk, &tiny).unwrap();
        assert!(!refused || log.position().end == 2, "operation {operation}, {:?}", log.position());
        if done {
            assert!(operation > 10);
            return;
        }
    }
}
