//! What was promised with contract 1.0.0: a component that was built then loads as long as the major is 1, is told what it was
//! told then, and is understood; and which versions go together.

use std::sync::LazyLock;

use bytes::Bytes;
use verbatim_batch::{BatchBuilder, Codec, NewRecord};
use verbatim_contract::{
    Comparison, CutPreview, EpochEntry, Framing, Policy, ProducerBatch, ProducerState, Reason, Replica,
    Request, Unreadable,
};
use verbatim_engine::{
    CONTRACT_VERSION, Call, Denied, Failure, Incoming, Invariant, Judge, LoadError, Memory, Module,
    NotJoined, Partition,
};
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Linker};

use crate::support::{engine, policy, replaced, request};

const KEPT: &[u8] = include_bytes!("../../../../tests/modules/kept/kept.wasm");
const BUILT_FOR: &str = "@1.0.0";

fn kept() -> &'static Module {
    static MODULE: LazyLock<Module> = LazyLock::new(|| Module::load(&engine(), KEPT).unwrap());
    &MODULE
}

/// The component as if it were built for another version.
fn built_for(version: &str) -> Result<Module, LoadError> {
    Module::load(&engine(), &replaced(KEPT, BUILT_FOR, version))
}

/// A partition that answers what it was told to, and keeps what is said to it.
struct Scripted {
    settle: &'static str,
    log: Memory,
    lines: Vec<String>,
}

impl Scripted {
    fn new(settle: &'static str) -> Self {
        Self { settle, log: Memory::new(a_policy()), lines: Vec::new() }
    }
}

impl Partition for Scripted {
    fn compare(&mut self, _: &Incoming, _: i64) -> Comparison {
        Comparison::Overlaps(31)
    }
    fn cut(&mut self, _: i64) -> CutPreview {
        CutPreview {
            at_boundary: true,
            last_entry: Some(EpochEntry { epoch: 2, start: 20 }),
            highest_epoch_cut: Some(4),
        }
    }
    fn producer(&mut self, id: i64) -> Option<ProducerState> {
        let batch = ProducerBatch {
            first_sequence: 5,
            last_sequence: 6,
            base_offset: 0,
            last_offset: 1,
            timestamp: 1_600_000_000_001,
        };
        (id == 77).then_some(ProducerState {
            producer_epoch: 3,
            coordinator_epoch: -1,
            last_timestamp: 1_600_000_000_002,
            open_transaction: Some(9),
            batches: vec![batch],
        })
    }
    fn replicas(&mut self) -> Vec<Replica> {
        vec![Replica { id: 1, in_sync: true, online: false }, Replica { id: 2, in_sync: false, online: true }]
    }
    fn records(&mut self, index: u32, batch: &Incoming, max: u32) -> Result<Vec<u8>, Unreadable> {
        self.log.records(index, batch, max)
    }
    fn inflated(&mut self, index: u32, batch: &Incoming) -> Result<Bytes, Unreadable> {
        self.log.inflated(index, batch)
    }
    fn compress(&mut self, codec: Codec, plain: &[u8]) -> Result<Vec<u8>, String> {
        self.log.compress(codec, plain)
    }
    fn start_over(&mut self) {
        self.log.start_over();
    }
    fn config(&mut self, key: &str) -> Option<String> {
        match key {
            "kept.tell" => Some("yes".to_owned()),
            "kept.settle" => Some(self.settle.to_owned()),
            _ => None,
        }
    }
    fn trace(&mut self, line: &str) {
        self.lines.push(line.to_owned());
    }
}

/// Each number is another one, so that none stands for another.
fn a_policy() -> Policy {
    Policy {
        max_message_bytes: 1001,
        segment_bytes: 1002,
        before_max_ms: 1003,
        after_max_ms: 1004,
        min_insync: 1005,
        topic_id: (1006, 1007),
        partition: 1008,
        config_generation: 1009,
        ..policy(false)
    }
}

