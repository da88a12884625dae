//! A module that checks its configuration takes the keys of the topics that choose it, or is not taken into service.

use super::*;

#[test]
fn a_module_is_not_put_in_front_of_topics_whose_keys_it_does_not_take() -> anyhow::Result<()> {
    let files = Files::new()?;
    let redact = verbatim_artifact::redact()?;
    let checking = files.write("checking.wasm", redact)?;
    // The same rules, but for an export that the host does not know: it takes any key.
    let careless = files
        .write("careless.wasm", &renamed(redact, b"produce/configuration@", b"produce/konfiguration@"))?;
    let home = Home::new()?.arguments(&["--module", &format!("redact={}", careless.display())]);
    let host = serving(&home)?;
    let of_redact = "produce.module=redact";
    host.create_topic("right", 1, &[of_redact, "redact.mask.json=$.a"])?;
    host.create_topic("other", 1, &["redact.mask.jsn=$.a"])?;
    host.create_topic("wrong", 1, &[of_redact, "redact.mask.jsn=$.a"])?;
    let told = swap(&home, &host, "redact", &checking, &[])?;
    let why = "does not take the keys of a topic that chooses it by produce.module=`redact`, topic=`wrong`";
    ensure!(refused(&told, why) && told.stderr.contains("redact.mask.jsn=`$.a`"), "{told}");
    let history = json(&home, &host, &["history", "redact"])?;
    ensure!(history[0]["outcome"] == "refused", "{history}");
    let sha256 = of(&home, &host, "redact")?["sha256"].clone();

    // A topic that does not choose it is in nobody's way.
    host.verbatim(&["topic", "delete", "wrong"], b"")?.success()?;
    swap(&home, &host, "redact", &checking, &[])?.success()?;
    ensure!(of(&home, &host, "redact")?["sha256"] != sha256, "the other one serves");
    let wrong = ["topic", "create", "wrong", "--config", "redact.mask.jsn=$.a"];
    let told = host.verbatim(&wrong, b"")?;
    ensure!(!told.status.success() && told.stderr.contains("INVALID_CONFIG"), "{told}");
    host.stop()
}
