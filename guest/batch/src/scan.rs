use crate::control::ControlKey;
use crate::record::{
    Record, RecordError, RecordErrorKind, RecordField, RecordMeta, not_negative, read_record,
};
use crate::varint::{Decoder, Step, Width};

/// Walks plain records that arrive in pieces, with the verdict of [`Records`](crate::Records) on the whole.
///
/// It holds no record data, only where it is; a piece may be cut anywhere.
///
/// ```
/// # use verbatim_batch::{RecordScanner, BatchBuilder, NewRecord};
/// let plain = BatchBuilder::new(0).record(NewRecord::new(0, 5).value(b"hello")).plain_records().unwrap();
/// let mut scanner = RecordScanner::new(1);
/// let mut records = 0;
/// for piece in plain.chunks(3) {
///     scanner.feed(piece, |_| records += 1).unwrap();
/// }
/// scanner.finish().unwrap();
/// assert_eq!(records, 1);
/// ```
#[derive(Clone, Debug)]
pub struct RecordScanner {
    index: u32,
    count: u32,
    failed: Option<RecordError>,
    /// The field that the next byte belongs to.
    field: RecordField,
    decoder: Decoder,
    /// Bytes that the record claims and that no field has taken yet.
    declared: usize,
    /// Bytes of a key or value still to come.
    skip: usize,
    headers_left: usize,
    meta: RecordMeta,
}

enum Progress {
    Hungry,
    Going,
    Record,
}

impl RecordScanner {
    /// A scan of records of which the batch's header states `count`.
    pub fn new(count: i32) -> Self {
        let negative = RecordError { index: 0, kind: RecordErrorKind::NegativeCount { value: count } };
        Self {
            index: 0,
            count: u32::try_from(count).unwrap_or(0),
            failed: (count < 0).then_some(negative),
            field: RecordField::Length,
            decoder: Decoder::new(Width::Int),
            declared: 0,
            skip: 0,
            headers_left: 0,
            meta: RecordMeta::default(),
        }
    }

