//! What README.md shows is what one gets: the transcript of the demo, and the commands to try by hand.

use anyhow::{Context, ensure};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;
use verbatim_tests::host::free_address;
use verbatim_tests::{programs, run, tools, wait_for, workspace};

#[test]
fn the_demo_prints_the_transcript() -> anyhow::Result<()> {
    let printed = run::run(&mut Command::new(programs::demo()?), b"")?.success()?;
    let [shown] = blocks("What `make demo` shows", "text")?;
    assert_eq!(masked(&printed), masked(&shown), "what the demo prints, and README.md");
    Ok(())
}

#[test]
fn the_commands_to_try_by_hand_work_as_written() -> anyhow::Result<()> {
    let Some(kcat) = tools::find("kcat")? else { return Ok(()) };
    let home = tempfile::Builder::new().prefix("verbatim-readme-").tempdir()?;
    let address = free_address()?.to_string();
    let verbatim = programs::verbatim()?.display().to_string();
    let [serve, rest] = blocks("## Try it by hand", "sh")?;
    for word in ["target/release/verbatim", "127.0.0.1:9092", "~/"] {
        ensure!(serve.contains(word) && rest.contains(word), "README.md has no {word:?} in each block");
    }
    let shell = |text: &str, program: &str| {
        let text = text.replace("target/release/verbatim", program).replace("127.0.0.1:9092", &address);
        let mut shell = Command::new("sh");
        shell.args(["-euc", &text]).env("HOME", home.path()).env("PATH", path_with(kcat.program()));
        shell
    };

    let serve = serve.strip_prefix("make build\n").context("README.md does not begin with the build")?;
    let log = home.path().join("started");
    // With `exec` the shell becomes the host, which can then be stopped.
    let mut host = shell(serve, &format!("exec {verbatim}"));
    host.stdout(File::create(&log)?).stderr(File::create(home.path().join("log"))?);
    let mut host = Killed(host.spawn()?);
    let started = wait_for("line of the host that serves", Duration::from_secs(60), || {
        ensure!(host.0.try_wait()?.is_none(), "the host ended");
        Ok(Some(fs::read_to_string(&log)?).filter(|text| text.ends_with('\n')))
    })?;
    let data = home.path().join("verbatim-data").display().to_string();
    for part in ["verbatim 0.", &address, &data, "module exact-mirroring", "sha256:"] {
        ensure!(started.contains(part), "no {part:?} in the start line: {started}");
    }

    let printed = run::run(&mut shell(&rest, &verbatim), b"")?.success()?;
    for part in
        ["created topic orders", "wrote 2 records", "100 one\n101 two\n", "offsets 100..=101", "epoch 5"]
    {
        ensure!(printed.contains(part), "no {part:?} in {printed}");
    }
    Ok(())
}

/// The fenced blocks of a language that follow a line of README.md, before the next heading: exactly so many.
fn blocks<const N: usize>(after: &str, language: &str) -> anyhow::Result<[String; N]> {
    let text = fs::read_to_string(workspace().join("README.md"))?;
    let (_, rest) = text.split_once(after).with_context(|| format!("README.md has no {after:?}"))?;
    let section = rest.split("\n## ").next().unwrap_or_default();
    let fence = format!("```{language}\n");
    let blocks =
        section.split(&fence).skip(1).filter_map(|block| Some(block.split_once("```")?.0.to_owned()));
    let blocks: Vec<String> = blocks.collect();
    let found = blocks.len();
    blocks
        .try_into()
        .map_err(|_| anyhow::anyhow!("README.md has {found} blocks after {after:?}, expected {N}"))
}

/// A transcript without what differs from run to run: the module's digest and the time taken.
fn masked(transcript: &str) -> String {
    let mask = |line: &str| match (line.split_once("sha256:"), line.strip_prefix("done in ")) {
        (Some((before, digest)), _) if digest.len() == 12 => format!("{before}sha256:<digest>"),
        (_, Some(time)) if time.ends_with(" ms") => "done in <time> ms".to_owned(),
        _ => line.to_owned(),
    };
    transcript.trim_end().lines().map(mask).collect::<Vec<_>>().join("\n")
}

/// The search path with the program's folder before all others.
fn path_with(program: &Path) -> std::ffi::OsString {
    let folder = program.parent().unwrap_or(program).as_os_str().to_owned();
    let rest = std::env::var_os("PATH").unwrap_or_default();
    [folder, rest].join(std::ffi::OsStr::new(":"))
}

/// A program that is killed when its test ends.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
