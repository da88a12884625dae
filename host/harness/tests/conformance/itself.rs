//! The harness itself: what it refuses to load, and that it notices what differs.

use std::fs;
use std::path::PathBuf;

use verbatim_engine::Native;
use verbatim_harness::{Report, load, run};
use verbatim_policy::ExactMirroring;

#[test]
fn an_unknown_key_is_refused_by_name_and_line() {
    let error = refused(
        "unknown-key",
        "[[scenario]]\nname = \"a\"\nrules = [\"R1\"]\nmode = \"normal\"\ncolour = 1\n",
    );
    assert!(error.contains("colour") && error.contains("line 5"), "{error}");
    let inner = format!("{HEAD}batches = [{{ bsae = 1 }}]\nexpect = {{}}\n");
    let error = refused("unknown-inner-key", &inner);
    assert!(error.contains("bsae") && error.contains("line 6"), "{error}");
}

#[test]
fn scenarios_that_contradict_themselves_are_refused_by_name() {
    for (name, request, part) in [
        ("no-code", "expect = { refused = \"checksum\" }", "has a code"),
        (
            "both",
            "expect = { refused = \"checksum\", code = 2, duplicates = [1] }",
            "neither placed nor duplicates",
        ),
        ("blame", "expect = { code = 2 }", "belong to a refused request"),
        ("hex", "batches = [{ hex = \"0\" }]\nexpect = {}", "even number"),
        ("use", "batches = [{ use = \"V9\" }]\nexpect = {}", "use=`V9`"),
        ("codec", "batches = [{ codec = \"brotli\" }]\nexpect = {}", "codec=`brotli`"),
        (
            "value-bytes",
            "batches = [{ records = [{ value-bytes = 9223372036854775807 }] }]\nexpect = {}",
            "value-bytes=`9223372036854775807`",
        ),
        ("repeat", "batches = [{ repeat = 4294967295 }]\nexpect = {}", "repeat=`4294967295`"),
        ("tag", "tag = { hex = \"09\" }\nexpect = {}", "version"),
    ] {
        let error = refused(name, &format!("{HEAD}{request}\n"));
        let place = format!("{name}.toml: line 1: scenario `a`: request 0");
        assert!(error.contains(&place) && error.contains(part), "{name}: {error}");
    }
    assert!(
        load("no-such-file.toml".as_ref())
            .is_err_and(|error| error.to_string().contains("no-such-file.toml"))
    );
}

#[test]
fn a_name_stands_once_in_a_mode() {
    let scenario = format!("{HEAD}expect = {{}}\n");
    let error = refused("twice", &format!("{scenario}{scenario}"));
    assert!(error.contains("line 7: scenario `a`") && error.contains("same name"), "{error}");
    let other_mode = scenario.replace("normal", "exact");
    assert!(load(&written("once-a-mode", &format!("{scenario}{other_mode}"))).is_ok());
}

#[test]
fn what_differs_is_told() {
    for (name, request, parts) in [
        (
            "accepted",
            "batches = [{}]\nexpect = { refused = \"checksum\", code = 2 }",
            &["verdict: expected the refusal checksum, got accepted"][..],
        ),
        (
            "refused",
            "batches = [{ wrong-crc = true }]\nexpect = {}",
            &["verdict: expected accepted, got refused as checksum: "],
        ),
        (
            "refusal",
            "batches = [{ wrong-crc = true }]\nexpect = { refused = \"no-batch\", code = 87, batch = 3, expected = 1, \
             text = [\"zebra\"] }",
            &[
                "reason: expected",
                "request 0: code: expected 87, got 2",
                "batch: expected 3, got 0",
                "expected value: ",
                "`zebra`",
            ],
        ),
        (
            "placement",
            "batches = [{}]\nexpect = { placed = [{ base = 4, epoch = 9, bytes = \"restamped\", max-timestamp = 1, \
             log-append-time = true }] }",
            &[
                "request 0, placed 0: base: expected 4, got 0",
                "epoch: expected 9",
                "bytes: ",
                "maxTimestamp: ",
                "LogAppendTime: ",
            ],
        ),
        ("number", "batches = [{}]\nexpect = {}", &["batches placed: expected 0, got 1"]),
        (
            "duplicates",
            "batches = [{}]\nexpect = { duplicates = [4] }",
            &["duplicates: expected [4], got []"],
        ),
        (
            "trace",
            "batches = [{}]\nexpect = { placed = [{ base = 0, epoch = 0 }], trace = [\"x\"] }",
            &["lines traced"],
        ),
        (
            "log",
            "batches = [{}]\nexpect = { placed = [{ base = 0, epoch = 0 }], log = { start = 1, end = 9, \
             stable-offset = 7, shown-epoch = 3, epochs = [], batches = [], aborted = [[1, 2, 3]], source = [1, 2, 3] } }",
            &["log start", "log end", "stable", "shown", "epochs", "stored batches", "aborted", "source"],
        ),
    ] {
        let report = judged(name, &format!("{HEAD}{request}\n"));
        assert!(!report.is_success(), "{name}");
        let text = report.to_string();
        for part in parts {
            assert!(text.contains(part), "{name}: expected a part `{part}` in\n{text}");
        }
    }
}

#[test]
fn the_example_of_the_format_page_runs() {
    let page = include_str!("../../../../tests/conformance/README.md");
    let example =
        page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap_or_default();
    let report = judged("example", example);
    assert!(report.is_success() && report.passed() == 1, "{report}");
}

#[test]
fn policy_and_engine_have_the_same_limit_of_batches() {
    assert_eq!(verbatim_policy::MAX_BATCHES, verbatim_engine::MAX_BATCHES);
}

#[test]
fn nothing_run_is_no_success() {
    assert!(!Report::default().is_success());
}

const HEAD: &str = "[[scenario]]\nname = \"a\"\nrules = [\"R1\"]\nmode = \"normal\"\n[[scenario.request]]\n";

fn refused(name: &str, text: &str) -> String {
    match load(&written(name, text)) {
        Ok(_) => panic!("{name} was loaded"),
        Err(error) => error.to_string(),
    }
}

fn judged(name: &str, text: &str) -> Report {
    let suite = load(&written(name, text)).unwrap_or_else(|error| panic!("{error}"));
    run(&suite, &mut Native::new(ExactMirroring))
}

fn written(name: &str, text: &str) -> PathBuf {
    let path: PathBuf = [env!("CARGO_TARGET_TMPDIR"), &format!("{name}.toml")].iter().collect();
    fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    path
}
