//! A swap that nobody waits for any more, and one that a rollback overtakes.

use super::*;
use std::process::{Child, Command, Stdio};
use verbatim_tests::programs;
use verbatim_tests::run::wait;

/// `verbatim module swap` that judges live requests, of which none come, longer than any test takes.
fn trying(home: &Home, host: &Host, file: &std::path::Path, shadow: &str) -> anyhow::Result<Child> {
    let mut command = Command::new(programs::verbatim()?);
    command.args(["module", "swap", "exact-mirroring"]).arg(file).args(["--shadow", shadow, "--data"]);
    let child = command.arg(home.data()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    wait_for("candidate in the status", PATIENCE, || {
        Ok((only(home, host)?["candidate"]["judged"] == 0).then_some(()))
    })?;
    Ok(child)
}

#[test]
fn a_swap_ends_with_the_command_that_asked_for_it() -> anyhow::Result<()> {
    let files = Files::new()?;
    let home = Home::new()?;
    let host = serving(&home)?;
    for (number, shadow) in ["60m", "5"].into_iter().enumerate() {
        let mut child = trying(&home, &host, &files.variant(1)?, shadow)?;
        let text = ask(&home, &host, &["status"])?.success()?;
        ensure!(text.contains("\n  beside it exact-mirroring "), "{text}");
        child.kill()?;
        child.wait()?;
        let history = wait_for("end of the swap", PATIENCE, || {
            let history = json(&home, &host, &["history", "exact-mirroring"])?;
            Ok((history[number] != Value::Null).then_some(history))
        })?;
        ensure!(history[number]["outcome"] == "abandoned", "{history}");
        let status = only(&home, &host)?;
        ensure!(status["generation"] == 1 && status["candidate"] == Value::Null, "{status}");
    }
    swap(&home, &host, "exact-mirroring", &files.variant(1)?, &["--shadow", "10ms"])?.success()?;
    host.stop()
}

#[test]
fn a_rollback_overtakes_a_swap_and_the_end_of_the_host_does() -> anyhow::Result<()> {
    let files = Files::new()?;
    let home = Home::new()?;
    let host = serving(&home)?;
    let own = only(&home, &host)?["sha256"].clone();
    swap(&home, &host, "exact-mirroring", &files.variant(1)?, &[])?.success()?;
    let child = trying(&home, &host, &files.variant(2)?, "60m")?;
    let busy = swap(&home, &host, "exact-mirroring", &files.variant(3)?, &[])?;
    ensure!(refused(&busy, "under way"), "{busy}");
    ask(&home, &host, &["rollback", "exact-mirroring"])?.success()?;
    let told = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&told.stderr);
    ensure!(told.status.code() == Some(1) && text.contains("a rollback overtook this swap"), "{text}");
    ensure!(only(&home, &host)?["sha256"] == own, "back");

    let mut child = trying(&home, &host, &files.variant(2)?, "60m")?;
    host.stop()?;
    ensure!(!wait(&mut child, PATIENCE)?.success(), "the host is gone");
    let host = serving(&home)?;
    ensure!(only(&home, &host)?["sha256"] == own, "nothing changed");
    host.stop()
}
