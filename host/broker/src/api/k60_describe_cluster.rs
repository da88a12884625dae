//! DescribeCluster, v0 to v2.
//!
//! - One broker, which is the controller; the cluster id was chosen when the data folder was created.
//! - Endpoint type 1 (brokers) is answered; 2 (controllers) is 114, MISMATCHED_ENDPOINT_TYPE, any other 115,
//!   UNSUPPORTED_ENDPOINT_TYPE.
//! - Authorized operations, if asked for, are all that there are. No broker is ever fenced (v2).
//!
//! Left out: nothing.

use kafka_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use kafka_protocol::messages::{DescribeClusterRequest, DescribeClusterResponse};
use kafka_protocol::protocol::StrBytes;
use verbatim_wire::error::ErrorCode;

use super::operations;
use crate::errors::ApiError;
use crate::shared::Shared;

const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

pub(super) fn handle(
    shared: &Shared,
    version: i16,
    request: &DescribeClusterRequest,
) -> DescribeClusterResponse {
    let answer = DescribeClusterResponse::default()
        .with_cluster_id(StrBytes::from_string(shared.catalogue.snapshot().cluster_id.clone()));
    if version >= 1 && request.endpoint_type != BROKERS {
        let code = if request.endpoint_type == CONTROLLERS {
            ErrorCode::MismatchedEndpointType
        } else {
            ErrorCode::UnsupportedEndpointType
        };
        let text = format!("endpoint_type must be 1 (brokers), endpoint_type=`{}`", request.endpoint_type);
        let (code, text) = ApiError::new(code, text).fields();
        return answer.with_error_code(code).with_error_message(text);
    }
    let (host, port) = shared.advertised();
    let asked = request.include_cluster_authorized_operations;
    let answer = answer.with_cluster_authorized_operations(operations::if_asked(asked, operations::CLUSTER));
    answer.with_endpoint_type(BROKERS).with_controller_id(shared.node()).with_brokers(vec![
        DescribeClusterBroker::default().with_broker_id(shared.node()).with_host(host).with_port(port),
    ])
}
