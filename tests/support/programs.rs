//! Programs of this workspace, in the build profile of the running test: those that cargo left beside it, in the folder above
//! its own. `make test` builds them first, as other people's packages cannot depend on a binary.

use anyhow::{Context, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A program that is looked for at its first use.
type Found = OnceLock<Result<PathBuf, String>>;

/// The `verbatim` command.
///
/// # Errors
/// If it is not built; with the command that builds it.
pub fn verbatim() -> anyhow::Result<&'static Path> {
    static FOUND: Found = OnceLock::new();
    found(&FOUND, "verbatim")
}

/// The example that `make demo` runs.
///
/// # Errors
/// If it is not built; with the command that builds it.
pub fn demo() -> anyhow::Result<&'static Path> {
    static FOUND: Found = OnceLock::new();
    found(&FOUND, "examples/demo")
}

fn found(found: &'static Found, file: &str) -> anyhow::Result<&'static Path> {
    let found = found.get_or_init(|| {
        let found = profile_folder().and_then(|folder| find(&folder, file));
        found.map_err(|error| format!("{error:#}"))
    });
    found.as_deref().map_err(|error| anyhow::anyhow!("{error}"))
}

fn find(folder: &Path, file: &str) -> anyhow::Result<PathBuf> {
    let program = folder.join(file);
    let profile = if folder.ends_with("release") { " --release" } else { "" };
    let build = format!("cargo build{profile} --bin verbatim --example demo");
    ensure!(program.is_file(), "{} is not there: build it by `{build}`", program.display());
    let target = folder.parent().unwrap_or(folder);
    if let Some(newer) = newer_source(&program, target)? {
        let (program, newer) = (program.display(), newer.display());
        crate::announce(&format!("{program} is tested although {newer} is newer: build it by `{build}`"));
    }
    Ok(program)
}

/// A file that has changed since it went into the program, if cargo has left a list of them. What was made in the target folder
/// meanwhile is no source.
fn newer_source(program: &Path, target: &Path) -> anyhow::Result<Option<PathBuf>> {
    let built = fs::metadata(program)?.modified()?;
    let listed = fs::read_to_string(program.with_extension("d")).unwrap_or_default();
    let sources = listed.split_once(": ").map_or("", |(_, sources)| sources).split_whitespace();
    let is_newer = |source: &&str| {
        fs::metadata(source).and_then(|found| found.modified()).is_ok_and(|changed| changed > built)
    };
    let is_source = |source: &&str| !Path::new(source).starts_with(target);
    Ok(sources.into_iter().filter(is_source).find(is_newer).map(PathBuf::from))
}

/// Where cargo leaves what it builds in this profile. The running test lies in its folder `deps`.
///
/// # Errors
/// If it does not.
pub fn profile_folder() -> anyhow::Result<PathBuf> {
    let test = std::env::current_exe()?;
    test.ancestors().nth(2).map(Path::to_path_buf).context("the test is not in a target folder")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_built_is_told_with_the_command_that_builds_it() -> anyhow::Result<()> {
        let target = tempfile::tempdir()?;
        let release = target.path().join("release");
        fs::create_dir(&release)?;
        let told = find(&release, "verbatim").map_err(|error| error.to_string());
        let told = told.err().context("it is not there")?;
        ensure!(told.contains("`cargo build --release --bin verbatim --example demo`"), "{told}");
        fs::write(release.join("verbatim"), "")?;
        ensure!(find(&release, "verbatim")? == release.join("verbatim"));
        Ok(())
    }

    #[test]
    fn a_source_that_has_changed_since_is_noticed() -> anyhow::Result<()> {
        let folder = tempfile::tempdir()?;
        let (program, source) = (folder.path().join("program"), folder.path().join("source.rs"));
        fs::write(&source, "")?;
        fs::write(&program, "")?;
        fs::write(folder.path().join("program.d"), format!("{}: {}", program.display(), source.display()))?;
        let changed = fs::metadata(&source)?.modified()?;
        let program_file = fs::File::options().append(true).open(&program)?;
        program_file.set_modified(changed)?;
        ensure!(newer_source(&program, Path::new("/elsewhere"))?.is_none());
        program_file
            .set_modified(changed.checked_sub(std::time::Duration::from_secs(1)).context("no time")?)?;
        ensure!(newer_source(&program, Path::new("/elsewhere"))? == Some(source));
        ensure!(newer_source(&program, folder.path())?.is_none(), "what was made is no source");
        Ok(())
    }
}
