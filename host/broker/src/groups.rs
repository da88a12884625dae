//! Consumer groups: who reads what, and how far they are.
//!
//! This host coordinates every group, by Kafka's classic protocol (JoinGroup, SyncGroup, Heartbeat, LeaveGroup). Membership
//! lives in memory: after a restart members join again. Committed offsets are kept on the disk.
//!
//! - [`group`], [`rebalance`], [`coordinator`]: what becomes of members and generations. No clock, no waiting: time comes in,
//!   answers that are due come out.
//! - [`offsets`]: what is committed; [`journal`]: how it lies on the disk; [`keeper`]: the thread that writes it.
//! - here: the clock, who waits for which answer, and what concerns members and offsets both.

pub(crate) mod asked;
pub(crate) mod coordinator;
pub(crate) mod group;
mod journal;
pub(crate) mod keeper;
mod member;
pub(crate) mod offsets;
mod rebalance;
pub(crate) mod subscription;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, oneshot};
use uuid::Uuid;
use verbatim_log::{Io, LogError};
use verbatim_wire::error::ErrorCode;

use self::asked::{Answer, Due, Join, Sync, Token, Who};
use self::coordinator::{Bounds, Coordinator};
use self::group::{Group, Rules};
use self::keeper::{Keeper, Kept, Setup};
use self::offsets::{Change, Stored};
use crate::api::now_ms;
use crate::config::Config;
use crate::errors::ApiError;
use crate::shared::{PartitionId, Shared};

/// How often offsets and groups that nobody needs any more are looked for (Kafka's
/// `offsets.retention.check.interval.ms`).
const EXPIRY_INTERVAL: Duration = Duration::from_secs(600);
/// The longest sleep of the task that ticks groups.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// The groups of a running host.
pub(crate) struct Groups {
    begun: Instant,
    /// Milliseconds since 1970.
    begun_ms: i64,
    retention_ms: i64,
    machine: Mutex<Machine>,
    keeper: Keeper,
    /// A tick may be due earlier than was known.
    changed: Arc<Notify>,
}

struct Machine {
    coordinator: Coordinator,
    waiting: HashMap<Token, oneshot::Sender<Answer>>,
    next: Token,
}

impl Groups {
    /// Reads committed offsets, those of topics that `is_known` names, and starts the thread that keeps them.
    ///
    /// # Errors
    /// The files cannot be used, or the thread cannot be started.
    pub(crate) fn start(
        config: &Config,
        data: &Path,
        io: Arc<dyn Io>,
        is_known: impl Fn(Uuid) -> bool,
    ) -> Result<(Self, JoinHandle<()>), LogError> {
        let limits = &config.limits;
        let setup = Setup { flush: config.flush, bytes_max: limits.group_offsets_bytes_max };
        let (keeper, thread) = Keeper::start(data, io, setup, is_known)?;
        let rules = Rules {
            members_max: limits.group_members_max,
            initial_delay_ms: millis(config.group_initial_rebalance_delay),
            session_ms: (limits.group_session_ms_min, limits.group_session_ms_max),
        };
        let bounds = Bounds { groups_max: limits.groups_max, bytes_max: limits.group_members_bytes_max };
        let machine =
            Machine { coordinator: Coordinator::new(rules, bounds), waiting: HashMap::new(), next: 0 };
        let groups = Self {
            begun: Instant::now(),
            begun_ms: now_ms(),
            retention_ms: i64::try_from(config.group_offsets_retention.as_millis()).unwrap_or(i64::MAX),
            machine: Mutex::new(machine),
            keeper,
            changed: Arc::default(),
        };
        Ok((groups, thread))
    }

    /// Committed offsets.
    pub(crate) fn keeper(&self) -> &Keeper {
        &self.keeper
    }

    /// JoinGroup; the answer comes when the generation does.
    pub(crate) fn join(&self, group: &str, join: &Join) -> oneshot::Receiver<Answer> {
        self.ask(|machine, now, token, due| machine.join(now, group, join, token, due))
    }

