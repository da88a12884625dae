//! DescribeCluster, v0 to v2.
//!
//! - One broker, which is the controller; the cluster id was chosen when the data folder was created.
//! - Endpoint type 1 (brokers) is answered; any other is refused with 42, INVALID_REQUEST.
//!
//! Left out: authorized operations (not known), fenced brokers (there are none).

use kafka_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use kafka_protocol::messages::{DescribeClusterRequest, DescribeClusterResponse};
use kafka_protocol::protocol::StrBytes;
use verbatim_wire::error::ErrorCode;

use crate::errors::ApiError;
use crate::shared::Shared;

const BROKERS: i8 = 1;

pub(super) fn handle(
    shared: &Shared,
    version: i16,
    request: &DescribeClusterRequest,
) -> DescribeClusterResponse {
    let answer = DescribeClusterResponse::default()
        .with_cluster_id(StrBytes::from_string(shared.catalogue.snapshot().cluster_id.clone()));
    if version >= 1 && request.endpoint_type != BROKERS {
        let text = format!("endpoint_type must be 1 (brokers), endpoint_type=`{}`", request.endpoint_type);
        let (code, text) = ApiError::new(ErrorCode::InvalidRequest, text).fields();
        return answer
            .with_error_code(code)
            .with_error_message(text)
            .with_endpoint_type(request.endpoint_type);
    }
    let (host, port) = shared.advertised();
    answer.with_endpoint_type(BROKERS).with_controller_id(shared.node()).with_brokers(vec![
        DescribeClusterBroker::default().with_broker_id(shared.node()).with_host(host).with_port(port),
    ])
}
