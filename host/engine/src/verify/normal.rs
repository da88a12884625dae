//! A normal topic: the host's own log gives offsets and epochs, so a batch has exactly one place.

use verbatim_batch::{Header, TimestampType};
use verbatim_contract::{EpochEntry, Placement};

use super::{Settled, next_offset, parts, validated};
use crate::rewrite::{Rewritten, sealed};
use crate::stage::Settlement;
use crate::{Broken, Call, Duplicate, Invariant, Partition, Placed, Plan};

pub(super) fn plan<P: Partition>(
    call: &Call,
    settled: &[Settled<'_>],
    partition: &mut P,
) -> Result<Plan, Broken> {
    if call.request.has_tag {
        return Err(Broken::new(
            Invariant::Settled,
            "a tagged request was accepted on a topic that is not exact",
        ));
    }
    let mut plan = Plan {
        cut: None,
        entries: Vec::new(),
        appends: Vec::new(),
        duplicates: Vec::new(),
        end: call.position.end,
        start: call.position.start,
        shown_epoch: call.position.shown_epoch,
        source: None,
    };
    for &settled in settled {
        match settled.settlement {
            Settlement::Append(placement) => {
                plan.appends.push(placed(call, settled, *placement, None, &mut plan.end)?)
            }
            Settlement::Rewrite(placement, rewritten) => {
                plan.appends.push(placed(call, settled, *placement, Some(rewritten), &mut plan.end)?);
            }
            Settlement::Duplicate(base) => plan.duplicates.push(duplicate(settled, *base, partition)?),
        }
    }
    plan.entries = entry(call, &plan.appends)?.into_iter().collect();
    Ok(plan)
}

/// I8: the base is the end, the epoch is the partition's own; moves the end.
fn placed(
    call: &Call,
    settled: Settled<'_>,
    placement: Placement,
    rewritten: Option<&Rewritten>,
    end: &mut i64,
) -> Result<Placed, Broken> {
    let Settled { index, batch, .. } = settled;
    let span = validated(settled)?;
    if i64::from(batch.facts.header.record_count) != span {
        let count = batch.facts.header.record_count;
        let text =
            format!("batch {index} would leave a hole: it spans {span} offsets, recordCount=`{count}`");
        return Err(Broken::new(Invariant::Offsets, text));
    }
    if placement.base_offset != *end {
        let text = format!("batch {index} belongs at the end {end}, base offset=`{}`", placement.base_offset);
        return Err(Broken::new(Invariant::Settled, text));
    }
    let own = call.position.shown_epoch;
    if placement.leader_epoch != own || own < 0 {
        let text = format!(
            "batch {index} gets the partition's own epoch {own}, leader epoch=`{}`",
            placement.leader_epoch
        );
        return Err(Broken::new(Invariant::Settled, text));
    }
    *end = next_offset(index, placement.base_offset, span)?;
    stamped(settled, placement, rewritten)
        .ok_or_else(|| Broken::new(Invariant::Validated, format!("batch {index} is shorter than its header")))
}

/// I3: the five fields that may differ, and nothing else but what comes of other records.
fn stamped(
    Settled { index, batch, .. }: Settled<'_>,
    placement: Placement,
    rewritten: Option<&Rewritten>,
) -> Option<Placed> {
    let received = rewritten.map_or(batch.facts.header, Rewritten::header);
    let payload = rewritten
        .map_or_else(|| parts(batch).map(|(_, payload)| payload), |it| Some(it.payload().clone()))?;
    let time =
        if placement.log_append_time { TimestampType::LogAppendTime } else { TimestampType::CreateTime };
    // Without a record the number that came says nothing: on a normal topic nobody has looked at it.
    let of_records = rewritten.filter(|_| !placement.log_append_time && received.record_count > 0);
    let mut header = Header {
        base_offset: placement.base_offset,
        leader_epoch: placement.leader_epoch,
        max_timestamp: of_records.map_or(placement.max_timestamp, |_| received.max_timestamp),
        attributes: received.attributes.with_timestamp_type(time),
        ..received
    };
    if rewritten.is_some()
        || header.max_timestamp != received.max_timestamp
        || header.attributes != received.attributes
    {
        header = sealed(header, &payload);
    }
    Some(Placed { index, header, head: header.to_bytes(), payload, received: None })
}

/// I8: a duplicate is one that the producer's state remembers, with its epoch and whole sequence range (R33).
fn duplicate<P: Partition>(
    Settled { index, batch, .. }: Settled<'_>,
    base_offset: i64,
    partition: &mut P,
) -> Result<Duplicate, Broken> {
    let header = &batch.facts.header;
    let state = if header.has_producer() { partition.producer(header.producer_id) } else { None };
    let known = state.filter(|state| state.producer_epoch == header.producer_epoch).and_then(|state| {
        state.batches.into_iter().find(|known| {
            known.base_offset == base_offset
                && known.first_sequence == header.base_sequence
                && known.last_sequence == header.last_sequence()
        })
    });
    let next = known.and_then(|known| known.last_offset.checked_add(1));
    match next {
        Some(next_offset) => Ok(Duplicate { index, base_offset, next_offset }),
        None => Err(Broken::new(
            Invariant::Settled,
            format!("batch {index} is not among its producer's last, base offset=`{base_offset}`"),
        )),
    }
}

/// I2: the epoch's entry, if the history does not have it yet.
fn entry(call: &Call, appends: &[Placed]) -> Result<Option<EpochEntry>, Broken> {
    let Some(first) = appends.first() else { return Ok(None) };
    let (epoch, start) = (first.header.leader_epoch, first.header.base_offset);
    match call.position.last_entry {
        Some(last) if last.epoch == epoch => Ok(None),
        Some(last) if last.epoch > epoch => {
            let text = format!("the latest entry has epoch {}, leader epoch=`{epoch}`", last.epoch);
            Err(Broken::new(Invariant::Epochs, text))
        }
        _ => Ok(Some(EpochEntry { epoch, start })),
    }
}
