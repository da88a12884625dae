//! `verbatim module test` and `bench`: what a module's author reads, and what a build server does.

#![expect(clippy::indexing_slicing, reason = "a JSON value that is not there is null")]

use anyhow::{Context, ensure};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;
use verbatim_tests::run::{Output, run};
use verbatim_tests::{programs, workspace};

/// A scenario that `exact-mirroring` does not pass: it expects another code, and that the batch is placed elsewhere.
const WRONG: &str = r#"[[scenario]]
name = "another code"
rules = ["R4"]
mode = "normal"
[[scenario.request]]
batches = [{}]
expect = { placed = [{ base = 7, epoch = 0 }] }
[[scenario.request]]
batches = [{ wrong-crc = true }]
expect = { refused = "checksum", code = 87, batch = 0, text = ["zebra"] }
"#;

#[test]
fn our_own_module_passes_everything() -> anyhow::Result<()> {
    let files = Files::new()?;
    let module = files.exact_mirroring()?;
    let text = files.test(&[&module], "text")?.success()?;
    ensure!(text.starts_with("module exact-mirroring ") && text.contains(" sha256:"), "{text}");
    ensure!(text.ends_with(" passed, 0 failed, 0 left out\n"), "{text}");

    let own = workspace().join("tests/conformance").display().to_string();
    let output = files.test(&[&module, &own, "--suite", "all"], "json")?.success()?;
    let told: Value = serde_json::from_str(&output).context("no JSON")?;
    let tests = told["tests"].as_array().context("no tests")?;
    let of = |suite| tests.iter().filter(|test| test["suite"] == suite).count();
    ensure!(of("contract") > 40 && of("kafka") > 200 && of("kip-320") > 40, "{told}");
    ensure!(of("scenarios") == of("kafka"), "{told}");
    ensure!(told["passed"] == tests.len() && told["failed"] == 0, "{told}");
    ensure!(told["name"] == "exact-mirroring" && told["sha256"].as_str().is_some_and(|sha| sha.len() == 64));
    Ok(())
}

#[test]
fn what_differs_is_told_with_its_scenario_and_request() -> anyhow::Result<()> {
    let files = Files::new()?;
    let (module, wrong) = (files.exact_mirroring()?, files.write("wrong.toml", WRONG)?);
    let junit = files.folder.path().join("report.xml").display().to_string();
    let output = files.test(&[&module, &wrong, "--junit", &junit], "text")?;
    ensure!(output.status.code() == Some(1), "{output}");
    for line in [
        "FAILED scenarios: wrong: another code (R4, normal)\n",
        "    request 0, placed 0: base: expected 7, got 0\n",
        "    request 1: code: expected 87, got 2\n",
        "    request 1: text: expected a part `zebra`, got `",
        "\n0 passed, 1 failed, 0 left out\n",
    ] {
        ensure!(output.stdout.contains(line), "no {line:?} in {output}");
    }
    ensure!(output.stderr.ends_with("error: 1 of 1 tests failed\n"), "{output}");
    let xml = fs::read_to_string(junit)?;
    for part in
        ["<testsuite name=\"scenarios\" tests=\"1\" failures=\"1\"", "classname=\"scenarios.wrong\"", "got 2"]
    {
        ensure!(xml.contains(part), "no {part:?} in {xml}");
    }

    let output = files.test(&[&module, &wrong], "json")?;
    let told: Value = serde_json::from_str(&output.stdout).with_context(|| output.to_string())?;
    let difference = &told["tests"][0]["differences"][1];
    for (field, value) in [("at", "request 1"), ("what", "code"), ("expected", "87"), ("got", "2")] {
        ensure!(difference[field] == value, "{field}: {told}");
    }
    Ok(())
}

/// The module `flawed` has forgotten one rule, R15, and nothing else that scenarios ask about.
#[test]
fn one_changed_rule_is_found_and_named() -> anyhow::Result<()> {
    let files = Files::new()?;
    let flawed = files.write("flawed.wasm", verbatim_artifact::flawed()?)?;
    let own = workspace().join("tests/conformance").display().to_string();
    let output = files.test(&[&flawed, &own], "json")?;
    ensure!(output.status.code() == Some(1), "{output}");
    let told: Value = serde_json::from_str(&output.stdout).with_context(|| output.to_string())?;
    let tests = told["tests"].as_array().context("no tests")?;
    let failed: Vec<&Value> =
        tests.iter().filter(|test| test["differences"] != Value::Array(Vec::new())).collect();
    ensure!(!failed.is_empty() && told["failed"] == failed.len(), "{told}");
    for test in failed {
        let rules = test["rules"].as_array().context("no rules")?;
        ensure!(rules.iter().any(|rule| rule == "R15"), "{test}");
    }
    let output = files.test(&[&flawed, &own], "text")?;
    let named = "FAILED scenarios: records: a null key on a compacted topic (R15, normal)\n    request 0: ";
    ensure!(output.stdout.contains(named) && output.stdout.contains("null-key"), "{output}");
    files.test(&[&flawed], "text")?.success()?;
    Ok(())
}

