//! The destination's side of a topic: looked at before the first write, made if it is not there, kept like its source.

use uuid::Uuid;
use verbatim_wire::error::ErrorCode;

use super::admin::{Admin, Change, Denied};
use super::config::TargetConfig;
use super::progress::Board;
use super::settings::{Carried, Settings, changes};
use super::trouble::{Halt, Side, Trouble};
use crate::cluster::{Cluster, ClusterError, TopicInfo, Topics, id_text};
use crate::verify::REWRITE;

/// The property that makes a topic exact.
pub(super) const EXACT: &str = "produce.at.offset";
/// The property that tells which topic it is a copy of.
pub(super) const SOURCE_TOPIC_ID: &str = "produce.at.offset.source.topic.id";
/// The property that lets a truncation of the source be followed.
pub(super) const REWIND: &str = "produce.at.offset.rewind";

/// How a note on a setting that is not carried over begins.
const NOT_CARRIED: &str = "setting ";

/// The destination, as topics are looked after there.
pub(super) struct Keeper<'a> {
    pub(super) admin: &'a Admin,
    pub(super) target: &'a Cluster,
    pub(super) board: &'a Board,
    /// What topics are created with, beside what makes them copies.
    pub(super) wanted: &'a TargetConfig,
}

impl Keeper<'_> {
    /// Sees that there is an exact copy of a source's topic with its partitions: looks at the one that is there, or makes
    /// one.
    pub(super) async fn prepare(&self, source: &TopicInfo) -> Result<(), Trouble> {
        let partitions = count(source);
        let found = match self.find(&source.name).await? {
            Some(found) => found,
            None => {
                let made = self.admin.create_topic(&source.name, partitions, source.id, self.wanted).await;
                if made.map_err(|denied| not_created(&denied, self.wanted))? {
                    let id = id_text(source.id);
                    let own = self.wanted.iter().map(|(key, value)| format!(", {key}={value}"));
                    let own: String = own.collect();
                    let text = format!("created with {partitions} partitions, a copy of topic id {id}{own}");
                    self.board.done(&source.name, text);
                }
                let found = self.find(&source.name).await?;
                found
                    .ok_or_else(|| Trouble::Pass("destination: the new topic is not shown yet".to_owned()))?
            }
        };
        self.check(source).await?;
        self.grow_from(source, count(&found)).await
    }

    /// Gives a copy that is mirrored already the partitions that the source has more. One that is gone is not made again.
    pub(super) async fn grow(&self, source: &TopicInfo) -> Result<(), Trouble> {
        let Some(found) = self.find(&source.name).await? else {
            let reason = format!("the destination's topic {} was deleted while it was mirrored", source.name);
            return Err(Trouble::Halt(Halt::not_exact(reason)));
        };
        self.grow_from(source, count(&found)).await
    }

    async fn grow_from(&self, source: &TopicInfo, present: i32) -> Result<(), Trouble> {
        let wanted = count(source);
        if wanted < present {
            let text = format!(
                "the copy has {present} partitions, the source {wanted}: the others are not looked at"
            );
            self.board.note(&source.name, text);
        }
        if wanted > present {
            if let Err(denied) = self.admin.create_partitions(&source.name, wanted).await {
                // Another mirror may have been first.
                return match self.find(&source.name).await? {
                    Some(found) if count(&found) >= wanted => Ok(()),
                    _ => Err(refused("partitions were not added", &denied)),
                };
            }
            self.board.done(&source.name, format!("{wanted} partitions, {present} before"));
        }
        Ok(())
    }

    /// Gives the copy the source's settings. What the destination does not take is noted.
    pub(super) async fn settle(&self, topic: &str, carried: &Carried) -> Result<(), Trouble> {
        let copy = self.configs(topic).await?;
        self.board.forget_notes(topic, NOT_CARRIED);
        for name in carried.secret() {
            self.board.note(
                topic,
                format!("{NOT_CARRIED}{name} is not carried over: the source keeps its value secret"),
            );
        }
        let changes = changes(carried, &copy);
        if changes.is_empty() {
            return Ok(());
        }
        match self.admin.alter(topic, &changes).await {
            Ok(()) => self.board.done(topic, format!("settings: {}", words(&changes))),
            Err(Denied::Passing(text)) => return Err(Trouble::Pass(format!("destination: {text}"))),
            Err(_) => self.settle_one_by_one(topic, &changes).await?,
        }
        Ok(())
    }

    /// Lets truncations of the source be followed.
    pub(super) async fn allow_rewind(&self, topic: &str) -> Result<(), Trouble> {
        let set = self.configs(topic).await?;
        if set.get(REWIND).is_some_and(|config| config.value.as_deref() == Some("truncate")) {
            return Ok(());
        }
        let changes = [(REWIND.to_owned(), Some("truncate".to_owned()))];
        let altered = self.admin.alter(topic, &changes).await;
        altered.map_err(|denied| refused("truncations cannot be followed", &denied))?;
        self.board.done(topic, format!("settings: {}", words(&changes)));
        Ok(())
    }

    async fn settle_one_by_one(&self, topic: &str, changes: &[Change]) -> Result<(), Trouble> {
        for change in changes {
            let one = std::slice::from_ref(change);
            match self.admin.alter(topic, one).await {
                Ok(()) => self.board.done(topic, format!("settings: {}", words(one))),
                Err(Denied::Passing(text)) => return Err(Trouble::Pass(format!("destination: {text}"))),
                Err(denied) => {
                    let text = format!("{NOT_CARRIED}{} is not carried over: {denied}", words(one));
                    self.board.note(topic, text);
                }
            }
        }
        Ok(())
    }

    /// True if the topic allows a module to rewrite records.
    pub(super) async fn may_rewrite(&self, topic: &str) -> Result<bool, Trouble> {
        let configs = self.configs(topic).await?;
        let (name, allows) = REWRITE;
        Ok(configs.get(name).is_some_and(|config| config.value.as_deref() == Some(allows)))
    }

    /// The topic is exact, the copy of this source topic, and allows to rewrite as it was wanted.
    pub(super) async fn check(&self, source: &TopicInfo) -> Result<(), Trouble> {
        let configs = self.configs(&source.name).await?;
        let value = |name: &str| configs.get(name).and_then(|config| config.value.as_deref());
        if value(EXACT) != Some("true") {
            let found = value(EXACT).unwrap_or("not known there");
            let reason =
                format!("the destination's topic {} has {EXACT}={found}, expected true", source.name);
            return Err(Trouble::Halt(Halt::not_exact(reason)));
        }
        self.compare(&source.name, &configs)?;
        if source.id.is_nil() {
            return Ok(());
        }
        let unknown = id_text(Uuid::nil());
        let (ours, theirs) = (value(SOURCE_TOPIC_ID).unwrap_or(&unknown), id_text(source.id));
        if ours == unknown {
            self.board.note(&source.name, "the destination's topic does not say which topic it is a copy of");
        } else if ours != theirs {
            return Err(Trouble::Halt(Halt::other_copy(ours, &theirs)));
        }
        Ok(())
    }

    /// What a topic that is there already has other than wanted is left alone; but that it allows to rewrite, or does not, cannot
    /// be changed, and decides whether readers see what was written.
    fn compare(&self, topic: &str, copy: &Settings) -> Result<(), Trouble> {
        for (key, wanted) in self.wanted.iter() {
            let found = copy.get(key).and_then(|config| config.value.as_deref());
            if found == Some(wanted) {
                continue;
            }
            let found = found.unwrap_or("not known there");
            if key == REWRITE.0 {
                return Err(Trouble::Halt(Halt::other_permission(topic, found, wanted)));
            }
            let text =
                format!("the destination's topic has {key}={found}, not {wanted}, and is left as it is");
            self.board.note(topic, text);
        }
        Ok(())
    }

    async fn find(&self, topic: &str) -> Result<Option<TopicInfo>, Trouble> {
        let named = [topic.to_owned()];
        let found = self.target.topics(Topics::Named(&named)).await;
        let found = found.map_err(|error| Trouble::of_cluster(Side::Target, &error))?;
        Ok(found.into_iter().find(|found| found.name == topic))
    }

    async fn configs(&self, topic: &str) -> Result<Settings, Trouble> {
        let configs = self.target.topic_configs(topic).await;
        configs.map_err(|error: ClusterError| Trouble::of_cluster(Side::Target, &error))
    }
}

