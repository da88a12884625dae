//! ApiVersions, v0 to v4.
//!
//! - The table of [`verbatim_wire::APIS`] as it is: no API is advertised that is not served. Produce is advertised from
//!   v0 and served from v3, since librdkafka compresses only for a broker that claims v0 (Apache Kafka 4 does so too).
//! - An unknown version is answered in v0 with 35 and the table (KIP-511), before requests reach this file.
//!
//! Left out: features (none are finalized), client names are not recorded.

use kafka_protocol::messages::ApiVersionsResponse;
use verbatim_wire::response;

pub(super) fn handle() -> ApiVersionsResponse {
    response::api_versions(|_| true).with_finalized_features_epoch(-1)
}
