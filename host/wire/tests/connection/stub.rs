//! A service that stands in for the broker.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};
use verbatim_wire::client::{ClientConfig, Connection};
use verbatim_wire::messages::metadata_response::MetadataResponseTopic;
use verbatim_wire::messages::{
    InitProducerIdResponse, ListOffsetsResponse, MetadataResponse, ProduceResponse, TopicName,
};
use verbatim_wire::protocol::StrBytes;
use verbatim_wire::server::{Config, Reply, ReplyFuture, RequestContext, Server, Service};
use verbatim_wire::{ApiKey, Request, response};

/// Answers Metadata with a running number, and with as many topics as one of that name says; ListOffsets of isolation level
/// 1 only once told to; Produce by its acks. InitProducerId mutes for as many milliseconds as its timeout.
#[derive(Default)]
pub(crate) struct Stub {
    pub(crate) admitted: AtomicUsize,
    pub(crate) release: Arc<Notify>,
    pub(crate) arrived: Notify,
}

impl Service for Stub {
    async fn admit(&self, context: RequestContext, request: Request) -> ReplyFuture {
        let number = self.admitted.fetch_add(1, Ordering::SeqCst);
        assert_eq!(context.head.key, request.key());
        self.arrived.notify_one();
        match request {
            Request::Metadata(body) => {
                let number = i32::try_from(number).unwrap();
                let names = body.topics.iter().flatten().filter_map(|topic| topic.name.as_ref());
                let count: usize = names.filter_map(|name| name.parse::<usize>().ok()).sum();
                let topic = MetadataResponseTopic::default().with_name(Some(name(&"t".repeat(10_000))));
                let body = MetadataResponse::default()
                    .with_controller_id(number.into())
                    .with_topics(vec![topic; count]);
                ready(Reply::Answer(body.into()))
            }
            Request::InitProducerId(body) => {
                let mute = Duration::from_millis(u64::try_from(body.transaction_timeout_ms).unwrap());
                let body =
                    InitProducerIdResponse::default().with_throttle_time_ms(body.transaction_timeout_ms);
                ready(Reply::Answer(body.into()).muted(mute))
            }
            Request::Produce(body) if body.acks == 0 && body.timeout_ms == 0 => ready(Reply::Silent),
            Request::Produce(body) if body.acks == 0 => {
                ready(Reply::Close { reason: "acks = 0 failed".to_owned() })
            }
            Request::Produce(_) => ready(Reply::Answer(ProduceResponse::default().into())),
            Request::ListOffsets(body) if body.isolation_level == 1 => {
                let release = Arc::clone(&self.release);
                Box::pin(async move {
                    release.notified().await;
                    Reply::Answer(ListOffsetsResponse::default().into())
                })
            }
            Request::ListOffsets(_) => ready(Reply::Answer(ListOffsetsResponse::default().into())),
            Request::ApiVersions(_) => {
                ready(Reply::Answer(response::api_versions(|key| self.serves(key)).into()))
            }
            other => panic!("{:?} is not served", other.key()),
        }
    }

    fn serves(&self, key: ApiKey) -> bool {
        key != ApiKey::DescribeCluster
    }
}

pub(crate) fn name(text: &str) -> TopicName {
    StrBytes::from_string(text.to_owned()).into()
}

fn ready(reply: Reply) -> ReplyFuture {
    Box::pin(std::future::ready(reply))
}

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) stub: Arc<Stub>,
    pub(crate) stop: oneshot::Sender<()>,
    pub(crate) done: tokio::task::JoinHandle<()>,
}

impl Running {
    /// Waits until the service has seen so many requests.
    pub(crate) async fn admitted(&self, count: usize) {
        while self.stub.admitted.load(Ordering::SeqCst) < count {
            self.stub.arrived.notified().await;
        }
    }
}

pub(crate) async fn start(config: Config) -> Running {
    let server = Server::bind("127.0.0.1:0", config).await.unwrap();
    let address = server.local_addr().unwrap();
    let stub = Arc::new(Stub::default());
    let (stop, stopped) = oneshot::channel();
    let shutdown = async { drop(stopped.await) };
    let done = tokio::spawn(server.run(Arc::clone(&stub), shutdown));
    Running { address, stub, stop, done }
}

pub(crate) async fn connect(running: &Running) -> Connection {
    Connection::connect(running.address, ClientConfig::default()).await.unwrap()
}
