//! A rule that is mistyped or wrong is refused as it is set: no topic is made with it, and nothing is copied in the clear.

use std::process::Command;

use anyhow::ensure;
use verbatim_tests::BesideLog as _;
use verbatim_tests::client::Client;
use verbatim_tests::exact::batch;
use verbatim_tests::host::{Home, Host};
use verbatim_tests::{programs, run};

use super::{ALLOW, MODULE, home, module_file};

const SECRET: &str = "4111";
const VALUE: &str = r#"{"card":{"number":4111},"sum":2}"#;
const RULE: &str = "redact.mask.json=$.card.number";

/// Rules that would let through what they mean to mask, each with what its refusal must say.
const WRONG: [(&str, &str); 16] = [
    ("redact.mask.jsn=$.card.number", "redact.mask.json"),
    ("redact.mask=$.card.number", "redact.mask.json"),
    ("redact.mask.json=", "at least one item"),
    ("redact.mask.json= , ", "at least one item"),
    ("redact.mask.json=$.*", "`$.*`"),
    ("redact.mask.json=$.a;$.card.number", "`$.a;$.card.number`"),
    ("redact.mask.json=card", "`card`"),
    ("redact.mask.json=$", "`$`"),
    ("redact.mask.json=$.a[0]", "`$.a[0]`"),
    ("redact.mask.json=$.a[*]b", "`$.a[*]b`"),
    ("redact.mask.json=$.a\u{7}b", "redact.mask.json"),
    ("redact.mask.json=$.a\u{200b}", "redact.mask.json"),
    ("redact.mask.keys=card*", "`card*`"),
    ("redact.drop.headers=*", "`*`"),
    ("redact.json.invalid=no", "`refuse`, `keep` or `drop`"),
    ("redact.json.invalid=", "`refuse`, `keep` or `drop`"),
];

#[test]
fn no_topic_is_made_with_a_wrong_rule() -> anyhow::Result<()> {
    let home = home()?;
    let host = home.start()?;
    let many = (0..65).map(|number| format!("$.a{number}")).collect::<Vec<_>>().join(",");
    let many = format!("redact.mask.json={many}");
    let is_refused = |rule: &str, told: &str, module: &str| {
        let create = ["topic", "create", "t", "--config", module, "--config", ALLOW, "--config", rule];
        let refused = host.verbatim(&create, b"")?;
        let key = rule.split_once('=').map_or(rule, |(key, _)| key);
        for part in ["INVALID_CONFIG", "the module `redact`", key, told] {
            ensure!(
                !refused.status.success() && refused.stderr.contains(part),
                "{rule}: no {part}: {refused}"
            );
        }
        ensure!(
            !host.verbatim(&["topic", "describe", "t"], b"")?.status.success(),
            "{rule}: there is a topic"
        );
        Ok(())
    };
    let all = || {
        for (rule, told) in WRONG.into_iter().chain([(many.as_str(), "at most 64 paths")]) {
            is_refused(rule, told, MODULE)?;
        }
        // Also while another module judges: the rules are there before the switch.
        is_refused("redact.mask.jsn=$.a", "redact.mask.json", "produce.module=exact-mirroring")
    };
    all().beside("the host", || host.log())?;
    host.stop()
}

#[test]
fn a_mirror_that_is_given_a_wrong_rule_copies_nothing() -> anyhow::Result<()> {
    let (source_home, home) = (Home::new()?, home()?);
    let (source, host) = (source_home.start()?, home.start()?);
    nothing_is_copied(&source, &host)
        .beside("the host", || host.log())
        .beside("the source", || source.log())?;
    source.stop()?;
    host.stop()
}

fn nothing_is_copied(source: &Host, host: &Host) -> anyhow::Result<()> {
    write(source, "orders", VALUE)?;
    for rule in ["redact.mask.jsn=$.card.number", "redact.mask.json=$.card.*"] {
        let refused = mirror((source, host), "orders", &[MODULE, ALLOW, rule])?;
        let told = refused.to_string();
        ensure!(!refused.status.success() && told.contains("redact.mask.json"), "{told}");
        ensure!(told.contains("Correct the --target-config"), "{told}");
        let there = host.verbatim(&["topic", "describe", "orders"], b"")?;
        ensure!(!there.status.success(), "{rule}: there is a copy: {there}");
    }
    mirror((source, host), "orders", &[MODULE, ALLOW, RULE])?.success()?;
    is_masked(host, "orders")
}