/// How many partitions a topic has.
pub(super) fn count(topic: &TopicInfo) -> i32 {
    i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX)
}

fn refused(what: &str, denied: &Denied) -> Trouble {
    let text = format!("destination: {what}: {denied}");
    match denied {
        Denied::Passing(_) => Trouble::Pass(text),
        Denied::Refused { .. } => Trouble::Halt(Halt::failed(text)),
        Denied::Unsupported(_) => Trouble::Halt(Halt::not_exact(text)),
    }
}

/// A broker that does not know the properties of an exact topic refuses them; any does those that are wrong.
fn not_created(denied: &Denied, wanted: &TargetConfig) -> Trouble {
    match (refused("topic was not created", denied), denied) {
        (Trouble::Halt(halt), Denied::Refused { code, .. }) if *code == ErrorCode::InvalidConfig.number() => {
            let is_plain = wanted.iter().next().is_none();
            Trouble::Halt(if is_plain { Halt::not_exact(halt.reason) } else { Halt::not_taken(halt.reason) })
        }
        (trouble, _) => trouble,
    }
}

fn words(changes: &[Change]) -> String {
    let word = |(name, value): &Change| match value {
        Some(value) => format!("{name}={value}"),
        None => format!("{name} removed"),
    };
    changes.iter().map(word).collect::<Vec<_>>().join(", ")
}
