//! From what a reader names to the partition that is meant.

use std::sync::Arc;

use verbatim_wire::error::ErrorCode;

use super::poll::TopicRef;
use crate::catalogue::{Snapshot, Topic};
use crate::errors::ApiError;
use crate::partition::Reader;
use crate::shared::Shared;

/// Finds partitions one after the other; those of one topic cost one look into the catalogue.
pub(crate) struct Finder<'a> {
    shared: &'a Shared,
    snapshot: Arc<Snapshot>,
    last: Option<(TopicRef, Option<Arc<Topic>>)>,
    name: Option<Arc<str>>,
}

impl<'a> Finder<'a> {
    pub(crate) fn new(shared: &'a Shared) -> Self {
        Self { shared, snapshot: shared.catalogue.snapshot(), last: None, name: None }
    }

    /// The topic, if clients may see it.
    pub(crate) fn topic(&mut self, asked: &TopicRef) -> Option<&Arc<Topic>> {
        if self.last.as_ref().is_none_or(|(last, _)| last != asked) {
            let found = match asked {
                TopicRef::Name(name) => self.snapshot.topic(name),
                TopicRef::Id(id) => self.snapshot.topic_by_id(*id),
            };
            self.last = Some((asked.clone(), found.cloned()));
        }
        self.last.as_ref().and_then(|(_, found)| found.as_ref())
    }

    /// The topic's name, if the topic is given by id; one text for the partitions that are asked for one after the other.
    pub(crate) fn name(&mut self, asked: &TopicRef) -> Option<Arc<str>> {
        let topic = match asked {
            TopicRef::Name(_) => return None,
            TopicRef::Id(_) => Arc::clone(self.topic(asked)?),
        };
        if self.name.as_deref() != Some(topic.name.as_str()) {
            self.name = Some(Arc::from(topic.name.as_str()));
        }
        self.name.clone()
    }

    /// # Errors
    /// 3, 100 or 56.
    pub(crate) fn partition(&mut self, asked: &TopicRef, index: i32) -> Result<Arc<Reader>, ApiError> {
        let shared = self.shared;
        match (self.topic(asked), asked) {
            (Some(topic), _) => shared.find(topic, index),
            (None, TopicRef::Name(name)) => Err(ApiError::unknown_topic(name)),
            (None, TopicRef::Id(id)) => Err(ApiError::unknown_topic_id(*id)),
        }
    }

    /// The same for a topic that once had this name: where its id is gone, it is 3, or 103 if there is another of the name.
    ///
    /// # Errors
    /// 3, 100, 103 or 56.
    pub(crate) fn known_partition(
        &mut self,
        asked: &TopicRef,
        name: Option<&str>,
        index: i32,
    ) -> Result<Arc<Reader>, ApiError> {
        let gone = name.filter(|_| self.topic(asked).is_none());
        let Some(name) = gone else { return self.partition(asked, index) };
        let another = self.snapshot.topic(name).ok_or_else(|| ApiError::unknown_topic(name))?;
        self.shared.find(another, index)?;
        let text = format!("the topic was created anew, topic=`{name}`");
        Err(ApiError::new(ErrorCode::InconsistentTopicId, text))
    }
}
