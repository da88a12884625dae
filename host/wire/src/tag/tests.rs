#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use kafka_protocol::messages::produce_request::TopicProduceData;
use kafka_protocol::messages::produce_response::TopicProduceResponse;
use kafka_protocol::messages::{ProduceRequest, ProduceResponse};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use proptest::prelude::*;

use super::*;

const VECTORS: &str = include_str!("../../vectors/tag.txt");

fn vectors() -> Vec<Vec<u8>> {
    let hex = |line: &str| {
        (0..line.len()).step_by(2).map(|at| u8::from_str_radix(&line[at..at + 2], 16).unwrap()).collect()
    };
    VECTORS.lines().filter(|line| !line.starts_with('#')).map(hex).collect()
}

fn plain() -> RequestTag {
    let mut source_topic_id = [0; 16];
    for (byte, value) in source_topic_id.iter_mut().zip(1_u8..) {
        *byte = value;
    }
    RequestTag {
        source_topic_id,
        expected_end: 0,
        epoch_before: -1,
        source_start: 100,
        source_end: 126,
        source_epoch: 6,
        end_to: None,
        truncate_to: None,
        entries: Vec::new(),
    }
}

#[test]
fn the_request_vectors_encode_and_decode_byte_for_byte() {
    let expected = [
        plain(),
        RequestTag {
            expected_end: 117,
            epoch_before: 5,
            entries: vec![EpochEntry { epoch: 6, start: 118 }],
            ..plain()
        },
        RequestTag {
            expected_end: 126,
            epoch_before: 6,
            source_end: 130,
            source_epoch: 7,
            end_to: Some(130),
            entries: vec![EpochEntry { epoch: 7, start: 130 }],
            ..plain()
        },
        RequestTag {
            expected_end: 130,
            epoch_before: 6,
            source_end: 120,
            source_epoch: 8,
            truncate_to: Some(120),
            ..plain()
        },
    ];
    let vectors = vectors();
    assert_eq!(vectors.len(), 6);
    for (tag, bytes) in expected.iter().zip(&vectors) {
        assert_eq!(&RequestTag::decode(bytes).unwrap(), tag);
        assert_eq!(&tag.encode().unwrap()[..], &bytes[..]);
    }
}

#[test]
fn the_answer_vectors_encode_and_decode_byte_for_byte() {
    let tag = AnswerTag { end: 110, shown_epoch: 6, last_epoch: 5, diverged: None };
    let expected = [tag, AnswerTag { diverged: Some(104), ..tag }];
    for (tag, bytes) in expected.iter().zip(&vectors()[4..]) {
        assert_eq!(&AnswerTag::decode(bytes).unwrap(), tag);
        assert_eq!(&tag.encode()[..], &bytes[..]);
    }
}

#[test]
fn malformed_tags_are_refused_by_name() {
    let one_entry = vectors()[1].clone();
    let (entries, answer) = (one_entry.len() - EPOCH_ENTRY_BYTES, vectors()[4].clone());
    let length = |found, expected| Err(TagError::Length { found, expected });
    assert_eq!(RequestTag::decode(&[]), length(0, 67));
    assert_eq!(RequestTag::decode(&one_entry[..66]), length(66, 67));
    assert_eq!(RequestTag::decode(&one_entry[..entries]), length(67, 79));
    assert_eq!(RequestTag::decode(&[&one_entry[..], &[0]].concat()), length(80, 79));
    let mut more = one_entry.clone();
    more[66] = 2;
    assert_eq!(RequestTag::decode(&more), length(79, 91));
    let mut other = one_entry.clone();
    other[0] = 2;
    assert_eq!(RequestTag::decode(&other), Err(TagError::Version { found: 2 }));
    assert_eq!(AnswerTag::decode(&answer[..24]), Err(TagError::Length { found: 24, expected: 25 }));
    assert_eq!(
        AnswerTag::decode(&[&answer[..], &[0]].concat()).unwrap_err().to_string(),
        "tag 12486 has 26 bytes, expected 25"
    );
}

#[test]
fn negative_numbers_other_than_absent_are_refused_by_name() {
    // field, where it begins, how long it is, the least value it may have
    let fields = [
        ("expected end", 17, 8, 0),
        ("epoch before", 25, 4, -1),
        ("source start", 29, 8, 0),
        ("source end", 37, 8, 0),
        ("source epoch", 45, 4, -1),
        ("end to", 49, 8, -1),
        ("truncate to", 57, 8, -1),
        ("entry start", 71, 8, 0),
    ];
    for (name, at, size, least) in fields {
        let mut bytes = vectors()[1].clone();
        bytes[at..at + size].fill(0xff);
        if least == 0 {
            let refused = TagError::Negative { field: name, found: -1, least: 0 };
            assert_eq!(RequestTag::decode(&bytes), Err(refused));
        } else {
            RequestTag::decode(&bytes).unwrap();
        }
        bytes[at + size - 1] = 0xfe;
        let error = RequestTag::decode(&bytes).unwrap_err();
        assert!(error.to_string().contains(&format!("field {name} is -2, expected ")), "{error}");
    }
    let mut epoch = vectors()[1].clone();
    epoch[67..71].fill(0xff);
    assert_eq!(RequestTag::decode(&epoch).unwrap().entries[0].epoch, -1, "an epoch is for R27 to judge");
}

