//! InitProducerId, v0 to v5.
//!
//! - Idempotent producers get a fresh id with epoch 0: (31-bit prefix of the data folder) << 32 plus a counter, so that ids
//!   handed out here never meet those inside a mirrored log.
//! - A producer that names its old id and epoch (v3 on) gets a fresh id too, which is always legal for an idempotent one.
//!
//! Left out: transactional ids are refused with 53, TRANSACTIONAL_ID_AUTHORIZATION_FAILED (R36b): there is no
//! transaction coordinator yet; an empty one is 42, as in Kafka.

use kafka_protocol::messages::{InitProducerIdRequest, InitProducerIdResponse, ProducerId};
use verbatim_wire::error::ErrorCode;

use crate::shared::Shared;

pub(super) fn handle(shared: &Shared, request: &InitProducerIdRequest) -> InitProducerIdResponse {
    let refused = InitProducerIdResponse::default().with_producer_id(ProducerId(-1)).with_producer_epoch(-1);
    if request.transactional_id.as_ref().is_some_and(|id| id.is_empty()) {
        return refused.with_error_code(ErrorCode::InvalidRequest.number());
    }
    if request.transactional_id.is_some() {
        return refused.with_error_code(ErrorCode::TransactionalIdAuthorizationFailed.number());
    }
    match shared.catalogue.producer_id() {
        Ok(id) => InitProducerIdResponse::default().with_producer_id(ProducerId(id)).with_producer_epoch(0),
        Err(error) => refused.with_error_code(error.code.number()),
    }
}
