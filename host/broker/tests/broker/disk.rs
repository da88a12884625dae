//! A disk that fails: a clear error for the partition, nothing half-written, and nobody else notices.

use std::io::{Error, IoSlice, Result};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use verbatim_log::{DiskIo, File, Io};

use crate::support::{Fetch, Host, batch, order, told};

/// What fails at present, and only on segments of the topic `bad`.
#[derive(Default)]
struct Faults {
    writes: AtomicBool,
    cuts: AtomicBool,
    flushes: AtomicBool,
}

struct Faulty(Arc<Faults>);

struct FaultyFile {
    inner: Arc<dyn File>,
    faults: Arc<Faults>,
}

impl Faulty {
    fn wrapped(&self, path: &Path, inner: Arc<dyn File>) -> Arc<dyn File> {
        let segment = path.extension().is_some_and(|extension| extension == "log");
        let bad = path.parent().is_some_and(|folder| folder.ends_with("bad-0"));
        if segment && bad { Arc::new(FaultyFile { inner, faults: Arc::clone(&self.0) }) } else { inner }
    }
}

impl Io for Faulty {
    fn open(&self, path: &Path, create: bool) -> Result<Arc<dyn File>> {
        Ok(self.wrapped(path, DiskIo.open(path, create)?))
    }

    fn open_read(&self, path: &Path) -> Result<Arc<dyn File>> {
        Ok(self.wrapped(path, DiskIo.open_read(path)?))
    }

    fn list(&self, folder: &Path) -> Result<Vec<String>> {
        DiskIo.list(folder)
    }

    fn create_folder(&self, folder: &Path) -> Result<()> {
        DiskIo.create_folder(folder)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        DiskIo.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        DiskIo.remove(path)
    }

    fn remove_folder(&self, folder: &Path) -> Result<()> {
        DiskIo.remove_folder(folder)
    }

    fn sync_folder(&self, folder: &Path) -> Result<()> {
        DiskIo.sync_folder(folder)
    }
}

impl File for FaultyFile {
    fn len(&self) -> Result<u64> {
        self.inner.len()
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize> {
        self.inner.read_at(buffer, position)
    }

    fn write_at(&self, slices: &[IoSlice<'_>], position: u64) -> Result<usize> {
        if !self.faults.writes.load(Ordering::SeqCst) {
            return self.inner.write_at(slices, position);
        }
        // A torn write: most of the bytes arrive, one at a time, and the last ones do not.
        let left: usize = slices.iter().map(|slice| slice.len()).sum();
        let first = slices.iter().find_map(|slice| slice.first());
        match first.filter(|_| left > 20) {
            Some(byte) => self.inner.write_at(&[IoSlice::new(&[*byte])], position),
            None => Err(Error::other("the disk fails")),
        }
    }

    fn set_len(&self, length: u64) -> Result<()> {
        fails(&self.faults.cuts)?;
        self.inner.set_len(length)
    }

    fn sync(&self) -> Result<()> {
        fails(&self.faults.flushes)?;
        self.inner.sync()
    }
}

fn fails(fault: &AtomicBool) -> Result<()> {
    if fault.load(Ordering::SeqCst) { Err(Error::other("the disk fails")) } else { Ok(()) }
}

fn set(fault: &AtomicBool, on: bool) {
    fault.store(on, Ordering::SeqCst);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_write_leaves_the_partition_as_it_was() {
    let faults = Arc::<Faults>::default();
    let host = Host::on(Arc::new(Faulty(Arc::clone(&faults)))).await;
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
    let host = Host::on(Arc::new(Faulty(Arc::clone(&faults)))).await;
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
    let host = Host::on(Arc::new(Faulty(Arc::clone(&faults)))).await;
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
