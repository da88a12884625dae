//! From counters to text.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabel as _, EncodeLabelSet, LabelSetEncoder, MetricEncoder, NoLabelSet,
    prometheus_text, text,
};
use prometheus_client::registry::Registry;
use verbatim_engine::{FAILURE_LABELS, REASON_LABELS};
use verbatim_log::View;
use verbatim_wire::APIS;

use super::cells::{Cell as _, Sums};
use super::families::{self, Family};
use super::thread::{self, Appended, POISONED, ThreadMetrics};
use super::{Metrics, codes, process, wide};
use crate::shared::{PartitionView, Shared};

/// Which text is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' text format 0.0.4.
    Prometheus,
}

impl Format {
    /// The text's content type.
    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => prometheus_text::CONTENT_TYPE,
        }
    }
}

/// Metrics that are shown beside the host's own.
pub trait More: Send + Sync {
    /// Writes them as they are now, family by family. To be quick: whoever asks for metrics waits for it.
    ///
    /// # Errors
    /// Those of `out`.
    fn write(&self, out: &mut Out<'_>) -> fmt::Result;
}

/// Everything of a host at this moment. Waits for no append thread; reads some files of `/proc`.
pub(super) fn text(shared: &Arc<Shared>, format: Format) -> Result<String, fmt::Error> {
    encode(Scrape(Arc::clone(shared)), format)
}

/// What a program that is no host tells.
pub(super) fn text_of(more: &Arc<dyn More>, format: Format) -> Result<String, fmt::Error> {
    encode(ScrapeMore(Arc::clone(more)), format)
}

fn encode(collector: impl Collector, format: Format) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(collector));
    let mut text = String::new();
    match format {
        Format::OpenMetrics => text::encode(&mut text, &registry)?,
        Format::Prometheus => prometheus_text::encode(&mut text, &registry)?,
    }
    Ok(text)
}

struct Scrape(Arc<Shared>);

impl fmt::Debug for Scrape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Scrape")
    }
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut out = Out(encoder);
        let metrics = &*self.0.metrics;
        requests(&mut out, metrics)?;
        connections(&mut out, &self.0)?;
        appends(&mut out, &metrics.threads)?;
        calls(&mut out, &metrics.threads)?;
        out.one(&families::RETENTION_SEGMENTS, Some(metrics.retention_segments.get()))?;
        out.one(&families::RETENTION, Some(metrics.retention_bytes.get()))?;
        partitions(&mut out, &self.0)?;
        host(&mut out, metrics)?;
        metrics.more().iter().try_for_each(|more| more.write(&mut out))
    }
}

struct ScrapeMore(Arc<dyn More>);

impl fmt::Debug for ScrapeMore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ScrapeMore")
    }
}

impl Collector for ScrapeMore {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.write(&mut Out(encoder))
    }
}

fn requests(out: &mut Out<'_>, metrics: &Metrics) -> fmt::Result {
    let apis = || APIS.iter().map(|api| api.key.name()).zip(&metrics.apis);
    out.family(&families::REQUESTS, |series| {
        for (name, api) in apis() {
            for (place, count) in api.codes.iter().enumerate() {
                let (error, count) = (codes::place_name(place), count.get());
                // A success that is still to come is 0; of errors there are too many.
                if count > 0 || error == "NONE" {
                    series.number(&[name, error], count)?;
                }
            }
        }
        Ok(())
    })?;
    out.family(&families::REQUEST_DURATION, |series| {
        apis().try_for_each(|(name, api)| series.histogram(&[name], &api.durations.sums(), NANOSECONDS))
    })?;
    out.family(&families::RECEIVED, |series| {
        apis().try_for_each(|(name, api)| series.number(&[name], api.received.get()))
    })?;
    out.family(&families::SENT, |series| {
        apis().try_for_each(|(name, api)| series.number(&[name], api.sent.get()))
    })
}

