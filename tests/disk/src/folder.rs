//! A folder's names: as they are seen, as they are durable, and what lies between.

use std::collections::BTreeMap;

use crate::random::Random;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    File(u64),
    Folder(u64),
}

/// Names and what they mean from now on, all at once.
pub(crate) type Change = Vec<(String, Option<Entry>)>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    pub(crate) present: BTreeMap<String, Entry>,
    durable: BTreeMap<String, Entry>,
    pending: Vec<Change>,
}

impl Names {
    pub(crate) fn change(&mut self, change: Change) {
        apply(&mut self.present, &change);
        self.pending.push(change);
    }

    /// All that a name means, or could mean after a power loss.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry> {
        let pending = self.pending.iter().flatten().filter_map(|(_, entry)| *entry);
        self.present.values().chain(self.durable.values()).copied().chain(pending)
    }

    pub(crate) fn sync(&mut self) {
        self.durable.clone_from(&self.present);
        self.pending.clear();
    }

    pub(crate) fn lose_everything(&mut self) {
        self.pending.clear();
        self.present.clone_from(&self.durable);
    }

    pub(crate) fn lose_some(&mut self, random: &mut Random) {
        let count = self.pending.len() as u64;
        let kept = match random.below(4) {
            0 => 0,
            1 => count,
            2 => random.below(count + 1),
            _ => u64::MAX,
        };
        for (index, change) in (0..).zip(std::mem::take(&mut self.pending)) {
            let stays = if kept == u64::MAX { random.one_in(2) } else { index < kept };
            if stays {
                apply(&mut self.durable, &change);
            }
        }
        self.lose_everything();
    }
}

fn apply(names: &mut BTreeMap<String, Entry>, change: &Change) {
    for (name, entry) in change {
        match entry {
            Some(entry) => names.insert(name.clone(), *entry),
            None => names.remove(name),
        };
    }
}
