//! Fetch sessions (KIP-227), over the wire. That they are Apache Kafka's is shown by the whole-system suites.

use std::time::Duration;

use crate::support::{Fetch, Host, batch, order, topic};
use verbatim_wire::messages::delete_records_request::{DeleteRecordsPartition, DeleteRecordsTopic};
use verbatim_wire::messages::delete_topics_request::DeleteTopicState;
use verbatim_wire::messages::fetch_request::{FetchPartition, FetchTopic, ForgottenTopic};
use verbatim_wire::messages::{
    DeleteRecordsRequest, DeleteTopicsRequest, FetchRequest, FetchResponse, TopicName,
};

/// One request of a session: id and epoch, and partitions by topic, index and offset.
fn ask(session: (i32, i32), partitions: &[(&str, i32, i64)]) -> FetchRequest {
    let partitions = partitions.iter().map(|(name, index, offset)| {
        let partition = FetchPartition::default()
            .with_partition(*index)
            .with_fetch_offset(*offset)
            .with_partition_max_bytes(1 << 20);
        FetchTopic::default().with_topic(topic(name)).with_partitions(vec![partition])
    });
    FetchRequest::default()
        .with_max_bytes(1 << 20)
        .with_session_id(session.0)
        .with_session_epoch(session.1)
        .with_topics(partitions.collect())
}

/// The same with topics by id.
fn by_id(session: (i32, i32), ids: &[uuid::Uuid]) -> FetchRequest {
    let mut request = ask(session, &vec![("", 0, 0); ids.len()]);
    for (topic, id) in request.topics.iter_mut().zip(ids) {
        (topic.topic, topic.topic_id) = (TopicName::default(), *id);
    }
    request
}

fn forget(mut request: FetchRequest, partitions: &[(&str, i32)]) -> FetchRequest {
    request.forgotten_topics_data = partitions
        .iter()
        .map(|(name, index)| ForgottenTopic::default().with_topic(topic(name)).with_partitions(vec![*index]))
        .collect();
    request
}

/// Topic, partition and error of all that an answer holds.
fn told(answer: &FetchResponse) -> Vec<(String, i32, i16)> {
    let topics = answer.responses.iter();
    let parts = topics.flat_map(|topic| topic.partitions.iter().map(|part| (topic.topic.to_string(), part)));
    parts.map(|(name, part)| (name, part.partition_index, part.error_code)).collect()
}

fn named(parts: &[(&str, i32, i16)]) -> Vec<(String, i32, i16)> {
    parts.iter().map(|(name, index, code)| ((*name).to_owned(), *index, *code)).collect()
}

/// Sends it in v12; what the answer holds, which is of this session and without an error.
async fn fetch(host: &Host, request: FetchRequest) -> Vec<(String, i32, i16)> {
    let answer = host.client.send(12, &request).await.unwrap();
    assert_eq!((answer.error_code, answer.session_id), (0, request.session_id));
    told(&answer)
}

/// Begins a session in v12; its id, and what the answer holds.
async fn begin(host: &Host, partitions: &[(&str, i32, i64)]) -> (i32, Vec<(String, i32, i16)>) {
    let answer = host.client.send(12, &ask((0, 0), partitions)).await.unwrap();
    assert_eq!(answer.error_code, 0);
    (answer.session_id, told(&answer))
}

