//! Finds out where a copy goes on: what both sides hold, and what is done if they do not agree.

use verbatim_batch::Header;
use verbatim_wire::exact_producer::{
    Aligned as Common, CopyState, EpochEnd, ExactPartition, Found, Histories, Source, Target, Truncate,
    align as agree,
};

use super::config::{OnDataLost, OnDivergence};
use super::links::Links;
use super::partition::Task;
use super::peek::batch_at;
use super::state::Skipped;
use super::trouble::{Halt, Side, Trouble};
use crate::cluster::{At, Cluster, ClusterError, Partition};
use crate::verify::certain_difference;

/// Where a copy goes on.
#[derive(Debug)]
pub(super) struct Aligned {
    /// The copy, ready for writes at its end.
    pub(super) writer: ExactPartition,
    /// That end.
    pub(super) end: i64,
    /// The epoch of its last entry; -1 = none.
    pub(super) last_epoch: i32,
    /// The epoch at `end` - 1; -1 = nothing there.
    pub(super) epoch_before: i32,
    /// It holds no batch, so one that begins below its end may come (R25).
    pub(super) empty: bool,
    /// Where reading goes on: at the end, or above it where the source begins.
    pub(super) read_from: i64,
    /// Where the source stood.
    pub(super) source: Source,
}

/// Both sides' logs, as they were asked for.
#[derive(Debug, Clone, Copy)]
struct Logs {
    copy: CopyState,
    source: Source,
}

/// Compares both sides until they agree or someone has to decide. `None`: the source has nothing, not even a leader epoch.
pub(super) async fn align(task: &Task, again: bool) -> Result<Option<Aligned>, Trouble> {
    // It closes when the mirror is dropped, and with it everything else.
    let _turn = task.links.aligning.acquire().await;
    let target = Target {
        topic: task.topic.name.clone(),
        partition: task.partition.index,
        source_topic_id: task.topic.id.into_bytes(),
    };
    let writer = task.producer.open(target).await?;
    let found = writer.found();
    let mut source = source_state(task, again).await?;
    if source.epoch < 0 && source.end > 0 {
        // What is known of the leader may be older than the first batch.
        source = source_state(task, true).await?;
    }
    task.cell.end(found.end);
    if source.epoch < 0 {
        return if source.end == 0 { Ok(None) } else { Err(Trouble::Halt(Halt::no_epochs())) };
    }
    let logs = Logs { copy: copy_state(task, found).await?, source };
    let mut both = Both { links: &task.links, partition: &task.partition };
    match agree(&mut both, logs.copy).await? {
        Common::Continue { .. } => go_on(task, writer, logs).await.map(Some),
        Common::Truncate { to } => Err(truncated(task, writer, logs, to).await),
        Common::Stop { why } => Err(Trouble::Halt(Halt::apart(why, found.end, found.last_epoch))),
    }
}

async fn go_on(task: &Task, mut writer: ExactPartition, logs: Logs) -> Result<Aligned, Trouble> {
    let Logs { copy, source } = logs;
    let never_written = copy.end == 0 && copy.last_epoch < 0;
    if source.start > copy.end && !never_written {
        data_lost(task, copy.end, source.start)?;
    }
    same_last_batch(task, logs).await?;
    let epoch_before = epoch_before(task, copy).await?;
    writer.resume_at(copy.end, epoch_before).await?;
    Ok(Aligned {
        writer,
        end: copy.end,
        last_epoch: copy.last_epoch,
        epoch_before,
        empty: copy.start == copy.end,
        read_from: copy.end.max(source.start),
        source,
    })
}

fn data_lost(task: &Task, end: i64, source_start: i64) -> Result<(), Trouble> {
    let halt = Halt::data_lost(end, source_start);
    match task.links.config.on_data_lost {
        OnDataLost::Stop => Err(Trouble::Halt(halt)),
        OnDataLost::Skip => {
            let text =
                format!("partition {}: offsets {end} to {source_start} are skipped", task.partition.index);
            task.links.board.note(&task.topic.name, text);
            task.cell.skipped(Skipped { from: end, to: source_start, reason: halt.reason });
            Ok(())
        }
    }
}

/// The source was truncated below the copy's end: what is to be done about that.
async fn truncated(task: &Task, writer: ExactPartition, logs: Logs, to: i64) -> Trouble {
    let done = match task.links.config.on_divergence {
        OnDivergence::Stop => says_where(task, logs.copy, to).await,
        OnDivergence::Follow => cut(task, writer, logs, to).await,
    };
    done.unwrap_or_else(|trouble| trouble)
}

async fn says_where(task: &Task, copy: CopyState, to: i64) -> Result<Trouble, Trouble> {
    let epoch_end = task.links.source.epoch_end(&task.partition, copy.last_epoch);
    let source = question(Side::Source, epoch_end).await?;
    Ok(Trouble::Halt(Halt::truncated(to, copy.end, copy.last_epoch, source)))
}