fn connections(out: &mut Out<'_>, shared: &Shared) -> fmt::Result {
    let metrics = &shared.metrics;
    // Read in this order, so that there are never more closed than taken.
    let closed = metrics.connections_closed.get();
    let taken = metrics.connections.get();
    out.one(&families::CONNECTIONS, Some(taken.saturating_sub(closed)))?;
    out.one(&families::CONNECTIONS_TAKEN, Some(taken))?;
    out.family(&families::CONNECTIONS_REFUSED, |series| {
        series.number(&["connections-max"], metrics.refused_all.get())?;
        series.number(&["connections-per-ip-max"], metrics.refused_from_address.get())?;
        series.number(&["gave-way"], metrics.gave_way.get())
    })?;
    out.one(&families::IN_FLIGHT, Some(wide(shared.in_flight.bytes())))
}

fn appends(out: &mut Out<'_>, threads: &[Arc<ThreadMetrics>]) -> fmt::Result {
    let sum = |number: &dyn Fn(&ThreadMetrics) -> u64| threads.iter().map(|one| number(one)).sum::<u64>();
    let by_mode = |series: &mut Series<'_, '_>, number: fn(&Appended) -> u64| {
        (0..).zip(thread::MODES).try_for_each(|(place, mode): (usize, _)| {
            series.number(&[mode], sum(&|thread| thread.appended.get(place).map_or(0, number)))
        })
    };
    out.family(&families::APPENDED_RECORDS, |series| by_mode(series, |mode| mode.records.get()))?;
    out.family(&families::APPENDED_BATCHES, |series| by_mode(series, |mode| mode.batches.get()))?;
    out.family(&families::APPENDED, |series| by_mode(series, |mode| mode.bytes.get()))?;
    out.family(&families::REFUSALS, |series| {
        REASON_LABELS.iter().enumerate().try_for_each(|(place, reason)| {
            let count = sum(&|thread| thread.refusals.get(place).map_or(0, |count| count.get()));
            series.number(&[reason], count)
        })
    })?;
    out.family(&families::MODULE_FAILURES, |series| {
        FAILURE_LABELS.iter().chain([&POISONED]).enumerate().try_for_each(|(place, kind)| {
            let count = sum(&|thread| thread.failures.get(place).map_or(0, |count| count.get()));
            series.number(&[kind], count)
        })
    })
}

fn calls(out: &mut Out<'_>, threads: &[Arc<ThreadMetrics>]) -> fmt::Result {
    fn all<const N: usize>(
        threads: &[Arc<ThreadMetrics>],
        bounds: &'static [u64; N],
        one: impl Fn(&ThreadMetrics) -> Sums<N>,
    ) -> Sums<N> {
        threads.iter().fold(Sums::empty(bounds), |sums, thread| sums.and(&one(thread)))
    }
    let sums = all(threads, &thread::JUDGING, |one| one.judging.sums());
    out.family(&families::JUDGING_DURATION, |series| series.histogram(&[], &sums, NANOSECONDS))?;
    let sums = all(threads, &thread::BATCHES, |one| one.batches_per_call.sums());
    out.family(&families::BATCHES_PER_CALL, |series| series.histogram(&[], &sums, 1.0))?;
    let sums = all(threads, &thread::TIMES, |one| one.queue_wait.sums());
    out.family(&families::QUEUE_WAIT, |series| series.histogram(&[], &sums, NANOSECONDS))?;
    let sums = all(threads, &thread::TIMES, |one| one.flushes.sums());
    out.family(&families::FLUSH_DURATION, |series| series.histogram(&[], &sums, NANOSECONDS))?;
    let sums = all(threads, &thread::GROUPS, |one| one.groups.sums());
    out.family(&families::GROUP_SIZE, |series| series.histogram(&[], &sums, 1.0))
}

/// A partition as it is shown.
struct Row {
    partition: PartitionView,
    label: String,
    view: Option<Arc<View>>,
}