fn a_call() -> Call {
    let record = NewRecord::new(0, 1_700_000_000_001).value(b"value");
    let second = NewRecord::new(1, 1_700_000_000_002).value(b"second");
    let batch = BatchBuilder::new(40).leader_epoch(8).producer(77, 3, 5).record(record).record(second);
    let (mut batches, _) = Incoming::split(&Bytes::from(batch.build().unwrap()));
    batches[0].facts.producer = Some(verbatim_contract::ProducerLast {
        producer_epoch: 2,
        last_sequence: 4,
        last_offset: -1,
        open_transaction: Some(12),
    });
    let position = verbatim_contract::Position {
        start: 10,
        end: 15,
        high_watermark: 14,
        stable_offset: 13,
        last_entry: Some(EpochEntry { epoch: 6, start: 11 }),
        epoch_before_end: 5,
        shown_epoch: 7,
    };
    let request = Request {
        now_ms: 1_700_000_000_003,
        acks: 1,
        api_version: 12,
        framing: Framing::CutTail,
        expected_end: 101,
        epoch_before: 102,
        source_start: 103,
        source_end: 104,
        source_epoch: 105,
        end_to: Some(106),
        truncate_to: None,
        ..request()
    };
    let entries = vec![EpochEntry { epoch: 3, start: 30 }, EpochEntry { epoch: 4, start: 40 }];
    Call { policy: a_policy(), position, request, entries, batches }
}

fn judged(module: &Module, settle: &'static str) -> (Result<verbatim_engine::Plan, Denied>, Vec<String>) {
    let judged = module.instance().unwrap().judge(a_call(), Scripted::new(settle));
    (judged.verdict, judged.partition.lines)
}

#[test]
fn the_kept_component_is_told_what_it_was_told_at_1_0_0() {
    let inspection = kept().inspect();
    assert_eq!((inspection.contract_version.as_str(), inspection.decides_membership), ("1.0.0", true));
    assert!(!inspection.checks_configuration, "it is older than that");
    assert_eq!(kept().check_configuration(&[("kept.x".to_owned(), String::new())]), Ok(()));
    assert_eq!(
        inspection.imports,
        ["config", "types", "log", "trace"].map(|name| format!("verbatim:produce/{name}@1.0.0"))
    );
    let (verdict, lines) = judged(kept(), "place");
    let batch = a_call().batches[0].facts.header;
    let expected = format!(
        "policy exact=0 rewind_truncate=1 validate_records=1 may_rewrite=0 compacted=0 log_append_time=0 \
         max_message_bytes=1001 segment_bytes=1002 before_max_ms=1003 after_max_ms=1004 min_insync=1005 \
         topic_id_high=1006 topic_id_low=1007 partition=1008 config_generation=1009\n\
         position start=10 end=15 high_watermark=14 stable_offset=13 last_entry=6 from=11 epoch_before_end=5 shown_epoch=7\n\
         request now_ms=1700000000003 acks=1 api_version=12 transactional=0 framing=1 has_tag=0 \
         source_topic_matches=1 expected_end=101 epoch_before=102 source_start=103 source_end=104 source_epoch=105 \
         end_to=106 truncate_to=none\n\
         entry epoch=3 start=30\n\
         entry epoch=4 start=40\n\
         batch base_offset=40 batch_length={} leader_epoch=8 magic=2 crc={} attributes=0 last_offset_delta=1 \
         base_timestamp=1700000000001 max_timestamp=1700000000002 producer_id=77 producer_epoch=3 base_sequence=5 \
         record_count=2 length={} crc_ok=1 short_header=0\n\
         last producer_epoch=2 last_sequence=4 last_offset=-1 open_transaction=12\n\
         compare tag=3 offset=31\n\
         records bytes=25 pieces=2 sum={} unreadable=none\n\
         producer producer_epoch=3 coordinator_epoch=-1 last_timestamp=1600000000002 open_transaction=9\n\
         remembered first_sequence=5 last_sequence=6 base_offset=0 last_offset=1 timestamp=1600000000001\n\
         cut at_boundary=1 last_entry=2 from=20 highest_epoch_cut=4\n\
         replica id=1 in_sync=1 online=0\n\
         replica id=2 in_sync=0 online=1",
        batch.batch_length,
        batch.crc,
        batch.batch_length + 12,
        a_call().batches[0].bytes.iter().skip(61).map(|&byte| u64::from(byte)).sum::<u64>(),
    );
    assert_eq!(lines.join("\n"), expected);
    let plan = verdict.unwrap();
    let placed = plan.appends()[0].header;
    assert_eq!((placed.base_offset, placed.leader_epoch, plan.end()), (15, 7, 17));
}

