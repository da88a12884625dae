//! A topic has a module that judges its mode, exact or normal, whoever comes first.

use super::*;
use verbatim_tests::client::Client;
use verbatim_wire::messages::IncrementalAlterConfigsRequest;
use verbatim_wire::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use verbatim_wire::protocol::StrBytes;

/// Kafka's code for a setting that cannot be.
const INVALID_CONFIG: i16 = 40;
/// DescribeConfigs' and AlterConfigs' number for topics.
const TOPIC_RESOURCE: i8 = 2;

#[test]
fn a_module_is_not_put_in_front_of_topics_that_it_does_not_judge() -> anyhow::Result<()> {
    let files = Files::new()?;
    // It judges normal topics alone.
    let checksum = verbatim_tests::workspace().join("tests/modules/c/checksum.wasm");
    let mine = format!("mine={}", checksum.display());
    let theirs = format!("theirs={}", files.variant(2)?.display());
    let home = Home::new()?.arguments(&["--module", &mine, "--module", &theirs]);
    let host = serving(&home)?;
    for name in ["a", "b", "c", "d"] {
        host.create_topic(name, 1, &[EXACT])?;
    }
    let before = only(&home, &host)?["sha256"].clone();
    let told = swap(&home, &host, "exact-mirroring", &checksum, &[])?;
    let why = "does not judge exact topics, and these choose it by produce.module=`exact-mirroring`: a, b, c and 1 more";
    ensure!(refused(&told, why), "{told}");
    ensure!(only(&home, &host)?["sha256"] == before, "nothing changed");
    let history = json(&home, &host, &["history", "exact-mirroring"])?;
    ensure!(history[0]["outcome"] == "refused", "{history}");

    let other =
        host.verbatim(&["topic", "create", "e", "--config", EXACT, "--config", "produce.module=mine"], b"")?;
    for part in ["INVALID_CONFIG", "judges exact topics", "value=`mine`"] {
        ensure!(!other.status.success() && other.stderr.contains(part), "no {part}: {other}");
    }
    host.create_topic("normal", 1, &["produce.module=mine"])?;
    let client = Client::connect(host.address())?;
    let (code, text) = choose(&client, "a", "mine")?;
    ensure!(
        code == INVALID_CONFIG && text.contains("exact topics") && text.contains("`mine`"),
        "{code}: {text}"
    );
    ensure!(choose(&client, "normal", "exact-mirroring")?.0 == 0, "both judge normal topics");
    ensure!(choose(&client, "normal", "mine")?.0 == 0, "both judge normal topics");

    // What it does judge it takes over; then there are topics that the one before cannot have back.
    swap(&home, &host, "mine", &files.variant(1)?, &[])?.success()?;
    host.create_topic("e", 1, &[EXACT, "produce.module=mine"])?;
    let back = ask(&home, &host, &["rollback", "mine"])?;
    ensure!(refused(&back, "produce.module=`mine`: e"), "{back}");
    host.create_topic("f", 1, &[EXACT, "produce.module=theirs"])?;
    host.stop()?;

    // Who starts the host with another module is told.
    let theirs = format!("theirs={}", checksum.display());
    let home = home.without_arguments().arguments(&["--module", &mine, "--module", &theirs]);
    let host = serving(&home)?;
    let why = "does not judge exact topics, and these choose it by produce.module=`theirs`: f";
    ensure!(host.log().contains(why), "{}", host.log());
    host.stop()
}

/// Alters a topic's `produce.module`; gives the answer's code and text.
fn choose(client: &Client, topic: &str, module: &str) -> anyhow::Result<(i16, String)> {
    let text = |text: &str| StrBytes::from_string(text.to_owned());
    let config = AlterableConfig::default().with_name(text("produce.module")).with_value(Some(text(module)));
    let resource = AlterConfigsResource::default()
        .with_resource_type(TOPIC_RESOURCE)
        .with_resource_name(text(topic))
        .with_configs(vec![config]);
    let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
    let answer = client.call(&request)?;
    let answer = answer.responses.first().context("no topic in the answer")?;
    let message = answer.error_message.as_ref().map(ToString::to_string).unwrap_or_default();
    Ok((answer.error_code, message))
}
