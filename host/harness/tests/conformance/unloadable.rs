//! What is no module, or does not start, is a failed test with the engine's words.

use verbatim_engine::CONTRACT_VERSION;
use verbatim_harness::{Report, Subject};

#[test]
fn a_file_that_is_no_module_fails_by_name() {
    let foreign = component(r#"(import "wasi:cli/environment@0.2.0" (instance (export "get" (func))))"#);
    for (bytes, part) in [
        (Vec::new(), "an empty file"),
        (b"garbage garbage".to_vec(), "expected a WebAssembly component"),
        (component(""), "produce-path"),
        (foreign, "wasi:cli/environment@0.2.0"),
        (starting("(func $s (loop $l (br $l))) (start $s)"), "deadline"),
        (starting("(func $s unreachable) (start $s)"), "does not start"),
        (starting("(memory 2000)"), "more memory than its limit"),
    ] {
        let error = match Subject::component(&bytes) {
            Ok(_) => panic!("it was loaded, expected {part}"),
            Err(error) => error,
        };
        let report = Report::not_loaded(&error);
        let text = report.to_string();
        assert!(!report.is_success() && text.starts_with("FAILED load\n") && text.contains(part), "{text}");
    }
}

/// A component with this text as its body.
fn component(body: &str) -> Vec<u8> {
    wat::parse_str(format!("(component {body})")).unwrap_or_else(|error| panic!("{error}"))
}

/// One whose core module contains this.
fn starting(core: &str) -> Vec<u8> {
    component(&format!(
        r#"(core module $m {core} (func (export "f")))
        (core instance $i (instantiate $m))
        (func $f (canon lift (core func $i "f")))
        (instance $p (export "produce" (func $f)) (export "describe" (func $f)))
        (export "verbatim:produce/produce-path@{CONTRACT_VERSION}" (instance $p))"#
    ))
}
