//! The Kafka protocol as this project speaks it, for both ends of a connection; it knows no broker, engine or log.
//!
//! From the bytes up: [`frame`] reads and writes length-prefixed frames; [`shape`] walks a body before it may be
//! decoded, so that no stated length can exhaust memory; [`api`] is the table of APIs and versions with the message
//! enums made from it; [`request`] and [`response`] turn frames into messages and back; [`tag`] is the exact-produce
//! tag; [`error`] the error codes. [`server`] and [`client`] are the two ends;
//! [`exact_producer`] writes exact batches over a client. Records are never parsed here: they stay slices of the frame they
//! came in, and an exact producer looks at batch headers alone.

pub mod api;
pub mod client;
pub mod error;
pub mod exact_producer;
pub mod frame;
pub mod request;
pub mod response;
pub mod server;
pub mod shape;
pub mod tag;

pub use api::{APIS, Api, ApiKey, Request, Response};
pub use error::ErrorCode;
/// The message types, for users of this crate to name the same version of them.
pub use kafka_protocol::{messages, protocol};
pub use request::RequestHead;
