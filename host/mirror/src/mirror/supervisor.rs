//! Looks at the source again and again: new topics, more partitions, other settings, topics that are gone. Each partition
//! gets a task of its own, which lives until it stops.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::MirrorError;
use super::backoff::Backoff;
use super::discover::{Selection, Treatment};
use super::groups::Carrier;
use super::links::{Links, Topic};
use super::partition::{ONCE_FAILURES_MAX, Task};
use super::settings;
use super::state::State;
use super::target::count;
use super::trouble::{Halt, Side, Trouble};
use crate::cluster::{Partition, TopicInfo, Topics};

/// Looks in a row in which a topic has to be missing to count as deleted: a broker that has just started may not know all.
const ABSENT_MAX: u32 = 2;

/// Whoever looks after all topics.
pub(super) struct Supervisor {
    links: Arc<Links>,
    stop: CancellationToken,
    selection: Selection,
    topics: BTreeMap<String, Known>,
    tasks: JoinSet<()>,
    /// Partitions dealt out to connections so far.
    dealt: usize,
    /// Both clusters have answered once.
    reached: bool,
}

/// A topic that was seen.
struct Known {
    topic: Arc<Topic>,
    /// Its partitions that have a task.
    running: i32,
    /// What the copy was given last.
    carried: Option<settings::Carried>,
    /// Nothing is done for it any more.
    stopped: bool,
    /// Something is still to be tried again.
    pending: bool,
    /// Why it waits for that, and how many partitions it had when it began to.
    waits: Option<(String, i32)>,
    absent: u32,
}

impl Supervisor {
    pub(super) fn new(links: Arc<Links>, stop: CancellationToken) -> Self {
        let selection = Selection::new(&links.config);
        let (topics, tasks) = (BTreeMap::new(), JoinSet::new());
        Self { links, stop, selection, topics, tasks, dealt: 0, reached: false }
    }

    /// Runs until the mirror stops or, where that is all that is wanted, everything has caught up or stopped.
    pub(super) async fn run(mut self) -> Result<(), MirrorError> {
        let copied = CancellationToken::new();
        let groups = tokio::spawn(Carrier::new(Arc::clone(&self.links)).run(copied.clone()));
        let ended = self.look_and_wait().await;
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
        // Offsets are carried for what was copied last, too.
        copied.cancel();
        if let Err(error) = groups.await {
            tracing::error!(%error, "whoever carries offsets has ended before its time");
        }
        self.links.board.close();
        ended
    }

