//! Asking for Metadata, in as few questions as will do.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use verbatim_wire::messages::metadata_request::MetadataRequestTopic;
use verbatim_wire::messages::{MetadataRequest, TopicName};
use verbatim_wire::protocol::StrBytes;

use super::Cluster;
use super::link::Link;
use super::tries::Fault;
use super::types::{Partition, PartitionInfo, TopicInfo, Topics};

/// The first version in which asking for a topic does not create it.
const VERSION_MIN: i16 = 4;

/// Questions about topics: those who ask while one is under way share the next.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// How many questions were begun.
    begun: AtomicU64,
    /// Topics that somebody waits to ask about.
    wanted: Mutex<BTreeSet<String>>,
    /// Held by who asks: the last question that failed, and why.
    turn: tokio::sync::Mutex<Option<(u64, String)>>,
}

impl Cluster {
    /// Asks for topics and tells what the cluster says.
    pub(super) async fn ask_topics(&self, which: Topics<'_>) -> Result<Vec<TopicInfo>, Fault> {
        let _turn = self.inner.asked.turn.lock().await;
        let names = match which {
            Topics::All => None,
            Topics::Named(names) => Some(names),
        };
        self.ask_metadata(names).await?;
        let known = self.known();
        let Some(names) = names else { return Ok(known.all()) };
        let mut topics = Vec::new();
        for name in names.iter().collect::<BTreeSet<_>>() {
            match known.topic(name) {
                Some(Ok(topic)) => topics.push(topic.clone()),
                None | Some(Err(Fault::Unknown(_))) => {}
                Some(Err(fault)) => return Err(fault),
            }
        }
        Ok(topics)
    }

    /// What is known of a partition, asked for if nothing is, or `anew`.
    pub(super) async fn find(&self, partition: &Partition, anew: bool) -> Result<PartitionInfo, Fault> {
        if !anew
            && let Some(Ok(known)) = self.known().partition(partition)
            && known.leader >= 0
        {
            return Ok(known);
        }
        self.refresh(&partition.topic).await?;
        let unanswered = || Fault::Passing(format!("{partition}: not in the answer"));
        self.known().partition(partition).unwrap_or_else(|| Err(unanswered()))
    }

    /// A partition that has a leader, and the link to it.
    pub(super) async fn leader(
        &self,
        partition: &Partition,
        anew: bool,
    ) -> Result<(PartitionInfo, Arc<Link>), Fault> {
        let info = self.find(partition, anew).await?;
        if info.leader < 0 {
            return Err(Fault::Passing(format!("{partition} has no leader")));
        }
        Ok((info, self.known().node(info.leader)?))
    }

    /// Asks about a topic, together with all that others want to ask about, unless a question that began after this call
    /// has answered it.
    async fn refresh(&self, topic: &str) -> Result<(), Fault> {
        let asked = &self.inner.asked;
        let before = asked.begun.load(Ordering::SeqCst);
        lock(&asked.wanted).insert(topic.to_owned());
        let mut turn = asked.turn.lock().await;
        if self.known().told_after(topic, before) {
            return Ok(());
        }
        if let Some((question, reason)) = turn.as_ref().filter(|(question, _)| *question > before) {
            return Err(Fault::Passing(format!("Metadata question {question}: {reason}")));
        }
        let mut names = std::mem::take(&mut *lock(&asked.wanted));
        names.insert(topic.to_owned());
        let names: Vec<String> = names.into_iter().collect();
        let done = self.ask_metadata(Some(&names)).await;
        if let Err(Fault::Passing(reason)) = &done {
            *turn = Some((asked.begun.load(Ordering::SeqCst), reason.clone()));
        }
        done
    }

    /// Asks for these topics, or all. Only whoever holds the turn asks.
    async fn ask_metadata(&self, names: Option<&[String]>) -> Result<(), Fault> {
        let topic = |name: &String| {
            let name = TopicName(StrBytes::from_string(name.clone()));
            MetadataRequestTopic::default().with_name(Some(name))
        };
        let request = MetadataRequest::default()
            .with_topics(names.map(|names| names.iter().map(topic).collect()))
            .with_allow_auto_topic_creation(false);
        let question = self.inner.asked.begun.fetch_add(1, Ordering::SeqCst).saturating_add(1);
        let answer = self.ask_any(VERSION_MIN, &request).await?;
        if answer.error_code != 0 {
            return Err(Fault::of_code("Metadata", answer.error_code));
        }
        self.known().absorb(&answer, question, names.is_none());
        Ok(())
    }
}

fn lock(wanted: &Mutex<BTreeSet<String>>) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
    wanted.lock().unwrap_or_else(PoisonError::into_inner)
}
