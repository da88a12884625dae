//! A module that fails costs one partition's request an error and nobody else anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use verbatim_broker::{Judges, NativeJudges, OwnPartition};
use verbatim_contract::{Description, Position, Replica};
use verbatim_engine::{Call, Denied, Digest, Failure, Judge, Judged, NotJoined, Partition};
use verbatim_policy::ExactMirroring;

use crate::support::{Host, batch, order, told};

/// Judges that trap on every batch that contains the word `trap`.
pub(crate) struct Trapping(pub(crate) NativeJudges<ExactMirroring>);

struct TrappingJudge(Box<dyn Judge<OwnPartition>>);

impl Judges for Trapping {
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
        Ok(Box::new(TrappingJudge(self.0.judge(module)?)))
    }
}

impl Judge<OwnPartition> for TrappingJudge
where
    OwnPartition: Partition,
{
    fn describe(&self) -> &Description {
        self.0.describe()
    }

    fn judge(&mut self, call: Call, partition: OwnPartition) -> Judged<OwnPartition> {
        let traps = call.batches.iter().any(|batch| batch.bytes.windows(4).any(|word| word == b"trap"));
        if traps {
            let verdict = Err(Denied::Failed(Failure::Trap { text: "unreachable".to_owned() }));
            return Judged { call, partition, verdict };
        }
        self.0.judge(call, partition)
    }

    fn may_join(&mut self, replica: &Replica, end: i64, position: &Position) -> Result<(), NotJoined> {
        self.0.may_join(replica, end, position)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trap_is_retriable_throttled_doubling_and_poisoned_data_is_refused_at_last() {
    let host = Host::with(Arc::new(Trapping(NativeJudges(ExactMirroring)))).await;
    host.create("plain", 1, &[]).await;
    let bad = batch(0, 0, &["trap"]);
    let mut told = Vec::new();
    for _ in 0..5 {
        let (answer, throttle_ms) = host.produce_as(12, -1, "plain", &bad, None).await;
        told.push((answer.error_code, throttle_ms));
    }
    assert_eq!(told, [(56, 100), (56, 200), (56, 400), (87, 0), (87, 0)]);
    let (answer, throttle_ms) = host.produce_as(12, -1, "plain", &batch(0, 0, &["good"]), None).await;
    assert_eq!((answer.error_code, answer.base_offset, throttle_ms), (0, 0, 0));
    let (answer, _) = host.produce_as(12, -1, "plain", &batch(0, 0, &["trap too"]), None).await;
    assert_eq!(answer.error_code, 56, "other data starts anew");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_throttled_is_not_read_from_for_as_long_as_it_was_told() {
    let host = Host::with(Arc::new(Trapping(NativeJudges(ExactMirroring)))).await;
    host.create("plain", 1, &[]).await;
    let began = std::time::Instant::now();
    let (_, throttle_ms) = host.produce_as(12, -1, "plain", &batch(0, 0, &["trap"]), None).await;
    assert_eq!(host.produce("plain", &batch(0, 0, &["good"]), None).await.error_code, 0);
    assert!(began.elapsed().as_millis() >= u128::from(throttle_ms.unsigned_abs()), "it was read at once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_on_an_exact_topic_tells_where_the_partition_stands() {
    let host = Host::with(Arc::new(Trapping(NativeJudges(ExactMirroring)))).await;
    host.exact("copy", &[]).await;
    host.write("copy", &batch(10, 3, &["a"]), &order((0, -1), (11, 3))).await;
    let answer = host.produce("copy", &batch(11, 3, &["trap"]), Some(&order((11, 3), (12, 3)))).await;
    assert_eq!((answer.error_code, told(&answer).end, told(&answer).last_epoch), (56, 11, 3));
    assert_eq!(host.list("copy", -1, false).await.1, 11);
    assert_eq!(host.write("copy", &batch(11, 3, &["b"]), &order((11, 3), (12, 3))).await.end, 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn acks_that_are_none_are_refused_and_acks_0_is_never_answered() {
    let host = Host::start().await;
    host.create("plain", 1, &[]).await;
    let (answer, _) = host.produce_as(12, 2, "plain", &batch(0, 0, &["a"]), None).await;
    assert_eq!(answer.error_code, 21);
    let unanswered =
        |values: &[&str]| crate::support::produce_request("plain", batch(0, 0, values)).with_acks(0);
    let mut other = host.connect().await;
    other.send_unanswered(12, &unanswered(&["b"])).await.unwrap();
    // Whatever is answered next on this connection comes after it.
    let request = verbatim_wire::messages::DescribeClusterRequest::default().with_endpoint_type(1);
    assert_eq!(other.call(&request).await.unwrap().error_code, 0);
    assert_eq!(host.list("plain", -1, false).await.1, 1);
    let mut broken = unanswered(&["c"]);
    broken.topic_data[0].partition_data[0].records = Some(bytes::Bytes::from_static(b"none"));
    other.send_unanswered(12, &broken).await.unwrap();
    other.closed().await.unwrap();
}