async fn delete(host: &Host, name: &str) {
    let gone = DeleteTopicState::default().with_name(Some(topic(name)));
    let answer = host.client.call(&DeleteTopicsRequest::default().with_topics(vec![gone])).await.unwrap();
    assert_eq!(answer.responses[0].error_code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_told_only_what_is_new() {
    let host = Host::start().await;
    host.create("plain", 3, &[]).await;
    host.create("other", 1, &[]).await;
    let all = [("plain", 0, 0), ("plain", 1, 0), ("other", 0, 0), ("none", 0, 0)];
    let (id, first) = begin(&host, &all).await;
    assert!(id > 0);
    assert_eq!(
        first,
        named(&[("plain", 0, 0), ("plain", 1, 0), ("other", 0, 0), ("none", 0, 3)]),
        "all, in the order of the request"
    );
    assert_eq!(fetch(&host, ask((id, 1), &[])).await, named(&[("none", 0, 3)]), "errors again and again");
    let quiet = forget(ask((id, 2), &[("plain", 2, 0)]), &[("none", 0)]);
    assert_eq!(fetch(&host, quiet).await, named(&[("plain", 2, 0)]), "what is added");
    assert_eq!(fetch(&host, ask((id, 3), &[])).await, []);

    host.produce("plain", &batch(0, 0, &["a"]), None).await;
    assert_eq!(fetch(&host, ask((id, 4), &[])).await, named(&[("plain", 0, 0)]), "records");
    assert_eq!(fetch(&host, ask((id, 5), &[])).await, named(&[("plain", 0, 0)]), "as nobody went on");
    assert_eq!(fetch(&host, ask((id, 6), &[("plain", 0, 1)])).await, []);
    let start = DeleteRecordsPartition::default().with_offset(1);
    let start = DeleteRecordsTopic::default().with_name(topic("plain")).with_partitions(vec![start]);
    host.client.call(&DeleteRecordsRequest::default().with_topics(vec![start])).await.unwrap();
    assert_eq!(fetch(&host, ask((id, 7), &[])).await, named(&[("plain", 0, 0)]), "a new start");
    assert_eq!(fetch(&host, ask((id, 8), &[])).await, []);
    // The last one counts.
    let twice = ask((id, 9), &[("plain", 0, 7), ("plain", 0, 0), ("plain", 0, 1)]);
    assert_eq!(fetch(&host, twice).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn false_ids_epochs_and_topics_are_refused_as_a_whole() {
    let host = Host::start().await;
    host.create("plain", 1, &[]).await;
    let (id, _) = begin(&host, &[("plain", 0, 0)]).await;
    for (version, session, code) in [
        (12, (id, 2), 71),
        (12, (id, -7), 71),
        (12, (id ^ 1, 1), 70),
        (12, (0, 1), 70),
        (13, (id, 1), 106),
        (7, (id, 1), 0),
        (12, (id, 1), 71),
        (12, (id, 2), 0),
        (12, (id, -1), 0),
        (12, (id, 3), 70),
    ] {
        let answer = host.client.send(version, &ask(session, &[])).await.unwrap();
        assert_eq!(answer.error_code, code, "v{version} {session:?}");
        assert!(answer.responses.is_empty());
        assert_eq!(answer.session_id, if code == 0 && session.1 > 0 { id } else { 0 });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_when_it_is_replaced_closed_or_empty() {
    let host = Host::start().await;
    host.create("plain", 2, &[]).await;
    let one = [("plain", 0, 0)];
    let (first, _) = begin(&host, &one).await;
    let second = host.client.send(12, &ask((first, 0), &one)).await.unwrap().session_id;
    assert!(second > 0 && second != first);
    let closed = host.client.send(12, &ask((second, -1), &one)).await.unwrap();
    assert_eq!((closed.session_id, told(&closed)), (0, named(&[("plain", 0, 0)])));
    let (third, _) = begin(&host, &one).await;
    // It is empty, so this is answered as without a session.
    let last = forget(ask((third, 1), &[("plain", 1, 0)]), &[("plain", 0), ("plain", 1)]);
    let last = host.client.send(12, &last).await.unwrap();
    assert_eq!((last.error_code, last.session_id, told(&last)), (0, 0, named(&[("plain", 1, 0)])));
    for id in [first, second, third] {
        assert_eq!(host.client.send(12, &ask((id, 1), &[])).await.unwrap().error_code, 70);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_waits_for_what_is_new_whatever_is_not_here() {
    let host = Host::start().await;
    host.create("plain", 1, &[]).await;
    let (id, _) = begin(&host, &[("none", 0, 0), ("plain", 0, 0)]).await;
    // Far longer than a client waits: only the write can end it, and what is not here does not.
    let patient = ask((id, 1), &[]).with_min_bytes(1).with_max_wait_ms(29_000);
    let other = host.connect().await;
    let waiting = tokio::spawn(async move { other.send(12, &patient).await.unwrap() });
    tokio::time::sleep(Duration::from_millis(200)).await;
    host.produce("plain", &batch(0, 0, &["a"]), None).await;
    // What was not here when the session began is last in it.
    assert_eq!(told(&waiting.await.unwrap()), named(&[("plain", 0, 0), ("none", 0, 3)]));
    // Nothing else to wait for.
    let nothing = forget(ask((id, 2), &[]), &[("plain", 0)]).with_min_bytes(1).with_max_wait_ms(29_000);
    assert_eq!(fetch(&host, nothing).await, named(&[("none", 0, 3)]));
    // An answer may be empty.
    let (id, _) = begin(&host, &[("plain", 0, 1)]).await;
    let brief = ask((id, 1), &[]).with_min_bytes(1).with_max_wait_ms(20);
    assert_eq!(fetch(&host, brief).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_was_overtaken_is_refused_when_it_is_answered() {
    let host = Host::start().await;
    host.create("plain", 1, &[]).await;
    let (id, _) = begin(&host, &[("plain", 0, 0)]).await;
    let patient = ask((id, 1), &[]).with_min_bytes(1).with_max_wait_ms(29_000);
    let other = host.connect().await;
    let waiting = tokio::spawn(async move { other.send(12, &patient).await.unwrap() });
    // Another connection may go on with the session as soon as it knows the epoch.
    while host.client.send(12, &ask((id, 2), &[])).await.unwrap().error_code == 71 {
        tokio::task::yield_now().await;
    }
    host.produce("plain", &batch(0, 0, &["a"]), None).await;
    let late = waiting.await.unwrap();
    assert_eq!((late.error_code, late.session_id, told(&late)), (71, id, Vec::new()));
    // It took nothing from the session.
    assert_eq!(fetch(&host, ask((id, 3), &[])).await, named(&[("plain", 0, 0)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_answer_gives_every_partition_its_turn() {
    let host = Host::start().await;
    for name in ["a", "b", "c"] {
        host.create(name, 1, &[]).await;
        host.produce(name, &batch(0, 0, &["x"]), None).await;
    }
    let all = [("a", 0, 0), ("b", 0, 0), ("c", 0, 0)];
    let begun = host.client.send(12, &ask((0, 0), &all).with_max_bytes(1)).await.unwrap();
    let mut given = Vec::new();
    for epoch in 1..7 {
        let small = ask((begun.session_id, epoch), &[]).with_max_bytes(1);
        given.extend(told(&host.client.send(12, &small).await.unwrap()).into_iter().map(|part| part.0));
    }
    // A session begins with the order of its first request, whatever that one gave.
    assert_eq!(given, ["a", "b", "c", "a", "b", "c"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_goes_and_comes_again_is_followed_by_name_and_not_by_id() {
    let host = Host::start().await;
    host.create("plain", 1, &[]).await;
    let old = host.metadata("plain").await.topic_id;
    let (name, _) = begin(&host, &[("plain", 0, 0)]).await;
    let unknown = uuid::Uuid::from_u128(9);
    let id = host.client.send(13, &by_id((0, 0), &[old, unknown])).await.unwrap().session_id;
    let ids = async |epoch| {
        let answer = host.client.send(13, &by_id((id, epoch), &[])).await.unwrap();
        assert_eq!((answer.error_code, answer.session_id), (0, id));
        answer.responses.iter().map(|t| (t.topic_id, t.partitions[0].error_code)).collect::<Vec<_>>()
    };
    assert_eq!(ids(1).await, [(unknown, 100)]);
    delete(&host, "plain").await;
    assert_eq!(fetch(&host, ask((name, 1), &[])).await, named(&[("plain", 0, 3)]));
    assert_eq!(ids(2).await, [(old, 3), (unknown, 100)]);
    host.create("plain", 1, &[]).await;
    assert_eq!(fetch(&host, ask((name, 2), &[])).await, named(&[("plain", 0, 0)]));
    assert_eq!(fetch(&host, ask((name, 3), &[])).await, []);
    assert_eq!(ids(3).await, [(old, 103), (unknown, 100)]);
    let new = host.metadata("plain").await.topic_id;
    let answer = host.client.send(13, &by_id((id, 4), &[new])).await.unwrap();
    let codes: Vec<i16> = answer.responses.iter().map(|topic| topic.partitions[0].error_code).collect();
    assert_eq!(codes, [103, 100, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn r32_r43_a_session_goes_on_telling_what_ails_a_reader() {
    let host = Host::start().await;
    host.exact("copy", &[]).await;
    host.write("copy", &batch(100, 5, &["a", "b"]), &order((0, -1), (102, 5))).await;
    host.write("copy", &batch(102, 7, &["c"]), &order((102, 5), (110, 7))).await;
    let at = |epoch, current, last, offset| {
        let mut request = ask((0, epoch), &[("copy", 0, offset)]);
        let part = &mut request.topics[0].partitions[0];
        (part.current_leader_epoch, part.last_fetched_epoch) = (current, last);
        request
    };
    for (current, last, offset, expected) in [
        (-1, -1, 105, (78, -1)),
        (-1, -1, 111, (1, -1)),
        (6, -1, 103, (74, -1)),
        (8, -1, 103, (75, -1)),
        (-1, 6, 103, (0, 5)),
        (7, 5, 103, (0, 5)),
        (-1, 9, 103, (1, -1)),
    ] {
        let mut answer = host.client.send(12, &at(0, current, last, offset)).await.unwrap();
        let id = answer.session_id;
        for epoch in 1..4 {
            let part = &answer.responses[0].partitions[0];
            assert_eq!((part.error_code, part.diverging_epoch.epoch), expected, "{current} {last} {offset}");
            answer = host.client.send(12, &ask((id, epoch), &[])).await.unwrap();
        }
    }
    // A reader that goes on in a version that cannot be told where it parts is given what there is.
    let parting = host.client.send(12, &at(0, -1, 6, 102)).await.unwrap();
    assert_eq!(parting.responses[0].partitions[0].diverging_epoch.epoch, 5);
    let older = host.client.send(11, &ask((parting.session_id, 1), &[])).await.unwrap();
    assert!(older.responses[0].partitions[0].records.as_ref().is_some_and(|records| !records.is_empty()));
    // 78 ends when the copy has what its source has.
    let (id, first) = begin(&host, &[("copy", 0, 104)]).await;
    assert_eq!(first, named(&[("copy", 0, 78)]));
    host.write("copy", &batch(103, 7, &["d", "e"]), &order((103, 7), (110, 7))).await;
    let answer = host.client.send(12, &ask((id, 1), &[])).await.unwrap();
    assert_eq!(told(&answer), named(&[("copy", 0, 0)]));
    assert!(answer.responses[0].partitions[0].records.as_ref().is_some_and(|records| !records.is_empty()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_without_room_is_served_in_full() {
    let host = Host::with_config(|config| {
        config.limits.fetch_sessions_max = 2;
        config.limits.fetch_session_partitions_max = 3;
    })
    .await;
    host.create("plain", 5, &[]).await;
    let (first, _) = begin(&host, &[("plain", 0, 0)]).await;
    let many = [("plain", 0, 0), ("plain", 1, 0), ("plain", 2, 0)];
    let (none, all) = begin(&host, &many).await;
    assert_eq!((none, all.len()), (0, 3));
    let (second, _) = begin(&host, &[("plain", 1, 0)]).await;
    assert!(first > 0 && second > 0);
    assert_eq!(begin(&host, &[("plain", 2, 0)]).await.0, 0);
    assert_eq!(fetch(&host, ask((first, 1), &[("plain", 3, 0)])).await, named(&[("plain", 3, 0)]));
    // There is no room for a fourth partition: the session ends, and its reader begins anew.
    let grown = host.client.send(12, &ask((second, 1), &[("plain", 4, 0)])).await.unwrap();
    assert_eq!(grown.error_code, 70);
    assert_eq!(host.client.send(12, &ask((second, 2), &[])).await.unwrap().error_code, 70);
    assert!(begin(&host, &[("plain", 4, 0)]).await.0 > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_outlives_its_connection_but_not_the_host() {
    let host = Host::start().await;
    host.create("plain", 1, &[]).await;
    let begun = host.connect().await.send(12, &ask((0, 0), &[("plain", 0, 0)])).await.unwrap();
    let id = begun.session_id;
    assert_eq!(fetch(&host, ask((id, 1), &[])).await, []);
    let host = host.restart().await;
    assert_eq!(host.client.send(12, &ask((id, 2), &[])).await.unwrap().error_code, 70);
    assert_eq!(host.fetch("plain", Fetch::at(0)).await.error_code, 0);
}
