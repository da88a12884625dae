//! Modules that were compiled before.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use verbatim_engine::{Engine, Limits, LoadError, Memory, Module};

use crate::support::{batch, exact, run, tagged};

/// Loads the module with this folder and lets it judge; how many came out of the folder, and how many were compiled.
fn load(folder: &Path) -> (usize, usize) {
    let engine = Engine::with_cache(Limits::default(), folder).unwrap();
    let module = Module::load(&engine, verbatim_artifact::exact_mirroring().unwrap()).unwrap();
    let memory = exact();
    let request = tagged(&memory, (10, 3));
    let mut judge = module.instance::<Memory>().unwrap();
    memory.produce(&mut judge, request, vec![], &run(&[batch(0, 3, 1)])).1.unwrap();
    engine.cached().unwrap()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn what_was_compiled_is_not_compiled_again() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("compiled");
    assert_eq!(load(&folder), (0, 1));
    assert_eq!(load(&folder), (1, 0));
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);

    // A file that is cut is compiled again.
    for path in files(&folder) {
        // What the folder's keeper writes beside it may be gone again.
        let Ok(bytes) = fs::read(&path) else { continue };
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    }
    assert_eq!(load(&folder), (0, 1));
    assert_eq!(load(&folder), (1, 0));
}

#[test]
fn a_folder_that_others_may_write_to_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let refused = Engine::with_cache(Limits::default(), folder.path()).unwrap_err();
    assert!(matches!(&refused, LoadError::Engine { text } if text.contains("mode=`777`")), "{refused}");
    assert!(Engine::with_cache(Limits::default(), &folder.path().join("a\0b")).is_err());
}