fn partitions(out: &mut Out<'_>, shared: &Shared) -> fmt::Result {
    let all = shared.each_partition();
    let shown = all.len().min(shared.config.limits.metrics_partitions_max);
    let offline = all.iter().filter(|partition| partition.offline().is_some()).count();
    out.one(&families::PARTITIONS, Some(wide(all.len())))?;
    out.one(&families::PARTITIONS_OFFLINE, Some(wide(offline)))?;
    out.one(&families::PARTITIONS_LEFT_OUT, Some(wide(all.len().saturating_sub(shown))))?;
    let row = |partition: PartitionView| Row {
        label: partition.index.to_string(),
        view: partition.slot.as_ref().ok().map(|reader| reader.view()),
        partition,
    };
    let rows: Vec<Row> = all.into_iter().take(shown).map(row).collect();
    let mut gauge = |family: &Family, value: &dyn Fn(&Row) -> Option<i64>| {
        out.family(family, |series| {
            for row in &rows {
                if let Some(value) = value(row) {
                    series.gauge(&[&row.partition.topic.name, &row.label], value)?;
                }
            }
            Ok(())
        })
    };
    let online = |row: &Row| row.view.as_ref().is_some_and(|view| view.offline.is_none());
    gauge(&families::PARTITION_ONLINE, &|row| Some(i64::from(online(row))))?;
    gauge(&families::LOG_START_OFFSET, &|row| Some(row.view.as_ref()?.start))?;
    gauge(&families::LOG_END_OFFSET, &|row| Some(row.view.as_ref()?.end))?;
    gauge(&families::HIGH_WATERMARK, &|row| Some(row.view.as_ref()?.high_watermark))?;
    gauge(&families::LAST_STABLE_OFFSET, &|row| Some(row.view.as_ref()?.stable_offset))?;
    gauge(&families::SHOWN_LEADER_EPOCH, &|row| Some(row.view.as_ref()?.shown_epoch.into()))?;
    gauge(&families::SOURCE_END_OFFSET, &|row| {
        let view = row.view.as_ref().filter(|view| view.exact)?;
        view.source.map(|source| source.end).filter(|end| *end >= 0)
    })?;
    let log = |row: &Row| row.partition.slot.as_ref().ok().map(|reader| reader.log.clone());
    gauge(&families::LOG_SEGMENTS, &|row| i64::try_from(log(row)?.segments()).ok())?;
    gauge(&families::LOG_SIZE, &|row| i64::try_from(log(row)?.size()).ok())
}

fn host(out: &mut Out<'_>, metrics: &Metrics) -> fmt::Result {
    out.family(&families::BUILD_INFO, |series| series.gauge(&[env!("CARGO_PKG_VERSION")], 1))?;
    out.family(&families::START_TIME, |series| {
        series.encode(&[], |encoder| encoder.encode_gauge(&metrics.started_at_seconds()))
    })?;
    out.one(&families::OPEN_FILES, process::open_files().map(wide))?;
    out.one(&families::OPEN_FILES_MAX, process::open_files_max())?;
    out.one(&families::MEMORY, process::resident_bytes())
}

/// The text, one family after the other.
pub struct Out<'a>(DescriptorEncoder<'a>);

impl fmt::Debug for Out<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Out")
    }
}

impl Out<'_> {
    /// A family, with the series that `write` gives it. Each family is to be written once.
    ///
    /// # Errors
    /// The text cannot be written.
    pub fn family(
        &mut self,
        family: &Family,
        write: impl FnOnce(&mut Series<'_, '_>) -> fmt::Result,
    ) -> fmt::Result {
        let (stem, unit) = family.parts();
        let encoder =
            self.0.encode_descriptor(stem, family.help, unit.as_ref(), family.kind.metric_type())?;
        write(&mut Series { encoder, family })
    }

    /// A family of one series, if there is a number.
    fn one(&mut self, family: &Family, value: Option<u64>) -> fmt::Result {
        self.family(family, |series| value.map_or(Ok(()), |value| series.number(&[], value)))
    }
}

