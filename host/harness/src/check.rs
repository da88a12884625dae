//! Compares what became of a request with what should have.

use std::fmt::Debug;

use verbatim_batch::{Batch, Codec, Header, TimestampType};
use verbatim_engine::contract::Refusal;
use verbatim_engine::{Call, Denied, Memory, Placed, Plan, refusal_code};

use crate::batch;
use crate::format::{ExpectSpec, Kept, LogAfterSpec, PlacedSpec};
use crate::reason::reason_name;
use crate::report::Difference;
use crate::state::entries;

/// Everything that differs.
pub(crate) fn request(
    at: &str,
    expect: &ExpectSpec,
    call: &Call,
    (before, after): (&Memory, &Memory),
    verdict: &Result<Plan, Denied>,
) -> Vec<Difference> {
    let mut found = Differences { at: at.to_owned(), found: Vec::new() };
    match (verdict, &expect.refused) {
        (Ok(plan), None) => accepted(&mut found, expect, call, plan),
        (Ok(_), Some(reason)) => found.say("verdict", format!("the refusal {reason}"), "accepted"),
        (Err(Denied::Refused(refusal)), Some(reason)) => refused(&mut found, reason, expect, refusal),
        (Err(Denied::Refused(refusal)), None) => {
            let reason = reason_name(refusal.reason);
            found.say("verdict", "accepted", format!("refused as {reason}: {}", refusal.text));
        }
        (Err(Denied::Failed(failure)), reason) => {
            let expected =
                reason.as_ref().map_or("accepted".into(), |reason| format!("the refusal {reason}"));
            found.say("verdict", expected, failure.to_string());
        }
    }
    if verdict.is_err() {
        unchanged(&mut found, before, after);
    }
    log(&mut found, &expect.log, after);
    traced(&mut found, &expect.trace, &after.lines);
    found.found
}

struct Differences {
    at: String,
    found: Vec<Difference>,
}

impl Differences {
    fn say(&mut self, what: impl Into<String>, expected: impl Into<String>, got: impl Into<String>) {
        let (at, what) = (self.at.clone(), what.into());
        self.found.push(Difference { at, what, expected: expected.into(), got: got.into() });
    }

    fn same<T: PartialEq + Debug + ?Sized>(&mut self, what: &str, expected: &T, got: &T) {
        if expected != got {
            self.say(what, shown(expected), shown(got));
        }
    }

    fn named<T: PartialEq + Debug + ?Sized>(&mut self, what: &str, expected: Option<&T>, got: &T) {
        if let Some(expected) = expected {
            self.same(what, expected, got);
        }
    }

    /// Something that must contain a part.
    fn contains(&mut self, what: &str, part: &str, text: &str) {
        if !text.contains(part) {
            self.say(what, format!("a part `{part}`"), format!("`{text}`"));
        }
    }
}

/// A value as people write it, where there may be none.
fn shown<T: Debug + ?Sized>(value: &T) -> String {
    let text = format!("{value:?}");
    match text.strip_prefix("Some(").and_then(|text| text.strip_suffix(')')) {
        Some(inner) => inner.to_owned(),
        None if text == "None" => "nothing".to_owned(),
        None => text,
    }
}

fn refused(found: &mut Differences, reason: &str, expect: &ExpectSpec, refusal: &Refusal) {
    found.same("reason", &reason, &reason_name(refusal.reason).as_ref());
    found.same("code", &expect.code, &Some(refusal_code(refusal.reason).number));
    found.same("batch", &expect.batch, &refusal.batch);
    found.same("expected value", &expect.expected, &refusal.expected);
    expect.text.iter().for_each(|part| found.contains("text", part, &refusal.text));
    if refusal.text.is_empty() {
        found.say("text", "field, value and expectation", "nothing");
    }
}

fn accepted(found: &mut Differences, expect: &ExpectSpec, call: &Call, plan: &Plan) {
    let duplicates: Vec<_> = plan.duplicates().iter().map(|duplicate| duplicate.base_offset).collect();
    found.same("duplicates", &expect.duplicates, &duplicates);
    found.same("batches placed", &expect.placed.len(), &plan.appends().len());
    for (index, (expected, placed)) in expect.placed.iter().zip(plan.appends()).enumerate() {
        let mut one = Differences { at: format!("{}, placed {index}", found.at), found: Vec::new() };
        placement(&mut one, expected, call, placed);
        found.found.extend(one.found);
    }
}

