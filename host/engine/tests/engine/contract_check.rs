//! A file that is not a module for this host is refused by name.

use verbatim_engine::{CONTRACT_VERSION, Denied, Failure, LoadError, Memory, Module};

use crate::support::{batch, engine, exact, exact_mirroring, normal, replaced, run, tagged};

/// A component with this text as its body.
fn component(body: &str) -> Vec<u8> {
    wat::parse_str(format!("(component {body})")).unwrap()
}

/// A component that exports a `produce-path` with functions without arguments.
fn with_produce_path(core: &str) -> Vec<u8> {
    component(&format!(
        r#"(core module $m {core} (func (export "f")))
        (core instance $i (instantiate $m))
        (func $f (canon lift (core func $i "f")))
        (instance $p (export "produce" (func $f)) (export "describe" (func $f)))
        (export "verbatim:produce/produce-path@{CONTRACT_VERSION}" (instance $p))"#
    ))
}

fn refusal(bytes: &[u8]) -> LoadError {
    match Module::load(&engine(), bytes) {
        Ok(module) => panic!("loaded: {module:?}"),
        Err(error) => error,
    }
}

fn renamed(from: &str, to: &str) -> Vec<u8> {
    replaced(verbatim_artifact::exact_mirroring().unwrap(), from, to)
}

#[test]
fn a_good_module_says_what_it_is() {
    let module = exact_mirroring();
    let inspection = module.inspect();
    assert_eq!(inspection.description.name, "exact-mirroring");
    assert_eq!(inspection.contract_version, CONTRACT_VERSION);
    assert!(inspection.description.supports_exact && inspection.description.supports_normal);
    assert!(inspection.decides_membership);
    assert!(inspection.exports.iter().any(|name| name.starts_with("verbatim:produce/produce-path@")));
    assert!(inspection.imports.iter().all(|name| name.starts_with("verbatim:produce/")), "{inspection:?}");
    assert_eq!(inspection.digest.to_string().len(), 64);
}

#[test]
fn what_is_no_component_is_refused() {
    let core = wat::parse_str("(module)").unwrap();
    let mut cut = verbatim_artifact::exact_mirroring().unwrap().to_vec();
    cut.truncate(cut.len() / 2);
    assert!(matches!(refusal(b""), LoadError::NotAComponent { found } if found.contains("empty")));
    assert!(matches!(refusal(b"garbage garbage"), LoadError::NotAComponent { .. }));
    assert!(matches!(refusal(&core), LoadError::NotAComponent { found } if found.contains("core")));
    assert!(matches!(refusal(&cut), LoadError::Invalid { .. }));
    assert!(matches!(refusal(&vec![0; (64 << 20) + 1]), LoadError::TooLarge { .. }));
}

#[test]
fn a_missing_export_is_refused_by_name() {
    for bytes in [component(""), renamed("produce-path@", "produce-pith@")] {
        let error = refusal(&bytes);
        assert!(matches!(error, LoadError::MissingExport { .. }), "{error}");
        assert!(error.to_string().contains("verbatim:produce/produce-path@1.0.0"), "{error}");
    }
    let half = component(&format!(
        r#"(core module $m (func (export "f"))) (core instance $i (instantiate $m))
        (func $f (canon lift (core func $i "f"))) (instance $p (export "produce" (func $f)))
        (export "verbatim:produce/produce-path@{CONTRACT_VERSION}" (instance $p))"#
    ));
    let error = refusal(&half);
    assert!(matches!(&error, LoadError::MissingExport { symbol } if symbol.contains("describe")), "{error}");
}

#[test]
fn an_export_of_another_type_is_refused() {
    let error = refusal(&with_produce_path(""));
    assert!(matches!(&error, LoadError::MissingExport { symbol } if symbol.contains("produce")), "{error}");
}

#[test]
fn an_unknown_import_is_refused_by_name() {
    let foreign = component(r#"(import "wasi:cli/environment@0.2.0" (instance (export "get" (func))))"#);
    let unknown_interface =
        component(r#"(import "verbatim:produce/disk@1.0.0" (instance (export "write" (func))))"#);
    let unknown_function = component(
        r#"(import "verbatim:produce/log@1.0.0" (instance (export "erase" (func))))
        (instance $p) (export "verbatim:produce/produce-path@1.0.0" (instance $p))"#,
    );
    for (bytes, symbol) in [
        (foreign, "wasi:cli/environment@0.2.0"),
        (unknown_interface, "verbatim:produce/disk@1.0.0"),
        (unknown_function, "erase"),
    ] {
        let error = refusal(&bytes);
        assert!(
            matches!(error, LoadError::UnknownImport { .. } | LoadError::MissingExport { .. }),
            "{error}"
        );
        assert!(error.to_string().contains(symbol), "{error}");
    }
}

#[test]
fn a_module_that_does_not_start_is_refused() {
    let spins = with_produce_path("(func $s (loop $l (br $l))) (start $s)");
    let error = refusal(&spins);
    assert!(matches!(error, LoadError::Failed(Failure::Deadline { .. })), "{error}");

    let traps = with_produce_path("(func $s unreachable) (start $s)");
    let error = refusal(&traps);
    assert!(matches!(error, LoadError::Failed(Failure::Start { .. })), "{error}");

    let greedy = with_produce_path("(memory 2000)");
    let error = refusal(&greedy);
    assert!(matches!(error, LoadError::Failed(Failure::Memory { .. })), "{error}");
}

#[test]
fn a_module_is_not_asked_about_a_mode_that_it_does_not_judge() {
    let checksum = include_bytes!("../../../../tests/modules/c/checksum.wasm");
    let module = Module::load(&engine(), checksum).unwrap();
    assert!(module.inspect().description.supports_normal && !module.inspect().description.supports_exact);
    let mut judge = module.instance::<Memory>().unwrap();
    let memory = exact();
    let request = tagged(&memory, (10, 3));
    let (memory, verdict) = memory.produce(&mut judge, request, vec![], &run(&[batch(0, 3, 1)]));
    assert!(
        matches!(&verdict, Err(Denied::Failed(Failure::Start { text })) if text.contains("no exact topics")),
        "{verdict:?}"
    );
    assert!(memory.stored.batches().is_empty());
    normal().produce(&mut judge, crate::support::request(), vec![], &run(&[batch(0, 0, 1)])).1.unwrap();
}
