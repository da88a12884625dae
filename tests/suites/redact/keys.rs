//! A module's own keys are settings of the topic for Kafka's tools too.

use anyhow::ensure;
use verbatim_tests::BesideLog as _;
use verbatim_tests::host::Host;
use verbatim_tests::tools::{self, Tool};

use super::home;

#[test]
fn kafka_configs_sets_shows_and_removes_them() -> anyhow::Result<()> {
    let Some(configs) = tools::find("kafka-configs")? else { return Ok(()) };
    let home = home()?;
    let host = home.start()?;
    host.create_topic("t", 1, &["redact.drop.keys=a,b"])?;
    let tool = Configs { tool: &configs, host: &host };
    the_tool_works(&tool).beside("the host", || host.log())?;
    host.stop()?;
    // The next host has no such module: it starts, and the key can go.
    let home = home.without_arguments();
    let host = home.start()?;
    the_module_is_gone(&Configs { tool: &configs, host: &host }).beside("the host", || host.log())?;
    host.stop()
}

fn the_tool_works(configs: &Configs<'_>) -> anyhow::Result<()> {
    configs.alter(&["--add-config", "redact.mask.keys=[c,d],retention.ms=7000"])?;
    // On its command line the tool takes brackets away.
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), "redact.mask.json=$.card.number, $.items[*].owner\n")?;
    configs.alter(&["--add-config-file", &file.path().display().to_string()])?;
    let shown = configs.describe()?;
    for key in [
        "redact.drop.keys=a,b",
        "redact.mask.keys=c,d",
        "redact.mask.json=$.card.number, $.items[*].owner",
        "retention.ms=7000",
    ] {
        let line = shown.lines().find(|line| line.contains(key)).unwrap_or_default();
        ensure!(line.contains("sensitive=false") && line.contains("DYNAMIC_TOPIC_CONFIG"), "{key}: {shown}");
    }
    configs.alter(&["--delete-config", "redact.drop.keys"])?;
    ensure!(!configs.describe()?.contains("redact.drop.keys"), "a key is shown that was deleted");
    let refused = configs.run(&["--alter", "--add-config", "blacken.mask.json=$.a"])?;
    let told = refused.to_string();
    ensure!(
        !refused.status.success()
            && ["InvalidConfigurationException", "blacken.mask.json", "exact-mirroring, redact"]
                .iter()
                .all(|part| told.contains(part)),
        "{told}"
    );
    Ok(())
}

fn the_module_is_gone(configs: &Configs<'_>) -> anyhow::Result<()> {
    ensure!(configs.describe()?.contains("redact.mask.json="), "a key of a module that is gone is not shown");
    let refused = configs.run(&["--alter", "--add-config", "redact.mask.json=$.b"])?;
    ensure!(!refused.status.success(), "{refused}");
    configs.alter(&["--add-config", "retention.ms=8000"])?;
    configs.alter(&["--delete-config", "redact.mask.json,redact.mask.keys"])?;
    ensure!(!configs.describe()?.contains("redact"), "a key is shown that was deleted");
    Ok(())
}

struct Configs<'a> {
    tool: &'a Tool,
    host: &'a Host,
}

impl Configs<'_> {
    fn run(&self, rest: &[&str]) -> anyhow::Result<verbatim_tests::run::Output> {
        let bootstrap = self.host.bootstrap();
        let topic = ["--bootstrap-server", &bootstrap, "--entity-type", "topics", "--entity-name", "t"];
        self.tool.output(&[&topic, rest].concat(), b"")
    }

    fn alter(&self, change: &[&str]) -> anyhow::Result<()> {
        self.run(&[&["--alter"], change].concat())?.success().map(drop)
    }

    fn describe(&self) -> anyhow::Result<String> {
        self.run(&["--describe"])?.success()
    }
}
