//! Records that a module hands back (`log.rewrite`): what is left is as a compaction would leave it, or nothing is stored.

use std::collections::BTreeMap;

use bytes::Bytes;
use verbatim_batch::{BatchBuilder, Codec, ControlType, HEADER_LEN, Header, NewRecord, Records, crc_matches};
use verbatim_contract::{Batch, Callbacks, Comparison, Placement, Reason, Refusal};
use verbatim_engine::{
    Denied, Digest, Failure, Incoming, Invariant, MAX_REWRITTEN_LEN, Memory, Module, Native, Partition, Plan,
};

use crate::support::{Random, Script, exact, fingerprint, normal, request, run, tagged};

/// As little of a codec as there is: all bytes turned round.
fn turned(_: Codec, bytes: &[u8]) -> Vec<u8> {
    bytes.iter().map(|byte| !byte).collect()
}

fn rewritable(mut memory: Memory) -> Memory {
    memory.policy.may_rewrite = true;
    memory.inflate = |codec, bytes| Ok(turned(codec, bytes));
    memory.compress = |codec, bytes| Ok(turned(codec, bytes));
    memory
}

fn own(batch: &Batch, to: (i64, i32)) -> Placement {
    Placement {
        base_offset: to.0,
        leader_epoch: to.1,
        log_append_time: false,
        max_timestamp: batch.header.max_timestamp,
    }
}

/// A policy that hands back what `change` makes of the first batch's records, and appends the others.
fn rewriting(
    change: impl Fn(Vec<u8>) -> Vec<u8>,
) -> Script<impl Fn(&[Batch], &mut dyn Callbacks) -> Result<(), Refusal>> {
    Script(move |batches: &[Batch], log: &mut dyn Callbacks| {
        for (index, batch) in (0..).zip(batches) {
            let place = own(batch, (batch.header.base_offset, batch.header.leader_epoch));
            if index > 0 {
                log.append(index, place);
            } else if log.compare(index, place.base_offset) == Comparison::Same {
                log.duplicate(index, place.base_offset);
            } else {
                let plain = log.records(index, u32::MAX).unwrap_or_default();
                log.rewrite(index, place, change(plain));
            }
        }
        Ok(())
    })
}

fn produce(
    memory: Memory,
    change: impl Fn(Vec<u8>) -> Vec<u8>,
    batches: &[Vec<u8>],
) -> (Memory, Result<Plan, Denied>) {
    let request = tagged(&memory, (1_000, 9));
    memory.produce(&mut Native::new(rewriting(change)), request, vec![], &run(batches))
}

/// Expects a broken invariant whose text has these parts, and nothing changed.
#[track_caller]
fn refuses(change: impl Fn(Vec<u8>) -> Vec<u8>, bytes: Vec<u8>, which: Invariant, text: &str) {
    let memory = rewritable(exact());
    let before = fingerprint(&memory);
    let (memory, verdict) = produce(memory, change, &[bytes]);
    assert_eq!(fingerprint(&memory), before);
    match verdict {
        Err(Denied::Failed(Failure::Invariant(broken))) => {
            assert_eq!(broken.which, which, "{broken}");
            assert!(broken.text.contains(text), "{broken}");
        }
        other => panic!("{other:?}"),
    }
}

