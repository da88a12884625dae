//! What `redact` leaves of batches, as its README says it.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use proptest::collection::vec;
use proptest::prelude::*;
use redact::{BATCH_BYTES_MAX, Redact};
use verbatim_kit::batch::{
    Attributes, BatchBuilder, Codec, ControlType, HEADER_LEN, Header, NewRecord, Record, Records,
};
use verbatim_kit::testing::{Call, Judged, Settled};
use verbatim_kit::{Configuration as _, ExactMirroring, Placement, ProducePath as _, Reason, Unreadable};

/// A call for an exact topic that may be rewritten.
fn call() -> Call {
    let mut call = Call::exact();
    call.policy.may_rewrite = true;
    call
}

/// A batch with base offset 100, offsets that are not contiguous, and a range that goes beyond the last record.
fn batch(records: Vec<NewRecord<'_>>) -> Vec<u8> {
    let start =
        BatchBuilder::new(100).leader_epoch(3).producer(9, 1, 40).base_timestamp(1_000).last_offset_delta(50);
    records.into_iter().fold(start, BatchBuilder::record).build().unwrap()
}

fn at_100(call: Call) -> Call {
    let mut call = call;
    (call.position.start, call.position.end) = (100, 100);
    (call.position.high_watermark, call.position.stable_offset) = (100, 100);
    call.request.expected_end = 100;
    call
}

fn judged(bytes: &[u8], config: &[(&str, &str)]) -> Judged {
    let call = config.iter().fold(at_100(call()).batch(bytes), |call, (key, value)| call.config(key, value));
    call.judge(&Redact)
}

/// The records that a batch was rewritten to, each with its offset delta, timestamp delta, key, value and headers in words.
fn left(judged: &Judged) -> Vec<String> {
    let [Settled::Rewritten(0, _, plain)] = &judged.settled[..] else { panic!("{judged:?}") };
    shown(plain)
}

fn shown(plain: &[u8]) -> Vec<String> {
    all(plain).iter().map(show).collect()
}

fn show(record: &Record<'_>) -> String {
    let text = |bytes: Option<&[u8]>| {
        bytes.map_or("null".into(), |bytes| String::from_utf8_lossy(bytes).into_owned())
    };
    let headers: Vec<_> =
        record.headers.map(|header| text(Some(header.key)) + "=" + &text(header.value)).collect();
    let (offset, time) = (record.offset_delta, record.timestamp_delta);
    format!("{offset} {time} {} {} {}", text(record.key), text(record.value), headers.join("&"))
        .trim_end()
        .to_owned()
}

/// All records of plain bytes, of any number.
fn all(plain: &[u8]) -> Vec<Record<'_>> {
    let mut records = Records::new(plain, i32::MAX);
    let mut all = Vec::new();
    while !records.rest().is_empty() {
        all.push(records.next().unwrap().unwrap());
    }
    all
}

