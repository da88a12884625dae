//! Answers: from a body to a whole frame with the right header, and back on a client's side.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};
use kafka_protocol::protocol::{Decodable, Request as RequestMessage};

use crate::api::{APIS, Api, ApiKey, EncodeError, Response};
use crate::error::ErrorCode;
use crate::request::check_body;
use crate::shape::{self, Limits, Problem, ShapeError};

/// Encodes a whole frame: length, header of the version that belongs to the API's, body.
///
/// # Errors
/// [`EncodeError`] if the body does not fit the version or the frame does not fit the length field.
pub fn encode(version: i16, correlation_id: i32, response: &Response) -> Result<Bytes, EncodeError> {
    let api = response.key().api();
    let mut out = BytesMut::new();
    out.put_u32(0);
    out.put_i32(correlation_id);
    if api.response_header_version(version) >= 1 {
        out.put_u8(0);
    }
    response.encode_body(version, &mut out)?;
    crate::frame::seal(out).ok_or_else(|| EncodeError {
        api: api.key,
        version,
        problem: "longer than 2147483647 bytes".to_owned(),
    })
}

/// The body of an ApiVersions answer: the advertised range of every API of the table that `serves` names.
pub fn api_versions(serves: impl Fn(ApiKey) -> bool) -> ApiVersionsResponse {
    let row = |api: &Api| {
        ApiVersion::default()
            .with_api_key(api.key.number())
            .with_min_version(api.advertised_min)
            .with_max_version(api.max)
    };
    ApiVersionsResponse::default().with_api_keys(APIS.iter().filter(|api| serves(api.key)).map(row).collect())
}

/// The answer to an ApiVersions request of a version that is not served: version 0, error 35 and the table (KIP-511).
///
/// # Errors
/// Never in practice; the type is that of every encoder.
pub fn unsupported_api_versions(
    correlation_id: i32,
    serves: impl Fn(ApiKey) -> bool,
) -> Result<Bytes, EncodeError> {
    let body = api_versions(serves).with_error_code(ErrorCode::UnsupportedVersion.number());
    encode(0, correlation_id, &Response::ApiVersions(body))
}

/// An answer that cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResponseError {
    /// The API is none whose answers are known here.
    #[error("answers of API key {key} are not known")]
    UnknownApi {
        /// The API key.
        key: i16,
    },
    /// The header is not one.
    #[error("{} v{version} answer's header: {error}", .key.name())]
    Header {
        /// The API.
        key: ApiKey,
        /// The version asked with.
        version: i16,
        /// The field and what is wrong with it.
        error: ShapeError,
    },
    /// The body is not one of this API and version.
    #[error("{} v{version} answer: {error}", .key.name())]
    Body {
        /// The API.
        key: ApiKey,
        /// The version asked with.
        version: i16,
        /// The field and what is wrong with it.
        error: ShapeError,
    },
    /// The shape is right but the message library refuses a value.
    #[error("{} v{version} answer: {problem}", .key.name())]
    Value {
        /// The API.
        key: ApiKey,
        /// The version asked with.
        version: i16,
        /// The library's words.
        problem: String,
    },
}

/// The correlation id of an answer's frame, which stands first in every header version.
pub fn correlation_id(frame: &[u8]) -> Option<i32> {
    frame.first_chunk::<4>().map(|bytes| i32::from_be_bytes(*bytes))
}

/// Decodes the answer to a request `R` of this version from the bytes of one frame (without the length).
///
/// An ApiVersions answer with error 35 is read as version 0, whatever was asked (KIP-511).
///
/// # Errors
/// [`ResponseError`], naming API, version and field.
pub fn decode<R: RequestMessage>(
    version: i16,
    frame: Bytes,
    limits: Limits,
) -> Result<R::Response, ResponseError> {
    let key = ApiKey::from_number(R::KEY).ok_or(ResponseError::UnknownApi { key: R::KEY })?;
    let version = if R::KEY == ApiVersionsRequest::KEY && is_version_refusal(&frame) { 0 } else { version };
    let header_version = key.api().response_header_version(version);
    let header = shape::walk(shape::RESPONSE_HEADER, header_version, &frame, limits)
        .map_err(|error| ResponseError::Header { key, version, error })?;
    let mut body = frame.slice(header.bytes.min(frame.len())..);
    check_body(shape::response(key), version, &body, limits).map_err(|error| ResponseError::Body {
        key,
        version,
        error,
    })?;
    let answer = R::Response::decode(&mut body, version).map_err(|error| ResponseError::Value {
        key,
        version,
        problem: error.to_string(),
    })?;
    if body.has_remaining() {
        let problem = Problem::Trailing { left: body.remaining() };
        let error = ShapeError { field: "end of message".to_owned(), offset: 0, problem };
        return Err(ResponseError::Body { key, version, error });
    }
    Ok(answer)
}

fn is_version_refusal(frame: &[u8]) -> bool {
    let code = ErrorCode::UnsupportedVersion.number().to_be_bytes();
    frame.get(4..6) == Some(code.as_slice())
}
