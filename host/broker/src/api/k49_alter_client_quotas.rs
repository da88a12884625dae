//! AlterClientQuotas, v0 and v1 (KIP-546).
//!
//! - Entities: a client id, or the default of all client ids (name null). Keys: `producer_byte_rate` and `consumer_byte_rate`,
//!   whole bytes a second from 1 on. The changes of an entity are judged together; those of a request become one durable
//!   change, answered entity by entity. `validate_only` changes nothing.
//! - Whatever is wrong is 42, with a text that names it. At most 10,000 entities, of at most 255 bytes each, have quotas.
//! - A quota counts from the next request on; see [`crate::quotas`].
//!
//! Left out: users (without authentication there are none) and addresses, `request_percentage` and
//! `controller_mutation_rate`: refused by name.

use kafka_protocol::messages::alter_client_quotas_request::{EntityData, EntryData, OpData};
use kafka_protocol::messages::alter_client_quotas_response as answers;
use kafka_protocol::messages::{AlterClientQuotasRequest, AlterClientQuotasResponse};
use kafka_protocol::protocol::StrBytes;
use verbatim_wire::error::ErrorCode;

use crate::errors::{self, ApiError};
use crate::quotas::rates::Direction;
use crate::shared::Shared;

/// Kafka's types of entities.
pub(super) const CLIENT_ID: &str = "client-id";
pub(super) const USER: &str = "user";
pub(super) const ADDRESS: &str = "ip";

const ENTITIES_MAX: usize = 10_000;
const NAME_BYTES_MAX: usize = 255;
/// The largest float whose neighbours are whole numbers, too.
const RATE_MAX: f64 = 9_007_199_254_740_992.0;

/// A change of one entity that was found to be fine.
struct Change {
    client: Option<String>,
    rates: Vec<(Direction, Option<u64>)>,
}

pub(super) fn handle(shared: &Shared, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse {
    let judged: Vec<Result<Change, ApiError>> = request.entries.iter().map(change).collect();
    let kept = if request.validate_only { Ok(()) } else { keep(shared, judged.iter().flatten()) };
    let answer = |(entry, judged): (EntryData, Result<Change, ApiError>)| {
        let (code, text) = errors::fields(&judged.and_then(|_| kept.clone()));
        let entity = |one: EntityData| {
            answers::EntityData::default().with_entity_type(one.entity_type).with_entity_name(one.entity_name)
        };
        answers::EntryData::default()
            .with_error_code(code)
            .with_error_message(text)
            .with_entity(entry.entity.into_iter().map(entity).collect())
    };
    AlterClientQuotasResponse::default()
        .with_entries(request.entries.into_iter().zip(judged).map(answer).collect())
}

fn keep<'a>(shared: &Shared, changes: impl Iterator<Item = &'a Change>) -> Result<(), ApiError> {
    let mut changes = changes.peekable();
    if changes.peek().is_none() {
        return Ok(());
    }
    shared.catalogue.update(|draft| {
        for change in changes {
            for (direction, rate) in &change.rates {
                draft.quotas.set(change.client.as_deref(), *direction, *rate);
            }
        }
        if draft.quotas.len() <= ENTITIES_MAX {
            return Ok(());
        }
        let text =
            format!("at most {ENTITIES_MAX} entities may have quotas, entities=`{}`", draft.quotas.len());
        Err(invalid(text))
    })
}

fn change(entry: &EntryData) -> Result<Change, ApiError> {
    let client = client(&entry.entity)?;
    let rates: Result<_, _> = entry.ops.iter().map(rate).collect();
    Ok(Change { client, rates: rates? })
}

fn client(entity: &[EntityData]) -> Result<Option<String>, ApiError> {
    let [one] = entity else {
        let kinds: Vec<&str> = entity.iter().map(|one| one.entity_type.as_str()).collect();
        return Err(invalid(format!("an entity must be one client-id, entity_types=`{}`", kinds.join(", "))));
    };
    let kind = one.entity_type.as_str();
    if kind != CLIENT_ID {
        let why = match kind {
            USER => ": without authentication there are no users",
            ADDRESS => ": addresses have no quotas here",
            _ => "",
        };
        return Err(invalid(format!("entity_type must be client-id{why}, entity_type=`{kind}`")));
    }
    let name = one.entity_name.as_ref().map(StrBytes::as_str);
    if let Some(name) = name
        && !(1..=NAME_BYTES_MAX).contains(&name.len())
    {
        let text =
            format!("a client id with a quota must have 1 to {NAME_BYTES_MAX} bytes, client-id=`{name}`");
        return Err(invalid(text));
    }
    Ok(name.map(str::to_owned))
}

fn rate(op: &OpData) -> Result<(Direction, Option<u64>), ApiError> {
    let key = op.key.as_str();
    let direction = Direction::ALL.into_iter().find(|direction| direction.key() == key).ok_or_else(|| {
        invalid(format!(
            "a quota must be producer_byte_rate or consumer_byte_rate, others are not kept, key=`{key}`"
        ))
    })?;
    if op.remove {
        return Ok((direction, None));
    }
    let is_whole = op.value >= 1.0 && op.value <= RATE_MAX && op.value.fract() == 0.0;
    let value = is_whole.then(|| format!("{:.0}", op.value).parse().ok()).flatten();
    let text = || {
        invalid(format!("{key} must be whole bytes a second from 1 to {RATE_MAX:.0}, value=`{}`", op.value))
    };
    Ok((direction, Some(value.ok_or_else(text)?)))
}

fn invalid(text: String) -> ApiError {
    ApiError::new(ErrorCode::InvalidRequest, text)
}
