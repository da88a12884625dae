//! Frames: a four-byte big-endian length, then that many bytes.
//!
//! A length is only a claim. Memory grows with the bytes that arrive, so a peer that states 100 MiB and sends nothing
//! costs what one small read costs.

use std::io;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The largest frame taken by default: 100 MiB, Kafka's `socket.request.max.bytes`.
pub const FRAME_BYTES_MAX: usize = 100 * 1024 * 1024;
/// Bytes reserved at first for a frame, however long it claims to be.
const FIRST_BYTES: usize = 16 * 1024;
/// Bytes of the length field.
const LENGTH_BYTES: usize = 4;

/// A frame that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The stated length is negative or above the limit.
    #[error("frame length {length} is not allowed, expected 0 to {limit} bytes")]
    Length {
        /// The length stated.
        length: i32,
        /// The largest length taken.
        limit: usize,
    },
    /// The peer closed inside a frame.
    #[error("connection closed {received} bytes into a frame of {expected}")]
    Cut {
        /// Bytes received, the length field's own if it was not whole yet.
        received: usize,
        /// Bytes that were expected.
        expected: usize,
    },
    /// Reading failed.
    #[error("reading failed: {0}")]
    Io(#[from] io::Error),
}

/// Reads one frame; `None` if the peer closed between frames.
///
/// # Errors
/// [`FrameError`]. The stream is then in the middle of something and of no more use.
pub async fn read<R: AsyncRead + Unpin>(
    reader: &mut R,
    bytes_max: usize,
) -> Result<Option<Bytes>, FrameError> {
    let mut length = Length::default();
    loop {
        match length.read(reader, bytes_max).await? {
            LengthRead::Closed => return Ok(None),
            LengthRead::Begun => {}
            LengthRead::Whole(length) => return read_body(reader, length).await.map(Some),
        }
    }
}

/// A frame's length on its way in. What has come of it outlives a reader that is dropped in the middle.
#[derive(Debug, Default)]
pub(crate) struct Length {
    bytes: [u8; LENGTH_BYTES],
    received: usize,
}

/// What a read of a length came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LengthRead {
    /// The peer closed between frames.
    Closed,
    /// Some of it is here.
    Begun,
    /// The frame has so many bytes.
    Whole(usize),
}

impl Length {
    /// True if some of it has come.
    pub(crate) fn is_begun(&self) -> bool {
        self.received > 0
    }

    /// Reads once.
    pub(crate) async fn read<R: AsyncRead + Unpin>(
        &mut self,
        reader: &mut R,
        bytes_max: usize,
    ) -> Result<LengthRead, FrameError> {
        let rest = self.bytes.get_mut(self.received..).unwrap_or_default();
        match reader.read(rest).await? {
            0 if self.received == 0 => return Ok(LengthRead::Closed),
            0 => return Err(FrameError::Cut { received: self.received, expected: LENGTH_BYTES }),
            count => self.received = self.received.saturating_add(count),
        }
        if self.received < LENGTH_BYTES {
            return Ok(LengthRead::Begun);
        }
        let length = i32::from_be_bytes(self.bytes);
        usize::try_from(length)
            .ok()
            .filter(|bytes| *bytes <= bytes_max)
            .map(LengthRead::Whole)
            .ok_or(FrameError::Length { length, limit: bytes_max })
    }
}

/// Reads a frame's bytes, doubling the buffer as it fills.
async fn read_body<R: AsyncRead + Unpin>(reader: &mut R, length: usize) -> Result<Bytes, FrameError> {
    let mut body = BytesMut::new();
    while body.len() < length {
        body.reserve(growth(&body, length));
        read_some(reader, &mut body, length).await?;
    }
    Ok(body.freeze())
}

/// How much room the next read wants: none while there is some, a little at first, then as much again as is there.
pub(crate) fn growth(body: &BytesMut, length: usize) -> usize {
    if body.len() < body.capacity() {
        return 0;
    }
    body.len().max(FIRST_BYTES).min(length.saturating_sub(body.len()))
}

/// Reads once into the room there is, never beyond the frame's end; how many bytes came.
pub(crate) async fn read_some<R: AsyncRead + Unpin>(
    reader: &mut R,
    body: &mut BytesMut,
    length: usize,
) -> Result<usize, FrameError> {
    let room = length.saturating_sub(body.len()).min(body.capacity().saturating_sub(body.len()));
    let mut window = (&mut *body).limit(room);
    match reader.read_buf(&mut window).await? {
        0 => Err(FrameError::Cut { received: body.len(), expected: length }),
        count => Ok(count),
    }
}

/// Writes one frame around `body` and flushes.
///
/// # Errors
/// A body longer than a length field can say (`InvalidInput`), or what the writer says.
pub async fn write<W: AsyncWrite + Unpin>(writer: &mut W, body: &[u8]) -> io::Result<()> {
    let length = i32::try_from(body.len())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "frame longer than 2147483647 bytes"))?;
    writer.write_all(&length.to_be_bytes()).await?;
    writer.write_all(body).await?;
    writer.flush().await
}

/// Fills in the length of a frame that begins with room for it; `None` if the length does not fit.
pub(crate) fn seal(mut frame: BytesMut) -> Option<Bytes> {
    let length = i32::try_from(frame.len().checked_sub(LENGTH_BYTES)?).ok()?;
    frame.get_mut(..LENGTH_BYTES)?.copy_from_slice(&length.to_be_bytes());
    Some(frame.freeze())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_come_back_as_written_and_the_end_is_none() {
        let mut wire = Vec::new();
        for body in [&b""[..], b"abc", &[7; 100_000]] {
            write(&mut wire, body).await.unwrap();
        }
        let mut reader = &wire[..];
        assert_eq!(read(&mut reader, 100_000).await.unwrap().unwrap(), Bytes::new());
        assert_eq!(read(&mut reader, 100_000).await.unwrap().unwrap(), "abc");
        assert_eq!(read(&mut reader, 100_000).await.unwrap().unwrap(), vec![7; 100_000]);
        assert!(read(&mut reader, 100_000).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn lengths_out_of_range_name_value_and_limit() {
        for (length, limit) in [(-1_i32, 10_usize), (11, 10), (i32::MAX, FRAME_BYTES_MAX), (i32::MIN, 0)] {
            let mut reader = &length.to_be_bytes()[..];
            let error = read(&mut reader, limit).await.unwrap_err().to_string();
            let expected = format!("frame length {length} is not allowed, expected 0 to {limit} bytes");
            assert_eq!(error, expected);
        }
    }

    #[tokio::test]
    async fn a_cut_frame_says_where() {
        let error = read(&mut &[0_u8, 0][..], 10).await.unwrap_err();
        assert_eq!(error.to_string(), "connection closed 2 bytes into a frame of 4");
        let error = read(&mut &[0_u8, 0, 0, 9, 1, 2, 3][..], 10).await.unwrap_err();
        assert_eq!(error.to_string(), "connection closed 3 bytes into a frame of 9");
    }

    #[test]
    fn the_buffer_grows_with_what_arrived_not_with_what_was_claimed() {
        let mut body = BytesMut::new();
        assert_eq!(growth(&body, FRAME_BYTES_MAX), FIRST_BYTES);
        body.reserve(FIRST_BYTES);
        assert_eq!(growth(&body, FRAME_BYTES_MAX), 0, "there is room");
        body.resize(body.capacity(), 0);
        assert_eq!(growth(&body, FRAME_BYTES_MAX), body.len());
        assert_eq!(growth(&body, body.len() + 5), 5, "never beyond the frame");
    }
}
