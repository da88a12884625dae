//! DescribeClientQuotas, v0 and v1.
//!
//! - Entities are client ids and the default of all client ids, with those of `producer_byte_rate` and `consumer_byte_rate`
//!   that are set. A filter asks for one name, for the default, or for whatever is set; no filter for all. Strict means that
//!   an entity has no other parts than those asked for.
//! - Users and addresses may be asked for: none has a quota.
//! - A filter that contradicts itself is 42, a type of entity that Kafka does not have either 35.
//!
//! Left out: quotas of users and addresses, and other quotas, which AlterClientQuotas does not take.

use std::collections::HashMap;

use kafka_protocol::messages::describe_client_quotas_request::ComponentData;
use kafka_protocol::messages::describe_client_quotas_response::{EntityData, EntryData, ValueData};
use kafka_protocol::messages::{DescribeClientQuotasRequest, DescribeClientQuotasResponse};
use kafka_protocol::protocol::StrBytes;
use verbatim_wire::error::ErrorCode;

use super::k49_alter_client_quotas::{ADDRESS, CLIENT_ID, USER};
use crate::errors::{self, ApiError};
use crate::quotas::rates::{Direction, Rates};
use crate::shared::Shared;

const EXACT: i8 = 0;
const DEFAULT: i8 = 1;
const ANY: i8 = 2;

/// What a part of an entity has to be.
enum Match<'a> {
    Named(Option<&'a str>),
    Any,
}

pub(super) fn handle(shared: &Shared, request: &DescribeClientQuotasRequest) -> DescribeClientQuotasResponse {
    let snapshot = shared.catalogue.snapshot();
    let entries = filter(&request.components).map(|filter| {
        let wanted = |client: &Option<String>| is_wanted(&filter, request.strict, client.as_deref());
        let clients = snapshot.quotas.clients().filter(|client| wanted(client));
        clients.map(|client| entry(&snapshot.quotas, client)).collect()
    });
    let (code, text) = errors::fields(&entries);
    DescribeClientQuotasResponse::default()
        .with_error_code(code)
        .with_error_message(text)
        .with_entries(entries.ok())
}

fn filter(components: &[ComponentData]) -> Result<HashMap<&str, Match<'_>>, ApiError> {
    let invalid = |text| Err(ApiError::new(ErrorCode::InvalidRequest, text));
    let mut filter = HashMap::new();
    for component in components {
        let kind = component.entity_type.as_str();
        if ![CLIENT_ID, USER, ADDRESS].contains(&kind) {
            let text = format!("entity_type must be client-id, user or ip, entity_type=`{kind}`");
            return Err(ApiError::new(ErrorCode::UnsupportedVersion, text));
        }
        let name = component._match.as_ref().map(StrBytes::as_str);
        let wanted = match (component.match_type, name) {
            (EXACT, Some(name)) => Match::Named(Some(name)),
            (DEFAULT, None) => Match::Named(None),
            (ANY, None) => Match::Any,
            (other, name) => {
                return invalid(format!(
                    "match_type must be 0 with a match, or 1 or 2 without, match_type=`{other}`, match=`{}`",
                    name.unwrap_or("null")
                ));
            }
        };
        if filter.insert(kind, wanted).is_some() {
            return invalid(format!("a filter may name a type once, entity_type=`{kind}`"));
        }
    }
    if filter.contains_key(ADDRESS) && filter.len() > 1 {
        return invalid("an ip has no other parts, expected no other entity_type".to_owned());
    }
    Ok(filter)
}

fn is_wanted(filter: &HashMap<&str, Match<'_>>, strict: bool, client: Option<&str>) -> bool {
    let all = filter.iter().all(|(kind, wanted)| {
        *kind == CLIENT_ID
            && match wanted {
                Match::Named(name) => *name == client,
                Match::Any => true,
            }
    });
    all && !(strict && filter.is_empty())
}

fn entry(rates: &Rates, client: &Option<String>) -> EntryData {
    let entity = EntityData::default()
        .with_entity_type(StrBytes::from_static_str(CLIENT_ID))
        .with_entity_name(client.clone().map(StrBytes::from_string));
    let value = |direction: Direction| {
        let rate = rates.get(client, direction)?;
        let key = StrBytes::from_static_str(direction.key());
        Some(ValueData::default().with_key(key).with_value(as_float(rate)))
    };
    let values = Direction::ALL.into_iter().filter_map(value).collect();
    EntryData::default().with_entity(vec![entity]).with_values(values)
}

/// Rates come as floats, so they go back as the same ones.
fn as_float(rate: u64) -> f64 {
    rate.to_string().parse().unwrap_or(f64::MAX)
}
