//! Record batch v2, Kafka's format for records on the wire and on disk: the one place that knows where a field lies.
//!
//! Bytes go through three stages, each with a type of its own:
//!
//! 1. [`frames`] splits a run of bytes into [`Frame`]s by length alone (R1, R2);
//! 2. [`Batch::parse`] makes a [`Batch`] of a frame whose header, magic and checksum are right (R2 to R4);
//! 3. [`Records`] walks the plain (inflated) records at once, [`RecordScanner`] piece by piece, with one verdict.
//!
//! [`BatchBuilder`] and [`assemble`] go the other way; [`place`] and [`restamp`] change the few fields a log may change.
//! Nothing here does I/O, and no input makes it panic. The format is drawn in this folder's README.
//!
//! Rule numbers (R2, R14 and so on) are those of the admission rules.
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

mod attributes;
mod builder;
mod checksum;
mod control;
mod difference;
mod frame;
mod header;
mod patch;
mod record;
mod scan;
mod varint;
mod view;

pub use attributes::{Attributes, Codec, TimestampType};
pub use builder::{BatchBuilder, BuildError, NewRecord, assemble};
pub use checksum::{crc32c, crc32c_append};
pub use control::{ControlKey, ControlKeyError, ControlType, marker_key, marker_value};
pub use difference::first_difference;
pub use frame::{Frame, Frames, FramesEnd, frames};
pub use header::{
    CRC_START, HEADER_LEN, Header, MIN_BATCH_LENGTH, MIN_FRAME_LEN, OVERHEAD_LEN, PREFIX_LEN, Prefix,
};
pub use patch::{PatchError, place, reseal, restamp};
pub use record::{
    Record, RecordError, RecordErrorKind, RecordField, RecordHeader, RecordHeaders, RecordMeta, Records,
};
pub use scan::RecordScanner;
pub use view::{Batch, BatchError, compute_crc, crc_matches};
