//! Kafka's codecs for record batches, inflated piece by piece within limits.
//!
//! [`Inflater`] hands out a batch's plain records in pieces, [`inflate`] all at once, [`deflate`] goes the other way.
//! Whatever a payload *declares* (a length, a window, a block size), no memory is taken for it beyond what the limit allows
//! and the bytes that are really there can fill. Bad input is an [`InflateError`], never a panic.
//!
//! What is accepted is what Kafka's own Java client accepts, so that a batch taken in can be read by everybody:
//!
//! | codec | written | read | after the end |
//! |---|---|---|---|
//! | gzip | one member, level 6 | any number of members | what is no further member is ignored, as Java does |
//! | snappy | Java's framing, blocks of 32 KiB | that (also several streams in a row), else one raw block | 1 to 3 bytes are ignored, as Java does |
//! | lz4 | one frame, independent blocks of 64 KiB | one frame of independent blocks, without dictionary | ignored, as Java does |
//! | zstd | one frame, level 3 | any number of frames, skippable ones included, without dictionary | corrupt |
//!
//! Memory: gzip takes some KiB, lz4 a block (at most 4 MiB), snappy a block (at most the limit), zstd its window as far as
//! records fill it (2 MiB by default, at level 22 up to the limit), each beside the piece or the whole that is asked for.
//!
//! Three differences from Java (client 4.4), all on damaged input but the first: an lz4 content checksum is not looked at, as
//! releases of Kafka disagree on what it is and the batch's own checksum covers the bytes; a gzip header with reserved
//! flags is refused; a cut zstd frame behind a whole one is refused, which Java overlooks depending on its buffers.

mod deflate;
mod error;
mod gzip;
mod inflate;
mod lz4;
mod snappy;
mod zstd;

pub use deflate::{DeflateError, deflate};
pub use error::InflateError;
pub use inflate::{DEFAULT_LIMIT_BYTES, Inflater, PIECE_MAX_BYTES, inflate};
