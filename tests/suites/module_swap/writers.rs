//! Writers that go on while modules are swapped, and take no error.

use anyhow::ensure;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use verbatim_tests::client::Client;
use verbatim_tests::exact::{batch, order};
use verbatim_tests::wait_for;

/// A writer for each partition of the exact topic `busy`, which has three, and one for the normal topic `plain`.
pub(super) struct Writers {
    done: Arc<AtomicBool>,
    running: Vec<(Arc<AtomicI64>, JoinHandle<anyhow::Result<()>>)>,
}

impl Writers {
    pub(super) fn start(address: SocketAddr) -> anyhow::Result<Self> {
        let done = Arc::new(AtomicBool::new(false));
        let places = [("busy", 0), ("busy", 1), ("busy", 2), ("plain", 0)];
        let running = places.map(|place| {
            let (done, written) = (Arc::clone(&done), Arc::new(AtomicI64::new(0)));
            let count = Arc::clone(&written);
            (written, thread::spawn(move || go_on(address, place, &done, &count)))
        });
        let writers = Self { done, running: running.into() };
        writers.wait_for_progress()?;
        Ok(writers)
    }

    /// Waits until each has written something more.
    pub(super) fn wait_for_progress(&self) -> anyhow::Result<()> {
        for (written, writer) in &self.running {
            let before = written.load(Ordering::Relaxed);
            wait_for("progress of the writers", Duration::from_secs(60), || {
                let goes_on = written.load(Ordering::Relaxed) > before;
                Ok((goes_on || writer.is_finished()).then_some(()))
            })?;
        }
        Ok(())
    }

    /// Ends them, and gives how many requests they sent. An error that one had on the way comes out here; and what each wrote,
    /// no more and no less, must be there.
    pub(super) fn finish(self) -> anyhow::Result<u64> {
        self.done.store(true, Ordering::Relaxed);
        let mut sent = 0;
        for (written, writer) in self.running {
            writer.join().map_err(|_| anyhow::anyhow!("a writer panicked"))??;
            sent += u64::try_from(written.load(Ordering::Relaxed))?;
        }
        Ok(sent)
    }
}

/// Writes batch after batch until it is done.
fn go_on(
    address: SocketAddr,
    (topic, index): (&str, i32),
    done: &AtomicBool,
    written: &AtomicI64,
) -> anyhow::Result<()> {
    let client = Client::connect(address)?;
    let (mut expected, mut end) = (Vec::new(), 0);
    while !done.load(Ordering::Relaxed) {
        let value = format!("{topic}-{index} {end}");
        let answer = if topic == "busy" {
            let bytes = batch(end, 3, &[&value])?;
            expected.extend_from_slice(&bytes);
            let tag = order((end, if end == 0 { -1 } else { 3 }), (0, end + 1), 3);
            client.produce((topic, index), Some(&tag), &bytes)?
        } else {
            client.produce((topic, index), None, &batch(0, 0, &[&value])?)?
        };
        ensure!(answer.error_code == 0, "{value}: {answer:?}");
        end += 1;
        written.store(end, Ordering::Relaxed);
    }
    ensure!(client.latest((topic, index))?.0 == end, "{topic}-{index} does not end at {end}");
    if topic == "busy" {
        ensure!(
            client.fetch_all((topic, index), 0)? == expected,
            "{topic}-{index}: other bytes than were sent"
        );
    }
    Ok(())
}
