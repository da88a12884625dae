use bytes::Bytes;
use verbatim_batch::{Attributes, Codec};

use crate::error::{Fault, InflateError};
use crate::gzip::Gzip;
use crate::lz4::Lz4;
use crate::snappy::Snappy;
use crate::zstd::Zstd;

/// How large a batch's records may become, in bytes, unless the operator says otherwise.
pub const DEFAULT_LIMIT_BYTES: usize = 64 << 20;
/// The largest piece that [`Inflater::next_piece`] gives out, whatever it is asked for.
pub const PIECE_MAX_BYTES: usize = 1 << 20;

const FIRST_READ_BYTES: usize = 4 << 10;

/// A batch's records being inflated.
///
/// gzip and zstd are read as a stream and lz4 block by block; a snappy block has to be held as a whole, which may be as
/// large as the limit.
///
/// ```
/// use bytes::Bytes;
/// use verbatim_batch::{Attributes, Codec};
/// use verbatim_compression::{Inflater, deflate};
///
/// let payload = Bytes::from(deflate(Codec::Zstd, b"plain records").unwrap());
/// let attributes = Attributes::default().with_codec(Codec::Zstd);
/// let mut inflater = Inflater::new(attributes, payload, 1 << 20).unwrap();
/// assert_eq!(inflater.next_piece(5).unwrap(), "plain");
/// assert_eq!(inflater.next_piece(100).unwrap(), " records");
/// assert!(inflater.next_piece(100).unwrap().is_empty());
/// ```
pub struct Inflater {
    source: Source,
    codec: Codec,
    limit_bytes: usize,
    produced: usize,
    failed: Option<InflateError>,
}

enum Source {
    Plain(Bytes),
    Gzip(Box<Gzip>),
    Snappy(Snappy),
    Lz4(Lz4),
    Zstd(Zstd),
}

impl Inflater {
    /// Begins to inflate `payload`, what follows the header of a batch with these attributes. The limit is that of the
    /// inflated bytes; payloads that are not compressed have none.
    ///
    /// # Errors
    /// The codec is unknown, or the payload's first bytes already show that it cannot be inflated.
    pub fn new(attributes: Attributes, payload: Bytes, limit_bytes: usize) -> Result<Self, InflateError> {
        let codec = attributes.codec().map_err(|number| InflateError::UnknownCodec { number })?;
        let source =
            Source::new(codec, payload, limit_bytes).map_err(|fault| fault.named(codec, limit_bytes))?;
        Ok(Self { source, codec, limit_bytes, produced: 0, failed: None })
    }

    /// The next `max_bytes` of the plain records, fewer at their end or above [`PIECE_MAX_BYTES`]; empty at the end (and
    /// if `max_bytes` is 0).
    ///
    /// # Errors
    /// The payload is corrupt or inflates beyond the limit; every later call says the same.
    pub fn next_piece(&mut self, max_bytes: usize) -> Result<Bytes, InflateError> {
        let max_bytes = max_bytes.min(PIECE_MAX_BYTES);
        if let Source::Plain(rest) = &mut self.source {
            return Ok(rest.split_to(max_bytes.min(rest.len())));
        }
        let mut piece = Vec::new();
        self.fill(&mut piece, max_bytes)?;
        Ok(Bytes::from(piece))
    }

    /// Appends at most `max_bytes` to `out`, less only at the end of the records.
    fn fill(&mut self, out: &mut Vec<u8>, max_bytes: usize) -> Result<(), InflateError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.try_fill(out, max_bytes).map_err(|fault| {
            let error = fault.named(self.codec, self.limit_bytes);
            self.failed = Some(error.clone());
            error
        })
    }

    fn try_fill(&mut self, out: &mut Vec<u8>, max_bytes: usize) -> Result<(), Fault> {
        // One byte beyond the limit is asked for: whether it comes tells if the limit is kept.
        let allowed = self.limit_bytes.saturating_sub(self.produced).saturating_add(1);
        let mut filled = out.len();
        let end = filled.saturating_add(max_bytes.min(allowed));
        while filled < end {
            if filled == out.len() {
                let larger = filled.saturating_mul(2).max(FIRST_READ_BYTES).min(end);
                out.try_reserve_exact(larger.saturating_sub(filled)).map_err(|_| Fault::TooLarge)?;
                out.resize(larger, 0);
            }
            let read = self.source.read(out.get_mut(filled..).unwrap_or_default())?;
            if read == 0 {
                break;
            }
            filled = filled.saturating_add(read);
            self.produced = self.produced.saturating_add(read);
        }
        out.truncate(filled);
        if self.produced > self.limit_bytes { Err(Fault::TooLarge) } else { Ok(()) }
    }
}

/// All plain records of a batch at once; see [`Inflater::new`]. Not compressed ones are handed back without a copy.
///
/// # Errors
/// The codec is unknown, or the payload is corrupt or inflates beyond the limit.
pub fn inflate(attributes: Attributes, payload: Bytes, limit_bytes: usize) -> Result<Bytes, InflateError> {
    let mut inflater = Inflater::new(attributes, payload, limit_bytes)?;
    if let Source::Plain(payload) = inflater.source {
        return Ok(payload);
    }
    let mut plain = Vec::new();
    inflater.fill(&mut plain, usize::MAX)?;
    Ok(Bytes::from(plain))
}

impl Source {
    fn new(codec: Codec, payload: Bytes, limit_bytes: usize) -> Result<Self, Fault> {
        Ok(match codec {
            Codec::None => Self::Plain(payload),
            Codec::Gzip => Self::Gzip(Box::new(Gzip::new(payload)?)),
            Codec::Snappy => Self::Snappy(Snappy::new(payload, limit_bytes)?),
            Codec::Lz4 => Self::Lz4(Lz4::new(payload)?),
            Codec::Zstd => Self::Zstd(Zstd::new(payload, limit_bytes)?),
        })
    }

    /// Fills a part of `out`, which is not empty; 0 is the end.
    fn read(&mut self, out: &mut [u8]) -> Result<usize, Fault> {
        match self {
            Self::Plain(_) => Ok(0),
            Self::Gzip(gzip) => gzip.read(out),
            Self::Snappy(snappy) => snappy.read(out),
            Self::Lz4(lz4) => lz4.read(out),
            Self::Zstd(zstd) => zstd.read(out),
        }
    }
}
