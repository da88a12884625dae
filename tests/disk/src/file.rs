//! A file's content: as it is read, as it is durable, and what lies between.

use crate::random::Random;

const SECTOR: usize = 512;

#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    pub(crate) data: Vec<u8>,
    durable: Vec<u8>,
    /// What makes `data` of `durable`, in order.
    pending: Vec<Change>,
    /// The last write was taken in part, and the next one completes it.
    unfinished: bool,
}

#[derive(Clone, Debug)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Length(usize),
}

impl Content {
    pub(crate) fn durable(bytes: Vec<u8>) -> Self {
        Self { data: bytes.clone(), durable: bytes, ..Self::default() }
    }

    pub(crate) fn write(&mut self, at: usize, bytes: Vec<u8>, short: bool) {
        let change = Change::Write { at, bytes };
        change.apply(&mut self.data);
        let Change::Write { bytes, .. } = &change else { return };
        match self.pending.last_mut() {
            Some(Change::Write { at: before, bytes: first })
                if self.unfinished && *before + first.len() == at =>
            {
                first.extend_from_slice(bytes);
            }
            _ => self.pending.push(change),
        }
        self.unfinished = short;
    }

    pub(crate) fn set_len(&mut self, length: usize) {
        self.data.resize(length, 0);
        self.pending.push(Change::Length(length));
        self.unfinished = false;
    }

    pub(crate) fn sync(&mut self) {
        for change in self.pending.drain(..) {
            change.apply(&mut self.durable);
        }
        self.unfinished = false;
    }

    /// What is there after a power loss that leaves nothing of what is pending.
    pub(crate) fn lose_everything(&mut self) {
        self.pending.clear();
        self.data.clone_from(&self.durable);
    }

    /// What is there after one that leaves any part of it.
    pub(crate) fn lose_some(&mut self, random: &mut Random) {
        match random.below(4) {
            0 => {}
            1 => self.sync(),
            2 => self.keep_first(random),
            _ => self.keep_sectors(random),
        }
        self.lose_everything();
    }

    /// Some first changes, and a part of the next.
    fn keep_first(&mut self, random: &mut Random) {
        let kept = random.below(self.pending.len() as u64 + 1) as usize;
        for (index, mut change) in self.pending.drain(..).take(kept + 1).enumerate() {
            if index == kept {
                let Change::Write { bytes, .. } = &mut change else { break };
                bytes.truncate(random.below(bytes.len() as u64 + 1) as usize);
            }
            change.apply(&mut self.durable);
        }
    }

    /// Every sector as it was after any number of changes, under a length of its own.
    fn keep_sectors(&mut self, random: &mut Random) {
        let mut lengths = vec![self.durable.len()];
        let mut longest = self.durable.len();
        let mut length = self.durable.len();
        for change in &self.pending {
            length = change.length_after(length);
            lengths.push(length);
            longest = longest.max(length);
        }
        let index = random.below(lengths.len() as u64) as usize;
        let mut length = lengths[index];
        if let Some(next) = lengths.get(index + 1).filter(|next| **next > length) {
            length += random.below((next - length) as u64 + 1) as usize;
        }
        let last = self.pending.len() as u64;
        let versions: Vec<u64> = (0..longest.div_ceil(SECTOR))
            .map(|_| if random.one_in(2) { last } else { random.below(last + 1) })
            .collect();
        let mut kept = vec![0; longest];
        copy(&self.durable, &mut kept, |sector| versions[sector] == 0);
        let mut now = self.durable.clone();
        for (version, change) in (1..).zip(self.pending.drain(..)) {
            change.apply(&mut now);
            copy(&now, &mut kept, |sector| versions[sector] == version);
        }
        kept.truncate(length);
        self.durable = kept;
    }
}

impl Change {
    fn apply(&self, data: &mut Vec<u8>) {
        match self {
            Self::Write { at, bytes } => {
                let end = at + bytes.len();
                if data.len() < end && !bytes.is_empty() {
                    data.resize(end, 0);
                }
                if !bytes.is_empty() {
                    data[*at..end].copy_from_slice(bytes);
                }
            }
            Self::Length(length) => data.resize(*length, 0),
        }
    }

    fn length_after(&self, length: usize) -> usize {
        match self {
            Self::Write { bytes, .. } if bytes.is_empty() => length,
            Self::Write { at, bytes } => length.max(at + bytes.len()),
            Self::Length(length) => *length,
        }
    }
}

/// Copies those sectors, zeros where `from` has ended.
fn copy(from: &[u8], to: &mut [u8], wanted: impl Fn(usize) -> bool) {
    for (index, sector) in to.chunks_mut(SECTOR).enumerate().filter(|(index, _)| wanted(*index)) {
        let part = from.get(index * SECTOR..).unwrap_or_default();
        let count = part.len().min(sector.len());
        sector[..count].copy_from_slice(&part[..count]);
    }
}
