//! DeleteTopics, v1 to v6.
//!
//! - By name, from v6 on by id as well; both at once, or neither, is 42. Unknown: 3 by name, 100 by id.
//! - The topic is gone for clients once the answer is there; its folders go at once too, and a crash in between is made
//!   good at the next start.
//! - Exact topics can be deleted: an operator must be able to.
//!
//! Left out: the timeout is not looked at, since deletion is immediate.

use std::sync::Arc;

use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::{DeleteTopicsRequest, DeleteTopicsResponse, TopicName};
use kafka_protocol::protocol::StrBytes;
use verbatim_wire::error::ErrorCode;

use crate::catalogue::{Snapshot, Topic};
use crate::errors::{self, ApiError};
use crate::shared::Shared;
use crate::topics;

/// From this version on a request carries names or ids.
const IDS_FROM: i16 = 6;

pub(super) async fn handle(
    shared: &Shared,
    version: i16,
    request: DeleteTopicsRequest,
) -> DeleteTopicsResponse {
    let asked = if version >= IDS_FROM {
        request.topics
    } else {
        let by_name = |name| DeleteTopicState::default().with_name(Some(name));
        request.topic_names.into_iter().map(by_name).collect()
    };
    let mut answers = Vec::with_capacity(asked.len());
    for topic in asked {
        answers.push(delete(shared, topic).await);
    }
    DeleteTopicsResponse::default().with_responses(answers)
}

async fn delete(shared: &Shared, asked: DeleteTopicState) -> DeletableTopicResult {
    let deleted = topics::delete(shared, |snapshot| find(snapshot, &asked)).await;
    let (code, text) = errors::fields(&deleted);
    let (name, id) = match deleted {
        Ok(topic) => (Some(TopicName(StrBytes::from_string(topic.name.clone()))), topic.id),
        Err(_) => (asked.name, asked.topic_id),
    };
    DeletableTopicResult::default()
        .with_name(name)
        .with_topic_id(id)
        .with_error_code(code)
        .with_error_message(text)
}

/// By name or by id; an id never means a later topic of the same name.
fn find(snapshot: &Snapshot, asked: &DeleteTopicState) -> Result<Arc<Topic>, ApiError> {
    let found = match (&asked.name, asked.topic_id.is_nil()) {
        (Some(name), true) => snapshot.topic(name).ok_or_else(|| ApiError::unknown_topic(name)),
        (None, false) => {
            let id = asked.topic_id;
            snapshot.topic_by_id(id).ok_or_else(|| ApiError::unknown_topic_id(id))
        }
        _ => Err(ApiError::new(
            ErrorCode::InvalidRequest,
            "a topic to delete must carry either a name or an id",
        )),
    };
    found.map(Arc::clone)
}
