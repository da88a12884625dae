//! The `verbatim` command as a process: exit codes, what it prints, and a clean end on SIGTERM.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn verbatim() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
    // What the caller has set must not leak into the tests.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("VERBATIM_")) {
        command.env_remove(name);
    }
    command
}

fn run(arguments: &[&str]) -> Output {
    verbatim().args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A host on a free port; killed if a test fails.
struct Host {
    child: Child,
    started: serde_json::Value,
}

impl Host {
    fn start(data: &Path) -> Self {
        let mut command = verbatim();
        command.args(["serve", "--listen", "127.0.0.1:0", "--output", "json", "--data"]).arg(data);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, started: serde_json::from_str(&line).unwrap() }
    }

    fn address(&self) -> &str {
        self.started["listen"].as_str().unwrap()
    }

    fn run(&self, arguments: &[&str], input: &[u8]) -> Output {
        let mut command = verbatim();
        command.args(arguments).env("VERBATIM_BOOTSTRAP_SERVER", self.address());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        child.wait_with_output().unwrap()
    }

    /// What a run that must go well prints, as JSON.
    fn json(&self, arguments: &[&str], input: &[u8]) -> serde_json::Value {
        let output = self.run(&[arguments, &["--output", "json"]].concat(), input);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn stop(mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "SIGTERM is a clean end");
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_wrong_call_is_2_and_says_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().to_str().unwrap();
    let file = folder.path().join("wrong.toml");
    std::fs::write(&file, "[serve]\nlisen = \"x\"\n").unwrap();
    let file = file.to_str().unwrap();
    for (arguments, part) in [
        (vec!["serve"], "--data"),
        (vec!["serve", "--data", data, "--listen", "0.0.0.0:0"], "--allow-plaintext"),
        (vec!["serve", "--data", data, "--advertise", "nowhere"], "HOST:PORT"),
        (vec!["serve", "--data", data, "--flush", "sometimes"], "always, interval or never"),
        (vec!["serve", "--data", data, "--module", "name"], "NAME=FILE"),
        (
            vec!["serve", "--data", data, "--in-flight-bytes-max", "1000"],
            "--in-flight-bytes-max must be at least twice in-flight-bytes-per-connection-max, 268435456, \
             in-flight-bytes-max=`1000`",
        ),
        (
            vec!["serve", "--data", data, "--in-flight-requests-per-connection-max", "18446744073709551615"],
            "--in-flight-requests-per-connection-max must be at most 65536",
        ),
        (
            vec!["serve", "--data", data, "--group-session-ms-max", "5000"],
            "--group-session-ms-max must be at least group-session-ms-min, 6000, group-session-ms-max=`5000`",
        ),
        (
            vec!["serve", "--data", data, "--group-offset-metadata-bytes-max", "40000"],
            "--group-offset-metadata-bytes-max must be at most 32767",
        ),
        (vec!["serve", "--config-file", file], "lisen"),
        (vec!["topic", "create", "t", "--config", "novalue"], "KEY=VALUE"),
        (vec!["nothing"], "nothing"),
    ] {
        let output = run(&arguments);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(told.contains(part), "{arguments:?}: {told}");
    }
}

#[test]
fn a_verifier_is_told_by_flags_the_environment_and_its_table() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("verify.toml");
    std::fs::write(&file, "[verify]\nsource = 's:1'\ntarget = 'file'\ntopics = ['a)(b']\n").unwrap();
    let told = |environment: &[(&str, &str)], flags: &[&str]| {
        let mut command = verbatim();
        command.args(["verify", "--config-file"]).arg(&file).args(flags);
        let output = command.envs(environment.iter().copied()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    let target = ("VERBATIM_VERIFY_TARGET", "environment");
    assert!(told(&[], &[]).contains("verify: target must be HOST:PORT"), "the file's");
    assert!(told(&[target], &[]).contains("target=`environment`"), "the environment's");
    assert!(told(&[target], &["--target", "flag"]).contains("target=`flag`"), "the flag's");
    let topics = told(&[], &["--target", "t:1"]);
    assert!(topics.contains("verify: topics must be a regular expression (unopened group), topics=`a)(b`"));
}

#[test]
fn a_0_with_which_no_host_can_run_is_2_and_names_the_flag() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    for flag in [
        "flush-interval-ms",
        "retention-check-interval-ms",
        "append-threads",
        "connections-max",
        "connections-per-ip-max",
        "request-bytes-max",
        "in-flight-requests-per-connection-max",
        "handshake-ms-max",
        "idle-ms-max",
        "stall-ms-max",
        "group-offsets-retention-ms",
        "groups-max",
        "group-members-max",
        "group-session-ms-min",
        "group-members-bytes-max",
        "group-offsets-bytes-max",
    ] {
        let output = run(&["serve", "--data", data.to_str().unwrap(), &format!("--{flag}"), "0"]);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flag}: {told}");
        assert!(told.contains(&format!("--{flag} must be 1 or more, {flag}=`0`")), "{flag}: {told}");
        assert!(!data.exists(), "{flag}");
    }
}

