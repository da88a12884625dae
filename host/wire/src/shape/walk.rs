//! The walk itself: reads a message by its shape, allocates nothing unless it refuses.

use super::{Field, Kind, Limits, Message, Problem, ShapeError};

/// What a walk has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Walked {
    /// Bytes the message takes.
    pub(crate) bytes: usize,
    /// Array elements and tagged fields in it.
    pub(crate) elements: usize,
}

/// Walks `body` and returns how many bytes the message took.
///
/// # Errors
/// The first field that breaks the shape. Bytes left over are for the caller to judge.
pub(crate) fn walk(
    message: Message,
    version: i16,
    body: &[u8],
    limits: Limits,
) -> Result<Walked, ShapeError> {
    let flexible = version >= message.flexible_from;
    let mut walker =
        Walker { rest: body, total: body.len(), version, flexible, elements: 0, limit: limits.elements_max };
    match walker.fields(message.fields) {
        Ok(()) => Ok(Walked { bytes: walker.at(), elements: walker.elements }),
        Err(fault) => Err(ShapeError { field: fault.path, offset: fault.offset, problem: fault.problem }),
    }
}

struct Walker<'a> {
    rest: &'a [u8],
    total: usize,
    version: i16,
    flexible: bool,
    elements: usize,
    limit: usize,
}

/// A refusal on its way up: each level puts its name before the path.
struct Fault {
    path: String,
    offset: usize,
    problem: Problem,
}

impl Fault {
    fn inside(mut self, name: &str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path = format!("{name}{dot}{}", self.path);
        self
    }
}

impl<'a> Walker<'a> {
    fn at(&self) -> usize {
        self.total.saturating_sub(self.rest.len())
    }

    fn fault(&self, problem: Problem) -> Fault {
        Fault { path: String::new(), offset: self.at(), problem }
    }

    fn fields(&mut self, fields: &'static [Field]) -> Result<(), Fault> {
        let version = self.version;
        for field in fields.iter().filter(|field| field.tag.is_none() && field.exists(version)) {
            self.value(field.kind, version >= field.nullable_from)
                .map_err(|fault| fault.inside(field.name))?;
        }
        if self.flexible { self.tags(fields) } else { Ok(()) }
    }

    fn value(&mut self, kind: Kind, nullable: bool) -> Result<(), Fault> {
        match kind {
            Kind::Fixed(bytes) => self.take(bytes).map(drop),
            Kind::Struct(fields) => self.fields(fields),
            Kind::Maybe(fields) => match self.number()?.map(u8::cast_signed) {
                [1] => self.fields(fields),
                [-1] if nullable => Ok(()),
                [found] => Err(self.fault(Problem::Presence { found })),
            },
            Kind::Str | Kind::OldStr => {
                let compact = self.flexible && matches!(kind, Kind::Str);
                let Some(length) = self.length(compact, Self::i16, nullable)? else { return Ok(()) };
                let text = self.take(length)?;
                std::str::from_utf8(text).map(drop).map_err(|_| self.fault(Problem::Utf8))
            }
            Kind::Bytes => {
                let Some(length) = self.length(self.flexible, Self::i32, nullable)? else { return Ok(()) };
                self.take(length).map(drop)
            }
            Kind::Array(element) => self.array(*element, nullable),
        }
    }

    fn array(&mut self, element: Kind, nullable: bool) -> Result<(), Fault> {
        let Some(count) = self.length(self.flexible, Self::i32, nullable)? else { return Ok(()) };
        let each = self.least(element).max(1);
        self.count(count, each)?;
        for index in 0..count {
            self.value(element, false).map_err(|fault| fault.inside(&format!("[{index}]")))?;
        }
        Ok(())
    }

    /// Judges a stated count by the bytes left and by the limit of the message.
    fn count(&mut self, count: usize, each: usize) -> Result<(), Fault> {
        if count > self.rest.len() / each {
            let count = u64::try_from(count).unwrap_or(u64::MAX);
            return Err(self.fault(Problem::Count { count, each, left: self.rest.len() }));
        }
        self.elements = self.elements.saturating_add(count);
        if self.elements > self.limit {
            return Err(self.fault(Problem::TooMany { limit: self.limit }));
        }
        Ok(())
    }

