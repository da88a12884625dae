//! A disk that fails: a clear error for the partition, nothing half-written, and nobody else notices.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use verbatim_test_disk::{Fault, Kind, Operation, SimDisk};

use crate::support::{Fetch, Host, batch, order, told};

/// What fails at present, and only on segments of the topic `bad`.
#[derive(Default)]
struct Faults {
    writes: AtomicBool,
    cuts: AtomicBool,
    flushes: AtomicBool,
}

impl Faults {
    /// A disk with these faults.
    fn disk(self: &Arc<Self>) -> Arc<SimDisk> {
        let disk = SimDisk::default();
        let faults = Arc::clone(self);
        disk.set_rule(move |operation| faults.of(operation));
        Arc::new(disk)
    }

    fn of(&self, operation: &Operation<'_>) -> Option<Fault> {
        let segment = operation.path.extension().is_some_and(|extension| extension == "log");
        let bad = operation.path.parent().is_some_and(|folder| folder.ends_with("bad-0"));
        let (fails, fault) = match operation.kind {
            Kind::Write => (&self.writes, Fault::Tear),
            Kind::SetLength => (&self.cuts, Fault::Fail),
            Kind::Sync => (&self.flushes, Fault::Fail),
            _ => return None,
        };
        (segment && bad && fails.load(Ordering::SeqCst)).then_some(fault)
    }
}

fn set(fault: &AtomicBool, on: bool) {
    fault.store(on, Ordering::SeqCst);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_write_leaves_the_partition_as_it_was() {
    let faults = Arc::<Faults>::default();
    let host = Host::on(faults.disk()).await;
    host.exact("bad", &[]).await;
    let first = batch(10, 3, &["a"]);
    host.write("bad", &first, &order((0, -1), (11, 3))).await;
    set(&faults.writes, true);
    let answer = host.produce("bad", &batch(11, 4, &["b"]), Some(&order((11, 3), (12, 4)))).await;
    assert_eq!((answer.error_code, told(&answer).end, told(&answer).last_epoch), (56, 11, 3));
    assert!(answer.error_message.unwrap_or_default().contains("the disk fails"));
    set(&faults.writes, false);
    let second = batch(11, 4, &["b"]);
    assert_eq!(host.write("bad", &second, &order((11, 3), (12, 4))).await.end, 12);
    assert_eq!(host.fetch("bad", Fetch::at(0)).await.records, Some(Bytes::from([first, second].concat())));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_cannot_be_undone_takes_the_partition_offline_by_name() {
    offline_until_restart(|faults, on| {
        set(&faults.writes, on);
        set(&faults.cuts, on);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_flush_is_never_acknowledged_and_takes_the_partition_offline() {
    offline_until_restart(|faults, on| set(&faults.flushes, on)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_flush_is_answered_with_a_tag_too() {
    let faults = Arc::<Faults>::default();
    let host = Host::on(faults.disk()).await;
    host.exact("bad", &[]).await;
    host.write("bad", &batch(10, 3, &["a"]), &order((0, -1), (11, 3))).await;
    set(&faults.flushes, true);
    for _ in 0..2 {
        let answer = host.produce("bad", &batch(11, 4, &["b"]), Some(&order((11, 3), (12, 4)))).await;
        assert_eq!((answer.error_code, told(&answer).diverged), (56, None));
    }
}

async fn offline_until_restart(fault: impl Fn(&Faults, bool)) {
    let faults = Arc::<Faults>::default();
    let host = Host::on(faults.disk()).await;
    host.create("bad", 1, &[]).await;
    host.create("good", 1, &[]).await;
    let kept = batch(0, 0, &["kept"]);
    assert_eq!(host.produce("bad", &kept, None).await.error_code, 0);
    fault(&faults, true);
    for _ in 0..2 {
        let answer = host.produce("bad", &batch(0, 0, &["lost"]), None).await;
        assert_eq!(answer.error_code, 56);
        assert!(answer.error_message.unwrap_or_default().contains("topic=`bad`"));
    }
    fault(&faults, false);
    assert_eq!(host.produce("bad", &batch(0, 0, &["lost"]), None).await.error_code, 56, "until restart");
    assert_eq!(host.metadata("bad").await.partitions[0].error_code, 5);
    assert_eq!(host.fetch("bad", Fetch::at(0)).await.error_code, 56);
    assert_eq!(host.produce("good", &batch(0, 0, &["x"]), None).await.error_code, 0);
    let host = host.restart().await;
    let answer = host.produce("bad", &batch(0, 0, &["again"]), None).await;
    assert_eq!(answer.error_code, 0, "{:?}", answer.error_message);
    let fetched = host.fetch("bad", Fetch::at(0)).await;
    assert!(fetched.records.unwrap_or_default().starts_with(&kept));
}