#[test]
fn a_run_that_fails_is_1_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("text.wasm");
    std::fs::write(&file, "no module").unwrap();
    let file = file.to_str().unwrap();
    let nowhere = folder.path().join("nowhere");
    let nowhere = nowhere.to_str().unwrap();
    for (arguments, part) in [
        (vec!["module", "inspect", file], "text.wasm"),
        (vec!["module", "inspect", nowhere], "nowhere"),
        (vec!["log", "dump", nowhere], "nowhere"),
        (vec!["topic", "list", "--bootstrap-server", "127.0.0.1:1"], "127.0.0.1:1"),
        (vec!["serve", "--data", nowhere, "--module", &format!("bad={file}")], "bad"),
    ] {
        let output = run(&arguments);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {told}");
        assert!(told.contains(part), "{arguments:?}: {told}");
    }
}

#[test]
fn a_bundled_module_is_written_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("redact.wasm");
    let file = file.to_str().unwrap();
    let written = run(&["module", "export", "redact", "-o", file]);
    assert!(written.status.success(), "{}", text(&written.stderr));
    let [ours, theirs] = [file, "bundled:redact"].map(|file| run(&["module", "inspect", file]).stdout);
    assert!(!ours.is_empty() && ours == theirs, "{}", text(&ours));
    let unknown = run(&["module", "export", "nobody", "-o", file]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("not `nobody`"), "{}", text(&unknown.stderr));
}

#[test]
fn a_topic_is_made_written_described_dumped_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let host = Host::start(&data);
    assert_eq!(host.started["data"], data.to_str().unwrap());
    assert_eq!(host.started["modules"][0]["name"], "exact-mirroring");
    let exact = ["--config", "produce.at.offset=true"];
    let made = host.json(&[&["topic", "create", "copy", "--partitions", "2"][..], &exact].concat(), b"");
    assert_eq!((made["partitions"].as_i64(), made["created"].as_bool()), (Some(2), Some(true)));
    let dry = host.json(&["topic", "create", "dry", "--dry-run"], b"");
    assert_eq!(dry["created"], false);
    assert_eq!(host.json(&["topic", "list"], b""), serde_json::json!(["copy"]));

    let produce = ["produce", "--topic", "copy", "--partition", "1", "--epoch", "5", "--offset"];
    for (offset, lines, end) in
        [("100", "a\nb\n", 102), ("102", "c\n", 103), ("5000000000", "d\n", 5_000_000_001_i64)]
    {
        let written = host.json(&[&produce[..], &[offset]].concat(), lines.as_bytes());
        assert_eq!(written["end"], end, "{written}");
    }
    let behind = host.run(&[&produce[..], &["90"]].concat(), b"x\n");
    assert_eq!(behind.status.code(), Some(1));
    assert!(text(&behind.stderr).contains("INVALID_RECORD (87)"), "{}", text(&behind.stderr));

    let described = host.json(&["topic", "describe", "copy"], b"");
    assert_eq!(described["properties"], serde_json::json!({ "produce.at.offset": "true" }));
    assert_eq!(described["partitions"][1]["leader_epoch"], 5);
    let dump = data.join("copy-1");
    let dumped = run(&["log", "dump", dump.to_str().unwrap(), "--output", "json"]);
    let lines: Vec<serde_json::Value> =
        text(&dumped.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let bases: Vec<_> =
        lines.iter().map(|line| (line["base_offset"].as_i64(), line["crc_ok"].as_bool())).collect();
    assert_eq!(bases, [(Some(100), Some(true)), (Some(102), Some(true)), (Some(5_000_000_000), Some(true))]);
    assert_eq!(host.json(&["topic", "delete", "copy"], b"")["deleted"], true);
    assert!(!dump.exists());
    host.stop();
}

#[test]
fn options_come_from_the_flag_then_the_environment_then_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::start(&folder.path().join("data"));
    let file = folder.path().join("client.toml");
    std::fs::write(&file, format!("output = \"json\"\nbootstrap-server = \"{}\"\n", host.address())).unwrap();
    let list = || {
        let mut command = verbatim();
        command.args(["topic", "list", "--config-file"]).arg(&file);
        command
    };
    assert_eq!(text(&list().output().unwrap().stdout), "[]\n", "the file's");
    let environment = list().env("VERBATIM_OUTPUT", "text").output().unwrap();
    assert_eq!(text(&environment.stdout), "", "the environment's");
    let flag = list().env("VERBATIM_OUTPUT", "text").args(["--output", "json"]).output().unwrap();
    assert_eq!(text(&flag.stdout), "[]\n", "the flag's");
    host.stop();
}
