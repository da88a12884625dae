//! What a writer hears of a batch that it sends again, and of one that cannot be taken, also after a machine's sudden end.

use anyhow::ensure;
use verbatim_tests::BesideLog as _;
use verbatim_tests::client::{Answer, Client};
use verbatim_tests::exact::{EXACT, batch, order};
use verbatim_tests::host::{Home, Host};
use verbatim_wire::tag::RequestTag;

use super::{ALLOW, MODULE, home};

const POLICY_VIOLATION: i16 = 44;
const STORAGE_ERROR: i16 = 56;
const INVALID_RECORD: i16 = 87;
const RULES: [&str; 2] = ["redact.mask.json=$.card", "redact.drop.json=$.secret"];

#[test]
fn a_received_batch_is_known_again_after_a_kill_and_another_one_has_diverged() -> anyhow::Result<()> {
    let home = home()?;
    let host = home.start()?;
    let more = ["produce.at.offset.rewind=truncate"];
    host.create_topic("copy", 1, &[&[EXACT, MODULE, ALLOW], &RULES[..], &more].concat())?;
    let done = is_known_again(&home, host);
    done.beside("the host", || home.log())
}

fn is_known_again(home: &Home, host: Host) -> anyhow::Result<()> {
    let values = [r#"{"card":1}"#, r#"{"secret":1}"#, r#"{"n":1}"#];
    let sent = [batch(0, 1, &values)?, batch(3, 1, &values[1..2])?].concat();
    let other = batch(0, 1, &[values[0], values[1], r#"{"n":2}"#])?;
    let first = order((0, -1), (0, 4), 1);
    ensure!(write(&host, Some(&first), &sent)?.error_code == 0, "the first time");
    let stored = Client::connect(host.address())?.fetch_all(("copy", 0), 0)?;
    ensure!(stored != sent && !String::from_utf8_lossy(&stored).contains("secret"), "nothing is redacted");
    host.kill()?;
    let host = home.start()?;
    let again = write(&host, Some(&first), &sent)?;
    ensure!((again.error_code, again.base_offset, end(&again)) == (0, 0, Some(4)), "{again:?}");
    let at_end = order((4, 1), (0, 4), 1);
    for diverging in [&other, &stored] {
        let answer = write(&host, Some(&at_end), diverging)?;
        let diverged = answer.tag.as_ref().and_then(|tag| tag.diverged);
        ensure!((answer.error_code, diverged) == (INVALID_RECORD, Some(0)), "{answer:?}");
    }

    // A rewind: what is cut is not known any more.
    let truncated = RequestTag { truncate_to: Some(3), ..order((4, 1), (0, 4), 2) };
    let new = batch(3, 2, &values[..1])?;
    ensure!(write(&host, Some(&truncated), &new)?.error_code == 0, "the truncation");
    host.kill()?;
    let host = home.start()?;
    let at_end = order((4, 2), (0, 4), 2);
    ensure!(write(&host, Some(&at_end), &new)?.error_code == 0, "the new batch is known");
    ensure!(write(&host, Some(&at_end), &batch(0, 1, &values)?)?.error_code == 0, "the rest is, too");
    let answer = write(&host, Some(&at_end), &batch(3, 1, &values[1..2])?)?;
    ensure!(answer.error_code != 0 && end(&answer) == Some(4), "the batch that was cut: {answer:?}");
    host.stop()
}

#[test]
fn nothing_is_stored_where_rewriting_is_not_allowed_or_lied_about() -> anyhow::Result<()> {
    let home = home()?;
    let file = home.data().with_file_name("hostile.wasm");
    std::fs::write(&file, verbatim_artifact::hostile()?)?;
    let home = home.arguments(&["--module", &format!("hostile={}", file.display())]);
    let host = home.start()?;
    host.create_topic("copy", 1, &[&[EXACT, MODULE], &RULES[..]].concat())?;
    host.create_topic("plain", 1, &[&[MODULE], &RULES[..]].concat())?;
    let tag = order((0, -1), (0, 1), 0);
    let stored = nothing_is_stored(&host, &tag).and_then(|()| nothing_of_lies_is_stored(&host, &tag));
    stored.beside("the host", || host.log())?;
    host.stop()
}

fn nothing_is_stored(host: &Host, tag: &RequestTag) -> anyhow::Result<()> {
    let client = Client::connect(host.address())?;
    for (topic, tag) in [("copy", Some(tag)), ("plain", None)] {
        let answer = client.produce((topic, 0), tag, &batch(0, 0, &[r#"{"card":1}"#])?)?;
        ensure!(answer.error_code == POLICY_VIOLATION, "{topic}: {answer:?}");
        ensure!(answer.error_message.contains("produce.at.offset.rewrite"), "{topic}: {answer:?}");
        assert_eq!(client.latest((topic, 0))?.0, 0, "{topic}");
        let answer = client.produce((topic, 0), tag, &batch(0, 0, &[r#"{"n":1}"#])?)?;
        ensure!(answer.error_code == 0, "what has nothing to redact: {answer:?}");
    }
    Ok(())
}

/// A module that hands back what no compaction would leave.
fn nothing_of_lies_is_stored(host: &Host, tag: &RequestTag) -> anyhow::Result<()> {
    let rewrites = hostile_module::Behaviour::Rewrites.partition();
    let partitions = u32::try_from(hostile_module::Behaviour::ALL.len())?;
    host.create_topic("lies", partitions, &[EXACT, ALLOW, "produce.module=hostile"])?;
    let (client, partition) = (Client::connect(host.address())?, ("lies", i32::try_from(rewrites)?));
    let answer = client.produce(partition, Some(tag), &batch(0, 0, &["a"])?)?;
    ensure!(answer.error_code == STORAGE_ERROR && end(&answer) == Some(0), "{answer:?}");
    assert_eq!(client.fetch_all(partition, 0)?, b"");
    Ok(())
}

fn write(host: &Host, tag: Option<&RequestTag>, batches: &[u8]) -> anyhow::Result<Answer> {
    Client::connect(host.address())?.produce(("copy", 0), tag, batches)
}

fn end(answer: &Answer) -> Option<i64> {
    answer.tag.as_ref().map(|tag| tag.end)
}
