//! The module `redact` judges what is valid within its deadline, however small the records are and however many names and
//! paths there are to look for.

use verbatim_batch::{BatchBuilder, NewRecord};
use verbatim_engine::{Memory, Module};

use crate::support::{engine, exact, normal, request, run, tagged};

/// A record's key, value and headers.
type Data = (Option<String>, String, Vec<String>);

/// So many records.
struct Case {
    name: &'static str,
    rules: Vec<(&'static str, String)>,
    count: i32,
    record: fn(i32) -> Data,
}

fn value(text: impl Into<String>) -> Data {
    (None, text.into(), Vec::new())
}

fn many(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(",")
}

fn of_values() -> Vec<Case> {
    let mask = |paths: &str| vec![("redact.mask.json", paths.to_owned())];
    let fields = |count| mask(&many(count, |field| format!("$.f{field}")));
    let small = |_| value(r#"{"x":1,"y":2,"z":3}"#);
    vec![
        Case { name: "masked", rules: mask("$.a"), count: 10_000, record: |_| value(r#"{"a":1}"#) },
        Case { name: "masked", rules: mask("$.a"), count: 60_000, record: |_| value(r#"{"a":1}"#) },
        Case { name: "kept", rules: mask("$.a"), count: 80_000, record: |_| value("{}") },
        Case { name: "a number", rules: mask("$.a"), count: 90_000, record: |_| value("1") },
        Case {
            name: "a longer one",
            rules: mask("$.card.number,$.card.cvc"),
            count: 18_000,
            record: |n| value(format!(r#"{{"id":{n},"card":{{"number":{n},"cvc":"007"}}}}"#)),
        },
        Case { name: "10 paths", rules: fields(10), count: 35_000, record: small },
        Case { name: "64 paths", rules: fields(64), count: 35_000, record: small },
        Case {
            name: "64 paths, found",
            rules: fields(64),
            count: 35_000,
            record: |n| value(format!(r#"{{"f{}":1,"f63":2,"g1":3}}"#, n % 64)),
        },
        Case {
            name: "dropped and masked by paths",
            rules: [fields(64), vec![("redact.drop.json", many(64, |field| format!("$[*].f{field}")))]]
                .concat(),
            count: 35_000,
            record: small,
        },
        Case {
            name: "numbers",
            rules: mask("$.card,$[*]"),
            count: 1,
            record: |_| value(format!("[{}]", many(400_000, |_| "1".to_owned()))),
        },
        Case {
            name: "members",
            rules: mask("$.a"),
            count: 1,
            record: |_| value(format!("{{{}}}", many(150_000, |_| r#""a":1"#.to_owned()))),
        },
        Case {
            name: "escaped members",
            rules: fields(64),
            count: 1,
            record: |_| value(format!("{{{}}}", many(70_000, |n| format!(r#""\u0066{}":1"#, n % 70)))),
        },
    ]
}

fn of_names() -> Vec<Case> {
    let names = |key, count| vec![(key, many(count, |name| format!("user{name:06}")))];
    vec![
        Case {
            name: "2,000 keys",
            rules: names("redact.drop.keys", 2_000),
            count: 5_000,
            record: |n| (Some(format!("user{:06}", 900_000 + n)), "v".to_owned(), Vec::new()),
        },
        Case {
            name: "2,000 keys, dropped",
            rules: names("redact.drop.keys", 2_000),
            count: 40_000,
            record: |n| (Some(format!("user{:06}", n % 4_000)), "v".to_owned(), Vec::new()),
        },
        Case {
            name: "2,000 keys, one record",
            rules: names("redact.drop.keys", 2_000),
            count: 1,
            record: |_| (Some("user".to_owned()), "v".to_owned(), Vec::new()),
        },
        Case {
            name: "headers",
            rules: [names("redact.mask.headers", 2_900), names("redact.drop.headers", 2_900)].concat(),
            count: 1_000,
            record: |_| (None, String::new(), (0..80).map(|n| format!("head{n:06}")).collect()),
        },
        Case {
            name: "headers, masked",
            rules: vec![("redact.mask.headers", "a,b".to_owned())],
            count: 1_000,
            record: |_| (None, String::new(), vec!["a".to_owned(); 200]),
        },
        Case {
            name: "all that a topic's keys may hold",
            rules: [
                names("redact.drop.keys", 2_970),
                names("redact.mask.keys", 2_970),
                names("redact.drop.headers", 2_970),
                names("redact.mask.headers", 2_900),
            ]
            .concat(),
            count: 1,
            record: |_| value(""),
        },
    ]
}

#[test]
fn redact_judges_whatever_is_valid_in_time() {
    let module = Module::load(&engine(), verbatim_artifact::redact().unwrap()).unwrap();
    for case in of_values().into_iter().chain(of_names()) {
        let records: Vec<_> = (0..case.count).map(case.record).collect();
        let batch = BatchBuilder::new(0).leader_epoch(3).base_timestamp(1_700_000_000_000);
        let batch = (0..).zip(&records).fold(batch, |batch, (offset, (key, value, headers))| {
            let record = NewRecord::new(offset, 1_700_000_000_000).value(value.as_bytes());
            let record = key.iter().fold(record, |record, key| record.key(key.as_bytes()));
            batch.record(
                headers.iter().fold(record, |record, name| record.header(name.as_bytes(), Some(b"v"))),
            )
        });
        let bytes = batch.build().unwrap();
        for mode in ["exact", "normal"] {
            let mut memory = if mode == "exact" { exact() } else { normal() };
            memory.policy.may_rewrite = true;
            memory.policy.max_message_bytes = 16 << 20;
            memory.config =
                case.rules.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
            let request =
                if mode == "exact" { tagged(&memory, (i64::from(case.count), 3)) } else { request() };
            let mut judge = module.instance::<Memory>().unwrap();
            let (_, verdict) =
                memory.produce(&mut judge, request, vec![], &run(std::slice::from_ref(&bytes)));
            let hint = format!(
                "{} records, {} bytes, {}, on a topic that is {mode}",
                case.count,
                bytes.len(),
                case.name
            );
            assert!(verdict.is_ok(), "{hint}: {:?}", verdict.unwrap_err());
        }
    }
}