#[test]
fn a_mirror_that_cannot_redact_says_how_it_could() -> anyhow::Result<()> {
    let (source_home, home) = (Home::new()?, home()?);
    let (source, host) = (source_home.start()?, home.start()?);
    let ways_out = || {
        write(&source, "without-leave", VALUE)?;
        let refused = mirror((&source, &host), "without-leave", &[MODULE, RULE])?;
        let told = refused.to_string();
        let remedy = "Delete the copy, then begin again with --target-config produce.at.offset.rewrite=allow";
        ensure!(!refused.status.success() && told.contains(remedy), "{told}");

        write(&source, "plain", "no JSON")?;
        let refused = mirror((&source, &host), "plain", &[MODULE, ALLOW, RULE])?;
        let told = refused.to_string();
        let reason = "redact.json.invalid=keep or drop, baseOffset=0, offsetDelta=0";
        ensure!(!refused.status.success() && told.contains(reason), "{told}");
        for topic in ["without-leave", "plain"] {
            let end = Client::connect(host.address())?.latest((topic, 0))?.0;
            ensure!(end == 0, "{topic} ends at {end}");
        }
        Ok(())
    };
    ways_out().beside("the host", || host.log()).beside("the source", || source.log())?;
    source.stop()?;
    host.stop()
}

/// Mirrors a topic once, with these properties of the copy.
fn mirror((source, host): (&Host, &Host), topic: &str, properties: &[&str]) -> anyhow::Result<run::Output> {
    let sides = ["mirror", "--source", &source.bootstrap(), "--target", &host.bootstrap()];
    let wanted = properties.iter().flat_map(|property| ["--target-config", property]);
    let mut command = Command::new(programs::verbatim()?);
    run::run(command.args(sides).args(["--topics", topic, "--once"]).args(wanted), b"")
}

#[test]
fn the_prefix_of_its_keys_is_the_name_that_the_module_gives_itself() -> anyhow::Result<()> {
    let home = Home::new()?;
    let module = format!("privacy={}", module_file(&home)?);
    let home = home.arguments(&["--module", &module]);
    let host = home.start()?;
    let works = || {
        let create =
            ["topic", "create", "t", "--config", "produce.module=privacy", "--config", ALLOW, "--config"];
        let refused = host.verbatim(&[&create[..], &["privacy.mask.json=$.card.number"]].concat(), b"")?;
        for part in ["INVALID_CONFIG", "privacy.mask.json", "begin with `redact.`"] {
            ensure!(!refused.status.success() && refused.stderr.contains(part), "no {part}: {refused}");
        }
        let refused = host.verbatim(&[&create[..], &["redact.mask.jsn=$.card.number"]].concat(), b"")?;
        ensure!(!refused.status.success() && refused.stderr.contains("the module `privacy`"), "{refused}");
        host.verbatim(&[&create[..], &[RULE]].concat(), b"")?.success()?;
        write(&host, "t", VALUE)?;
        is_masked(&host, "t")
    };
    works().beside("the host", || host.log())?;
    host.stop()
}

/// Writes a value to a topic, which is made if it is not there.
fn write(host: &Host, topic: &str, value: &str) -> anyhow::Result<()> {
    if !host.verbatim(&["topic", "describe", topic], b"")?.status.success() {
        host.create_topic(topic, 1, &[])?;
    }
    let answer = Client::connect(host.address())?.produce((topic, 0), None, &batch(0, 0, &[value])?)?;
    ensure!(answer.error_code == 0, "{answer:?}");
    Ok(())
}

fn is_masked(host: &Host, topic: &str) -> anyhow::Result<()> {
    let bytes = Client::connect(host.address())?.fetch_all((topic, 0), 0)?;
    let text = String::from_utf8_lossy(&bytes);
    ensure!(text.contains(r#""number":"***""#) && !text.contains(SECRET), "{text}");
    Ok(())
}
