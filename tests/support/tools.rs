//! Other people's programs: looked for in `target/tools/bin`, where `make tools` puts them, then on the PATH.
//!
//! A test without its tool prints SKIPPED and why; with `VERBATIM_REQUIRE_TOOLS=1`, as in `.ci/run`, it fails.

use crate::run::{Output, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program that is there.
#[derive(Debug, Clone)]
pub struct Tool {
    program: PathBuf,
    script: Option<PathBuf>,
}

impl Tool {
    /// The program's path, for those who start it themselves.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// The script that the program runs, if it is one, for those who start it themselves.
    pub fn script(&self) -> Option<&Path> {
        self.script.as_deref()
    }

    /// Runs it with arguments and input.
    ///
    /// # Errors
    /// If it cannot be started or does not end in time. How it ended is in the output.
    pub fn output(&self, arguments: &[&str], input: &[u8]) -> anyhow::Result<Output> {
        run(Command::new(&self.program).args(&self.script).args(arguments), input)
    }

    /// Runs it with arguments; it must succeed. Returns its standard output.
    ///
    /// # Errors
    /// If it does not succeed.
    pub fn succeed(&self, arguments: &[&str]) -> anyhow::Result<String> {
        self.output(arguments, b"")?.success()
    }

    /// The same, with input.
    ///
    /// # Errors
    /// If it does not succeed.
    pub fn succeed_with(&self, arguments: &[&str], input: &[u8]) -> anyhow::Result<String> {
        self.output(arguments, input)?.success()
    }

    /// Runs it; each line of its standard output must be a JSON value.
    ///
    /// # Errors
    /// If it does not succeed, or prints something else.
    pub fn json_lines(&self, arguments: &[&str]) -> anyhow::Result<Vec<serde_json::Value>> {
        let text = self.succeed(arguments)?;
        text.lines()
            .map(|line| serde_json::from_str(line).map_err(|error| anyhow::anyhow!("{error} in {line:?}")))
            .collect()
    }
}

/// Finds a tool by name. `None` means that the test is skipped, and that this was said.
///
/// # Errors
/// When the tool is missing and tools are required.
pub fn find(name: &str) -> anyhow::Result<Option<Tool>> {
    let mut folders = vec![crate::workspace().join("target/tools/bin")];
    folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let program = folders.into_iter().map(|folder| folder.join(name)).find(|path| path.is_file());
    found(name, program.map(|program| Tool { program, script: None }))
}

/// Finds a script of `tests/tools/python`, to be run by the Python that has the Kafka clients.
///
/// # Errors
/// When that Python is missing and tools are required.
pub fn python(script: &str) -> anyhow::Result<Option<Tool>> {
    let program = crate::workspace().join("target/tools/python/bin/python");
    let script = crate::workspace().join("tests/tools/python").join(script);
    found("python", program.is_file().then_some(Tool { program, script: Some(script) }))
}

/// True if something is in `target/tools`, for suites that are run by a script. `false` means that the test is skipped.
///
/// # Errors
/// When it is missing and tools are required.
pub fn fetched(path: &str) -> anyhow::Result<bool> {
    let program = crate::workspace().join("target/tools").join(path);
    Ok(found(path, program.exists().then_some(Tool { program, script: None }))?.is_some())
}

fn found(name: &str, tool: Option<Tool>) -> anyhow::Result<Option<Tool>> {
    if tool.is_some() {
        return Ok(tool);
    }
    let missing = format!("{name} is neither in target/tools nor on the PATH; run `make tools`");
    anyhow::ensure!(std::env::var_os("VERBATIM_REQUIRE_TOOLS").is_none(), "{missing}");
    let thread = std::thread::current();
    crate::announce(&format!("SKIPPED {}: {missing}", thread.name().unwrap_or("a test")));
    Ok(None)
}

#[cfg(test)]
mod tests {
    use crate::run::{Output, run};
    use std::process::Command;

    const NOBODY_HAS_IT: &str = "tools::tests::needs_a_tool_that_nobody_has";

    #[test]
    #[ignore = "run by the test below, as a test run of its own"]
    fn needs_a_tool_that_nobody_has() -> anyhow::Result<()> {
        assert!(super::find("verbatim-no-such-tool")?.is_none());
        Ok(())
    }

    #[test]
    fn a_test_without_its_tool_says_so_unasked_or_fails_where_tools_are_required() -> anyhow::Result<()> {
        let skipped = test_run(None)?;
        assert!(skipped.status.success(), "{skipped}");
        let line = format!(
            "SKIPPED {NOBODY_HAS_IT}: verbatim-no-such-tool is neither in target/tools nor on the PATH; run `make tools`"
        );
        assert!(skipped.stderr.lines().any(|printed| printed == line), "no {line:?} in {skipped}");
        let failed = test_run(Some("1"))?;
        assert!(!failed.status.success() && failed.to_string().contains("verbatim-no-such-tool"), "{failed}");
        Ok(())
    }

    /// Runs the ignored test as `cargo test` does: what tests print is captured.
    fn test_run(require_tools: Option<&str>) -> anyhow::Result<Output> {
        let mut test = Command::new(std::env::current_exe()?);
        test.args(["--ignored", "--exact", NOBODY_HAS_IT]).env_remove("VERBATIM_REQUIRE_TOOLS");
        if let Some(value) = require_tools {
            test.env("VERBATIM_REQUIRE_TOOLS", value);
        }
        run(&mut test, b"")
    }
}
