//! Client quotas: kept, described, and felt by those they are for.

use verbatim_wire::client::{ClientConfig, Connection};
use verbatim_wire::messages::alter_client_quotas_request as alter;
use verbatim_wire::messages::describe_client_quotas_request::ComponentData;
use verbatim_wire::messages::*;
use verbatim_wire::{ApiKey, ErrorCode};

use crate::support::{Fetch, Host, batch, fetch_request, produce_request, text};

const WRITE: &str = "producer_byte_rate";
const READ: &str = "consumer_byte_rate";

/// Parts of an entity: type, name.
type Entity<'a> = &'a [(&'a str, Option<&'a str>)];

fn entry(entity: Entity<'_>, ops: &[(&str, Option<f64>)]) -> alter::EntryData {
    let part = |(kind, name): &(&str, Option<&str>)| {
        alter::EntityData::default().with_entity_type(text(kind)).with_entity_name(name.map(text))
    };
    let op = |(key, value): &(&str, Option<f64>)| {
        let op = alter::OpData::default().with_key(text(key)).with_remove(value.is_none());
        op.with_value(value.unwrap_or_default())
    };
    alter::EntryData::default()
        .with_entity(entity.iter().map(part).collect())
        .with_ops(ops.iter().map(op).collect())
}

/// Code and text.
async fn set(host: &Host, entity: Entity<'_>, ops: &[(&str, Option<f64>)]) -> (i16, String) {
    let request = AlterClientQuotasRequest::default().with_entries(vec![entry(entity, ops)]);
    let answer = host.client.call(&request).await.unwrap().entries.remove(0);
    (answer.error_code, answer.error_message.map(|text| text.to_string()).unwrap_or_default())
}

/// Client id, write rate, read rate.
type Shown = (Option<String>, Option<f64>, Option<f64>);

async fn describe(host: &Host, parts: &[(&str, i8, Option<&str>)], strict: bool) -> Result<Vec<Shown>, i16> {
    let part = |(kind, match_type, name): &(&str, i8, Option<&str>)| {
        let part = ComponentData::default().with_entity_type(text(kind)).with_match_type(*match_type);
        part.with_match(name.map(text))
    };
    let request = DescribeClientQuotasRequest::default()
        .with_components(parts.iter().map(part).collect())
        .with_strict(strict);
    let answer = host.client.call(&request).await.unwrap();
    let Some(entries) = answer.entries else { return Err(answer.error_code) };
    let shown = entries.into_iter().map(|mut entry| {
        let rate = |key| entry.values.iter().find(|one| &*one.key == key).map(|one| one.value);
        let (write, read) = (rate(WRITE), rate(READ));
        assert_eq!((entry.entity.len(), &*entry.entity[0].entity_type), (1, "client-id"));
        (entry.entity.remove(0).entity_name.map(|name| name.to_string()), write, read)
    });
    Ok(shown.collect())
}

const ANYBODY: Entity<'static> = &[("client-id", None)];