fn some_records() -> Vec<NewRecord<'static>> {
    vec![
        NewRecord::new(0, 1_000).key(b"ann").value(br#"{"card":{"number":4111,"cvc":"007"},"sum": 1.50}"#),
        NewRecord::new(3, 1_700).key(b"bob").value(br#"{"sum":2}"#).header(b"ssn", Some(b"078-05-1120")),
        NewRecord::new(4, 1_200).key(b"cat").header(b"ssn", None).header(b"id", Some(b"7")),
    ]
}

#[test]
fn without_rules_it_is_exact_mirroring() {
    let bytes = batch(some_records());
    let call = at_100(call()).batch(&bytes);
    assert_eq!(call.judge(&Redact), call.judge(&ExactMirroring));
    let mut described = ExactMirroring.describe();
    (described.name, described.rewrites) = ("redact".to_owned(), true);
    assert_eq!(Redact.describe(), described);
}

#[test]
fn records_are_dropped_by_key_header_and_json_field() {
    let bytes = batch(some_records());
    let bob = r#"3 700 bob {"sum":2} ssn=078-05-1120"#;
    let ann = r#"0 0 ann {"card":{"number":4111,"cvc":"007"},"sum": 1.50}"#;
    let cat = "4 200 cat null ssn=null&id=7";
    assert_eq!(left(&judged(&bytes, &[("redact.drop.keys", "ann, cat")])), [bob]);
    assert_eq!(left(&judged(&bytes, &[("redact.drop.headers", "ssn")])), [ann]);
    assert_eq!(left(&judged(&bytes, &[("redact.drop.json", "$.card")])), [bob, cat]);
    assert_eq!(left(&judged(&bytes, &[("redact.drop.json", "$.sum"), ("redact.drop.keys", "cat")])), [""; 0]);
}

#[test]
fn values_are_masked_by_key_header_and_json_field() {
    let bytes = batch(some_records());
    let masked = left(&judged(&bytes, &[("redact.mask.json", "$.card.number,$.card.cvc")]));
    assert_eq!(masked[0], r#"0 0 ann {"card":{"number":"***","cvc":"***"},"sum": 1.50}"#);
    assert_eq!(masked[1..], shown(&bytes[HEADER_LEN..])[1..]);
    let masked = left(&judged(&bytes, &[("redact.mask.headers", "ssn, id")]));
    assert_eq!(masked[1..], [r#"3 700 bob {"sum":2} ssn=***"#, "4 200 cat null ssn=null&id=***"]);
    // A null value hides nothing.
    let masked = left(&judged(&bytes, &[("redact.mask.keys", "cat,bob")]));
    assert_eq!(masked[1..], ["3 700 bob *** ssn=078-05-1120", "4 200 cat null ssn=null&id=7"]);
}

#[test]
fn what_has_nothing_to_redact_is_appended_as_it_came() {
    let bytes = batch(some_records());
    for (key, value) in
        [("redact.drop.keys", "an"), ("redact.mask.json", "$.number"), ("redact.drop.headers", "SSN")]
    {
        let judged = judged(&bytes, &[(key, value)]);
        assert!(matches!(judged.settled[..], [Settled::Appended(0, _)]), "{key}: {judged:?}");
    }
}

#[test]
fn what_is_placed_is_the_batchs_own_place_and_the_largest_time_that_is_left() {
    let bytes = batch(some_records());
    let place = |config| match &judged(&bytes, config).settled[..] {
        [Settled::Rewritten(0, placement, _)] => *placement,
        other => panic!("{other:?}"),
    };
    let expected = |max_timestamp| Placement {
        base_offset: 100,
        leader_epoch: 3,
        log_append_time: false,
        max_timestamp,
    };
    assert_eq!(place(&[("redact.drop.keys", "ann")]), expected(1_700));
    assert_eq!(place(&[("redact.drop.keys", "bob")]), expected(1_200));
    assert_eq!(place(&[("redact.drop.keys", "ann,bob,cat")]), expected(1_700));
}

#[test]
fn control_batches_and_empty_ones_are_not_touched() {
    let marker = BatchBuilder::marker(100, (9, 1), 5, ControlType::Commit, 0).unwrap();
    let empty = BatchBuilder::new(101).producer(9, 1, 0).last_offset_delta(4).build().unwrap();
    for validate in [false, true] {
        let mut call = at_100(call()).batch(&marker).batch(&empty).config("redact.mask.json", "$.a");
        call.policy.validate_records = validate;
        call = call.config("redact.drop.keys", "\0\0\0\u{1}");
        let judged = call.judge(&Redact);
        assert!(
            matches!(judged.settled[..], [Settled::Appended(0, _), Settled::Appended(1, _)]),
            "{judged:?}"
        );
    }
}

#[test]
fn compressed_batches_are_read_as_plain_records() {
    let plain_batch = batch(some_records());
    let mut header = Header::read(&plain_batch).unwrap();
    header.attributes = Attributes::default().with_codec(Codec::Zstd);
    let bytes = verbatim_kit::batch::assemble(&header, b"no codec reads this").unwrap();
    let call =
        at_100(call()).compressed_batch(&bytes, &plain_batch[HEADER_LEN..]).config("redact.drop.keys", "ann");
    assert_eq!(left(&call.judge(&Redact)).len(), 2);
    // What has nothing to redact is not even asked of the host in another form: the received bytes stay.
    let untouched = call.config("redact.drop.keys", "nobody").judge(&Redact);
    assert!(matches!(untouched.settled[..], [Settled::Appended(0, _)]));
}

#[test]
fn what_may_not_be_rewritten_is_refused_and_the_rest_is_taken() {
    let bytes = batch(some_records());
    let mut call = at_100(call()).batch(&bytes).config("redact.drop.keys", "ann");
    call.policy.may_rewrite = false;
    let refusal = call.judge(&Redact).verdict.unwrap_err();
    assert_eq!((refusal.reason, refusal.batch), (Reason::Other(44), Some(0)));
    assert!(refusal.text.contains("produce.at.offset.rewrite=`refuse`"), "{}", refusal.text);
    assert_eq!(call.config("redact.drop.keys", "nobody").judge(&Redact).verdict, Ok(()));

    let normal = BatchBuilder::new(0).record(NewRecord::new(0, 5).key(b"ann")).build().unwrap();
    let call = Call::normal().batch(&normal).config("redact.drop.keys", "ann");
    assert_eq!(call.judge(&Redact).verdict.unwrap_err().reason, Reason::Other(44));
    let call = call.config("redact.drop.keys", "bob");
    assert_eq!(call.judge(&Redact), call.judge(&ExactMirroring));
}

#[test]
fn a_value_that_is_no_json_is_refused_unless_said_otherwise() {
    let records =
        || vec![NewRecord::new(0, 1_000).key(b"a").value(b"plain"), NewRecord::new(1, 1_000).key(b"b")];
    let bytes = batch(records());
    let with = |invalid| judged(&bytes, &[("redact.mask.json", "$.a"), ("redact.json.invalid", invalid)]);
    let refusal = with("refuse").verdict.unwrap_err();
    assert_eq!((refusal.reason, refusal.batch), (Reason::Other(87), Some(0)));
    for part in ["baseOffset=100, offsetDelta=0", "redact.json.invalid=keep or drop"] {
        assert!(refusal.text.contains(part), "{}", refusal.text);
    }
    assert!(matches!(with("keep").settled[..], [Settled::Appended(0, _)]));
    assert_eq!(left(&with("drop")), ["1 0 b null"]);
    // Masked whole, what it is does not matter.
    let whole = [("redact.mask.keys", "a"), ("redact.mask.json", "$.a")];
    assert_eq!(left(&judged(&bytes, &whole)), ["0 0 a ***", "1 0 b null"]);
}

/// Values that no key of this kind may have.
fn wrong_values() -> Vec<(&'static str, String)> {
    let paths = [
        "card",
        "$",
        "$.a[0]",
        "",
        " , ",
        "$.*",
        "$.a*",
        "$.a[*]b",
        "$.a;$.b",
        "$.a\0b",
        "$.a\u{200b}",
        "$.a,$",
        "$.a[*",
        "$..a",
    ];
    let many = (0..65).map(|number| format!("$.a{number}")).collect::<Vec<_>>().join(",");
    let paths = || paths.map(str::to_owned).into_iter().chain([many.clone()]);
    let plain = ["redact.drop.keys", "redact.drop.headers", "redact.mask.keys", "redact.mask.headers"];
    let plain =
        plain.into_iter().flat_map(|key| ["", ",", "*", "a, b*"].map(|value| (key, value.to_owned())));
    let json = ["redact.drop.json", "redact.mask.json"];
    let json = json.into_iter().flat_map(|key| paths().map(move |value| (key, value)));
    let invalid = ["", "no", "Keep"].map(|value| ("redact.json.invalid", value.to_owned()));
    plain.chain(json).chain(invalid).collect()
}

fn check(keys: &[(&str, &str)]) -> Result<(), String> {
    let owned: Vec<_> = keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Redact.check(&owned)
}

#[test]
fn a_wrong_configuration_lets_nothing_through() {
    let bytes = batch(some_records());
    for (key, value) in wrong_values() {
        // Alone, and beside another rule.
        for others in [&[][..], &[("redact.drop.keys", "ann")]] {
            let keys = if others.iter().any(|(other, _)| *other == key) { &[] } else { others };
            let keys = [keys, &[(key, value.as_str())]].concat();
            let refusal = judged(&bytes, &keys).verdict.unwrap_err();
            assert_eq!((refusal.reason, refusal.batch), (Reason::Other(40), None), "{key} {value:?}");
            assert!(refusal.text.contains(key), "{}", refusal.text);
            assert_eq!(check(&keys), Err(refusal.text), "as it is set and as it is used, {key} {value:?}");
        }
    }
}

#[test]
fn a_mistyped_key_is_refused_as_it_is_set() {
    for key in
        ["redact.mask.jsn", "redact.mask", "redact.", "redact.Mask.json", "redact.mask.json.x", "redact.käse"]
    {
        let text = check(&[("redact.mask.json", "$.a"), (key, "$.card.number")]).unwrap_err();
        assert!(text.contains(&format!("{key}=`$.card.number`")), "{text}");
        assert!(text.contains("redact.mask.json") && text.contains("redact.json.invalid"), "{text}");
    }
}

#[test]
fn every_key_may_be_set_alone_or_not_at_all() {
    assert_eq!(check(&[]), Ok(()));
    for (key, value) in [
        ("redact.drop.keys", "a, b"),
        ("redact.drop.headers", "x-y;z"),
        ("redact.drop.json", "$.a"),
        ("redact.mask.keys", "ä"),
        ("redact.mask.headers", "a,"),
        ("redact.mask.json", "$.items[*].owner, $[*][*], $.größe.a-b"),
        ("redact.json.invalid", "drop"),
    ] {
        assert_eq!(check(&[(key, value)]), Ok(()), "{key}");
    }
}

#[test]
fn records_that_do_not_parse_or_rise_are_refused_though_nobody_validates() {
    let mut bytes = batch(some_records());
    bytes.truncate(bytes.len() - 1);
    let header = Header::read(&bytes).unwrap();
    let cut = verbatim_kit::batch::assemble(&header, &bytes[HEADER_LEN..]).unwrap();
    let falling = batch(vec![NewRecord::new(3, 1_000).key(b"a"), NewRecord::new(2, 1_000).key(b"b")]);
    for bytes in [cut, falling] {
        let refusal = judged(&bytes, &[("redact.drop.keys", "nobody")]).verdict.unwrap_err();
        assert_eq!((refusal.reason, refusal.batch), (Reason::MalformedRecords, Some(0)));
    }
}

#[test]
fn what_inflates_beyond_the_limit_is_too_large() {
    let value = vec![b'7'; BATCH_BYTES_MAX];
    let too_large = batch(vec![NewRecord::new(0, 1_000).value(&value)]);
    let refusal = |call: &Call| call.judge(&Redact).verdict.map_err(|refusal| refusal.reason);
    let exact = at_100(call()).batch(&too_large).config("redact.drop.keys", "a");
    assert_eq!(refusal(&exact), Err(Reason::BatchTooLarge));
    let mut normal = Call::normal().config("redact.drop.keys", "a");
    normal.policy.max_message_bytes = u32::MAX;
    let one = BatchBuilder::new(0).record(NewRecord::new(0, 1_000).value(&value)).build().unwrap();
    assert_eq!(refusal(&normal.batch(&one)), Err(Reason::BatchTooLarge));

    let small = batch(some_records());
    let mut inflates = at_100(call()).batch(&small).config("redact.drop.keys", "a");
    inflates.log.records = vec![Err(Unreadable::TooLarge)];
    assert_eq!(refusal(&inflates), Err(Reason::BatchTooLarge));

    // Masks are longer than what they hide.
    let many = format!("[{}1]", "1,".repeat(BATCH_BYTES_MAX / 2 - 100));
    let grows = batch(vec![NewRecord::new(0, 1_000).value(many.as_bytes())]);
    let grows = at_100(call()).batch(&grows).config("redact.mask.json", "$[*]");
    assert_eq!(refusal(&grows), Err(Reason::BatchTooLarge));
}

#[test]
fn each_batch_of_a_request_is_settled_for_itself_and_the_stored_ones_are_not_read() {
    let first = batch(some_records());
    let second =
        BatchBuilder::new(200).leader_epoch(3).record(NewRecord::new(0, 1_000).key(b"dan")).build().unwrap();
    let call = at_100(call()).batch(&first).batch(&second).config("redact.drop.keys", "bob");
    let judged = call.judge(&Redact);
    assert!(matches!(judged.settled[..], [Settled::Rewritten(0, ..), Settled::Appended(1, _)]), "{judged:?}");

    let mut stored = call;
    stored.log.comparison = verbatim_kit::Comparison::Same;
    stored.log.records = vec![Err(Unreadable::Corrupt); 2];
    (stored.position.end, stored.position.high_watermark, stored.position.stable_offset) = (201, 201, 201);
    assert_eq!(stored.judge(&Redact).settled, [Settled::Duplicate(0, 100), Settled::Duplicate(1, 200)]);
}

type Data = (Option<Vec<u8>>, Option<Vec<u8>>, Vec<(u8, Option<Vec<u8>>)>, i8, i64);

fn data() -> impl Strategy<Value = Vec<Data>> {
    let key = proptest::option::of(vec(97..101_u8, 1));
    let json = prop_oneof![
        Just(r#"{"a":1}"#),
        Just(r#"{"a": "***" }"#),
        Just(r#"{"b":[{"a":2},{"a":"x"}], "c":0.10}"#),
        Just("null"),
        Just(r#"{"a":{"a":1},"\u0061":"\u00e9"}"#)
    ];
    let json = json.prop_map(|text| text.as_bytes().to_vec());
    let value = proptest::option::of(prop_oneof![4 => json, 1 => vec(any::<u8>(), 0..20)]);
    let headers = vec((97..101_u8, proptest::option::of(vec(any::<u8>(), 0..6))), 0..4);
    vec((key, value, headers, any::<i8>(), -500..500_i64), 1..12)
}

/// The configuration of a random subset of the keys.
fn config() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    let lists = [
        ("redact.drop.keys", vec!["a", "b,c"]),
        ("redact.mask.keys", vec!["a", "d"]),
        ("redact.drop.headers", vec!["a"]),
        ("redact.mask.headers", vec!["b,c", "d"]),
        ("redact.drop.json", vec!["$.c", "$.a.a"]),
        ("redact.mask.json", vec!["$.a", "$.b[*].a,$.c", "$.a,$.b"]),
        ("redact.json.invalid", vec!["keep", "drop", "keep"]),
    ];
    let one = |(key, values): (&'static str, Vec<&'static str>)| {
        proptest::option::of(prop::sample::select(values))
            .prop_map(move |value| value.map(|value| (key, value)))
    };
    lists.map(one).prop_map(|chosen| chosen.into_iter().flatten().collect())
}

/// The plain records and a batch of them; with the attribute byte that Kafka does not use, and offsets with gaps.
fn build(data: &[Data]) -> (Vec<u8>, Vec<u8>) {
    let names: Vec<[u8; 1]> = (0..=u8::MAX).map(|name| [name]).collect();
    let mut plain = Vec::new();
    for (place, (key, value, headers, attributes, time)) in (0..).zip(data) {
        let mut record = NewRecord::new(place * 3, *time);
        (record.key, record.value) = (key.as_deref(), value.as_deref());
        record.headers =
            headers.iter().map(|(name, value)| (&names[usize::from(*name)][..], value.as_deref())).collect();
        let one = BatchBuilder::new(0).base_timestamp(0).record(record).plain_records().unwrap();
        let with = Record { attributes: *attributes, ..all(&one)[0] };
        with.write(with.value, |header| header, &mut plain).unwrap();
    }
    let count = i32::try_from(data.len()).unwrap();
    let header = BatchBuilder::new(100)
        .leader_epoch(3)
        .base_timestamp(1_000)
        .record_count(count)
        .last_offset_delta(60)
        .build()
        .unwrap();
    let bytes = verbatim_kit::batch::assemble(&Header::read(&header).unwrap(), &plain).unwrap();
    (bytes, plain)
}

proptest! {
    #[test]
    fn nothing_is_left_that_a_rule_names_and_nothing_else_is_changed(data in data(), config in config()) {
        let (bytes, received) = build(&data);
        let mut config = config;
        if !config.iter().any(|(key, _)| *key == "redact.json.invalid") {
            config.push(("redact.json.invalid", "keep"));
        }
        let judged = judged(&bytes, &config);
        prop_assert_eq!(&judged.verdict, &Ok(()));
        let [settled] = &judged.settled[..] else { panic!("{judged:?}") };
        let left = match settled {
            Settled::Appended(0, _) => received.clone(),
            Settled::Rewritten(0, _, plain) => plain.clone(),
            other => panic!("{other:?}"),
        };
        let value_of = |wanted: &str| {
            config.iter().filter(|(key, _)| *key == wanted).map(|(_, value)| *value).collect::<String>()
        };
        let names = |wanted: &str, name: &[u8]| value_of(wanted).split(',').any(|item| item.as_bytes() == name);
        let mut before = all(&received).into_iter();
        for record in all(&left) {
            // Those that are left are some of those received, in their order; what is between them was dropped.
            let same = before.find(|old| old.offset_delta == record.offset_delta).unwrap();
            let rest = |record: &Record<'_>| (record.attributes, record.timestamp_delta, record.key.map(<[u8]>::to_vec));
            prop_assert_eq!(rest(&same), rest(&record));
            prop_assert!(!record.key.is_some_and(|key| names("redact.drop.keys", key)));
            prop_assert_eq!(same.headers.len(), record.headers.len());
            for (old, new) in same.headers.zip(record.headers) {
                prop_assert_eq!(old.key, new.key);
                prop_assert!(!names("redact.drop.headers", new.key));
                let masked = names("redact.mask.headers", new.key) && old.value.is_some();
                prop_assert_eq!(new.value, if masked { Some(&b"***"[..]) } else { old.value });
            }
            let is_masked_whole = record.key.is_some_and(|key| names("redact.mask.keys", key));
            let may_change = is_masked_whole || !value_of("redact.mask.json").is_empty();
            prop_assert!(may_change || same.value == record.value);
            prop_assert_eq!(same.value.is_some(), record.value.is_some());
        }

        // Redacted once more, nothing is found.
        let count = i32::try_from(all(&left).len()).unwrap();
        let mut header = Header::read(&bytes).unwrap();
        header.record_count = count;
        let again = verbatim_kit::batch::assemble(&header, &left).unwrap();
        let again = at_100(call()).batch(&again);
        let again = config.iter().fold(again, |call, (key, value)| call.config(key, value)).judge(&Redact);
        prop_assert!(matches!(again.settled[..], [Settled::Appended(0, _)]), "{:?}", again);
    }
}