#[test]
fn a_hostile_module_and_one_that_is_none_fail_by_name() -> anyhow::Result<()> {
    let files = Files::new()?;
    let hostile = files.write("hostile.wasm", verbatim_artifact::hostile()?)?;
    let output = files.test(&[&hostile], "text")?;
    ensure!(output.status.code() == Some(1), "{output}");
    for part in ["FAILED contract: a checksum that is not that of the bytes (exact)", "validation (I5)"] {
        ensure!(output.stdout.contains(part), "no {part:?} in {output}");
    }
    let text = files.write("text.wasm", "no module")?;
    for format in ["text", "json"] {
        let output = files.test(&[&text, "--suite", "all"], format)?;
        ensure!(output.status.code() == Some(1), "{output}");
        ensure!(output.stdout.contains("load"), "{output}");
        ensure!(output.stdout.contains("expected a WebAssembly component, found something else"), "{output}");
    }
    Ok(())
}

#[test]
fn a_wrong_call_is_2_and_says_what_is_wrong() -> anyhow::Result<()> {
    let files = Files::new()?;
    let module = files.exact_mirroring()?;
    let unknown = files.write("unknown.toml", WRONG.replace("mode =", "colour = 1\nmode ="))?;
    let odd = files.write(
        "odd.toml",
        format!("\n\n{}", WRONG.replace("batches = [{}]", "batches = [{ hex = \"0\" }]")),
    )?;
    let nowhere = files.folder.path().join("nowhere").display().to_string();
    let empty = files.folder.path().join("empty");
    fs::create_dir(&empty)?;
    let empty = empty.display().to_string();
    for (arguments, parts) in [
        (vec![nowhere.as_str()], ["cannot read", "nowhere"]),
        (vec![&module, "--suite", "kafkaesque"], ["kafkaesque", "kip-320"]),
        (vec![&module, &nowhere], ["nowhere", "No such file"]),
        (vec![&module, &empty], ["empty", "no .toml file"]),
        (vec![&module, &unknown], ["unknown.toml", "line 4"]),
        (vec![&module, &odd], ["odd.toml: line 3: scenario `another code`: request 0", "even number"]),
        (vec![&module, "--junit", "/nowhere/report.xml"], ["cannot write", "/nowhere/report.xml"]),
    ] {
        let output = files.test(&arguments, "text")?;
        ensure!(output.status.code() == Some(2), "{output}");
        ensure!(parts.iter().all(|part| output.stderr.contains(part)), "{parts:?}: {output}");
    }
    Ok(())
}

#[test]
fn a_benchmark_gives_numbers_of_both_for_every_case() -> anyhow::Result<()> {
    let files = Files::new()?;
    let module = files.exact_mirroring()?;
    let arguments = ["--rounds", "3", "--seconds", "1"];
    let text = files.module("bench", &[&[module.as_str()][..], &arguments].concat(), "text")?.success()?;
    for part in ["module exact-mirroring ", "RATIO", "\nexact ", "\nnormal ", "lz4 records", " of 3 rounds"] {
        ensure!(text.contains(part), "no {part:?} in {text}");
    }
    let output = files.module("bench", &[&[module.as_str()][..], &arguments].concat(), "json")?.success()?;
    let told: Value = serde_json::from_str(&output).context("no JSON")?;
    let cases = told["cases"].as_array().context("no cases")?;
    ensure!(cases.len() == 8, "{told}");
    for case in cases {
        let is_there = |time: &Value| time["median_ns"].as_u64().is_some_and(|ns| ns > 0);
        ensure!(is_there(&case["judge"]) && is_there(&case["beside"]), "{case}");
        ensure!(case["ratio"].is_f64() && case["denied"].is_null(), "{case}");
    }
    let output = files.module("bench", &[&module, "--rounds", "0"], "text")?;
    ensure!(output.status.code() == Some(2) && output.stderr.contains("--rounds"), "{output}");
    Ok(())
}

/// A folder with what the command is given.
struct Files {
    folder: TempDir,
}

impl Files {
    fn new() -> anyhow::Result<Self> {
        Ok(Self { folder: tempfile::Builder::new().prefix("verbatim-module-test-").tempdir()? })
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> anyhow::Result<String> {
        let path: PathBuf = self.folder.path().join(name);
        fs::write(&path, bytes)?;
        Ok(path.display().to_string())
    }

    fn exact_mirroring(&self) -> anyhow::Result<String> {
        self.write("exact-mirroring.wasm", verbatim_artifact::exact_mirroring()?)
    }

    fn test(&self, arguments: &[&str], output: &str) -> anyhow::Result<Output> {
        self.module("test", arguments, output)
    }

    fn module(&self, command: &str, arguments: &[&str], output: &str) -> anyhow::Result<Output> {
        let mut program = Command::new(programs::verbatim()?);
        program.args(["--output", output, "module", command]).args(arguments);
        run(program.current_dir(self.folder.path()), b"")
    }
}
