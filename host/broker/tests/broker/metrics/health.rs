//! `/healthz` and `/readyz` through a host's life.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex};

use verbatim_broker::{Broker, Config, Judges, NativeJudges, OwnPartition};
use verbatim_contract::{Description, Position, Replica};
use verbatim_engine::{Call, Digest, Failure, Judge, Judged, NotJoined};
use verbatim_log::DiskIo;
use verbatim_policy::ExactMirroring;
use verbatim_test_disk::{Fault, Kind, SimDisk};

use super::{Answer, PATIENCE, get, listening, scrape, until};
use crate::support::{Host, batch};

/// A gate that lets nobody through until it is opened.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    moved: Condvar,
}

impl Gate {
    fn set(&self, is_open: bool) {
        *self.is_open.lock().unwrap() = is_open;
        self.moved.notify_all();
    }

    fn pass(&self) {
        let closed = self.is_open.lock().unwrap();
        let (open, _) = self.moved.wait_timeout_while(closed, PATIENCE, |is_open| !*is_open).unwrap();
        assert!(*open, "nobody opened the gate");
    }
}

/// Judges that wait at the gate for every batch that contains the word `wait`, and panic at `panic`.
struct Waiting(NativeJudges<ExactMirroring>, Arc<Gate>);

struct WaitingJudge(Box<dyn Judge<OwnPartition>>, Arc<Gate>);

impl Judges for Waiting {
    fn knows(&self, module: &str) -> bool {
        self.0.knows(module)
    }

    fn names(&self) -> BTreeMap<String, String> {
        self.0.names()
    }

    fn digest(&self, module: &str) -> Option<Digest> {
        self.0.digest(module)
    }

    fn judge(&self, module: &str) -> Result<Box<dyn Judge<OwnPartition>>, Failure> {
        Ok(Box::new(WaitingJudge(self.0.judge(module)?, Arc::clone(&self.1))))
    }
}

impl Judge<OwnPartition> for WaitingJudge {
    fn describe(&self) -> &Description {
        self.0.describe()
    }

    fn judge(&mut self, call: Call, partition: OwnPartition) -> Judged<OwnPartition> {
        let says = |word: &[u8]| {
            call.batches.iter().any(|batch| batch.bytes.windows(word.len()).any(|found| found == word))
        };
        if says(b"wait") {
            self.1.pass();
        }
        assert!(!says(b"panic"), "as the test wants");
        self.0.judge(call, partition)
    }

    fn may_join(&mut self, replica: &Replica, end: i64, position: &Position) -> Result<(), NotJoined> {
        self.0.may_join(replica, end, position)
    }
}