/// Offset delta, timestamp in ms and value of records.
type Kept = (i32, i64, &'static [u8]);

/// A batch with these records, under base offset 100, whose range reaches up to 120.
fn batch(codec: Codec, records: &[Kept]) -> Vec<u8> {
    let builder = BatchBuilder::new(100).leader_epoch(5).producer(7, 1, 30).base_timestamp(1_000);
    let records =
        records.iter().map(|&(offset, time, value)| NewRecord::new(offset, time).key(b"k").value(value));
    let builder = records.fold(builder, BatchBuilder::record).last_offset_delta(20);
    let plain = builder.plain_records().unwrap();
    match codec {
        Codec::None => builder.build().unwrap(),
        codec => builder.build_compressed(codec, &turned(codec, &plain)).unwrap(),
    }
}

/// The plain records of such a batch.
fn records(kept: &[Kept]) -> Vec<u8> {
    batch(Codec::None, kept)[HEADER_LEN..].to_vec()
}

const CAME: [Kept; 4] = [(0, 1_000, b"a"), (3, 1_900, b"b"), (4, 1_400, b"c"), (9, 1_200, b"d")];

#[test]
fn what_is_left_looks_as_if_compacted() {
    for codec in [Codec::None, Codec::Gzip, Codec::Zstd] {
        let came = batch(codec, &CAME);
        let left = [(0, 1_000, &b"a"[..]), (4, 1_400, b"another value"), (9, 1_200, b"")];
        let (memory, verdict) = produce(rewritable(exact()), |_| records(&left), std::slice::from_ref(&came));
        let plan = verdict.unwrap();
        let [placed] = plan.appends() else { panic!("{plan:?}") };
        assert_eq!(placed.received, Some(Digest::of(&came)));
        let [(header, bytes)] = memory.stored.batches() else { panic!("{:?}", memory.stored) };
        let received = Header::read(&came).unwrap();
        let expected = Header {
            batch_length: header.batch_length,
            crc: header.crc,
            record_count: 3,
            max_timestamp: 1_400,
            ..received
        };
        assert_eq!((*header, Header::read(bytes)), (expected, Some(expected)));
        assert!(crc_matches(bytes) && header.total_len() == Some(bytes.len()));
        let payload = bytes.slice(HEADER_LEN..);
        let plain = if codec == Codec::None { payload.to_vec() } else { turned(codec, &payload) };
        assert_eq!(plain, records(&left));
        assert_eq!(memory.end, 121, "the range is kept");
    }
}

#[test]
fn an_emptied_batch_keeps_its_range_and_has_no_codec() {
    let came = batch(Codec::Gzip, &CAME);
    let (memory, verdict) = produce(rewritable(exact()), |_| Vec::new(), std::slice::from_ref(&came));
    verdict.unwrap();
    let [(header, bytes)] = memory.stored.batches() else { panic!() };
    let received = Header::read(&came).unwrap();
    assert_eq!(bytes.len(), HEADER_LEN);
    assert_eq!(header.attributes, received.attributes.with_codec(Codec::None));
    assert_eq!((header.record_count, header.max_timestamp), (0, received.max_timestamp));
    assert_eq!((header.last_offset_delta, header.base_sequence), (20, 30));
    assert!(crc_matches(bytes));
}

#[test]
fn the_time_of_appending_stays() {
    let record = |offset| NewRecord::new(offset, 1_000).value(b"v");
    let came =
        BatchBuilder::new(100).leader_epoch(5).log_append_time(5_000).record(record(0)).record(record(1));
    let kept = came.plain_records().unwrap();
    let first = kept[..kept.len() / 2].to_vec();
    let (memory, verdict) = produce(rewritable(exact()), |_| first.clone(), &[came.build().unwrap()]);
    verdict.unwrap();
    assert_eq!(memory.stored.batches()[0].0.max_timestamp, 5_000);
}

#[test]
fn a_lie_is_never_stored() {
    let lies: [(&[Kept], &str); 6] = [
        (&[(1, 1_000, b"a")], "offsetDelta=`1`"),
        (&[(3, 1_900, b"b"), (0, 1_000, b"a")], "offsetDelta=`0`"),
        (&[(3, 1_900, b"b"), (3, 1_900, b"b")], "offsetDelta=`3`"),
        (&[(3, 1_901, b"b")], "timestampDelta=`901`"),
        (&[(9, 1_200, b"d"), (20, 1_200, b"e")], "offsetDelta=`20`"),
        (&[(-1, 1_000, b"a")], "offsetDelta=`-1`"),
    ];
    for codec in [Codec::None, Codec::Lz4] {
        for (lie, text) in lies {
            refuses(|_| records(lie), batch(codec, &CAME), Invariant::Bytes, text);
        }
        for garbage in [&b"\x08"[..], b"\x00", &[0; 100], &[0xff; 40]] {
            refuses(|_| garbage.to_vec(), batch(codec, &CAME), Invariant::Bytes, "handed back are malformed");
        }
        // Behind the length.
        let other_attributes = |mut plain: Vec<u8>| {
            plain[1] = 1;
            plain
        };
        refuses(other_attributes, batch(codec, &CAME), Invariant::Bytes, "keeps its 0, attributes=`1`");
        let half = |plain: Vec<u8>| plain[..plain.len() - 3].to_vec();
        refuses(half, batch(codec, &CAME), Invariant::Bytes, "handed back are malformed");
    }
}

#[test]
fn control_batches_and_what_did_not_arrive_whole_are_not_rewritten() {
    let marker = BatchBuilder::marker(100, (7, 1), 5, ControlType::Commit, 0).unwrap();
    refuses(|plain| plain, marker, Invariant::Bytes, "control batch 0");
    let mut damaged = batch(Codec::None, &CAME);
    damaged[17] ^= 1;
    refuses(|plain| plain, damaged, Invariant::Validated, "crc");
    let unknown = {
        let attributes = verbatim_batch::Attributes::from_bits(7);
        BatchBuilder::new(100)
            .leader_epoch(5)
            .attributes(attributes)
            .record(NewRecord::new(0, 0))
            .build()
            .unwrap()
    };
    refuses(|plain| plain, unknown, Invariant::Validated, "codec is unknown");
    let more =
        BatchBuilder::new(100).leader_epoch(5).record(NewRecord::new(0, 0)).record_count(2).build().unwrap();
    let one = more[HEADER_LEN..].to_vec();
    refuses(
        |_| [one.clone(), one.clone()].concat(),
        more.clone(),
        Invariant::Bytes,
        "received are malformed",
    );
}

#[test]
fn only_where_the_topic_allows_it() {
    let mut memory = rewritable(exact());
    memory.policy.may_rewrite = false;
    let (memory, verdict) = produce(memory, |plain| plain, &[batch(Codec::None, &CAME)]);
    let text = verdict.unwrap_err().to_string();
    assert!(text.contains("does not allow rewriting") && memory.stored.batches().is_empty(), "{text}");
}

#[test]
fn no_batch_is_settled_twice_by_rewriting_it() {
    for twice in [0, 1] {
        let memory = rewritable(exact());
        let request = tagged(&memory, (1_000, 9));
        let policy = Script(move |batches: &[Batch], log: &mut dyn Callbacks| {
            let place = own(&batches[0], (100, 5));
            log.rewrite(0, place, Vec::new());
            if twice == 0 {
                log.rewrite(0, place, Vec::new())
            } else {
                log.append(0, place)
            };
            Ok(())
        });
        let (_, verdict) =
            memory.produce(&mut Native::new(policy), request, vec![], &run(&[batch(Codec::None, &CAME)]));
        assert!(verdict.unwrap_err().to_string().contains("settled twice"));
    }
}

/// R21 by what was received: whatever became of it, the same batch again is a duplicate, and another one differs.
#[test]
fn a_retry_is_known_by_what_was_received() {
    let (came, plain) = (batch(Codec::Gzip, &CAME), records(&CAME[..1]));
    let second =
        BatchBuilder::new(121).leader_epoch(5).record(NewRecord::new(0, 1).value(b"kept")).build().unwrap();
    let batches = [came.clone(), second.clone()];
    let (memory, verdict) = produce(rewritable(exact()), |_| plain.clone(), &batches);
    assert!(verdict.unwrap().appends().iter().all(|placed| placed.received.is_some()));
    let stored = memory.stored.bytes();
    let repeat = |memory: Memory, bytes: &[u8]| {
        let request = tagged(&memory, (1_000, 9));
        let request = verbatim_contract::Request { expected_end: 100, epoch_before: -1, ..request };
        memory.produce(
            &mut Native::new(rewriting(|_| plain.clone())),
            request,
            vec![],
            &Bytes::copy_from_slice(bytes),
        )
    };
    let (mut memory, verdict) = repeat(memory, &came);
    assert_eq!(verdict.unwrap().duplicates().len(), 1);
    assert_eq!(memory.stored.bytes(), stored);
    let mut compare =
        |bytes: &[u8], base| memory.compare(&Incoming::new(Bytes::copy_from_slice(bytes)), base);
    assert_eq!(compare(&second, 121), Comparison::Same);
    let other = batch(Codec::None, &CAME);
    assert_eq!(compare(&other, 100), Comparison::Differs(100), "the same records in another batch");
    let what_is_stored = stored[..stored.len() - second.len()].to_vec();
    assert_eq!(
        compare(&what_is_stored, 100),
        Comparison::Differs(100),
        "what is stored is not what was received"
    );
    assert_eq!(compare(&came, 101), Comparison::Overlaps(101));
    memory.stored.cut(121);
    assert_eq!(memory.compare(&Incoming::new(Bytes::from(came)), 100), Comparison::Same);
    assert_eq!(
        memory.compare(&Incoming::new(Bytes::from(second)), 121),
        Comparison::Absent,
        "it is cut with the log"
    );
}

#[test]
fn a_normal_topic_gives_what_is_left_its_own_place() {
    for log_append_time in [false, true] {
        let memory = rewritable(normal());
        let came = BatchBuilder::new(0).producer(7, 1, 0);
        let came = CAME.iter().zip(0..).fold(came, |builder, (&(_, time, value), offset)| {
            builder.record(NewRecord::new(offset, time).value(value))
        });
        let plain = came.plain_records().unwrap();
        let policy = Script(move |batches: &[Batch], log: &mut dyn Callbacks| {
            let mut walk = Records::new(&plain, 4);
            walk.next();
            let placement = Placement { log_append_time, max_timestamp: 77, ..own(&batches[0], (0, 0)) };
            log.rewrite(0, placement, walk.rest().to_vec());
            Ok(())
        });
        let (memory, verdict) =
            memory.produce(&mut Native::new(policy), request(), vec![], &run(&[came.build().unwrap()]));
        assert_eq!(verdict.unwrap().appends()[0].received, None, "its retries are known by their sequence");
        let (header, bytes) = &memory.stored.batches()[0];
        assert!(crc_matches(bytes));
        assert_eq!((header.record_count, header.last_offset_delta, memory.end), (3, 3, 4));
        assert_eq!(header.max_timestamp, if log_append_time { 77 } else { 1_900 });
    }
}

/// R16 corrects a false maxTimestamp by the placement; nothing else has looked at the number that came.
#[test]
fn an_emptied_batch_of_a_normal_topic_has_the_time_of_its_placement() {
    let memory = rewritable(normal());
    let record = NewRecord::new(0, 1_000).value(b"v");
    let came = BatchBuilder::new(0).record(record).max_timestamp(i64::MAX).build().unwrap();
    let policy = Script(|batches: &[Batch], log: &mut dyn Callbacks| {
        log.rewrite(0, Placement { max_timestamp: 1_000, ..own(&batches[0], (0, 0)) }, Vec::new());
        Ok(())
    });
    let (memory, verdict) = memory.produce(&mut Native::new(policy), request(), vec![], &run(&[came]));
    verdict.unwrap();
    let (header, bytes) = &memory.stored.batches()[0];
    assert_eq!((header.max_timestamp, header.record_count), (1_000, 0));
    assert!(crc_matches(bytes));
}

#[test]
fn what_is_too_large_is_refused_and_no_failure() {
    let large = vec![b'x'; MAX_REWRITTEN_LEN];
    let grown =
        BatchBuilder::new(100).record(NewRecord::new(0, 1_000).key(b"k").value(&large)).base_timestamp(1_000);
    let grown = grown.plain_records().unwrap();
    let (memory, verdict) = produce(rewritable(exact()), |_| grown.clone(), &[batch(Codec::Gzip, &CAME)]);
    let Err(Denied::Refused(refusal)) = verdict else { panic!("{verdict:?}") };
    assert_eq!((refusal.reason, refusal.batch), (Reason::BatchTooLarge, Some(0)));
    assert!(memory.stored.batches().is_empty());
    let came = BatchBuilder::new(100)
        .leader_epoch(5)
        .record(NewRecord::new(0, 1_000).value(&large))
        .build()
        .unwrap();
    let (_, verdict) = produce(rewritable(exact()), |_| Vec::new(), &[came]);
    assert!(matches!(verdict, Err(Denied::Refused(refusal)) if refusal.expected == Some(16 << 20)));
}

/// I7: all batches of a request together do not become much more than what came.
#[test]
fn a_request_does_not_grow_without_bound() {
    let value = vec![b'x'; 12 << 20];
    let batches: Vec<_> = (0..3)
        .map(|base| {
            BatchBuilder::new(base).leader_epoch(5).record(NewRecord::new(0, 0).value(b"v")).build().unwrap()
        })
        .collect();
    let plain = BatchBuilder::new(0).record(NewRecord::new(0, 0).value(&value)).plain_records().unwrap();
    let policy = Script(move |batches: &[Batch], log: &mut dyn Callbacks| {
        for (index, batch) in (0..).zip(batches) {
            log.rewrite(index, own(batch, (batch.header.base_offset, 5)), plain.clone());
        }
        Ok(())
    });
    let memory = rewritable(exact());
    let request = tagged(&memory, (1_000, 9));
    let (_, verdict) = memory.produce(&mut Native::new(policy), request, vec![], &run(&batches));
    assert!(matches!(
        verdict,
        Err(Denied::Failed(Failure::Invariant(broken))) if broken.which == Invariant::Limits
    ));
}

/// Whatever bytes a module hands back, what is stored is a batch whose records are some of those that came.
#[test]
fn random_bytes_are_a_compaction_or_nothing() {
    let mut random = Random::seeded();
    let mut stored = 0;
    for _ in 0..4_000 {
        let mut plain = records(&CAME);
        let whole: Vec<Vec<u8>> = CAME.iter().map(|one| records(&[*one])).collect();
        match random.below(3) {
            0 => plain = whole.iter().filter(|_| random.below(2) == 0).flatten().copied().collect(),
            1 => {
                let at = random.index(plain.len());
                plain[at] = plain[at].wrapping_add(u8::try_from(random.below(256)).unwrap());
            }
            _ => plain.truncate(random.index(plain.len())),
        }
        let (memory, verdict) = produce(rewritable(exact()), |_| plain.clone(), &[batch(Codec::None, &CAME)]);
        match verdict {
            Ok(_) => {
                stored += 1;
                let (header, bytes) = &memory.stored.batches()[0];
                assert!(crc_matches(bytes) && header.total_len() == Some(bytes.len()));
                let mut came = CAME.iter();
                for record in Records::new(&bytes[HEADER_LEN..], header.record_count) {
                    let record = record.unwrap();
                    let place = (record.offset_delta, 1_000 + record.timestamp_delta);
                    assert!(came.any(|&(offset, time, _)| (offset, time) == place), "{record:?}");
                }
            }
            Err(_) => assert!(memory.stored.batches().is_empty() && memory.end == 0),
        }
    }
    assert!(stored > 1_000, "{stored}");
}

/// The largest batch that may be rewritten, in small records and in a large one, fits into the memory and the time of the
/// module `redact`.
#[test]
fn redact_has_room_for_the_largest_batch() {
    let engine = crate::support::engine();
    let module = Module::load(&engine, verbatim_artifact::redact().unwrap()).unwrap();
    let record_len = |value: usize| {
        let value = vec![b'x'; value];
        BatchBuilder::new(0)
            .record(NewRecord::new(0, 0).key(b"key").value(&value))
            .plain_records()
            .unwrap()
            .len()
    };
    for value_len in [100, 1_000, MAX_REWRITTEN_LEN - 100] {
        // Offset deltas of more than a few digits take more bytes than the first one's.
        let count = MAX_REWRITTEN_LEN / (record_len(value_len) + 3);
        // The mask of `a` is as long as what it stands for.
        let value = format!("{{\"a\":12345,\"b\":\"{}\"}}", "x".repeat(value_len - 18));
        let base = BatchBuilder::new(0).leader_epoch(5);
        let batch = (0..i32::try_from(count.max(1)).unwrap()).fold(base, |builder, offset| {
            builder.record(NewRecord::new(offset, 0).key(b"key").value(value.as_bytes()))
        });
        let plain = batch.plain_records().unwrap();
        assert!(
            plain.len() > MAX_REWRITTEN_LEN / 10 * 9 && plain.len() <= MAX_REWRITTEN_LEN,
            "{}",
            plain.len()
        );
        for (codec, rule) in [
            (Codec::None, ("redact.mask.json", "$.a")),
            (Codec::Lz4, ("redact.mask.keys", "key")),
            (Codec::Lz4, ("redact.mask.json", "$.b")),
            (Codec::Lz4, ("redact.mask.json", "$.c")),
            (Codec::None, ("redact.drop.keys", "key")),
        ] {
            let bytes = match codec {
                Codec::None => batch.build().unwrap(),
                codec => batch.build_compressed(codec, &turned(codec, &plain)).unwrap(),
            };
            let mut memory = rewritable(exact());
            memory.config = BTreeMap::from([(rule.0.to_owned(), rule.1.to_owned())]);
            let request = tagged(&memory, (1 << 30, 5));
            let mut judge = module.instance::<Memory>().unwrap();
            let begun = std::time::Instant::now();
            let (memory, verdict) = memory.produce(&mut judge, request, vec![], &run(&[bytes]));
            verdict.unwrap();
            assert_eq!(memory.stored.batches().len(), 1);
            println!("{value_len} {codec} {rule:?}: {:?}, {} bytes", begun.elapsed(), judge.memory_bytes());
        }
    }
}
