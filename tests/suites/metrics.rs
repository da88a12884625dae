//! Metrics and health of the real command: the address is told, the module's work is in the numbers, and what nobody asked
//! for does not listen.

use anyhow::{Context, ensure};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use verbatim_tests::client::Client;
use verbatim_tests::exact::{EXACT, batch, order};
use verbatim_tests::host::Home;

#[test]
fn a_host_tells_what_its_module_judged_and_where_its_partitions_stand() -> anyhow::Result<()> {
    let home = Home::new()?.arguments(&["--metrics-listen", "127.0.0.1:0"]);
    let host = home.start()?;
    let address = host.metrics_address()?;
    ensure!(get(address, "/readyz")?.ends_with("\r\n\r\nok\n"));
    host.create_topic("exact", 1, &[EXACT])?;
    let client = Client::connect(host.address())?;
    let written = batch(5, 3, &["a", "b"])?;
    let answer = client.produce(("exact", 0), Some(&order((0, -1), (0, 9), 3)), &written)?;
    ensure!(answer.error_code == 0, "{answer:?}");
    let refused = client.produce(("exact", 0), None, &written)?;
    ensure!(refused.error_code == 44, "{refused:?}");
    let text = get(address, "/metrics")?;
    let bytes = format!("verbatim_appended_bytes_total{{mode=\"exact\"}} {}", written.len());
    for line in [
        bytes.as_str(),
        "verbatim_appended_records_total{mode=\"exact\"} 2",
        "verbatim_judging_duration_seconds_count 2",
        "verbatim_refusals_total{reason=\"tag-missing\"} 1",
        "verbatim_requests_total{api=\"Produce\",error=\"NONE\"} 1",
        "verbatim_requests_total{api=\"Produce\",error=\"POLICY_VIOLATION\"} 1",
        "verbatim_log_end_offset{topic=\"exact\",partition=\"0\"} 7",
        "verbatim_source_end_offset{topic=\"exact\",partition=\"0\"} 9",
        "verbatim_shown_leader_epoch{topic=\"exact\",partition=\"0\"} 3",
        "verbatim_partition_online{topic=\"exact\",partition=\"0\"} 1",
    ] {
        ensure!(text.lines().any(|found| found == line), "no line {line}\n{text}");
    }
    ensure!(get(address, "/healthz")?.starts_with("HTTP/1.1 200 OK\r\n"));
    host.stop()?;
    ensure!(TcpStream::connect(address).is_err(), "what has ended answers nobody");
    Ok(())
}

#[test]
fn metrics_beyond_loopback_need_the_same_consent_as_the_host() -> anyhow::Result<()> {
    let home = Home::new()?.arguments(&["--metrics-listen", "0.0.0.0:0"]);
    let error = home.start().err().context("it started")?;
    let told = format!("{error:#}");
    ensure!(told.contains("--allow-plaintext") && told.contains("metrics-listen=`0.0.0.0:0`"), "{told}");
    Ok(())
}

/// An answer of a metrics listener, head and all.
pub(super) fn get(address: SocketAddr, path: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