#[test]
fn and_what_it_says_is_understood() {
    let (verdict, _) = judged(kept(), "duplicate");
    let plan = verdict.unwrap();
    assert_eq!((plan.duplicates()[0].base_offset, plan.duplicates()[0].next_offset), (0, 2));

    let (verdict, _) = judged(kept(), "other");
    let Err(Denied::Refused(refusal)) = verdict else { panic!("{verdict:?}") };
    assert_eq!((refusal.reason, refusal.batch, refusal.expected), (Reason::Other(44), Some(1), Some(-7)));
    assert_eq!(refusal.text, "as it was set, kept.settle=`other`");

    // The topic does not allow it.
    let (verdict, _) = judged(kept(), "rewrite");
    let Err(Denied::Failed(Failure::Invariant(broken))) = verdict else { panic!("{verdict:?}") };
    assert_eq!(broken.which, Invariant::Bytes, "{broken}");

    let mut instance = kept().instance::<Scripted>().unwrap();
    let replica = Replica { id: 3, in_sync: false, online: true };
    let told = instance.may_join(&replica, 12, &a_call().position).unwrap_err();
    let expected = "replica id=3 in_sync=0 online=1 replica_end=12 start=10 end=15 high_watermark=14 stable_offset=13 \
                    last_entry=6 from=11 epoch_before_end=5 shown_epoch=7";
    assert_eq!(told, NotJoined::Refused(expected.to_owned()));
}

#[test]
fn another_major_is_refused_by_name() {
    for version in ["@0.1.0", "@0.9.0", "@2.0.0"] {
        let error = built_for(version).unwrap_err();
        assert!(matches!(error, LoadError::ContractVersion { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(&format!("is built for verbatim:produce/config{version}")), "{text}");
        assert!(text.contains(&format!("verbatim:produce@{CONTRACT_VERSION}")), "{text}");
    }
}

#[test]
fn a_newer_minor_loads_if_it_needs_nothing_new() {
    for version in ["@1.0.7", "@1.1.0"] {
        let newer = built_for(version).unwrap();
        assert_eq!(newer.inspect().contract_version, &version[1..]);
        assert!(newer.inspect().decides_membership, "its export is found under the newer name");
        assert_eq!(judged(&newer, "place").1, judged(kept(), "place").1);
    }
}

#[test]
fn what_a_newer_minor_needs_and_this_host_has_not_is_refused_by_name() {
    let importing = |import: &str| {
        let text = format!(
            r#"(component (import "verbatim:produce/{import}@1.9.0" (instance (export "erase" (func)))))"#
        );
        Module::load(&engine(), &wat::parse_str(text).unwrap()).unwrap_err()
    };
    for (import, symbol) in [("log", "erase"), ("disk", "verbatim:produce/disk@1.9.0")] {
        let error = importing(import);
        assert!(matches!(error, LoadError::UnknownImport { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains(symbol) && text.contains("@1.9.0"), "{text}");
        assert!(text.contains(&format!("verbatim:produce@{CONTRACT_VERSION}")), "{text}");
    }
}

/// A host of a later minor: its names are newer ones, and what it offers is found by the older ones that the component has.
#[test]
fn a_host_of_a_newer_minor_finds_what_the_component_imports_and_exports() {
    let engine = wasmtime::Engine::default();
    let component = Component::new(&engine, KEPT).unwrap();
    let offering = |version: &str| {
        let mut linker = Linker::<()>::new(&engine);
        for (name, item) in component.component_type().imports(&engine) {
            let name = name.replace(BUILT_FOR, version);
            let mut offered = linker.root();
            let mut offered = offered.instance(&name).unwrap();
            let ComponentItem::ComponentInstance(interface) = item.ty else { continue };
            for (function, item) in interface.exports(&engine) {
                if matches!(item.ty, ComponentItem::ComponentFunc(_)) {
                    offered.func_new(function, |_, _, _, _| Ok(())).unwrap();
                }
            }
        }
        linker.instantiate_pre(&component).map(|_| ())
    };
    for (version, fits) in [("@1.0.0", true), ("@1.1.0", true), ("@2.0.0", false), ("@0.1.0", false)] {
        assert_eq!(offering(version).is_ok(), fits, "offered {version}");
        for interface in ["produce-path", "membership"] {
            let found =
                component.get_export_index(None, format!("verbatim:produce/{interface}{version}").as_str());
            assert_eq!(found.is_some(), fits, "asked for {interface}{version}");
        }
    }
}
