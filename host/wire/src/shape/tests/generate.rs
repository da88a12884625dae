//! Random messages made from the shape tables, from a seed.

use super::super::{Field, Kind, Message};

pub(super) struct Random {
    state: u64,
    tags: bool,
}

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed ^ 0x9e37_79b9_7f4a_7c15, tags: true }
    }

    pub(super) fn without_tags(self) -> Self {
        Self { tags: false, ..self }
    }

    /// Splitmix64, cut to 0..limit.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }

    pub(super) fn message(&mut self, message: Message, version: i16) -> Vec<u8> {
        let mut out = Vec::new();
        self.fields(message.fields, version, version >= message.flexible_from, &mut out);
        out
    }

    /// Overwrites, inserts or removes single bytes, or cuts the end off.
    pub(super) fn mutate(&mut self, body: &mut Vec<u8>, changes: usize) {
        for _ in 0..changes {
            let at = self.below(body.len() as u64 + 1) as usize;
            let byte = [0, 1, 0x7f, 0x80, 0xff, self.below(256) as u8][self.below(6) as usize];
            match self.below(8) {
                0 => body.insert(at, byte),
                1 => body.truncate(at),
                2 if at < body.len() => drop(body.remove(at)),
                _ if at < body.len() => body[at] = byte,
                _ => body.push(byte),
            }
        }
    }

    fn fields(&mut self, fields: &'static [Field], version: i16, flexible: bool, out: &mut Vec<u8>) {
        for field in fields.iter().filter(|field| field.tag.is_none() && field.exists(version)) {
            let null = version >= field.nullable_from && self.below(4) == 0;
            self.value(field.kind, version, flexible, null, out);
        }
        if flexible {
            self.tag_section(fields, version, out);
        }
    }

    /// Known tags in rising order, never null or empty (an encoder leaves defaults out), then perhaps unknown ones.
    fn tag_section(&mut self, fields: &'static [Field], version: i16, out: &mut Vec<u8>) {
        let mut known: Vec<_> =
            fields.iter().filter(|field| field.tag.is_some() && field.exists(version)).collect();
        known.retain(|_| self.tags && self.below(2) == 0);
        known.sort_by_key(|field| field.tag);
        let unknown: &[u32] = if self.tags && self.below(3) == 0 { &[1_000, 12_486] } else { &[] };
        varint((known.len() + unknown.len()) as u64, out);
        for field in known {
            let mut content = Vec::new();
            match field.kind {
                // A bool's default, false, would be left out as well.
                Kind::Fixed(1) => content.push(1),
                kind => self.value(kind, version, true, false, &mut content),
            }
            varint(u64::from(field.tag.unwrap()), out);
            varint(content.len() as u64, out);
            out.extend(content);
        }
        for tag in unknown {
            varint(u64::from(*tag), out);
            let size = self.below(30);
            varint(size, out);
            out.extend((0..size).map(|_| self.below(256) as u8));
        }
    }

    fn value(&mut self, kind: Kind, version: i16, flexible: bool, null: bool, out: &mut Vec<u8>) {
        let compact = flexible && !matches!(kind, Kind::OldStr);
        match kind {
            // One byte may be a bool, which is only ever written as 0 or 1.
            Kind::Fixed(1) => out.push(self.below(2) as u8),
            Kind::Fixed(bytes) => out.extend((0..bytes).map(|_| self.below(256) as u8)),
            Kind::Struct(fields) => self.fields(fields, version, flexible, out),
            Kind::Maybe(_) if null => out.push(0xff),
            Kind::Maybe(fields) => {
                out.push(1);
                self.fields(fields, version, flexible, out);
            }
            Kind::Str | Kind::OldStr => {
                let size = self.below(200);
                length(size, 2, compact, null, out);
                out.extend((0..size).filter(|_| !null).map(|_| b'a' + self.below(26) as u8));
            }
            Kind::Bytes => {
                let size = self.below(300);
                length(size, 4, compact, null, out);
                out.extend((0..size).filter(|_| !null).map(|_| self.below(256) as u8));
            }
            Kind::Array(element) => {
                let count = 1 + self.below(3);
                length(count, 4, compact, null, out);
                for _ in (0..count).filter(|_| !null) {
                    self.value(*element, version, flexible, false, out);
                }
            }
        }
    }
}

fn length(length: u64, plain_bytes: usize, compact: bool, null: bool, out: &mut Vec<u8>) {
    match (compact, null) {
        (true, true) => varint(0, out),
        (true, false) => varint(length + 1, out),
        (false, true) => out.extend(std::iter::repeat_n(0xff, plain_bytes)),
        (false, false) => out.extend(&length.to_be_bytes()[8 - plain_bytes..]),
    }
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value as u8 & 0x7f) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