#[test]
fn a_tag_that_could_not_be_read_back_is_not_written() {
    let negative = RequestTag { end_to: Some(-1), ..plain() };
    assert!(matches!(negative.encode(), Err(TagError::Negative { field: "end to", .. })));
    let many = RequestTag { entries: vec![EpochEntry { epoch: 0, start: 0 }; 65_536], ..plain() };
    assert_eq!(many.encode(), Err(TagError::TooManyEntries { found: 65_536 }));
    let mut partition = PartitionProduceData::default();
    assert!(set_request_tag(&mut partition, &many).is_err());
    assert_eq!(partition, PartitionProduceData::default());
}

#[test]
fn the_tag_travels_on_the_partition_entry() {
    let mut partition = PartitionProduceData::default().with_records(None);
    assert_eq!(request_tag(&partition), Ok(None));
    set_request_tag(&mut partition, &plain()).unwrap();
    let topic = TopicProduceData::default().with_name(kafka_protocol::messages::TopicName::default());
    let request = ProduceRequest::default()
        .with_acks(-1)
        .with_topic_data(vec![topic.with_partition_data(vec![partition])]);
    let mut bytes = BytesMut::new();
    request.encode(&mut bytes, PRODUCE_VERSION_MIN).unwrap();
    let decoded = ProduceRequest::decode(&mut bytes.freeze(), PRODUCE_VERSION_MIN).unwrap();
    assert_eq!(request_tag(&decoded.topic_data[0].partition_data[0]), Ok(Some(plain())));

    let mut answer = PartitionProduceResponse::default();
    assert_eq!(answer_tag(&answer), Ok(None));
    let tag = AnswerTag { end: 3, shown_epoch: -1, last_epoch: -1, diverged: None };
    set_answer_tag(&mut answer, &tag);
    assert_eq!(answer_tag(&answer), Ok(Some(tag)));
}

#[test]
fn the_mark_of_admin_requests_is_one_byte() {
    let mut request = CreatePartitionsRequest::default();
    assert_eq!(request.mark(), Ok(false));
    request.set_mark();
    assert_eq!(request.tagged_fields().get(&TAG).unwrap()[..], [1]);
    assert_eq!(request.mark(), Ok(true));
    let mut request = IncrementalAlterConfigsRequest::default();
    request.tagged_fields_mut().insert(TAG, Bytes::from_static(&[1, 0]));
    assert_eq!(request.mark(), Err(TagError::Length { found: 2, expected: 1 }));
    request.tagged_fields_mut().insert(TAG, Bytes::from_static(&[9]));
    assert_eq!(request.mark(), Err(TagError::Version { found: 9 }));
    request.set_mark();
    assert_eq!(request.mark(), Ok(true));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_decodes_encodes_to_the_same_bytes(mut bytes in proptest::collection::vec(any::<u8>(), 0..140), at in 0_usize..140) {
        let _ = RequestTag::decode(&bytes);
        let _ = AnswerTag::decode(&bytes);
        for vector in vectors() {
            bytes.clone_from(&vector);
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 0x05;
            }
            if let Ok(tag) = RequestTag::decode(&bytes) {
                prop_assert_eq!(&tag.encode().unwrap()[..], &bytes[..]);
            }
            if let Ok(tag) = AnswerTag::decode(&bytes) {
                prop_assert_eq!(&tag.encode()[..], &bytes[..]);
            }
        }
    }
}

const PAGE: &str = include_str!("../../../../docs/TAG.md");

/// The first vector in a whole Produce v9 frame: topic "t", partition 0, no records.
fn example_frame() -> Bytes {
    let mut partition = PartitionProduceData::default().with_records(None);
    set_request_tag(&mut partition, &plain()).unwrap();
    let topic = TopicProduceData::default()
        .with_name(StrBytes::from_static_str("t").into())
        .with_partition_data(vec![partition]);
    let body = ProduceRequest::default().with_acks(-1).with_timeout_ms(30_000).with_topic_data(vec![topic]);
    crate::request::encode(PRODUCE_VERSION_MIN, 1, Some("doc"), &body.into()).unwrap()
}

/// The answer to it on a new topic.
fn example_answer() -> Bytes {
    let mut partition = PartitionProduceResponse::default().with_base_offset(-1).with_log_start_offset(0);
    set_answer_tag(&mut partition, &AnswerTag { end: 0, shown_epoch: 6, last_epoch: -1, diverged: None });
    let topic = TopicProduceResponse::default()
        .with_name(StrBytes::from_static_str("t").into())
        .with_partition_responses(vec![partition]);
    let body = ProduceResponse::default().with_responses(vec![topic]);
    crate::response::encode(PRODUCE_VERSION_MIN, 1, &body.into()).unwrap()
}

#[test]
fn the_page_for_client_authors_shows_the_vectors_and_a_true_frame() {
    for line in VECTORS.lines().filter(|line| !line.starts_with('#')) {
        assert!(PAGE.contains(line), "docs/TAG.md lacks the vector {line}");
    }
    for (what, bytes) in [("frame", example_frame()), ("answer", example_answer())] {
        let encoded: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(drawn(what), encoded, "the {what} drawn in docs/TAG.md");
    }
}

/// The digits of a drawing on the page.
fn drawn(what: &str) -> String {
    let (begin, end) = (format!("begin {what}"), format!("end {what}"));
    PAGE.lines()
        .skip_while(|line| !line.contains(&begin))
        .skip(1)
        .take_while(|line| !line.contains(&end))
        .filter(|line| line.starts_with("    "))
        .flat_map(|line| line.split("  ").find(|part| !part.is_empty()))
        .flat_map(|hex| hex.chars().filter(|character| *character != ' '))
        .collect()
}
