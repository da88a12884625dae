use std::io::{self, Read};

use bytes::buf::Reader;
use bytes::{Buf, Bytes};
use zstd::stream::read::Decoder;
use zstd::zstd_safe::get_frame_content_size;
use zstd::zstd_safe::zstd_sys::ZSTD_ErrorCode;

use crate::error::Fault;

/// 128 MiB: what level 22 declares for any batch, and the largest that Kafka's client reads. The library takes address
/// space for it at once, but memory only as records fill it, and those end at the limit.
const WINDOW_LOG_MAX: u32 = 27;

/// Frames one after the other, to the last byte.
pub(crate) struct Zstd {
    decoder: Option<Decoder<'static, Reader<Bytes>>>,
}

impl Zstd {
    pub(crate) fn new(payload: Bytes, limit_bytes: usize) -> Result<Self, Fault> {
        if payload.is_empty() {
            // No frame at all is an empty stream, as Java reads it.
            return Ok(Self { decoder: None });
        }
        let limit = u64::try_from(limit_bytes).unwrap_or(u64::MAX);
        if let Ok(Some(declared)) = get_frame_content_size(&payload)
            && declared > limit
        {
            return Err(Fault::TooLarge);
        }
        let mut decoder = Decoder::with_buffer(payload.reader()).map_err(|error| fault(&error))?;
        decoder.window_log_max(WINDOW_LOG_MAX).map_err(|error| fault(&error))?;
        Ok(Self { decoder: Some(decoder) })
    }

    pub(crate) fn read(&mut self, out: &mut [u8]) -> Result<usize, Fault> {
        match &mut self.decoder {
            Some(decoder) => decoder.read(out).map_err(|error| fault(&error)),
            None => Ok(0),
        }
    }
}

fn fault(error: &io::Error) -> Fault {
    let library = error.get_ref().and_then(|inner| inner.downcast_ref::<zstd::Error>());
    let wants_memory = library.is_some_and(|library| {
        library.is(ZSTD_ErrorCode::ZSTD_error_frameParameter_windowTooLarge)
            || library.is(ZSTD_ErrorCode::ZSTD_error_memory_allocation)
    });
    if wants_memory { Fault::TooLarge } else { Fault::from_io(error) }
}
