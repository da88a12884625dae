//! What a host tells of itself: the numbers are right, the text is read by a strict reader, the answers about its health
//! follow its state, and whoever misuses the listener harms nobody.

mod health;
mod hostile;
mod text;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use verbatim_broker::metrics::{FAMILIES, Kind};
use verbatim_broker::{Config, NativeJudges};
use verbatim_log::DiskIo;
use verbatim_policy::ExactMirroring;

use self::text::Text;
use crate::failures::Trapping;
use crate::support::{Fetch, Host, batch, order};

/// How long something may take to show.
const PATIENCE: Duration = Duration::from_secs(60);

fn listening(config: &mut Config) {
    config.metrics_listen = Some(([127, 0, 0, 1], 0).into());
}

/// An answer: status, headers in lower case, body.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    headers: String,
    body: String,
}

/// Sends these bytes and reads all that comes; nothing if the connection is just closed.
async fn exchange(host: &Host, request: &[u8]) -> Option<Answer> {
    let mut stream = TcpStream::connect(host.broker().metrics_addr().unwrap()).await.unwrap();
    // What is refused may be answered before it is all sent.
    let _ = stream.write_all(request).await;
    read_answer(stream).await
}

async fn read_answer(mut stream: TcpStream) -> Option<Answer> {
    let mut bytes = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ").unwrap()[..3].parse().unwrap();
    Some(Answer { status, headers: head.to_lowercase(), body: body.to_owned() })
}

