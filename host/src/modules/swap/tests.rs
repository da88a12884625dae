//! Swaps that do not take place, without a host.

use std::sync::Mutex;
use std::time::Duration;

use tempfile::TempDir;
use verbatim_broker::properties::DEFAULT_MODULE;

use super::*;

/// Somebody who asks, and may be gone; what he is told.
#[derive(Default)]
struct Somebody {
    is_gone: bool,
    told: Mutex<Vec<String>>,
}

impl Asker for Somebody {
    fn tell(&self, step: String) {
        self.told.lock().unwrap().push(step);
    }

    fn is_gone(&self) -> bool {
        self.is_gone
    }
}

struct NoTopics;

impl Topics for NoTopics {
    fn of_mode(&self, _: &str, _: bool) -> Vec<String> {
        Vec::new()
    }

    fn keys(&self, _: &str, _: &str) -> Vec<(String, Vec<(String, String)>)> {
        Vec::new()
    }
}

fn modules() -> (TempDir, Modules) {
    let data = tempfile::tempdir().unwrap();
    let modules = Modules::bundled(data.path()).unwrap();
    (data, modules)
}

/// The bundled module with another digest.
fn variant(number: u8) -> Vec<u8> {
    [verbatim_artifact::exact_mirroring().unwrap(), &[0, 3, 1, b'n', number]].concat()
}

fn swap(
    modules: &Modules,
    number: u8,
    shadow: Option<Bound>,
    asker: &Somebody,
) -> Result<Swapped, SwapError> {
    let module = variant(number);
    let swap = Swap { name: DEFAULT_MODULE, module: &module, kafka: false, shadow, dry_run: false };
    modules.swap(&swap, &NoTopics, asker)
}

fn roll_back(modules: &Modules, asker: &Somebody) -> Result<Swapped, SwapError> {
    modules.roll_back(DEFAULT_MODULE, &NoTopics, asker)
}

/// Generation and the last entry's outcome, module and reason.
fn last(modules: &Modules) -> (u64, Outcome, String, String) {
    let entry = modules.history(DEFAULT_MODULE).unwrap().pop().unwrap();
    let generation = modules.status().pop().unwrap().serves.generation;
    (generation, entry.outcome, entry.described, entry.reason)
}

#[test]
fn requests_that_do_not_come_are_not_waited_for_without_end() {
    let (_data, mut modules) = modules();
    modules.shadow_requests_wait = Duration::ZERO;
    let error = swap(&modules, 1, Some(Bound::Requests(5)), &Somebody::default()).unwrap_err();
    assert!(matches!(error, SwapError::TooFew { expected: 5, .. }) && !error.is_wrong_call(), "{error}");
    let (generation, outcome, described, reason) = last(&modules);
    assert_eq!((generation, outcome), (1, Outcome::Abandoned));
    assert!(
        described.starts_with("exact-mirroring ") && reason.contains("judged 0 live requests"),
        "{reason}"
    );
    assert_eq!(modules.status().pop().unwrap().candidate, None);
    // The next one finds nothing of it.
    swap(&modules, 1, Some(Bound::Time(Duration::from_millis(1))), &Somebody::default()).unwrap();
}

#[test]
fn a_shadow_period_has_an_end() {
    let (_data, modules) = modules();
    let shadow = Some(Bound::Time(SHADOW_TIME_MAX + Duration::from_millis(1)));
    let error = swap(&modules, 1, shadow, &Somebody::default()).unwrap_err();
    assert!(error.is_wrong_call() && error.to_string().contains("3600 s, shadow=`3600001 ms`"), "{error}");
    assert!(modules.history(DEFAULT_MODULE).unwrap().is_empty());
}

#[test]
fn nobody_swaps_for_one_who_is_gone() {
    let (_data, modules) = modules();
    let gone = Somebody { is_gone: true, ..Somebody::default() };
    for shadow in [None, Some(Bound::Time(SHADOW_TIME_MAX)), Some(Bound::Requests(u64::MAX))] {
        assert!(matches!(swap(&modules, 1, shadow, &gone), Err(SwapError::Gone { .. })));
        let (generation, outcome, described, reason) = last(&modules);
        assert_eq!((generation, outcome), (1, Outcome::Abandoned));
        assert!(!described.is_empty() && reason.contains("gone before it was done"), "{reason}");
    }
}

#[test]
fn a_rollback_ends_a_swap_that_is_under_way() {
    let (_data, modules) = modules();
    swap(&modules, 1, None, &Somebody::default()).unwrap();
    let operator = Somebody::default();
    std::thread::scope(|scope| {
        let trying =
            scope.spawn(|| swap(&modules, 2, Some(Bound::Time(SHADOW_TIME_MAX)), &Somebody::default()));
        let candidate = loop {
            assert!(!trying.is_finished());
            if let Some(candidate) = modules.status().pop().unwrap().candidate {
                break candidate;
            }
            std::thread::yield_now();
        };
        assert_eq!((candidate.sha256, candidate.judged), (Digest::of(&variant(2)).to_string(), 0));
        assert_eq!(roll_back(&modules, &operator).unwrap().serves.generation, 3);
        assert!(matches!(trying.join().unwrap(), Err(SwapError::Overtaken { .. })));
    });
    assert_eq!(operator.told.lock().unwrap().len(), 1);
    let outcomes = modules.history(DEFAULT_MODULE).unwrap().into_iter().map(|entry| entry.outcome);
    let expected = [Outcome::Swapped, Outcome::Abandoned, Outcome::RolledBack];
    assert_eq!(outcomes.collect::<Vec<_>>(), expected);
    assert!(modules.status().pop().unwrap().serves.sha256 != Digest::of(&variant(1)).to_string());
}

#[test]
fn a_module_whose_file_is_gone_is_not_gone_back_to() {
    let (data, modules) = modules();
    for number in [1, 2] {
        swap(&modules, number, None, &Somebody::default()).unwrap();
    }
    let file = data.path().join(format!("modules/{}.wasm", Digest::of(&variant(1))));
    std::fs::remove_file(&file).unwrap();
    let error = roll_back(&modules, &Somebody::default()).unwrap_err().to_string();
    assert!(error.contains("not there") && error.contains(file.to_str().unwrap()), "{error}");
    assert_eq!(last(&modules).0, 3);
    std::fs::write(file, variant(1)).unwrap();
    roll_back(&modules, &Somebody::default()).unwrap();
}