fn placement(found: &mut Differences, expected: &PlacedSpec, call: &Call, placed: &Placed) {
    found.same("base", &expected.base, &placed.header.base_offset);
    found.same("epoch", &expected.epoch, &placed.header.leader_epoch);
    found.named("maxTimestamp", expected.max_timestamp.as_ref(), &placed.header.max_timestamp);
    let log_append_time = placed.header.attributes.timestamp_type() == TimestampType::LogAppendTime;
    found.named("LogAppendTime", expected.log_append_time.as_ref(), &log_append_time);

    let bytes = [placed.head.as_slice(), &placed.payload].concat();
    if let Err(error) = Batch::parse(&bytes) {
        found.say("the placed batch", "a sound one", error.to_string());
    }
    let index = usize::try_from(placed.index).unwrap_or(usize::MAX);
    let got = call.batches.get(index).and_then(|incoming| kept(&incoming.bytes, &bytes));
    // What is not said: an exact batch stays as it is, a normal one may get its place.
    let most = match (&expected.records, call.policy.exact) {
        (Some(_), _) => Kept::Rewritten,
        (None, true) => Kept::Same,
        (None, false) => Kept::Placed,
    };
    match (got, expected.bytes) {
        (None, _) => found.say("bytes", "as they came but for place and timestamps", "others"),
        (Some(got), Some(expected)) => found.same("bytes", &expected, &got),
        (Some(got), None) if got > most => found.same("bytes", &most, &got),
        (Some(_), None) => {}
    }
    if let Some(specs) = &expected.records {
        let (expected, got) = (batch::records_shown(specs), batch::stored_records_shown(&bytes));
        found.same("records", &expected, &got);
    }
}

/// How much of a batch is as it came; `None` when something changed that never may.
fn kept(received: &[u8], placed: &[u8]) -> Option<Kept> {
    if received == placed {
        return Some(Kept::Same);
    }
    let (mut before, after) = (Header::read(received)?, Header::read(placed)?);
    let payloads = (received.get(verbatim_batch::HEADER_LEN..), placed.get(verbatim_batch::HEADER_LEN..));
    let same_records = payloads.0 == payloads.1;
    (before.base_offset, before.leader_epoch) = (after.base_offset, after.leader_epoch);
    if before == after && same_records {
        return Some(Kept::Placed);
    }
    (before.max_timestamp, before.crc) = (after.max_timestamp, after.crc);
    before.attributes = before.attributes.with_timestamp_type(after.attributes.timestamp_type());
    if before == after && same_records {
        return Some(Kept::Restamped);
    }
    (before.batch_length, before.record_count) = (after.batch_length, after.record_count);
    if after.record_count == 0 {
        before.attributes = before.attributes.with_codec(Codec::None);
    }
    (before == after).then_some(Kept::Rewritten)
}

/// R40: a failed request changes nothing.
fn unchanged(found: &mut Differences, before: &Memory, after: &Memory) {
    found.same("position after a refusal", &before.position(), &after.position());
    found.same("epochs after a refusal", &before.epochs, &after.epochs);
    found.same("source after a refusal", &before.source, &after.source);
    if before.stored.bytes() != after.stored.bytes() || before.stored.producers() != after.stored.producers()
    {
        found.say("what is stored after a refusal", "what it was", "something else");
    }
}

fn log(found: &mut Differences, expect: &LogAfterSpec, after: &Memory) {
    let position = after.position();
    found.named("log start", expect.start.as_ref(), &position.start);
    found.named("log end", expect.end.as_ref(), &position.end);
    found.named("stable offset", expect.stable_offset.as_ref(), &position.stable_offset);
    found.named("shown epoch", expect.shown_epoch.as_ref(), &position.shown_epoch);
    let epochs = expect.epochs.as_deref().map(entries);
    found.named("epochs", epochs.as_deref(), after.epochs.entries());
    let bases: Vec<_> = after.stored.batches().iter().map(|(header, _)| header.base_offset).collect();
    found.named("stored batches", expect.batches.as_ref(), &bases);
    let aborted = after.stored.producers().aborted().iter();
    let aborted: Vec<_> = aborted.map(|one| (one.producer_id, one.first_offset, one.last_offset)).collect();
    found.named("aborted transactions", expect.aborted.as_ref(), &aborted);
    let source = after.source.map(|source| (source.start, source.end, source.epoch));
    if expect.source.is_some() {
        found.same("source", &expect.source, &source);
    }
}

fn traced(found: &mut Differences, expected: &[String], lines: &[String]) {
    found.same("lines traced", &expected.len(), &lines.len());
    expected.iter().zip(lines).for_each(|(part, line)| found.contains("trace", part, line));
}