    async fn look_and_wait(&mut self) -> Result<(), MirrorError> {
        let (stop, once) = (self.stop.clone(), self.links.config.once);
        let mut backoff = Backoff::default();
        loop {
            let looked = tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                looked = self.look() => looked,
            };
            match looked {
                Err(error) if !self.reached || matches!(error, MirrorError::NoTopic { .. }) => {
                    return Err(error);
                }
                Err(error) => {
                    tracing::warn!(%error, "the topics could not be looked at, it is tried again");
                }
                Ok(()) if !self.is_pending() => backoff.succeed(),
                Ok(()) => {}
            }
            if once && backoff.failures() >= ONCE_FAILURES_MAX {
                self.give_up(backoff.failures());
            }
            let refresh = self.links.config.refresh;
            let pause = if self.is_pending() { backoff.fail().min(refresh) } else { refresh };
            if !self.wait(pause, once && !self.is_pending()).await {
                return Ok(());
            }
        }
    }

    /// Waits for the next look. False if there is none: the mirror stops, or all tasks are done where that is enough.
    async fn wait(&mut self, pause: Duration, until_done: bool) -> bool {
        let next = sleep(pause);
        tokio::pin!(next);
        loop {
            if until_done && self.tasks.is_empty() {
                return false;
            }
            tokio::select! {
                () = self.stop.cancelled() => return false,
                Some(_) = self.tasks.join_next() => {}
                () = &mut next, if !until_done => return true,
            }
        }
    }

    fn is_pending(&self) -> bool {
        self.topics.values().any(|known| known.pending && !known.stopped)
    }

    async fn look(&mut self) -> Result<(), MirrorError> {
        let all = self.links.source.topics(Topics::All).await.map_err(MirrorError::Source)?;
        let (mut names, mut wanted) = (BTreeSet::new(), Vec::new());
        for info in all {
            names.insert(info.name.clone());
            match self.selection.treatment(&info) {
                Treatment::Copied => wanted.push(info),
                Treatment::Paused => self.show_paused(&info),
                Treatment::Ignored => {}
            }
        }
        if !self.reached {
            let named: Vec<String> = wanted.iter().map(|info| info.name.clone()).collect();
            self.links.target.topics(Topics::Named(&named)).await.map_err(MirrorError::Target)?;
            self.reached = true;
        }
        self.note_no_topic(wanted.is_empty())?;
        for info in &wanted {
            self.topic(info).await;
        }
        self.absent(&names);
        Ok(())
    }

    fn note_no_topic(&self, none: bool) -> Result<(), MirrorError> {
        const TEXT: &str = "no topic of the source matches";
        let patterns = self.selection.patterns();
        if none && self.topics.is_empty() {
            if self.links.config.once {
                return Err(MirrorError::NoTopic { patterns });
            }
            self.links.board.note("", format!("{TEXT} {patterns}"));
        } else {
            self.links.board.forget_notes("", TEXT);
        }
        Ok(())
    }

    fn show_paused(&self, info: &TopicInfo) {
        for index in 0..count(info) {
            self.cell(&info.name, index).enter(State::Paused, None);
        }
    }

    /// Looks after one topic that is mirrored.
    async fn topic(&mut self, info: &TopicInfo) {
        let known = self.topics.entry(info.name.clone()).or_insert_with(|| Known {
            topic: Arc::new(Topic::new(&info.name, info.id)),
            running: 0,
            carried: None,
            stopped: false,
            pending: true,
            waits: None,
            absent: 0,
        });
        known.absent = 0;
        if known.stopped {
            return;
        }
        let before = known.topic.id;
        let done = if before == info.id {
            self.keep(info).await
        } else {
            Err(Trouble::Halt(Halt::recreated(before, info.id)))
        };
        let Err(trouble) = done else { return };
        match trouble {
            Trouble::Halt(halt) => self.halt(&info.name, count(info), &halt),
            Trouble::Pass(reason) | Trouble::Realign(reason) => {
                tracing::warn!(topic = info.name, reason, "a topic waits");
                self.wait_without_task(info, &reason);
                if let Some(known) = self.topics.get_mut(&info.name) {
                    known.waits = Some((reason, count(info)));
                }
            }
        }
    }

    /// Sees that the copy is there, like its source, and that each partition has a task.
    async fn keep(&mut self, info: &TopicInfo) -> Result<(), Trouble> {
        let links = Arc::clone(&self.links);
        let Some(known) = self.topics.get_mut(&info.name) else { return Ok(()) };
        known.pending = true;
        if known.running == 0 {
            links.keeper().prepare(info).await?;
        } else if count(info) > known.running {
            links.keeper().grow(info).await?;
        }
        let source = links.source.topic_configs(&info.name).await;
        let source = source.map_err(|error| Trouble::of_cluster(Side::Source, &error))?;
        known.topic.set_copy(settings::is_copy(&source));
        let carried = settings::carried(&source, &links.config.target_config);
        if known.carried.as_ref() != Some(&carried) {
            links.keeper().settle(&info.name, &carried).await?;
            known.carried = Some(carried);
        }
        known.pending = false;
        let topic = Arc::clone(&known.topic);
        let begun = known.running;
        known.running = begun.max(count(info));
        for index in begun..count(info) {
            self.begin(&topic, index);
        }
        Ok(())
    }

    fn begin(&mut self, topic: &Arc<Topic>, index: i32) {
        let to = self.dealt.checked_rem(self.links.to.len()).and_then(|at| self.links.to.get(at)).cloned();
        // There is one connection at least.
        let Some(producer) = to else { return };
        self.dealt = self.dealt.saturating_add(1);
        let task = Task {
            links: Arc::clone(&self.links),
            topic: Arc::clone(topic),
            partition: Partition { topic: topic.name.clone(), index },
            cell: self.cell(&topic.name, index),
            producer,
            stop: self.stop.clone(),
        };
        self.tasks.spawn(task.run());
    }

    /// Stops a topic's partitions, those that run and those that never did.
    fn halt(&mut self, name: &str, partitions: i32, halt: &Halt) {
        let Some(known) = self.topics.get_mut(name) else { return };
        known.stopped = true;
        known.topic.stop(halt.clone());
        for index in known.running..partitions {
            self.cell(name, index).halt(halt.clone());
        }
    }

    /// Stops the topics that still wait for something: the mirror shall end.
    fn give_up(&mut self, failures: u32) {
        let waiting = self.topics.iter_mut().filter(|(_, known)| known.pending && !known.stopped);
        let waiting: Vec<_> =
            waiting.filter_map(|(name, known)| Some((name.clone(), known.waits.take()?))).collect();
        for (name, (reason, partitions)) in waiting {
            self.halt(&name, partitions, &Halt::gave_up(failures, &reason));
        }
    }

    fn wait_without_task(&self, info: &TopicInfo, reason: &str) {
        let running = self.topics.get(&info.name).map_or(0, |known| known.running);
        for index in running..count(info) {
            self.cell(&info.name, index).enter(State::Waiting, Some(reason.to_owned()));
        }
    }

    /// Topics that the source has no more.
    fn absent(&mut self, names: &BTreeSet<String>) {
        let mut gone = Vec::new();
        for (name, known) in self.topics.iter_mut().filter(|(name, _)| !names.contains(*name)) {
            known.absent = known.absent.saturating_add(1);
            if known.absent == ABSENT_MAX && !known.stopped {
                gone.push((name.clone(), known.running, known.topic.id));
            }
        }
        for (name, running, id) in gone {
            self.halt(&name, running, &Halt::deleted(id));
        }
    }

    fn cell(&self, topic: &str, index: i32) -> Arc<super::progress::Cell> {
        self.links.board.cell(&Partition { topic: topic.to_owned(), index })
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::cluster::ClusterConfig;
    use crate::mirror::MirrorConfig;
    use crate::mirror::progress::Board;
    use uuid::Uuid;

    #[test]
    fn a_mirror_that_shall_end_gives_up_a_topic_that_only_waits() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            // Nobody listens there.
            let nobody = || ClusterConfig { attempts_max: 1, ..ClusterConfig::new(["127.0.0.1:1"]) };
            let mut config = MirrorConfig::new(nobody(), nobody());
            (config.once, config.refresh) = (true, Duration::from_millis(1));
            let links = Arc::new(Links::new(config, Board::new().0));
            let mut supervisor = Supervisor::new(Arc::clone(&links), CancellationToken::new());
            supervisor.reached = true;
            let known = Known {
                topic: Arc::new(Topic::new("late", Uuid::nil())),
                running: 0,
                carried: None,
                stopped: false,
                pending: true,
                waits: Some(("no answer".to_owned(), 2)),
                absent: 0,
            };
            supervisor.topics.insert("late".to_owned(), known);
            let ended = tokio::time::timeout(Duration::from_secs(60), supervisor.run());
            ended.await.unwrap().unwrap();
            let snapshot = links.board.snapshot();
            let told: Vec<_> = snapshot.partitions.iter().map(|one| (one.partition, one.state)).collect();
            assert_eq!(told, [(0, State::Failed), (1, State::Failed)], "{snapshot:#?}");
        });
    }
}
