//! `verbatim verify`: compares topics of two clusters batch by batch, and says where they first differ.

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use verbatim::mirror::verify::{Options, Report, Verifier, VerifyError};

use super::output::{Output, complain};

mod settings;
mod text;

pub(super) use settings::Asked;

/// How often progress is drawn.
const DRAWN_EVERY: Duration = Duration::from_millis(200);
/// Exit code if it could not be found out.
const UNDECIDED: u8 = 2;

#[derive(Debug, Args)]
pub(super) struct Verify {
    #[command(flatten)]
    asked: Asked,
}

impl Verify {
    /// Exit code 0 if everything is identical, compacted-equal or redacted, 1 if not, 2 if that could not be found out.
    pub(super) fn run(self, file: Asked, output: Output) -> anyhow::Result<ExitCode> {
        let options = self.asked.or(file).options()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.context("the runtime cannot be started")?;
        let found = runtime.block_on(verify(options));
        // Whoever still fetches for nobody is not waited for.
        runtime.shutdown_background();
        match found {
            Ok(report) => {
                output.write(&report, || text::report(&report))?;
                Ok(ExitCode::from(report.exit_code()))
            }
            Err(error) => {
                complain(&error.into());
                Ok(ExitCode::from(UNDECIDED))
            }
        }
    }
}

async fn verify(options: Options) -> Result<Report, VerifyError> {
    let verifier = Verifier::new(options)?;
    let drawing = std::io::stderr().is_terminal().then(|| tokio::spawn(draw(verifier.clone())));
    let report = verifier.run().await;
    if let Some(drawing) = drawing {
        drawing.abort();
        // It was aborted, and has cleared its line.
        let _ = drawing.await;
    }
    report
}

/// A line on the terminal that says how far it has come.
async fn draw(verifier: Verifier) {
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("[{bar:24}] {percent}% {msg}");
    if let Ok(style) = style {
        bar.set_style(style.progress_chars("=> "));
    }
    let bar = Cleared(bar);
    loop {
        let progress = verifier.progress();
        bar.0.set_length(progress.offsets_total);
        bar.0.set_position(progress.offsets);
        bar.0.set_message(format!(
            "partitions {} of {}, {} MB read",
            progress.partitions_done,
            progress.partitions,
            progress.bytes / 1_000_000
        ));
        tokio::time::sleep(DRAWN_EVERY).await;
    }
}

/// A bar that is gone when it is dropped.
struct Cleared(ProgressBar);

impl Drop for Cleared {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