    /// Takes the next piece, of any length, and tells each record as soon as its last byte is there.
    ///
    /// # Errors
    /// The records are malformed; every later call says the same.
    pub fn feed(
        &mut self,
        mut piece: &[u8],
        mut on_record: impl FnMut(RecordMeta),
    ) -> Result<(), RecordError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        while self.index < self.count {
            if let Some((record, rest)) = self.whole_record(piece) {
                on_record(record.meta());
                self.index = self.index.saturating_add(1);
                piece = rest;
                continue;
            }
            match self.step(&mut piece) {
                Ok(Progress::Going) => {}
                Ok(Progress::Hungry) => return Ok(()),
                Ok(Progress::Record) => {
                    on_record(self.meta);
                    self.index = self.index.saturating_add(1);
                    self.expect(RecordField::Length);
                    self.meta = RecordMeta::default();
                }
                Err(kind) => return Err(self.fail(kind)),
            }
        }
        if piece.is_empty() { Ok(()) } else { Err(self.fail(RecordErrorKind::Trailing)) }
    }

    /// Says that there are no more pieces.
    ///
    /// # Errors
    /// The records are malformed, or there are fewer than stated.
    pub fn finish(mut self) -> Result<(), RecordError> {
        match self.failed {
            Some(error) => Err(error),
            None if self.index == self.count => Ok(()),
            None => Err(self.fail(RecordErrorKind::Cut { field: self.field })),
        }
    }

    /// The next record, if nothing of it was taken and all of it is there: that is quicker than byte by byte. What is wrong with
    /// one shows there.
    fn whole_record<'a>(&self, piece: &'a [u8]) -> Option<(Record<'a>, &'a [u8])> {
        let is_between = self.field == RecordField::Length && self.decoder.is_new();
        if is_between { read_record(piece).ok() } else { None }
    }

    fn fail(&mut self, kind: RecordErrorKind) -> RecordError {
        let error = RecordError { index: self.index, kind };
        self.failed = Some(error);
        error
    }

    fn step(&mut self, piece: &mut &[u8]) -> Result<Progress, RecordErrorKind> {
        match self.field {
            RecordField::Key | RecordField::Value | RecordField::HeaderKey | RecordField::HeaderValue => {
                self.skip_data(piece)
            }
            RecordField::Attributes => {
                let Some(byte) = self.byte(piece)? else { return Ok(Progress::Hungry) };
                self.meta.attributes = i8::from_be_bytes([byte]);
                Ok(self.expect(RecordField::TimestampDelta))
            }
            field => {
                let Some(byte) = self.byte(piece)? else { return Ok(Progress::Hungry) };
                match self.decoder.push(byte) {
                    Step::More => Ok(Progress::Going),
                    Step::Done(value) => self.number(value),
                    Step::Invalid => Err(RecordErrorKind::Varint { field }),
                }
            }
        }
    }

    fn byte(&mut self, piece: &mut &[u8]) -> Result<Option<u8>, RecordErrorKind> {
        let field = self.field;
        if field != RecordField::Length && self.declared == 0 {
            return Err(RecordErrorKind::Overrun { field });
        }
        let Some((byte, rest)) = piece.split_first() else { return Ok(None) };
        *piece = rest;
        if field != RecordField::Length {
            self.declared = self.declared.saturating_sub(1);
        }
        Ok(Some(*byte))
    }

    fn expect(&mut self, field: RecordField) -> Progress {
        self.field = field;
        let width = if field == RecordField::TimestampDelta { Width::Long } else { Width::Int };
        self.decoder = Decoder::new(width);
        Progress::Going
    }

    fn number(&mut self, value: i64) -> Result<Progress, RecordErrorKind> {
        let field = self.field;
        if field == RecordField::TimestampDelta {
            self.meta.timestamp_delta = value;
            return Ok(self.expect(RecordField::OffsetDelta));
        }
        let value = i32::try_from(value).map_err(|_| RecordErrorKind::Varint { field })?;
        match field {
            RecordField::Length => {
                self.declared = not_negative(field, value)?;
                Ok(self.expect(RecordField::Attributes))
            }
            RecordField::OffsetDelta => {
                self.meta.offset_delta = value;
                Ok(self.expect(RecordField::KeyLength))
            }
            RecordField::KeyLength => {
                self.meta.key_len = usize::try_from(value).ok();
                self.nullable(value, RecordField::Key)
            }
            RecordField::ValueLength => self.nullable(value, RecordField::Value),
            RecordField::HeaderValueLength => self.nullable(value, RecordField::HeaderValue),
            RecordField::HeaderKeyLength => {
                not_negative(field, value)?;
                self.nullable(value, RecordField::HeaderKey)
            }
            RecordField::HeaderCount => {
                self.headers_left = not_negative(field, value)?;
                self.next_header()
            }
            // The other fields are no numbers, so `step` never comes here with them.
            other => Err(RecordErrorKind::Varint { field: other }),
        }
    }

    fn nullable(&mut self, len: i32, data: RecordField) -> Result<Progress, RecordErrorKind> {
        self.field = data;
        let Ok(len) = usize::try_from(len) else { return self.after_data() };
        self.declared = self.declared.checked_sub(len).ok_or(RecordErrorKind::Overrun { field: data })?;
        self.skip = len;
        Ok(Progress::Going)
    }

    fn skip_data(&mut self, piece: &mut &[u8]) -> Result<Progress, RecordErrorKind> {
        let taken = self.skip.min(piece.len());
        let (data, rest) = piece.split_at_checked(taken).unwrap_or_default();
        if self.field == RecordField::Key {
            self.keep_key_start(data);
        }
        *piece = rest;
        self.skip = self.skip.saturating_sub(taken);
        if self.skip > 0 { Ok(Progress::Hungry) } else { self.after_data() }
    }

    fn keep_key_start(&mut self, data: &[u8]) {
        let seen = self.meta.key_len.unwrap_or(0).saturating_sub(self.skip);
        if seen < ControlKey::LEN {
            for (to, from) in self.meta.key_start.iter_mut().skip(seen).zip(data) {
                *to = *from;
            }
        }
    }

    fn after_data(&mut self) -> Result<Progress, RecordErrorKind> {
        match self.field {
            RecordField::Key => Ok(self.expect(RecordField::ValueLength)),
            RecordField::Value => Ok(self.expect(RecordField::HeaderCount)),
            RecordField::HeaderKey => Ok(self.expect(RecordField::HeaderValueLength)),
            _ => self.next_header(),
        }
    }

    fn next_header(&mut self) -> Result<Progress, RecordErrorKind> {
        if let Some(left) = self.headers_left.checked_sub(1) {
            self.headers_left = left;
            return Ok(self.expect(RecordField::HeaderKeyLength));
        }
        if self.declared == 0 {
            Ok(Progress::Record)
        } else {
            Err(RecordErrorKind::Unread { bytes: self.declared })
        }
    }
}
