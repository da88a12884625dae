//! Requests: from a frame's bytes to a checked header and a decoded body, and back.

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::protocol::StrBytes;

use crate::api::{ApiKey, EncodeError, Request};
use crate::shape::{self, Limits, Problem, ShapeError};

/// What stands before every request's body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestHead {
    /// The API.
    pub key: ApiKey,
    /// The version of the API.
    pub version: i16,
    /// The number the answer repeats.
    pub correlation_id: i32,
    /// What the client calls itself, if it does.
    pub client_id: Option<StrBytes>,
}

/// A decoded request.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The header.
    pub head: RequestHead,
    /// The body.
    pub request: Request,
}

/// A request that cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The API key is none that is spoken here.
    #[error("API key {key} version {version} is not known, correlation id {correlation_id}")]
    UnknownApi {
        /// The key received.
        key: i16,
        /// The version received.
        version: i16,
        /// The correlation id received.
        correlation_id: i32,
    },
    /// The version is not served. For ApiVersions the protocol has an answer to this (KIP-511), for others none.
    #[error("{} version {version} is not served, only {} to {}", .key.name(), .key.api().min, .key.api().max)]
    UnsupportedVersion {
        /// The API.
        key: ApiKey,
        /// The version received.
        version: i16,
        /// The correlation id received.
        correlation_id: i32,
    },
    /// The header is not one.
    #[error("request header: {0}")]
    Header(ShapeError),
    /// The body is not one of this API and version.
    #[error("{} v{version} request, correlation id {correlation_id}: {error}", .key.name())]
    Body {
        /// The API.
        key: ApiKey,
        /// The version.
        version: i16,
        /// The correlation id received.
        correlation_id: i32,
        /// The field and what is wrong with it.
        error: ShapeError,
    },
    /// The shape is right but the message library refuses a value.
    #[error("{} v{version} request, correlation id {correlation_id}: {problem}", .key.name())]
    Value {
        /// The API.
        key: ApiKey,
        /// The version.
        version: i16,
        /// The correlation id received.
        correlation_id: i32,
        /// The library's words.
        problem: String,
    },
}

/// A request whose lengths were walked, ready to be decoded.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The header.
    pub head: RequestHead,
    /// Array elements and tagged fields in the body, which is what decoding allocates for.
    pub elements: usize,
    body: Bytes,
}

/// Decodes a request from the bytes of one frame (without the length). Byte fields such as records stay slices of
/// `frame`; nothing is copied.
///
/// # Errors
/// [`RequestError`]; the order of judgement is header, API key, version, body.
pub fn decode(frame: &Bytes, limits: Limits) -> Result<Decoded, RequestError> {
    check(frame, limits)?.decode()
}

/// Walks a request without decoding it: allocates nothing.
///
/// # Errors
/// As [`decode`].
pub fn check(frame: &Bytes, limits: Limits) -> Result<Checked, RequestError> {
    let (key, version, correlation_id) = fixed_part(frame)?;
    let key = ApiKey::from_number(key).ok_or(RequestError::UnknownApi { key, version, correlation_id })?;
    if !key.api().serves(version) {
        return Err(RequestError::UnsupportedVersion { key, version, correlation_id });
    }
    let header_version = key.api().request_header_version(version);
    let header =
        shape::walk(shape::REQUEST_HEADER, header_version, frame, limits).map_err(RequestError::Header)?;
    let client_id = client_id(frame);
    let mut body = frame.slice(header.bytes.min(frame.len())..);
    if key == ApiKey::Metadata {
        // librdkafka 2 writes the null list with which it asks for every topic in four bytes instead of a compact one, so
        // that three are left over at the end. Apache Kafka never looks at such bytes; here they are forgiven.
        let walked = shape::walk(shape::request(key), version, &body, limits);
        body.truncate(walked.map_or(body.len(), |walked| walked.bytes));
    }
    let elements = check_body(shape::request(key), version, &body, limits)
        .map_err(|error| RequestError::Body { key, version, correlation_id, error })?;
    let head = RequestHead { key, version, correlation_id, client_id };
    Ok(Checked { head, elements: elements.saturating_add(header.elements), body })
}