/// Cuts the copy at the batch boundary at `to` or below, and has all of it looked at again.
async fn cut(task: &Task, mut writer: ExactPartition, logs: Logs, to: i64) -> Result<Trouble, Trouble> {
    let Logs { copy, source } = logs;
    // What is cut must be older than the leader epoch that cuts it, so that is the present one.
    let leader = question(Side::Source, task.links.source.partition(&task.partition, true)).await?;
    let source = Source { epoch: leader.leader_epoch.max(source.epoch), ..source };
    let batch = batch_at(Side::Target, &task.links.target, &task.partition, to).await?;
    let boundary = batch.map_or(to, |(header, _)| header.base_offset.min(to));
    task.links.keeper().allow_rewind(&task.topic.name).await?;
    let before = epoch_before(task, copy).await?;
    let left = history_before(task, boundary).await?;
    writer.resume_at(copy.end, before).await?;
    let truncate = Truncate { from: copy.end, to: boundary, epoch_before: left, source };
    writer.truncate(truncate).await?.await?;
    task.cell.end(boundary);
    let text = format!(
        "partition {}: cut from {} to {boundary}, as the source was to {to}",
        task.partition.index, copy.end
    );
    task.links.board.done(&task.topic.name, text);
    Ok(Trouble::Realign("the copy was cut".to_owned()))
}

/// A guard beside the epochs, which a source without topic ids or after an unclean loss may tell anew: the copy's last batch
/// is the source's, or one of them is what compaction leaves of the other, or the copy's what a module did where the copy's
/// topic allows that. What a topic's policy was when its cleaner ran nobody tells, so that is judged by the batches alone.
async fn same_last_batch(task: &Task, logs: Logs) -> Result<(), Trouble> {
    let Logs { copy, source } = logs;
    let Some(last) = copy.end.checked_sub(1).filter(|last| *last >= copy.start.max(source.start)) else {
        return Ok(());
    };
    let links = &task.links;
    let Some((header, ours)) = batch_at(Side::Target, &links.target, &task.partition, last).await? else {
        return Ok(());
    };
    if !covers(&header, last) {
        return Ok(());
    }
    let Some((_, theirs)) = batch_at(Side::Source, &links.source, &task.partition, last).await? else {
        return Ok(());
    };
    let may_rewrite = theirs != ours && links.keeper().may_rewrite(&task.topic.name).await?;
    certain_difference(&theirs, &ours, may_rewrite)
        .map_or(Ok(()), |difference| Err(Trouble::Halt(Halt::differs(&difference))))
}

fn covers(header: &Header, offset: i64) -> bool {
    header.base_offset <= offset && header.last_offset().is_some_and(|last| last >= offset)
}

async fn copy_state(task: &Task, found: Found) -> Result<CopyState, Trouble> {
    let start = offset(Side::Target, &task.links.target, &task.partition, At::Earliest).await?;
    Ok(CopyState { start, end: found.end, last_epoch: found.last_epoch })
}

async fn source_state(task: &Task, again: bool) -> Result<Source, Trouble> {
    let source = &task.links.source;
    let info = match source.partition(&task.partition, again).await {
        Ok(info) => info,
        Err(error @ ClusterError::Unknown(_)) => return Err(task.gone(error.to_string()).await),
        Err(error) => return Err(Trouble::of_cluster(Side::Source, &error)),
    };
    if info.topic_id != task.topic.id {
        return Err(Trouble::Halt(Halt::recreated(task.topic.id, info.topic_id)));
    }
    let start = offset(Side::Source, source, &task.partition, At::Earliest).await?;
    let end = offset(Side::Source, source, &task.partition, At::Latest).await?;
    let source = Source { start, end: end.max(start), epoch: info.leader_epoch };
    task.cell.source(source);
    Ok(source)
}

/// The copy's own epoch just below its end, which is the source's, as the two agree up to there.
async fn epoch_before(task: &Task, copy: CopyState) -> Result<i32, Trouble> {
    if copy.start == copy.end || copy.last_epoch < 0 {
        return Ok(-1);
    }
    let asked = copy.last_epoch.saturating_sub(1);
    if asked < 0 {
        return Ok(copy.last_epoch);
    }
    // Where the epoch below the last one ends, the last one begins.
    let below = question(Side::Target, task.links.target.epoch_end(&task.partition, asked)).await?;
    if below.end < copy.end { Ok(copy.last_epoch) } else { history_before(task, copy.end).await }
}

/// The epoch that the copy's history has just below an offset; -1 = none.
async fn history_before(task: &Task, offset: i64) -> Result<i32, Trouble> {
    let target = &task.links.target;
    // The copy shows no leader epoch until the mirror writes one, which is nothing that a cluster's leaders are asked again for.
    question(Side::Target, target.partition(&task.partition, true)).await?;
    let (_, entries) = question(Side::Target, target.epochs(&task.partition, -1)).await?;
    Ok(entries.iter().rev().find(|entry| entry.start < offset).map_or(-1, |entry| entry.epoch))
}

async fn offset(side: Side, cluster: &Cluster, partition: &Partition, at: At) -> Result<i64, Trouble> {
    let listed = question(side, cluster.list_offset(partition, at, false)).await?;
    listed.map(|listed| listed.offset).ok_or_else(|| Trouble::Pass(format!("{partition}: no offset {at:?}")))
}

async fn question<T>(side: Side, asked: impl Future<Output = Result<T, ClusterError>>) -> Result<T, Trouble> {
    asked.await.map_err(|error| Trouble::of_cluster(side, &error))
}

/// Both sides' answers to OffsetForLeaderEpoch.
struct Both<'a> {
    links: &'a Links,
    partition: &'a Partition,
}

impl Histories for Both<'_> {
    type Error = Trouble;

    async fn source_epoch_end(&mut self, epoch: i32) -> Result<EpochEnd, Trouble> {
        question(Side::Source, self.links.source.epoch_end(self.partition, epoch)).await
    }

    async fn copy_epoch_end(&mut self, epoch: i32) -> Result<EpochEnd, Trouble> {
        question(Side::Target, self.links.target.epoch_end(self.partition, epoch)).await
    }
}
