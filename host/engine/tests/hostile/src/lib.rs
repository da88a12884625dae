//! A module that misbehaves as it is told, for tests of hosts: [`Behaviour`] is chosen by the partition's number.

#[cfg(target_arch = "wasm32")]
mod bindings;
#[cfg(target_arch = "wasm32")]
mod later;
#[cfg(target_arch = "wasm32")]
mod module;

/// What the module does when it is called for the partition with this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Places every batch at its own offset and epoch; looks at nothing else.
    AppendsAll,
    /// Traps.
    Traps,
    /// Never returns.
    Spins,
    /// Never returns, and asks the host all the time.
    AsksForEver,
    /// Takes memory until there is no more.
    GrowsMemory,
    /// Calls itself without end.
    Recurses,
    /// Accepts and settles nothing.
    SettlesNothing,
    /// Settles the first batch twice.
    SettlesTwice,
    /// Places every batch one offset further.
    PlacesElsewhere,
    /// Places every batch under the next epoch.
    ChangesEpoch,
    /// Says of every batch that it is stored.
    ClaimsDuplicates,
    /// Settles a batch that is not there.
    SettlesBeyond,
    /// Compares and reads a batch that is not there, and settles the others rightly.
    AsksBeyond,
    /// Places every batch and then refuses the request.
    RefusesAfterPlacing,
    /// Refuses with a text of 200,000 bytes.
    RefusesAtLength,
    /// Refuses with a text of 2 MiB.
    RefusesTooLong,
    /// Refuses with a text of 64 MiB.
    RefusesEndlessly,
    /// Writes 10,000 lines of 1,000 bytes to the log, then places every batch.
    FloodsLog,
    /// Writes a line of 2 MiB to the log.
    WritesEndlessLine,
    /// Hands back other records.
    Rewrites,
    /// Reads half of the first batch's records, says so, and traps.
    ReadsAndTraps,
    /// Hands back the records of every batch twice.
    RewritesTwice,
    /// Places every batch at its own offset and epoch, the last one first. That is right.
    SettlesBackwards,
    /// Places the first batch where the last one belongs, and so on. Of a single batch that is right.
    SwapsPlaces,
    /// Refuses, and calls the host when its call is over.
    CallsAfterRefusing,
}

impl Behaviour {
    /// All of them; a behaviour's place is its partition's number.
    pub const ALL: [Self; 25] = [
        Self::AppendsAll,
        Self::Traps,
        Self::Spins,
        Self::AsksForEver,
        Self::GrowsMemory,
        Self::Recurses,
        Self::SettlesNothing,
        Self::SettlesTwice,
        Self::PlacesElsewhere,
        Self::ChangesEpoch,
        Self::ClaimsDuplicates,
        Self::SettlesBeyond,
        Self::AsksBeyond,
        Self::RefusesAfterPlacing,
        Self::RefusesAtLength,
        Self::RefusesTooLong,
        Self::RefusesEndlessly,
        Self::FloodsLog,
        Self::WritesEndlessLine,
        Self::Rewrites,
        Self::ReadsAndTraps,
        Self::RewritesTwice,
        Self::SettlesBackwards,
        Self::SwapsPlaces,
        Self::CallsAfterRefusing,
    ];

    /// The number of the partition that it is chosen by.
    #[must_use]
    pub fn partition(self) -> u32 {
        let place = Self::ALL.iter().position(|&behaviour| behaviour == self);
        place.and_then(|place| u32::try_from(place).ok()).unwrap_or(0)
    }

    /// The behaviour for a partition; partitions beyond the last one get [`Self::AppendsAll`].
    #[must_use]
    pub fn of(partition: u32) -> Self {
        let place = usize::try_from(partition).unwrap_or(0);
        Self::ALL.get(place).copied().unwrap_or(Self::AppendsAll)
    }
}