async fn waiting_host(gate: &Arc<Gate>) -> Host {
    let judges = Arc::new(Waiting(NativeJudges(ExactMirroring), Arc::clone(gate)));
    Host::with_all(Arc::new(DiskIo), judges, |config| {
        listening(config);
        config.append_threads = Some(1);
        config.limits.append_stall_ms_max = 1;
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stuck_append_thread_is_told_with_what_it_is_stuck_at_until_it_goes_on() {
    let gate = Arc::<Gate>::default();
    let host = waiting_host(&gate).await;
    host.create("plain", 4, &[]).await;
    until(&host, "/healthz", |answer| answer.status == 200 && answer.body == "ok\n").await;
    let waiting = batch(0, 0, &["wait"]);
    let produced = host.produce("plain", &waiting, None);
    let watched = async {
        let stuck = until(&host, "/healthz", |answer| answer.status == 503).await;
        let start =
            "append thread 0 has been judging and writing a request, topic=`plain`, partition=`0`, for ";
        assert!(stuck.body.starts_with(start), "{}", stuck.body);
        assert_eq!(get(&host, "/readyz").await.status, 200, "the partitions are there");
        gate.set(true);
        until(&host, "/healthz", |answer| answer.status == 200).await;
    };
    let (produced, ()) = tokio::join!(produced, watched);
    assert_eq!(produced.error_code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_shuts_down_is_alive_and_not_ready() {
    let gate = Arc::<Gate>::default();
    let host = waiting_host(&gate).await;
    host.create("plain", 1, &[]).await;
    let address = host.broker().metrics_addr().unwrap();
    let other = host.connect().await;
    let request = crate::support::produce_request("plain", batch(0, 0, &["wait"]));
    let produced = tokio::spawn(async move { other.send(9, &request).await });
    until(&host, "/healthz", |answer| answer.status == 503).await;
    let stopped = tokio::spawn(host.stop());
    let ready = until_at(address, "/readyz", "503").await;
    assert!(ready.ends_with("\r\n\r\nshutting down\n"), "{ready}");
    assert!(until_at(address, "/healthz", "200").await.ends_with("shutting down\n"));
    gate.set(true);
    stopped.await.unwrap();
    assert!(std::net::TcpStream::connect(address).is_err(), "what has ended answers nobody");
    drop(produced.await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_thread_that_panicked_is_told() {
    let gate = Arc::<Gate>::default();
    let host = waiting_host(&gate).await;
    host.create("plain", 1, &[]).await;
    assert_eq!(host.produce("plain", &batch(0, 0, &["panic"]), None).await.error_code, 56);
    // Until the thread is gone it may be told as stuck.
    let gone = |answer: &Answer| answer.status == 503 && answer.body.starts_with("append thread 0 has ended");
    until(&host, "/healthz", gone).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offline_partition_is_listed_with_its_reason() {
    let disk = Arc::new(SimDisk::default());
    let host = Host::with_all(disk.clone(), Arc::new(NativeJudges(ExactMirroring)), listening).await;
    host.create("good", 1, &[]).await;
    host.create("bad", 2, &[]).await;
    assert_eq!(get(&host, "/readyz").await.body, "ok\n");
    disk.set_rule(|operation| {
        let bad = operation.path.parent().is_some_and(|folder| folder.ends_with("bad-0"));
        (bad && operation.kind == Kind::Sync).then_some(Fault::Fail)
    });
    assert_eq!(host.produce("bad", &batch(0, 0, &["a"]), None).await.error_code, 56);
    let ready = until(&host, "/readyz", |answer| answer.status == 503).await;
    assert!(ready.body.starts_with("offline, topic=`bad`, partition=`0`: "), "{}", ready.body);
    assert_eq!(ready.body.lines().count(), 1);
    assert_eq!(get(&host, "/healthz").await.status, 200, "the other partitions go on");
    let text = scrape(&host).await;
    assert_eq!(text.of("verbatim_partitions_offline"), 1.0);
    let online = |topic, partition: u8| {
        text.series[&format!("verbatim_partition_online{{topic=\"{topic}\",partition=\"{partition}\"}}")]
    };
    assert_eq!((online("bad", 0), online("bad", 1), online("good", 0)), (0.0, 1.0, 1.0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_starts_is_alive_and_not_ready_until_all_partitions_are_open() {
    let disk = Arc::new(SimDisk::default());
    let host = Host::on(disk.clone()).await;
    host.create("plain", 1, &[]).await;
    let data = host.data();
    let (folder, judges) = host.stop().await;
    let gate = Arc::<Gate>::default();
    let closed = Arc::clone(&gate);
    disk.set_rule(move |operation| {
        if operation.path.components().any(|part| part.as_os_str() == "plain-0") {
            closed.pass();
        }
        None
    });
    let address = free_address();
    let mut config = Config::new(data, ([127, 0, 0, 1], 0).into());
    config.metrics_listen = Some(address);
    config.limits.append_stall_ms_max = 0;
    let started = tokio::spawn(Broker::start_on(disk, config, judges));
    let ready = until_at(address, "/readyz", "503").await;
    assert!(ready.ends_with("\r\n\r\nstarting: partitions are being opened\n"), "{ready}");
    assert!(until_at(address, "/healthz", "200").await.ends_with("ok\n"), "opening may take long");
    gate.set(true);
    let broker = started.await.unwrap().unwrap();
    assert!(until_at(address, "/readyz", "200").await.ends_with("ok\n"));
    broker.shutdown().await;
    drop(folder);
}

/// Asks until something listens there and answers with this status.
async fn until_at(address: SocketAddr, path: &'static str, status: &'static str) -> String {
    let asked = tokio::task::spawn_blocking(move || {
        let since = std::time::Instant::now();
        loop {
            let answer = ask(address, path).unwrap_or_default();
            if answer.starts_with(&format!("HTTP/1.1 {status} ")) {
                return answer;
            }
            assert!(since.elapsed() < PATIENCE, "{path} stays {answer:?}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    });
    asked.await.unwrap()
}

fn ask(address: SocketAddr, path: &str) -> std::io::Result<String> {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(address)?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn free_address() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