#[tokio::test(flavor = "multi_thread")]
async fn quotas_are_kept_and_described_by_every_filter() {
    let host = Host::start().await;
    let x: Entity<'_> = &[("client-id", Some("x"))];
    assert_eq!(set(&host, x, &[(WRITE, Some(1_000.0)), (READ, Some(2_000.0))]).await.0, 0);
    assert_eq!(set(&host, ANYBODY, &[(READ, Some(3e9))]).await.0, 0);
    let host = host.restart().await;
    let of_x = (Some("x".to_owned()), Some(1_000.0), Some(2_000.0));
    let of_all = (None, None, Some(3e9));
    let both = vec![of_all.clone(), of_x.clone()];
    for strict in [false, true] {
        let ask = async |parts: &[(&str, i8, Option<&str>)]| describe(&host, parts, strict).await;
        assert_eq!(ask(&[("client-id", 0, Some("x"))]).await, Ok(vec![of_x.clone()]));
        assert_eq!(ask(&[("client-id", 0, Some("y"))]).await, Ok(vec![]));
        assert_eq!(ask(&[("client-id", 1, None)]).await, Ok(vec![of_all.clone()]));
        assert_eq!(ask(&[("client-id", 2, None)]).await, Ok(both.clone()));
        assert_eq!(ask(&[("client-id", 2, None), ("user", 2, None)]).await, Ok(vec![]));
        assert_eq!(ask(&[("ip", 2, None)]).await, Ok(vec![]));
        assert_eq!(ask(&[]).await, Ok(if strict { vec![] } else { both.clone() }));
        for bad in [("client-id", 0, None), ("client-id", 1, Some("x")), ("client-id", 2, Some("x"))] {
            assert_eq!(ask(&[bad]).await, Err(42), "{bad:?}");
        }
        assert_eq!(ask(&[("client-id", 3, None)]).await, Err(42));
        assert_eq!(ask(&[("client-id", 2, None), ("client-id", 2, None)]).await, Err(42));
        assert_eq!(ask(&[("client-id", 2, None), ("ip", 2, None)]).await, Err(42));
        assert_eq!(ask(&[("planet", 2, None)]).await, Err(ErrorCode::UnsupportedVersion.number()));
    }
    assert_eq!(set(&host, x, &[(WRITE, None), (READ, None)]).await.0, 0);
    assert_eq!(set(&host, ANYBODY, &[(READ, None), (WRITE, None)]).await.0, 0);
    assert_eq!(describe(&host, &[], false).await, Ok(vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_limited_here_is_refused_by_name_and_nothing_changes() {
    let host = Host::start().await;
    let x = ("client-id", Some("x"));
    let long = "x".repeat(256);
    let entities: [(Entity<'_>, &str); 7] = [
        (&[("user", Some("alice"))], "user"),
        (&[("user", None), x], "user, client-id"),
        (&[("ip", Some("127.0.0.1"))], "ip"),
        (&[("planet", None)], "planet"),
        (&[("client-id", Some(""))], "client-id=``"),
        (&[("client-id", Some(&long))], "255"),
        (&[], "one client-id"),
    ];
    for (entity, named) in entities {
        let (code, text) = set(&host, entity, &[(WRITE, Some(1.0))]).await;
        assert_eq!(code, 42);
        assert!(text.contains(named), "{text} lacks {named}");
    }
    for (key, value) in [
        ("request_percentage", 5.0),
        ("controller_mutation_rate", 5.0),
        ("planet", 5.0),
        (WRITE, 0.0),
        (WRITE, -1.0),
        (WRITE, 1.5),
        (READ, f64::NAN),
        (READ, f64::INFINITY),
        (READ, 1e300),
    ] {
        let (code, text) = set(&host, &[x], &[(WRITE, Some(7.0)), (key, Some(value))]).await;
        assert_eq!(code, 42, "{key} {value}");
        assert!(text.contains(key), "{text} lacks {key}");
    }
    assert_eq!(describe(&host, &[], false).await, Ok(vec![]));
    // One entity's failure is not another's.
    let good = entry(&[x], &[(WRITE, Some(7.0))]);
    let bad = entry(&[("user", None)], &[(WRITE, Some(7.0))]);
    let request = AlterClientQuotasRequest::default().with_entries(vec![bad, good]);
    let judged = host.client.call(&request.clone().with_validate_only(true)).await.unwrap();
    assert_eq!(describe(&host, &[], false).await, Ok(vec![]));
    let done = host.client.call(&request).await.unwrap();
    assert_eq!(judged, done);
    assert_eq!(done.entries.iter().map(|entry| entry.error_code).collect::<Vec<_>>(), [42, 0]);
    assert_eq!(describe(&host, &[], false).await, Ok(vec![(Some("x".to_owned()), Some(7.0), None)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas_are_answered_in_every_version() {
    let host = Host::start().await;
    let api = ApiKey::AlterClientQuotas.api();
    for version in api.min..=api.max {
        let request =
            AlterClientQuotasRequest::default().with_entries(vec![entry(ANYBODY, &[(READ, Some(9.0))])]);
        assert_eq!(host.client.send(version, &request).await.unwrap().entries[0].error_code, 0);
    }
    let api = ApiKey::DescribeClientQuotas.api();
    for version in api.min..=api.max {
        let answer = host.client.send(version, &DescribeClientQuotasRequest::default()).await.unwrap();
        assert_eq!(answer.entries.unwrap()[0].values[0].value, 9.0, "v{version}");
    }
}

/// A connection under this name.
async fn named(host: &Host, name: &str) -> Connection {
    let config = ClientConfig { client_id: name.to_owned(), ..ClientConfig::default() };
    Connection::connect(host.address(), config).await.unwrap()
}

/// The throttle time of a write.
async fn write(client: &Connection, value: &str) -> i32 {
    let answer = client.send(12, &produce_request("t", batch(0, 0, &[value]))).await.unwrap();
    assert_eq!(answer.responses[0].partition_responses[0].error_code, 0);
    answer.throttle_time_ms
}

#[tokio::test(flavor = "multi_thread")]
async fn who_writes_too_much_waits_and_others_do_not() {
    let host = Host::start().await;
    host.create("t", 1, &[]).await;
    let (busy, other) = (named(&host, "busy").await, named(&host, "other").await);
    let value = "x".repeat(12_000);
    assert_eq!(write(&busy, &value).await, 0);
    assert_eq!(set(&host, &[("client-id", Some("busy"))], &[(WRITE, Some(1_000.0))]).await.0, 0);
    // 12,000 bytes where the window holds about 10,000 of them: the records are taken, and a second or two to wait.
    let wait = write(&busy, &value).await;
    assert!((1..=3_000).contains(&wait), "{wait}");
    assert_eq!(write(&other, &value).await, 0);
    assert_eq!(set(&host, &[("client-id", Some("busy"))], &[(WRITE, None)]).await.0, 0);
    let fresh = named(&host, "busy").await;
    assert_eq!(write(&fresh, &value).await, 0);
    // The default holds for each of them alone.
    assert_eq!(set(&host, ANYBODY, &[(WRITE, Some(1e9))]).await.0, 0);
    assert_eq!(write(&other, &value).await, 0);
    assert_eq!(host.list("t", -1, false).await.1, 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_too_much_is_given_nothing_for_a_while() {
    let host = Host::start().await;
    host.create("t", 1, &[]).await;
    for _ in 0..3 {
        host.produce("t", &batch(0, 0, &[&"x".repeat(6_000)]), None).await;
    }
    assert_eq!(set(&host, ANYBODY, &[(READ, Some(1_000.0))]).await.0, 0);
    let ask = Fetch { max_bytes: 1 << 20, ..Fetch::at(0) };
    let read = async |client: &Connection, ask: Fetch| {
        let answer = client.send(12, &fetch_request(&[("t", ask)], ask)).await.unwrap();
        let parts = answer.responses.iter().flat_map(|topic| &topic.partitions);
        let bytes: usize = parts.filter_map(|part| part.records.as_ref()).map(|records| records.len()).sum();
        (answer.error_code, bytes, answer.throttle_time_ms)
    };
    let eager = named(&host, "eager").await;
    // No more at once than a window holds, so that nobody is stuck.
    let (code, bytes, wait) = read(&eager, ask).await;
    assert!((code, wait) == (0, 0) && (6_000..10_000).contains(&bytes), "{code} {bytes} {wait}");
    let (code, bytes, wait) = read(&eager, Fetch { offset: 1, ..ask }).await;
    assert!((code, bytes) == (0, 0) && wait > 0, "{code} {bytes} {wait}");
    let (_, bytes, wait) = read(&named(&host, "calm").await, ask).await;
    assert!(bytes > 0 && wait == 0);
    // A batch larger than the window gets through all the same, and is paid for afterwards.
    assert_eq!(set(&host, ANYBODY, &[(READ, Some(10.0))]).await.0, 0);
    let (_, bytes, wait) = read(&named(&host, "slow").await, ask).await;
    assert!((6_000..10_000).contains(&bytes) && wait > 0, "{bytes} {wait}");
    assert_eq!(set(&host, ANYBODY, &[(READ, None)]).await.0, 0);
    let (_, bytes, wait) = read(&named(&host, "eager").await, Fetch { offset: 1, ..ask }).await;
    assert!(bytes > 12_000 && wait == 0, "{bytes} {wait}");
}