    /// SyncGroup; the answer comes with the leader's.
    pub(crate) fn sync(&self, group: &str, who: Who<'_>, sync: Sync) -> oneshot::Receiver<Answer> {
        self.ask(|machine, now, token, due| machine.sync(now, group, who, sync, token, due))
    }

    pub(crate) fn heartbeat(&self, group: &str, who: Who<'_>) -> Result<(), ErrorCode> {
        self.act(|machine, now, _| machine.heartbeat(now, group, who))
    }

    pub(crate) fn leave(&self, group: &str, member: (&str, Option<&str>)) -> Result<(), ErrorCode> {
        self.act(|machine, now, due| machine.leave(now, group, member, due))
    }

    /// Hands these offsets over, of one who may commit them; nothing if there are none.
    pub(crate) async fn commit(
        &self,
        group: &str,
        who: Who<'_>,
        offsets: Vec<Stored>,
    ) -> Result<Option<Kept>, ErrorCode> {
        self.change(|machine, now| {
            machine.commit(now, group, who)?;
            Ok((!offsets.is_empty()).then(|| Change::Commit { group: group.to_owned(), offsets }))
        })
        .await
    }

    /// Hands over the change that is judged right. No member joins or leaves between the two.
    pub(crate) async fn change(
        &self,
        judge: impl FnOnce(&mut Coordinator, u64) -> Result<Option<Change>, ErrorCode>,
    ) -> Result<Option<Kept>, ErrorCode> {
        let room = self.keeper.room().await;
        self.act(|machine, now, _| Ok(judge(machine, now)?.map(|change| room.hand_over(change))))
    }