/// The series of a family.
#[derive(Debug)]
pub struct Series<'a, 'b> {
    encoder: MetricEncoder<'a>,
    family: &'b Family,
}

/// Histograms of times count nanoseconds and show seconds: so many a second.
const NANOSECONDS: f64 = 1e9;

impl Series<'_, '_> {
    /// A counter, or a gauge that is never negative, with as many values of labels as the family has labels.
    ///
    /// # Errors
    /// The text cannot be written.
    pub fn number(&mut self, labels: &[&str], value: u64) -> fmt::Result {
        let is_counter = self.family.kind == families::Kind::Counter;
        self.encode(labels, |encoder| match is_counter {
            true => encoder.encode_counter::<NoLabelSet, _, f64>(&value, None),
            false => encoder.encode_gauge(&value),
        })
    }

    /// A gauge that may be negative.
    ///
    /// # Errors
    /// As [`Self::number`].
    pub fn gauge(&mut self, labels: &[&str], value: i64) -> fmt::Result {
        self.encode(labels, |encoder| encoder.encode_gauge(&value))
    }

    /// A gauge of a time, which is shown in seconds.
    ///
    /// # Errors
    /// As [`Self::number`].
    pub fn time(&mut self, labels: &[&str], value: Duration) -> fmt::Result {
        self.encode(labels, |encoder| encoder.encode_gauge(&value.as_secs_f64()))
    }

    /// A histogram of times, which are shown in seconds: how many were within each bound in nanoseconds and above the one
    /// before, how many above all, and their sum.
    ///
    /// # Errors
    /// As [`Self::number`].
    pub fn times(
        &mut self,
        labels: &[&str],
        within: impl Iterator<Item = (u64, u64)>,
        beyond: u64,
        sum_ns: u64,
    ) -> fmt::Result {
        let bounded = within.map(|(bound, count)| (scaled(bound, NANOSECONDS), count));
        let buckets: Vec<(f64, u64)> = bounded.chain([(f64::INFINITY, beyond)]).collect();
        let count = buckets.iter().fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
        self.encode(labels, |encoder| {
            encoder.encode_histogram::<NoLabelSet>(scaled(sum_ns, NANOSECONDS), count, &buckets, None)
        })
    }

    fn histogram<const N: usize>(&mut self, labels: &[&str], sums: &Sums<N>, parts: f64) -> fmt::Result {
        let bounded = sums.buckets.iter().map(|(bound, count)| (scaled(*bound, parts), *count));
        let buckets: Vec<(f64, u64)> = bounded.chain([(f64::INFINITY, sums.beyond)]).collect();
        self.encode(labels, |encoder| {
            encoder.encode_histogram::<NoLabelSet>(scaled(sums.sum, parts), sums.count(), &buckets, None)
        })
    }

    fn encode(
        &mut self,
        labels: &[&str],
        write: impl FnOnce(&mut MetricEncoder<'_>) -> fmt::Result,
    ) -> fmt::Result {
        if labels.is_empty() {
            return write(&mut self.encoder);
        }
        let labels = Labels { names: self.family.labels, values: labels };
        write(&mut self.encoder.encode_family(&labels)?)
    }
}

/// A whole number in its base unit, of which `parts` make one. Divided, so that 1 us is 0.000001 and not a little less.
#[expect(clippy::cast_precision_loss, reason = "a sum above 2^53 may be rounded")]
fn scaled(value: u64, parts: f64) -> f64 {
    value as f64 / parts
}

struct Labels<'a> {
    names: &'a [&'static str],
    values: &'a [&'a str],
}

impl EncodeLabelSet for Labels<'_> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        let mut pairs = self.names.iter().zip(self.values);
        pairs.try_for_each(|(name, value)| (*name, *value).encode(encoder.encode_label()))
    }
}