async fn get(host: &Host, path: &str) -> Answer {
    exchange(host, format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").as_bytes()).await.unwrap()
}

async fn scrape(host: &Host) -> Text {
    let request = "GET /metrics HTTP/1.1\r\nhost: x\r\naccept: application/openmetrics-text;version=1.0.0,*/*;q=0.1\r\n\r\n";
    let answer = exchange(host, request.as_bytes()).await.unwrap();
    assert_eq!(answer.status, 200);
    assert!(
        answer.headers.contains("content-type: application/openmetrics-text; version=1.0.0; charset=utf-8")
    );
    Text::open_metrics(&answer.body)
}

/// Asks until the answer is as wanted.
async fn until(host: &Host, path: &str, wanted: impl Fn(&Answer) -> bool) -> Answer {
    let since = Instant::now();
    loop {
        let answer = get(host, path).await;
        if wanted(&answer) {
            return answer;
        }
        assert!(since.elapsed() < PATIENCE, "{path} stays {answer:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn assert_all(text: &Text, expected: &[(&str, f64)]) {
    for (series, value) in expected {
        assert!(text.series.contains_key(*series), "no {series}");
        assert_eq!(text.of(series), *value, "{series}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::cast_precision_loss, reason = "small lengths")]
async fn what_was_written_and_refused_is_counted_exactly() {
    let judges = Arc::new(Trapping(NativeJudges(ExactMirroring)));
    let host = Host::with_all(Arc::new(DiskIo), judges, listening).await;
    host.create("plain", 2, &[]).await;
    host.exact("copy", &[]).await;
    let (plain, copy) = (batch(0, 0, &["a", "b"]), batch(10, 3, &["c"]));
    assert_eq!(host.produce("plain", &plain, None).await.error_code, 0);
    host.write("copy", &copy, &order((0, -1), (15, 3))).await;
    assert_eq!(host.produce("plain", &batch(5, 0, &["a"]), None).await.error_code, 87);
    assert_eq!(
        host.produce("copy", &batch(12, 3, &["d"]), Some(&order((12, 3), (15, 3)))).await.error_code,
        1
    );
    for code in [56, 56, 56, 87] {
        assert_eq!(host.produce("plain", &batch(0, 0, &["trap"]), None).await.error_code, code);
    }
    assert_eq!(host.produce("none", &plain, None).await.error_code, 3);
    let text = scrape(&host).await;
    assert_all(
        &text,
        &[
            ("verbatim_requests_total{api=\"Produce\",error=\"NONE\"}", 2.0),
            ("verbatim_requests_total{api=\"Produce\",error=\"INVALID_RECORD\"}", 2.0),
            ("verbatim_requests_total{api=\"Produce\",error=\"KAFKA_STORAGE_ERROR\"}", 3.0),
            ("verbatim_requests_total{api=\"Produce\",error=\"OFFSET_OUT_OF_RANGE\"}", 1.0),
            ("verbatim_requests_total{api=\"Produce\",error=\"UNKNOWN_TOPIC_OR_PARTITION\"}", 1.0),
            ("verbatim_requests_total{api=\"CreateTopics\",error=\"NONE\"}", 2.0),
            ("verbatim_requests_total{api=\"Fetch\",error=\"NONE\"}", 0.0),
            ("verbatim_request_duration_seconds_count{api=\"Produce\"}", 9.0),
            ("verbatim_connections", 1.0),
            ("verbatim_connections_taken_total", 1.0),
            ("verbatim_connections_refused_total{reason=\"gave-way\"}", 0.0),
            ("verbatim_appended_records_total{mode=\"normal\"}", 2.0),
            ("verbatim_appended_batches_total{mode=\"normal\"}", 1.0),
            ("verbatim_appended_bytes_total{mode=\"normal\"}", plain.len() as f64),
            ("verbatim_appended_records_total{mode=\"exact\"}", 1.0),
            ("verbatim_appended_batches_total{mode=\"exact\"}", 1.0),
            ("verbatim_appended_bytes_total{mode=\"exact\"}", copy.len() as f64),
            ("verbatim_refusals_total{reason=\"base-offset\"}", 1.0),
            ("verbatim_refusals_total{reason=\"position-mismatch\"}", 1.0),
            ("verbatim_refusals_total{reason=\"checksum\"}", 0.0),
            ("verbatim_module_failures_total{kind=\"trap\"}", 3.0),
            ("verbatim_module_failures_total{kind=\"poisoned\"}", 1.0),
            ("verbatim_module_failures_total{kind=\"deadline\"}", 0.0),
            ("verbatim_judging_duration_seconds_count", 7.0),
            ("verbatim_batches_per_call_sum", 7.0),
            ("verbatim_append_queue_wait_seconds_count", 8.0),
            ("verbatim_group_commit_requests_sum", 8.0),
            ("verbatim_flush_duration_seconds_count", 8.0),
        ],
    );
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::cast_precision_loss, reason = "small lengths")]
async fn partitions_are_shown_as_they_stand() {
    let host = Host::with_config(listening).await;
    host.create("plain", 2, &[]).await;
    host.exact("copy", &[]).await;
    let (plain, copy) = (batch(0, 0, &["a", "b"]), batch(10, 3, &["c"]));
    assert_eq!(host.produce("plain", &plain, None).await.error_code, 0);
    host.write("copy", &copy, &order((0, -1), (15, 3))).await;
    let text = scrape(&host).await;
    let of_copy = "{topic=\"copy\",partition=\"0\"}";
    let named = |name: &str, partition: &str| format!("verbatim_{name}{partition}");
    for (name, value) in [
        ("partition_online", 1.0),
        ("log_start_offset", 0.0),
        ("log_end_offset", 11.0),
        ("high_watermark", 11.0),
        ("last_stable_offset", 11.0),
        ("shown_leader_epoch", 3.0),
        ("source_end_offset", 15.0),
        ("log_segments", 1.0),
        ("log_size_bytes", copy.len() as f64),
    ] {
        assert_all(&text, &[(&named(name, of_copy), value)]);
    }
    assert_all(
        &text,
        &[
            ("verbatim_log_end_offset{topic=\"plain\",partition=\"0\"}", 2.0),
            ("verbatim_log_end_offset{topic=\"plain\",partition=\"1\"}", 0.0),
            ("verbatim_shown_leader_epoch{topic=\"plain\",partition=\"1\"}", 0.0),
            ("verbatim_log_size_bytes{topic=\"plain\",partition=\"0\"}", plain.len() as f64),
            ("verbatim_partitions", 3.0),
            ("verbatim_partitions_offline", 0.0),
            ("verbatim_partitions_left_out", 0.0),
        ],
    );
    let source = |series: &&String| series.starts_with("verbatim_source_end_offset");
    assert_eq!(text.series.keys().filter(source).count(), 1, "a normal partition has no source");
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_of_requests_and_answers_are_counted_to_the_byte() {
    let host = Host::with_config(listening).await;
    host.create("plain", 1, &[]).await;
    let records = batch(0, 0, &["some", "records"]);
    host.produce("plain", &records, None).await;
    // A length of 10 bytes, ApiVersions (18) in version 0, correlation id 7, no client id.
    let request = [0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 255, 255];
    let before = scrape(&host).await;
    let mut raw = TcpStream::connect(host.broker().local_addr()).await.unwrap();
    raw.write_all(&request).await.unwrap();
    let mut length = [0; 4];
    raw.read_exact(&mut length).await.unwrap();
    let mut answer = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap()];
    raw.read_exact(&mut answer).await.unwrap();
    let (received, sent) = (bytes("received", "ApiVersions"), bytes("sent", "ApiVersions"));
    let grew = |text: &Text, series: &str| text.of(series) - before.of(series);
    let now = settled(&host, |now| grew(now, &sent) > 0.0).await;
    assert_eq!(
        (grew(&now, &received), grew(&now, &sent)),
        (14.0, f64::from(u32::from_be_bytes(length)) + 4.0)
    );
    assert_eq!(now.of("verbatim_connections"), 2.0);

    // Two answers that differ by the records alone: version 11 has lengths of a fixed size.
    let sent = bytes("sent", "Fetch");
    let fetch = |offset| Fetch { version: 11, ..Fetch::at(offset) };
    host.fetch("plain", fetch(2)).await;
    let empty = settled(&host, |now| now.of(&sent) > 0.0).await.of(&sent);
    assert_eq!(host.fetch("plain", fetch(0)).await.records.unwrap(), records);
    let both = settled(&host, |now| now.of(&sent) > empty).await.of(&sent);
    assert_eq!(both - 2.0 * empty, f64::from(u32::try_from(records.len()).unwrap()));
}

fn bytes(what: &str, api: &str) -> String {
    format!("verbatim_{what}_bytes_total{{api=\"{api}\"}}")
}

/// What was sent is counted right after the peer has it.
async fn settled(host: &Host, wanted: impl Fn(&Text) -> bool) -> Text {
    let since = Instant::now();
    loop {
        let text = scrape(host).await;
        if wanted(&text) {
            return text;
        }
        assert!(since.elapsed() < PATIENCE, "{:?}", text.series);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_connections_are_counted_by_what_refused_them() {
    let host = Host::with_config(|config| {
        listening(config);
        config.limits.connections_max = 1;
    })
    .await;
    // The test's own client has spoken, so it does not give way.
    host.create("plain", 1, &[]).await;
    let mut refused = TcpStream::connect(host.broker().local_addr()).await.unwrap();
    assert_eq!(refused.read(&mut [0; 1]).await.unwrap(), 0);
    let text = scrape(&host).await;
    assert_all(
        &text,
        &[
            ("verbatim_connections_refused_total{reason=\"connections-max\"}", 1.0),
            ("verbatim_connections_refused_total{reason=\"connections-per-ip-max\"}", 0.0),
            ("verbatim_connections", 1.0),
        ],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn both_texts_hold_every_family_in_order_and_so_does_the_embedders() {
    let host = Host::with_config(listening).await;
    host.create("plain", 1, &[]).await;
    host.produce("plain", &batch(0, 0, &["a"]), None).await;
    let stems = |is_open| {
        FAMILIES.iter().map(move |family| {
            let stem = family.name.strip_suffix("_total").filter(|_| is_open).unwrap_or(family.name);
            (stem.to_owned(), family.kind.name().to_owned())
        })
    };
    assert_eq!(scrape(&host).await.families, stems(true).collect::<Vec<_>>());
    let old = get(&host, "/metrics").await;
    assert!(
        old.headers.contains("content-type: text/plain; version=0.0.4; charset=utf-8"),
        "{}",
        old.headers
    );
    let old = Text::prometheus(&old.body);
    assert_eq!(old.families, stems(false).collect::<Vec<_>>());
    assert_eq!(old.of("verbatim_appended_records_total{mode=\"normal\"}"), 1.0);
    let told = Text::open_metrics(&host.broker().metrics_text());
    assert_eq!(told.series.len(), old.series.len());
    let bound = "verbatim_judging_duration_seconds_bucket{le=\"0.00005\"}";
    assert!(told.series.contains_key(bound), "bounds are round");
    for family in FAMILIES.iter().filter(|family| family.kind == Kind::Histogram) {
        assert!(told.series.keys().any(|series| series.starts_with(&format!("{}_sum", family.name))));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_partitions_only_so_many_are_shown_and_the_rest_is_told() {
    let host = Host::with_config(|config| {
        listening(config);
        config.limits.metrics_partitions_max = 2;
    })
    .await;
    host.create("many", 5, &[]).await;
    let text = scrape(&host).await;
    let shown = text.series.keys().filter(|series| series.starts_with("verbatim_log_end_offset{"));
    assert_eq!(shown.count(), 2);
    assert_all(&text, &[("verbatim_partitions", 5.0), ("verbatim_partitions_left_out", 3.0)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_address_nothing_listens_and_the_text_is_there_all_the_same() {
    let host = Host::start().await;
    assert_eq!(host.broker().metrics_addr(), None);
    assert_eq!(Text::open_metrics(&host.broker().metrics_text()).of("verbatim_partitions"), 0.0);
}
