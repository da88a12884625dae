//! `verbatim mirror`: copies topics of any Kafka into a host, byte for byte, until everything is copied or it is told to stop.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Interval, MissedTickBehavior};
use verbatim::broker::metrics::Endpoint;
use verbatim::mirror::mirror as library;
use verbatim::mirror::mirror::state::{Event, PartitionStatus, Snapshot, State};

use super::output::Output;

mod bars;
mod figures;
mod json;
mod lines;
mod metrics;
mod news;
mod plan;
mod settings;

pub(super) use metrics::Figures;
pub(super) use news::News;
use settings::Settings;
pub(super) use settings::{Asked, Inside, cluster};

/// How often metrics are brought up to date.
pub(super) const MEASURE_INTERVAL: Duration = Duration::from_secs(1);
/// The label of a mirror that has no name.
const METRICS_NAME: &str = "verbatim-mirror";
/// How often bars are drawn anew.
const DRAW_INTERVAL: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
pub(super) struct Mirror {
    #[command(flatten)]
    asked: Asked,
}

impl Mirror {
    pub(super) fn run(self, file: Asked, bootstrap: &str, output: Output) -> anyhow::Result<()> {
        let settings = self.asked.or(file).settings(bootstrap)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.context("the runtime cannot be started")?;
        let ended = runtime.block_on(async {
            if settings.dry_run {
                plan::show(&settings.config, output).await
            } else {
                copy(settings, output).await
            }
        });
        // What is still under way then is waited for by nobody.
        runtime.shutdown_background();
        ended
    }
}

/// How what happens is shown.
trait View {
    /// Something happened.
    fn event(&mut self, event: &Event) -> anyhow::Result<()>;
    /// Where everything stands, now and then.
    fn look(&mut self, snapshot: &Snapshot) -> anyhow::Result<()>;
    /// Where everything stands at the end.
    fn end(&mut self, snapshot: &Snapshot) -> anyhow::Result<()>;
}

/// Why a mirror ends.
enum End {
    ByItself,
    Asked,
}

async fn copy(settings: Settings, output: Output) -> anyhow::Result<()> {
    let mut signals = Signals::new()?;
    let is_terminal = std::io::stdout().is_terminal();
    let (mut view, interval): (Box<dyn View>, _) = match output {
        Output::Json => (Box::new(json::Json::new()), settings.report_interval),
        Output::Text if is_terminal => (Box::new(bars::Bars::new()?), DRAW_INTERVAL),
        Output::Text => (Box::new(lines::Lines::new()), settings.report_interval),
    };
    let figures = Arc::<Figures>::default();
    let endpoint = match settings.metrics_listen {
        Some(address) => Some(tell_metrics(address, Arc::clone(&figures)).await?),
        None => None,
    };
    let once = settings.config.once;
    let mut mirror = library::Mirror::start(settings.config);
    let mut looks = every(interval);
    looks.reset();
    let mut measures = every(MEASURE_INTERVAL);
    let end = loop {
        tokio::select! {
            event = mirror.event() => match event {
                Some(event) => view.event(&event)?,
                None => break End::ByItself,
            },
            _ = looks.tick() => view.look(&mirror.snapshot())?,
            _ = measures.tick(), if endpoint.is_some() => figures.set(METRICS_NAME, mirror.snapshot()),
            name = signals.next() => {
                tracing::info!("{name}: stopping; a second signal ends at once");
                break End::Asked;
            }
        }
    };
    let snapshot = match end {
        End::ByItself => mirror.ended().await?,
        End::Asked => tokio::select! {
            snapshot = mirror.stop() => snapshot,
            name = signals.next() => anyhow::bail!("{name}: ended at once; what was under way is unknown"),
        },
    };
    view.end(&snapshot)?;
    judge(&snapshot, once && matches!(end, End::ByItself))
}

async fn tell_metrics(address: SocketAddr, figures: Arc<Figures>) -> anyhow::Result<Endpoint> {
    let endpoint = Endpoint::bind(address, figures).await;
    let endpoint = endpoint.with_context(|| format!("cannot listen, metrics-listen=`{address}`"))?;
    tracing::info!(address = %endpoint.address(), "metrics are told");
    Ok(endpoint)
}

/// Ticks at once and then in this interval; what is missed is left out.
pub(super) fn every(interval: Duration) -> Interval {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}

/// An error if something needs an operator; if all was to be copied, also if it was not.
fn judge(snapshot: &Snapshot, whole: bool) -> anyhow::Result<()> {
    let is_bad = |status: &&PartitionStatus| {
        status.state.is_stopped() || (whole && !matches!(status.state, State::CaughtUp | State::Paused))
    };
    let bad: Vec<&PartitionStatus> = snapshot.partitions.iter().filter(is_bad).collect();
    if let Some(first) = bad.first() {
        let (count, all) = (bad.len(), snapshot.partitions.len());
        anyhow::bail!("{count} of {all} partitions are not copied; {}", lines::state(first));
    }
    Ok(())
}

/// SIGTERM and SIGINT.
struct Signals {
    terminated: Signal,
    interrupted: Signal,
}

impl Signals {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            terminated: signal(SignalKind::terminate())?,
            interrupted: signal(SignalKind::interrupt())?,
        })
    }

    /// The next one's name.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminated.recv() => "SIGTERM",
            _ = self.interrupted.recv() => "SIGINT",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::figures::tests::status;
    use super::*;

    #[test]
    fn what_is_not_copied_is_a_failure() {
        let of = |states: &[State]| Snapshot {
            partitions: (0..).zip(states).map(|(index, state)| status("a", index, *state)).collect(),
            ..Snapshot::default()
        };
        let good = of(&[State::CaughtUp, State::Paused]);
        let midway = of(&[State::CaughtUp, State::Mirroring, State::Waiting]);
        let stopped = of(&[State::CaughtUp, State::SourceDataLost]);
        assert!(judge(&good, true).is_ok() && judge(&good, false).is_ok() && judge(&midway, false).is_ok());
        for (snapshot, whole, told) in [
            (&midway, true, "2 of 3 partitions are not copied; a-1 is mirroring at 90"),
            (&stopped, true, "1 of 2 partitions are not copied; a-1 is source-data-lost"),
            (&stopped, false, "1 of 2"),
        ] {
            let error = judge(snapshot, whole).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains(told), "{error}");
        }
    }
}