    /// Looks at groups with members, or that had some of late.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Coordinator) -> T) -> T {
        look(&self.lock().coordinator)
    }

    /// Deletes a group that has no members, and its offsets.
    pub(crate) async fn delete(&self, group: &str) -> Result<(), ApiError> {
        let refused = |code: ErrorCode| ApiError::new(code, format!("group=`{group}`"));
        coordinator::check_id(group).map_err(refused)?;
        let has_offsets = self.keeper.offsets().group(group).is_some();
        let pending = self.change(|machine, _| {
            let was_there = machine.delete(group)?;
            let change = || Change::ForgetGroup { group: group.to_owned() };
            (was_there || has_offsets).then(|| Some(change())).ok_or(ErrorCode::GroupIdNotFound)
        });
        match pending.await.map_err(refused)? {
            Some(pending) => keeper::kept(pending).await,
            None => Ok(()),
        }
    }

    /// A topic is gone, and with it what was committed for it.
    pub(crate) async fn forget_topic(&self, topic: Uuid) {
        let is_there = |offsets: &offsets::Offsets| {
            offsets.groups().any(|(_, group)| group.keys().any(|id| id.topic == topic))
        };
        if !is_there(&self.keeper.offsets()) {
            return;
        }
        if let Err(error) = keeper::kept(self.keeper.begin(Change::forget_topic(topic)).await).await {
            tracing::error!(%error, "offsets of a topic that was deleted are removed at the next start");
        }
    }

    fn ask(&self, ask: impl FnOnce(&mut Coordinator, u64, Token, &mut Due)) -> oneshot::Receiver<Answer> {
        let (sender, answer) = oneshot::channel();
        let mut machine = self.lock();
        let token = machine.next;
        machine.next = token.wrapping_add(1);
        machine.waiting.insert(token, sender);
        self.acted(machine, |coordinator, now, due| ask(coordinator, now, token, due));
        answer
    }

    fn act<T>(&self, act: impl FnOnce(&mut Coordinator, u64, &mut Due) -> T) -> T {
        self.acted(self.lock(), act)
    }

    /// Acts, gives the answers that are due to those who wait, and lets the next tick come in time.
    fn acted<T>(
        &self,
        mut machine: MutexGuard<'_, Machine>,
        act: impl FnOnce(&mut Coordinator, u64, &mut Due) -> T,
    ) -> T {
        let before = machine.coordinator.deadline();
        let mut due = Due::new();
        let outcome = act(&mut machine.coordinator, millis(self.begun.elapsed()), &mut due);
        for (token, answer) in due {
            if let Some(sender) = machine.waiting.remove(&token) {
                // The one who waited may have gone.
                let _ = sender.send(answer);
            }
        }
        let after = machine.coordinator.deadline();
        drop(machine);
        if after.is_some_and(|after| before.is_none_or(|before| after < before)) {
            self.changed.notify_one();
        }
        outcome
    }

    /// Ticks what is due; how long nothing is due then.
    fn tick(&self) -> Duration {
        let next = self.act(|coordinator, now, due| {
            coordinator.tick(now, due);
            coordinator.deadline().map(|at| Duration::from_millis(at.saturating_sub(now)))
        });
        next.unwrap_or(SLEEP_MAX).min(SLEEP_MAX)
    }

    /// Removes offsets that no member of a group can need any more, and groups that hold nothing.
    async fn expire(&self) -> Result<(), ApiError> {
        for (group, old) in self.expired(now_ms()) {
            let pending = self.change(|machine, _| {
                // Members may have come meanwhile.
                let is_unused = machine.group(&group).is_none_or(Group::is_unused);
                Ok(is_unused.then(|| Change::forget(group.clone(), old)))
            });
            if let Ok(Some(pending)) = pending.await {
                keeper::kept(pending).await?;
            }
        }
        let named: BTreeSet<String> = self.keeper.offsets().groups().map(|(id, _)| id.clone()).collect();
        self.act(|coordinator, _, _| coordinator.forget_unused(|id| !named.contains(id)));
        Ok(())
    }

    /// Only a group without members loses offsets, once both it has been empty and they have been committed for so long. How
    /// long a group was empty before this host started is not known, so that time does not count.
    fn expired(&self, now: i64) -> Vec<(String, Vec<PartitionId>)> {
        let offsets = self.keeper.offsets();
        let machine = self.lock();
        let mut expired = Vec::new();
        for (id, group) in offsets.groups() {
            let empty_since = match machine.coordinator.group(id) {
                Some(group) if !group.is_unused() => continue,
                Some(group) => self.begun_ms.saturating_add(i64::try_from(group.since()).unwrap_or(i64::MAX)),
                None => self.begun_ms,
            };
            let is_old = |at_ms: i64| now.saturating_sub(at_ms.max(empty_since)) >= self.retention_ms;
            let old: Vec<_> = group.iter().filter(|(_, one)| is_old(one.at_ms)).map(|(id, _)| *id).collect();
            if !old.is_empty() {
                tracing::info!(group = id, partitions = old.len(), "committed offsets have expired");
                expired.push((id.clone(), old));
            }
        }
        expired
    }

    fn lock(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ticks groups as long as the host runs.
pub(crate) async fn tick_in_time(shared: Weak<Shared>) {
    let Some(changed) = shared.upgrade().map(|running| Arc::clone(&running.groups.changed)) else { return };
    loop {
        let Some(sleep) = shared.upgrade().map(|running| running.groups.tick()) else { return };
        tokio::select! {
            () = tokio::time::sleep(sleep) => {}
            () = changed.notified() => {}
        }
    }
}

/// Lets offsets expire as long as the host runs.
pub(crate) async fn expire_now_and_then(shared: Weak<Shared>) {
    while let Some(running) = shared.upgrade() {
        if let Err(error) = running.groups.expire().await {
            tracing::warn!(%error, "offsets that have expired are kept for now");
        }
        drop(running);
        tokio::time::sleep(EXPIRY_INTERVAL).await;
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