impl Checked {
    /// Decodes the body.
    ///
    /// # Errors
    /// [`RequestError::Value`].
    pub fn decode(self) -> Result<Decoded, RequestError> {
        let Self { head, mut body, .. } = self;
        let RequestHead { key, version, correlation_id, .. } = head;
        let request = Request::decode_walked(key, version, &mut body)
            .map_err(|problem| RequestError::Value { key, version, correlation_id, problem })?;
        if body.is_empty() {
            return Ok(Decoded { head, request });
        }
        let problem = format!("{} bytes left over after decoding", body.len());
        Err(RequestError::Value { key, version, correlation_id, problem })
    }
}

/// Encodes a whole frame: length, header, body.
///
/// # Errors
/// [`EncodeError`] if the body does not fit the version or the frame does not fit the length field.
pub fn encode(
    version: i16,
    correlation_id: i32,
    client_id: Option<&str>,
    request: &Request,
) -> Result<Bytes, EncodeError> {
    encode_with(request.key(), version, correlation_id, client_id, |out| request.encode_body(version, out))
}

/// Encodes a frame around a body that `body` writes; also for messages of APIs that are not in the table.
pub(crate) fn encode_with(
    key: ApiKey,
    version: i16,
    correlation_id: i32,
    client_id: Option<&str>,
    body: impl FnOnce(&mut BytesMut) -> Result<(), EncodeError>,
) -> Result<Bytes, EncodeError> {
    let fail = |problem: &str| EncodeError { api: key, version, problem: problem.to_owned() };
    let mut out = BytesMut::with_capacity(64);
    out.put_u32(0);
    out.put_i16(key.number());
    out.put_i16(version);
    out.put_i32(correlation_id);
    match client_id {
        None => out.put_i16(-1),
        Some(id) => {
            out.put_i16(i16::try_from(id.len()).map_err(|_| fail("client id longer than 32767 bytes"))?);
            out.put_slice(id.as_bytes());
        }
    }
    if key.api().request_header_version(version) >= 2 {
        out.put_u8(0);
    }
    body(&mut out)?;
    crate::frame::seal(out).ok_or_else(|| fail("longer than 2147483647 bytes"))
}

/// Walks a body, refuses bytes after its last field, and counts its elements.
pub(crate) fn check_body(
    message: shape::Message,
    version: i16,
    body: &[u8],
    limits: Limits,
) -> Result<usize, ShapeError> {
    let walked = shape::walk(message, version, body, limits)?;
    match body.len().checked_sub(walked.bytes) {
        None | Some(0) => Ok(walked.elements),
        Some(left) => Err(ShapeError {
            field: "end of message".to_owned(),
            offset: walked.bytes,
            problem: Problem::Trailing { left },
        }),
    }
}

/// API key, version and correlation id stand at the same place in every header version.
fn fixed_part(frame: &[u8]) -> Result<(i16, i16, i32), RequestError> {
    let short = || {
        RequestError::Header(ShapeError {
            field: "request_api_key, request_api_version, correlation_id".to_owned(),
            offset: 0,
            problem: Problem::Short { needed: 8, left: frame.len() },
        })
    };
    let head = frame.first_chunk::<8>().ok_or_else(short)?;
    let [k0, k1, v0, v1, c0, c1, c2, c3] = *head;
    Ok((i16::from_be_bytes([k0, k1]), i16::from_be_bytes([v0, v1]), i32::from_be_bytes([c0, c1, c2, c3])))
}

/// The client id of a header that was walked: its length at byte 8, two bytes in every header version.
fn client_id(frame: &Bytes) -> Option<StrBytes> {
    let [high, low] = *frame.get(8..)?.first_chunk::<2>()?;
    let length = usize::try_from(i16::from_be_bytes([high, low])).ok()?;
    let end = length.checked_add(10)?;
    if end > frame.len() {
        return None;
    }
    StrBytes::try_from(frame.slice(10..end)).ok()
}
