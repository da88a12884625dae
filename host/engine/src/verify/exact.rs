//! An exact topic: every batch at its own offset under its own epoch, byte for byte.

use verbatim_contract::{Comparison, EpochEntry, Placement};

use super::base::{Base, base};
use super::{Settled, next_offset, parts, validated};
use crate::plan::Source;
use crate::rewrite::sealed;
use crate::stage::Settlement;
use crate::{Broken, Call, Duplicate, Invariant, Partition, Placed, Plan};

pub(super) fn plan<P: Partition>(
    call: &Call,
    settled: &[Settled<'_>],
    partition: &mut P,
) -> Result<Plan, Broken> {
    if !call.request.has_tag {
        return Err(Broken::new(
            Invariant::Settled,
            "a request without the tag was accepted on an exact topic",
        ));
    }
    let run =
        settled.iter().take_while(|settled| matches!(settled.settlement, Settlement::Duplicate(_))).count();
    let (stored, rest) = settled.split_at_checked(run).unwrap_or((settled, &[]));
    let duplicates = duplicates(stored, partition)?;
    if let (Some(last), false) = (duplicates.last(), rest.is_empty()) {
        let (end, next) = (call.position.end, last.next_offset);
        if next != end {
            let text = format!("a stored leading run must end at the end {end}, it ends at `{next}`");
            return Err(Broken::new(Invariant::Offsets, text));
        }
    }
    let base = base(call, &duplicates, rest, partition)?;
    let mut walk = Walk::new(call, base, rest, partition)?;
    for &settled in rest {
        walk.append(call, settled)?;
    }
    walk.finish(call, duplicates)
}

/// I8: a duplicate is stored at its own offset with the same bytes.
fn duplicates<P: Partition>(stored: &[Settled<'_>], partition: &mut P) -> Result<Vec<Duplicate>, Broken> {
    let stored = stored.iter().map(|settled| {
        let &Settled { index, batch, settlement: &Settlement::Duplicate(base_offset) } = settled else {
            return Err(Broken::new(Invariant::Settled, "a batch is not settled as a duplicate"));
        };
        let own = batch.facts.header.base_offset;
        let compared = partition.compare(batch, base_offset);
        match batch.facts.header.next_offset() {
            Some(next_offset) if base_offset == own && compared == Comparison::Same => {
                Ok(Duplicate { index, base_offset, next_offset })
            }
            _ => Err(Broken::new(
                Invariant::Settled,
                format!("batch {index} with offset {own} is not stored there, base offset=`{base_offset}`"),
            )),
        }
    });
    stored.collect()
}

/// The log as it grows by the request.
struct Walk {
    cut: Option<i64>,
    /// Where the log stood when the walk began.
    from: i64,
    /// The first batch restarts an empty log below its end (R25).
    restarts: bool,
    end: i64,
    last: Option<EpochEntry>,
    /// Declared entries that are new, not yet reached, the next one last.
    declared: Vec<EpochEntry>,
    entries: Vec<EpochEntry>,
    appends: Vec<Placed>,
}

impl Walk {
    fn new<P: Partition>(
        call: &Call,
        base: Base,
        rest: &[Settled<'_>],
        partition: &mut P,
    ) -> Result<Self, Broken> {
        let first = rest.first().map(|settled| settled.batch.facts.header.base_offset);
        let empty = call.position.start == base.end;
        let restarts = empty && first.is_some_and(|first| first < base.end);
        let lowest = first.filter(|_| restarts).unwrap_or(base.end);
        let mut declared = Vec::new();
        for &entry in call.entries.iter().rev() {
            // Below the start nobody sees it.
            if entry.start < call.position.start.min(lowest) || base.knows(entry, call, rest, partition) {
                continue;
            }
            if entry.start < lowest {
                let text =
                    format!("epoch {} would begin in what is stored, start=`{}`", entry.epoch, entry.start);
                return Err(Broken::new(Invariant::Epochs, text));
            }
            declared.push(entry);
        }
        Ok(Self {
            cut: base.cut,
            from: base.end,
            restarts,
            end: base.end,
            last: base.last,
            declared,
            entries: Vec::new(),
            appends: Vec::new(),
        })
    }

    fn append(&mut self, call: &Call, settled: Settled<'_>) -> Result<(), Broken> {
        let Settled { index, batch, settlement } = settled;
        let (placement, rewritten) = match settlement {
            Settlement::Append(placement) => (placement, None),
            Settlement::Rewrite(placement, rewritten) => (placement, Some(rewritten)),
            Settlement::Duplicate(_) => {
                let text = format!("batch {index} is called stored behind one that is not");
                return Err(Broken::new(Invariant::Settled, text));
            }
        };
        let span = validated(settled)?;
        let (base, epoch) = own_place(settled, *placement)?;
        let next = next_offset(index, base, span)?;
        let restart = self.restarts && self.appends.is_empty() && next > self.end;
        if base < self.end && !restart {
            let text = format!("batch {index} begins below the end {}, base offset=`{base}`", self.end);
            return Err(Broken::new(Invariant::Offsets, text));
        }
        if call.request.truncate_to.is_some_and(|to| base < to) && !restart {
            let text = format!("batch {index} lies below the cut, base offset=`{base}`");
            return Err(Broken::new(Invariant::Cut, text));
        }
        while let Some(entry) = self.declared.pop_if(|entry| entry.start <= base) {
            self.assign(entry)?;
        }
        self.batch_epoch(index, EpochEntry { epoch, start: base })?;
        if let Some(inside) = self.declared.last().filter(|entry| entry.start < next) {
            let text =
                format!("epoch {} begins inside batch {index}, start=`{}`", inside.epoch, inside.start);
            return Err(Broken::new(Invariant::Epochs, text));
        }
        let (header, head, payload) = match rewritten {
            None => parts(batch).map(|(head, payload)| (batch.facts.header, head, payload)),
            Some(rewritten) => {
                let payload = rewritten.payload().clone();
                let header = sealed(rewritten.header(), &payload);
                Some((header, header.to_bytes(), payload))
            }
        }
        .ok_or_else(|| {
            Broken::new(Invariant::Validated, format!("batch {index} is shorter than its header"))
        })?;
        // Whether this one was rewritten or not: a retry is to find one answer for all of them.
        let received = call.policy.may_rewrite.then(|| batch.digest());
        self.appends.push(Placed { index, header, head, payload, received });
        self.end = next;
        Ok(())
    }

    /// R28 to R30 for a batch.
    fn batch_epoch(&mut self, index: u32, entry: EpochEntry) -> Result<(), Broken> {
        match self.last {
            Some(last) if entry.epoch < last.epoch => {
                let (last, epoch) = (last.epoch, entry.epoch);
                let text = format!("batch {index} lies above epoch {last}, leader epoch=`{epoch}`");
                Err(Broken::new(Invariant::Epochs, text))
            }
            Some(last) if entry.epoch == last.epoch && entry.start >= last.start => Ok(()),
            Some(_) | None => {
                self.last = Some(entry);
                self.entries.push(entry);
                Ok(())
            }
        }
    }

    /// I2 for a declared entry: epochs rise, starts do not fall.
    fn assign(&mut self, entry: EpochEntry) -> Result<(), Broken> {
        let rises = self.last.is_none_or(|last| {
            let in_order = entry.start >= last.start || (self.restarts && self.appends.is_empty());
            entry.epoch > last.epoch && in_order
        });
        if !rises || entry.epoch < 0 || entry.epoch == i32::MAX {
            let text = format!("declared entries must rise, epoch=`{}` start=`{}`", entry.epoch, entry.start);
            return Err(Broken::new(Invariant::Epochs, text));
        }
        self.last = Some(entry);
        self.entries.push(entry);
        Ok(())
    }

    fn finish(mut self, call: &Call, duplicates: Vec<Duplicate>) -> Result<Plan, Broken> {
        let end = call.request.end_to.map_or(self.end, |to| to.max(self.end));
        while let Some(entry) = self.declared.pop() {
            if entry.start < self.end || entry.start > end {
                let (epoch, from, start) = (entry.epoch, self.end, entry.start);
                let text = format!("epoch {epoch} must begin from {from} to {end}, start=`{start}`");
                return Err(Broken::new(Invariant::Epochs, text));
            }
            self.assign(entry)?;
        }
        let request = &call.request;
        // A request that only repeats what is there may come from before what is known of the source by now.
        let may_be_late = request.expected_end != call.position.end
            || request.source_epoch < call.position.shown_epoch
            || !duplicates.is_empty();
        let changes = self.cut.is_some() || end != self.from || !self.entries.is_empty();
        let source = Source {
            start: request.source_start,
            end: request.source_end,
            epoch: request.source_epoch,
            raise_only: !changes && self.appends.is_empty() && may_be_late,
        };
        let entries = self.entries.iter().map(|entry| entry.epoch);
        let batches = call.batches.iter().map(|batch| batch.facts.header.leader_epoch);
        let epochs = entries.chain(batches).chain([request.source_epoch]);
        Ok(Plan {
            cut: self.cut,
            end,
            start: call.position.start.max(request.source_start.min(end)),
            shown_epoch: epochs.fold(call.position.shown_epoch, i32::max),
            source: Some(source),
            duplicates,
            entries: self.entries,
            appends: self.appends,
        })
    }
}

/// I3 and I8: no patch at all.
fn own_place(Settled { index, batch, .. }: Settled<'_>, placement: Placement) -> Result<(i64, i32), Broken> {
    let (base, epoch) = (batch.facts.header.base_offset, batch.facts.header.leader_epoch);
    if placement.base_offset != base {
        let text =
            format!("batch {index} belongs at its own {base}, base offset=`{}`", placement.base_offset);
        return Err(Broken::new(Invariant::Settled, text));
    }
    if placement.leader_epoch != epoch {
        let text = format!("batch {index} keeps its own {epoch}, leader epoch=`{}`", placement.leader_epoch);
        return Err(Broken::new(Invariant::Settled, text));
    }
    if epoch < 0 || epoch == i32::MAX {
        let text = format!("batch {index} needs 0 to 2147483646, leader epoch=`{epoch}`");
        return Err(Broken::new(Invariant::Epochs, text));
    }
    Ok((base, epoch))
}
