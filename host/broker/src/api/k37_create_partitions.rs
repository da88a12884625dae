//! CreatePartitions, v0 to v3.
//!
//! - The count is the new total, above the present one and within the host's limit (37).
//! - On an exact topic only the mirror may do it, with its mark (v2 on: one byte under tag 12486 at the top level), else 44.
//! - `validate_only` changes nothing. A name twice in a request is 42.
//!
//! Left out: manual assignments are refused with 39.

use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_partitions_response::CreatePartitionsTopicResult;
use kafka_protocol::messages::{CreatePartitionsRequest, CreatePartitionsResponse};
use verbatim_wire::error::ErrorCode;
use verbatim_wire::tag::Marked;

use crate::errors::{self, ApiError};
use crate::shared::Shared;
use crate::topics::{self, Change};

pub(super) async fn handle(shared: &Shared, request: CreatePartitionsRequest) -> CreatePartitionsResponse {
    let marked = request.mark().map_err(|error| ApiError::new(ErrorCode::InvalidRequest, error.to_string()));
    let names: Vec<_> = request.topics.iter().map(|topic| topic.name.clone()).collect();
    let mut answers = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let twice = names.iter().filter(|name| **name == topic.name).count() > 1;
        let grown = match &marked {
            Ok(_) if twice => {
                Err(ApiError::new(ErrorCode::InvalidRequest, "a request may name a topic once"))
            }
            Ok(marked) => grow(shared, &topic, *marked, request.validate_only).await,
            Err(error) => Err(error.clone()),
        };
        let (code, text) = errors::fields(&grown);
        let answer = CreatePartitionsTopicResult::default().with_name(topic.name);
        answers.push(answer.with_error_code(code).with_error_message(text));
    }
    CreatePartitionsResponse::default().with_results(answers)
}

async fn grow(
    shared: &Shared,
    asked: &CreatePartitionsTopic,
    by_mirror: bool,
    validate_only: bool,
) -> Result<(), ApiError> {
    if asked.assignments.is_some() {
        let text =
            format!("replica assignments are not possible with one node, topic=`{}`", asked.name.as_str());
        return Err(ApiError::new(ErrorCode::InvalidReplicaAssignment, text));
    }
    topics::grow(shared, Change { topic: asked.name.as_str(), by_mirror, validate_only }, asked.count).await
}