    fn tags(&mut self, fields: &'static [Field]) -> Result<(), Fault> {
        let count = self.varint().map_err(|fault| fault.inside("tagged_fields"))?;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        self.count(count, 2).map_err(|fault| fault.inside("tagged_fields"))?;
        let mut before = None;
        for _ in 0..count {
            let tag = self.varint().map_err(|fault| fault.inside("tagged_fields"))?;
            if let Some(before) = before.filter(|before| *before >= tag) {
                return Err(self.fault(Problem::TagOrder { tag, before }).inside("tagged_fields"));
            }
            before = Some(tag);
            match fields.iter().find(|field| field.tag == Some(tag)) {
                Some(field) => self.known_tag(field, tag).map_err(|fault| fault.inside(field.name))?,
                None => self.unknown_tag().map_err(|fault| fault.inside(&format!("tag_{tag}")))?,
            }
        }
        Ok(())
    }

    /// The decoder reads a known tag's content and ignores its size, so the content must be that size exactly.
    fn known_tag(&mut self, field: &'static Field, tag: u32) -> Result<(), Fault> {
        if !field.exists(self.version) {
            return Err(self.fault(Problem::TagVersion { tag, version: self.version }));
        }
        let stated = self.tag_size()?;
        let start = self.at();
        self.value(field.kind, self.version >= field.nullable_from)?;
        let held = self.at().saturating_sub(start);
        if held == stated { Ok(()) } else { Err(self.fault(Problem::TagSize { stated, held })) }
    }

    fn unknown_tag(&mut self) -> Result<(), Fault> {
        let size = self.tag_size()?;
        self.take(size).map(drop)
    }

    fn tag_size(&mut self) -> Result<usize, Fault> {
        self.varint().map(|size| usize::try_from(size).unwrap_or(usize::MAX))
    }

    /// Reads a length, compact (one more than it means, 0 = null) or plain (-1 = null).
    fn length(
        &mut self,
        compact: bool,
        plain: fn(&mut Self) -> Result<i64, Fault>,
        nullable: bool,
    ) -> Result<Option<usize>, Fault> {
        let length = if compact { i64::from(self.varint()?) - 1 } else { plain(self)? };
        match usize::try_from(length) {
            Ok(length) => Ok(Some(length)),
            Err(_) if length == -1 && nullable => Ok(None),
            Err(_) => {
                let least = if nullable { -1 } else { 0 };
                Err(self.fault(Problem::Negative { length, least }))
            }
        }
    }

    fn take(&mut self, bytes: usize) -> Result<&'a [u8], Fault> {
        let Some((head, rest)) = self.rest.split_at_checked(bytes) else {
            let needed = u64::try_from(bytes).unwrap_or(u64::MAX);
            return Err(self.fault(Problem::Short { needed, left: self.rest.len() }));
        };
        self.rest = rest;
        Ok(head)
    }

    fn number<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let Some((head, rest)) = self.rest.split_first_chunk::<N>() else {
            let needed = u64::try_from(N).unwrap_or(u64::MAX);
            return Err(self.fault(Problem::Short { needed, left: self.rest.len() }));
        };
        self.rest = rest;
        Ok(*head)
    }

    fn i16(&mut self) -> Result<i64, Fault> {
        self.number().map(|bytes| i64::from(i16::from_be_bytes(bytes)))
    }

    fn i32(&mut self) -> Result<i64, Fault> {
        self.number().map(|bytes| i64::from(i32::from_be_bytes(bytes)))
    }

    fn varint(&mut self) -> Result<u32, Fault> {
        let mut value = 0_u32;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.number::<1>()?;
            if shift == 28 && byte > 0x0f {
                return Err(self.fault(Problem::Varint));
            }
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        Ok(value)
    }

    /// The fewest bytes that a value of this kind takes in this version.
    fn least(&self, kind: Kind) -> usize {
        match kind {
            Kind::Fixed(bytes) => bytes,
            Kind::OldStr => 2,
            Kind::Str if !self.flexible => 2,
            Kind::Bytes | Kind::Array(_) if !self.flexible => 4,
            Kind::Str | Kind::Bytes | Kind::Array(_) | Kind::Maybe(_) => 1,
            Kind::Struct(fields) => fields
                .iter()
                .filter(|field| field.tag.is_none() && field.exists(self.version))
                .map(|field| self.least(field.kind))
                .fold(usize::from(self.flexible), usize::saturating_add),
        }
    }
}
