//! The property `produce.at.offset`: any admin client sets it at creation; afterwards it can only be removed.

use anyhow::ensure;
use verbatim_tests::client::Client;
use verbatim_tests::exact::{EXACT, batch, order};
use verbatim_tests::host::{Home, Host};
use verbatim_tests::tools::{self, Tool};

#[test]
fn javas_admin_client_creates_an_exact_topic() -> anyhow::Result<()> {
    let Some(create) = tools::find("java-create-topic")? else { return Ok(()) };
    check_creator(&create)
}

#[test]
fn kafka_python_creates_an_exact_topic() -> anyhow::Result<()> {
    let Some(create) = tools::python("create_topic.py")? else { return Ok(()) };
    check_creator(&create)
}

#[test]
fn kafka_configs_shows_and_removes_it_which_promotes_the_topic() -> anyhow::Result<()> {
    let Some(configs) = tools::find("kafka-configs")? else { return Ok(()) };
    let home = Home::new()?;
    let host = home.start()?;
    host.create_topic("mirrored", 1, &[EXACT])?;
    write_one(&host, "mirrored")?;
    ensure!(describe(&configs, &host, "mirrored")?.contains(EXACT), "the property is not shown");
    alter(&configs, &host, "mirrored", &["--delete-config", "produce.at.offset"])?;
    ensure!(!describe(&configs, &host, "mirrored")?.contains(EXACT), "the property is still shown");

    // Promoted: ordinary writes go on at the end, under the epoch after the source's.
    let client = Client::connect(host.address())?;
    let answer = client.produce(("mirrored", 0), None, &batch(0, 0, &["c"])?)?;
    assert_eq!((answer.error_code, answer.base_offset), (0, 102), "{answer:?}");
    assert_eq!(client.latest(("mirrored", 0))?, (103, 6));
    assert_eq!(client.epoch_end(("mirrored", 0), 5)?, (5, 102));
    // Exact writes are over, also after a restart.
    drop(client);
    host.stop()?;
    let host = home.start()?;
    let client = Client::connect(host.address())?;
    let late =
        client.produce(("mirrored", 0), Some(&order((103, 6), (100, 104), 7)), &batch(103, 7, &["d"])?)?;
    assert_eq!(late.error_code, 44, "{late:?}");
    assert_eq!(client.epoch_end(("mirrored", 0), 5)?, (5, 102));
    host.stop()
}

#[test]
fn setting_it_to_false_removes_it_too() -> anyhow::Result<()> {
    let Some(configs) = tools::find("kafka-configs")? else { return Ok(()) };
    let home = Home::new()?;
    let host = home.start()?;
    host.create_topic("mirrored", 1, &[EXACT])?;
    alter(&configs, &host, "mirrored", &["--add-config", "produce.at.offset=false"])?;
    let answer = Client::connect(host.address())?.produce(("mirrored", 0), None, &batch(0, 0, &["c"])?)?;
    assert_eq!((answer.error_code, answer.base_offset), (0, 0), "{answer:?}");
    host.stop()
}

#[test]
fn anything_but_removal_is_an_invalid_config() -> anyhow::Result<()> {
    let Some(configs) = tools::find("kafka-configs")? else { return Ok(()) };
    let home = Home::new()?;
    let host = home.start()?;
    host.create_topic("plain", 1, &[])?;
    host.create_topic("exact", 1, &[EXACT])?;
    host.create_topic("promoted", 1, &[EXACT])?;
    alter(&configs, &host, "promoted", &["--delete-config", "produce.at.offset"])?;
    let refused = [
        ("plain", "produce.at.offset=true"),
        ("promoted", "produce.at.offset=true"),
        ("exact", "produce.at.offset=perhaps"),
        ("exact", "produce.at.offset.rewrite=allow"),
        ("exact", "produce.at.offset.rewind=sometimes"),
    ];
    for (topic, config) in refused {
        let output =
            configs.output(&command(&host.bootstrap(), topic, &["--alter", "--add-config", config]), b"")?;
        let refused =
            !output.status.success() && output.to_string().contains("InvalidConfigurationException");
        ensure!(refused, "{topic} {config}: {output}");
    }
    // What may change at any time.
    alter(&configs, &host, "exact", &["--add-config", "produce.at.offset.rewind=truncate"])?;
    alter(&configs, &host, "exact", &["--add-config", "produce.at.offset.validation=records"])?;
    let shown = describe(&configs, &host, "exact")?;
    for config in [EXACT, "produce.at.offset.rewind=truncate", "produce.at.offset.validation=records"] {
        ensure!(shown.contains(config), "{config} is not shown: {shown}");
    }
    write_one(&host, "exact")?;
    host.stop()
}

/// Checks a program that creates topics: BOOTSTRAP TOPIC PARTITIONS KEY=VALUE.
fn check_creator(create: &Tool) -> anyhow::Result<()> {
    let home = Home::new()?;
    let host = home.start()?;
    create.succeed(&[&host.bootstrap(), "created", "2", EXACT])?;
    write_one(&host, "created")?;
    host.stop()
}

/// Writes a batch at offset 100 under epoch 5, which only an exact topic takes.
fn write_one(host: &Host, topic: &str) -> anyhow::Result<()> {
    let client = Client::connect(host.address())?;
    let answer =
        client.produce((topic, 0), Some(&order((0, -1), (100, 102), 5)), &batch(100, 5, &["a", "b"])?)?;
    assert_eq!(answer.error_code, 0, "{answer:?}");
    assert_eq!(client.latest((topic, 0))?, (102, 5));
    Ok(())
}

fn alter(configs: &Tool, host: &Host, topic: &str, change: &[&str]) -> anyhow::Result<()> {
    configs.succeed(&command(&host.bootstrap(), topic, &[&["--alter"], change].concat())).map(drop)
}

fn describe(configs: &Tool, host: &Host, topic: &str) -> anyhow::Result<String> {
    configs.succeed(&command(&host.bootstrap(), topic, &["--describe"]))
}

fn command<'a>(bootstrap: &'a str, topic: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    [&["--bootstrap-server", bootstrap, "--entity-type", "topics", "--entity-name", topic], rest].concat()
}
