//! A module is judged by its own CPU time: while other work keeps every core busy, none of its calls misses a deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use verbatim_tests::client::Client;
use verbatim_tests::exact::{EXACT, batch, order};
use verbatim_tests::host::Home;

#[test]
fn no_call_misses_its_deadline_while_every_core_is_busy() -> anyhow::Result<()> {
    let home = Home::new()?;
    let host = home.start()?;
    host.create_topic("exact", 1, &[EXACT])?;
    let client = Client::connect(host.address())?;
    let done = Arc::new(AtomicBool::new(false));
    let cores = thread::available_parallelism()?.get();
    let busy: Vec<_> = (0..cores * 4)
        .map(|_| {
            let done = Arc::clone(&done);
            thread::spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        })
        .collect();
    let written = write(&client, if verbatim_tests::soak() { 20_000 } else { 1_000 });
    done.store(true, Ordering::Relaxed);
    for thread in busy {
        thread.join().map_err(|_| anyhow::anyhow!("a busy thread panicked"))?;
    }
    written?;
    host.stop()
}

fn write(client: &Client, batches: i64) -> anyhow::Result<()> {
    for i in 0..batches {
        let order = order((i, if i == 0 { -1 } else { 3 }), (0, i + 1), 3);
        let answer = client.produce(("exact", 0), Some(&order), &batch(i, 3, &["x"])?)?;
        anyhow::ensure!(answer.error_code == 0, "batch {i}: {answer:?}");
    }
    Ok(())
}
