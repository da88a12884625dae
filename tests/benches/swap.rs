//! What producers notice while modules are swapped, and while a candidate judges along in a shadow period.
//!
//! Eight connections write all the time in one run against the real command, in stretches: quiet, while modules are swapped
//! one after the other, quiet, in a shadow period, quiet. Times are printed as they are and as ratios to the quiet
//! stretches beside them; take the ratios. A candidate is compiled and tested on the same cores as everything else, which is
//! most of what is seen here. The disk is left out (`--flush never`).
//! `VERBATIM_BENCH_SECONDS` says how long a quiet stretch and the shadow period take, `VERBATIM_BENCH_SWAPS` how many swaps
//! there are.

#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use anyhow::{Context as _, ensure};
use std::path::Path;
use std::time::Duration;
use verbatim_tests::host::{Home, Host};
use verbatim_tests::load::{Load, Times, setting};

const NAME: &str = "exact-mirroring";
const PARTITIONS: i32 = 8;
const PAUSE: Duration = Duration::from_millis(5);

fn main() -> anyhow::Result<()> {
    let seconds = setting("VERBATIM_BENCH_SECONDS", 20)?;
    let swaps = setting("VERBATIM_BENCH_SWAPS", 100)?;
    let folder = tempfile::Builder::new().prefix("verbatim-modules-").tempdir()?;
    let home = Home::new()?.arguments(&["--flush", "never"]);
    let host = home.start()?;
    host.create_topic("busy", u32::try_from(PARTITIONS)?, &[])?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let swapper = Swapper { home: &home, host: &host, folder: folder.path() };
    runtime.block_on(measure(&swapper, swaps, seconds))?;
    host.stop()
}

async fn measure(swapper: &Swapper<'_>, swaps: u64, seconds: u64) -> anyhow::Result<()> {
    let places = (0..PARTITIONS).map(|partition| ("busy", partition));
    let load = Load::connect(swapper.host.address(), places, PAUSE).await?;
    let quiet = Duration::from_secs(seconds);
    load.write(quiet / 4).await?;
    let first = load.write(quiet).await?;
    let mut swapped = Ok(());
    let swapping = load
        .write_while(async {
            swapped = tokio::task::block_in_place(|| swapper.swap_often(swaps));
        })
        .await?;
    swapped?;
    let second = load.write(quiet).await?;
    let mut judged = Ok(0);
    let shadow = load
        .write_while(async {
            judged = tokio::task::block_in_place(|| swapper.shadow(seconds));
        })
        .await?;
    let judged = judged?;
    let third = load.write(quiet).await?;
    println!("produce, ms; {} connections, one write in {PAUSE:?} each", PARTITIONS);
    print!("{}", Times::table(&format!("{swaps} swaps"), [&first, &swapping, &second]));
    print!("{}", Times::table(&format!("shadow, {judged} judged"), [&second, &shadow, &third]));
    println!("answers: {:?}", [&first, &swapping, &second, &shadow, &third].map(Times::count));
    Ok(())
}

/// Who swaps modules of a running host.
struct Swapper<'a> {
    home: &'a Home,
    host: &'a Host,
    folder: &'a Path,
}

impl Swapper<'_> {
    fn swap_often(&self, swaps: u64) -> anyhow::Result<()> {
        (0..swaps).try_for_each(|number| self.swap(number, &[]).map(drop))
    }

    /// A shadow period of so many seconds; how many requests the candidate judged.
    fn shadow(&self, seconds: u64) -> anyhow::Result<u64> {
        let period = format!("{seconds}s");
        let told = self.swap(u64::MAX, &["--shadow", &period, "--dry-run", "--output", "json"])?;
        let told: serde_json::Value = serde_json::from_str(&told)?;
        let shadow = told.get("shadow").context("no shadow in the answer")?;
        ensure!(shadow.get("different") == Some(&0.into()), "{shadow}");
        shadow.get("judged").and_then(serde_json::Value::as_u64).context("no number judged")
    }

    /// The bundled module with another digest: a custom section says its number.
    fn swap(&self, number: u64, more: &[&str]) -> anyhow::Result<String> {
        let mut bytes = verbatim_artifact::exact_mirroring()?.to_vec();
        bytes.extend([0, 10, 1, b'n']);
        bytes.extend(number.to_be_bytes());
        let file = self.folder.join("candidate.wasm");
        std::fs::write(&file, bytes)?;
        let (file, data) = (file.to_str().context("not UTF-8")?, self.home.data());
        let place = ["module", "swap", NAME, file, "--data", data.to_str().context("not UTF-8")?];
        self.host.verbatim(&[&place, more].concat(), b"")?.success()
    }
}
