use std::io::Read;

use bytes::buf::Reader;
use bytes::{Buf, Bytes};
use flate2::bufread::GzDecoder;

use crate::error::Fault;

/// Java looks for a further member only where more bytes follow than the smallest header and trailer have.
const MEMBER_MIN_BYTES: usize = 18;

/// Members one after the other; after the first, what is no member ends the stream.
pub(crate) struct Gzip {
    member: GzDecoder<Reader<Bytes>>,
    ended: bool,
}

impl Gzip {
    pub(crate) fn new(payload: Bytes) -> Result<Self, Fault> {
        let member = GzDecoder::new(payload.reader());
        if member.header().is_none() {
            return Err(Fault::corrupt("it does not begin with a gzip header"));
        }
        Ok(Self { member, ended: false })
    }

    pub(crate) fn read(&mut self, out: &mut [u8]) -> Result<usize, Fault> {
        while !self.ended {
            let read = self.member.read(out).map_err(|error| Fault::from_io(&error))?;
            if read > 0 {
                return Ok(read);
            }
            self.next_member();
        }
        Ok(0)
    }

    fn next_member(&mut self) {
        let rest = self.member.get_ref().get_ref().clone();
        if rest.len() > MEMBER_MIN_BYTES {
            self.member = GzDecoder::new(rest.reader());
            self.ended = self.member.header().is_none();
        } else {
            self.ended = true;
        }
    }
}
