#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "tests"
)]

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages as m;
use kafka_protocol::protocol::{Decodable, Encodable, Request as RequestMessage};
use proptest::prelude::*;

use self::generate::Random;
use super::{request as shape_of_request, response as shape_of_answer, *};
use crate::api::{APIS, EncodeError};
use crate::{request, response};

mod generate;
mod peak;

/// Walks, decodes and encodes one message, whichever API it belongs to.
struct Codec {
    key: ApiKey,
    what: &'static str,
    message: Message,
    decode: fn(&mut Bytes, i16) -> Result<(), String>,
    encode_again: fn(Bytes, i16) -> Bytes,
    encode_default: fn(i16) -> Result<Bytes, EncodeError>,
}

fn codec<T: Encodable + Decodable + Default>(key: ApiKey, what: &'static str, message: Message) -> Codec {
    Codec {
        key,
        what,
        message,
        decode: |body, version| T::decode(body, version).map(drop).map_err(|error| error.to_string()),
        encode_again: |mut body, version| {
            let decoded = T::decode(&mut body, version).unwrap();
            assert!(body.is_empty(), "{} bytes left by the decoder", body.len());
            let mut out = BytesMut::new();
            decoded.encode(&mut out, version).unwrap();
            out.freeze()
        },
        encode_default: |version| {
            let mut out = BytesMut::new();
            crate::api::encode(&T::default(), ApiKey::ApiVersions, version, &mut out).map(|()| out.freeze())
        },
    }
}

fn codecs() -> Vec<Codec> {
    fn pair<R: RequestMessage + Default>() -> [Codec; 2]
    where
        R::Response: Default,
    {
        let key = ApiKey::from_number(R::KEY).unwrap();
        [
            codec::<R>(key, "request", shape_of_request(key)),
            codec::<R::Response>(key, "answer", shape_of_answer(key)),
        ]
    }
    let all = [
        pair::<m::ProduceRequest>(),
        pair::<m::FetchRequest>(),
        pair::<m::ListOffsetsRequest>(),
        pair::<m::MetadataRequest>(),
        pair::<m::OffsetCommitRequest>(),
        pair::<m::OffsetFetchRequest>(),
        pair::<m::FindCoordinatorRequest>(),
        pair::<m::JoinGroupRequest>(),
        pair::<m::HeartbeatRequest>(),
        pair::<m::LeaveGroupRequest>(),
        pair::<m::SyncGroupRequest>(),
        pair::<m::DescribeGroupsRequest>(),
        pair::<m::ListGroupsRequest>(),
        pair::<m::ApiVersionsRequest>(),
        pair::<m::CreateTopicsRequest>(),
        pair::<m::DeleteTopicsRequest>(),
        pair::<m::DeleteRecordsRequest>(),
        pair::<m::InitProducerIdRequest>(),
        pair::<m::OffsetForLeaderEpochRequest>(),
        pair::<m::DescribeConfigsRequest>(),
        pair::<m::AlterConfigsRequest>(),
        pair::<m::DescribeLogDirsRequest>(),
        pair::<m::CreatePartitionsRequest>(),
        pair::<m::IncrementalAlterConfigsRequest>(),
        pair::<m::DeleteGroupsRequest>(),
        pair::<m::OffsetDeleteRequest>(),
        pair::<m::DescribeClientQuotasRequest>(),
        pair::<m::AlterClientQuotasRequest>(),
        pair::<m::DescribeClusterRequest>(),
        pair::<m::DescribeProducersRequest>(),
        pair::<m::ListConfigResourcesRequest>(),
        pair::<m::DescribeTopicPartitionsRequest>(),
    ];
    assert_eq!(all.len(), APIS.len(), "an API is missing from the tests");
    all.into_iter().flatten().collect()
}

fn versions(key: ApiKey) -> std::ops::RangeInclusive<i16> {
    key.api().min..=key.api().max
}

fn walk_whole(codec: &Codec, version: i16, body: &[u8], limits: Limits) -> Result<usize, ShapeError> {
    request::check_body(codec.message, version, body, limits)
}

#[test]
fn default_messages_of_every_api_and_version_pass_the_walk() {
    for codec in codecs() {
        for version in versions(codec.key) {
            let body = (codec.encode_default)(version).unwrap();
            let walked = walk_whole(&codec, version, &body, Limits::REQUEST);
            assert!(walked.is_ok(), "{:?} {} v{version}: {}", codec.key, codec.what, walked.unwrap_err());
        }
    }
}

/// The table proves itself: messages made from it are decoded to the last byte and encoded to the same bytes again.
#[test]
fn populated_messages_of_every_api_and_version_decode_and_encode_to_the_same_bytes() {
    for codec in codecs() {
        for version in versions(codec.key) {
            for seed in 0..20 {
                let body = Bytes::from(Random::new(seed).message(codec.message, version));
                let case = format!("{:?} {} v{version} seed {seed}", codec.key, codec.what);
                walk_whole(&codec, version, &body, Limits::REQUEST)
                    .map_err(|e| format!("{case}: {e}"))
                    .unwrap();
                assert_eq!((codec.encode_again)(body.clone(), version), body, "{case}");
            }
        }
    }
}

#[test]
fn every_prefix_of_a_message_is_refused_and_so_is_a_byte_more() {
    for codec in codecs() {
        for version in versions(codec.key) {
            let mut body = Random::new(7).message(codec.message, version);
            body.truncate(body.len().min(2_000));
            let whole = walk_whole(&codec, version, &body, Limits::REQUEST).is_ok();
            for length in 0..body.len() {
                assert!(walk_whole(&codec, version, &body[..length], Limits::REQUEST).is_err());
            }
            body.push(0);
            let refused = walk_whole(&codec, version, &body, Limits::REQUEST);
            assert!(!whole || matches!(refused.unwrap_err().problem, Problem::Trailing { left: 1 }));
        }
    }
}

#[test]
fn five_bytes_that_ask_for_290_gigabytes_are_refused_by_name() {
    let body = [0xff, 0xff, 0xff, 0xff, 0x0f];
    let error =
        request::check_body(shape_of_request(ApiKey::Metadata), 12, &body, Limits::REQUEST).unwrap_err();
    assert_eq!(error.field, "topics");
    assert_eq!(error.problem, Problem::Count { count: 4_294_967_294, each: 18, left: 0 });
    let old = [0x7f, 0xff, 0xff, 0xff];
    let error =
        request::check_body(shape_of_request(ApiKey::Metadata), 1, &old, Limits::REQUEST).unwrap_err();
    assert_eq!(error.problem, Problem::Count { count: 2_147_483_647, each: 2, left: 0 });
}

#[test]
fn refusals_name_the_field_and_the_problem() {
    let metadata = |version, body: &[u8]| {
        request::check_body(shape_of_request(ApiKey::Metadata), version, body, Limits::REQUEST).unwrap_err()
    };
    let produce = shape_of_request(ApiKey::Produce);
    // acks, timeout, one topic "t", one partition whose records state 9 bytes and have none
    let records = [0, 0, 1, 0, 0, 0, 9, 2, 2, b't', 2, 0, 0, 0, 0, 10, 0];
    let error = request::check_body(produce, 9, &records, Limits::REQUEST).unwrap_err();
    assert_eq!(
        error.to_string(),
        "field `topic_data[0].partition_data[0].records` at byte 16: needs 9 bytes, only 1 left"
    );
    assert_eq!(metadata(0, &[0xff; 4]).problem, Problem::Negative { length: -1, least: 0 });
    assert_eq!(metadata(1, &[0xff, 0xff, 0xff, 0xfe]).problem, Problem::Negative { length: -2, least: -1 });
    assert_eq!(metadata(9, &[2, 0, 0]).problem, Problem::Negative { length: -1, least: 0 });
    assert_eq!(metadata(9, &[2, 2, 0xff, 0, 0, 0]).problem, Problem::Utf8);
    assert_eq!(metadata(9, &[0x80, 0x80, 0x80, 0x80, 0x10]).problem, Problem::Varint);
    assert_eq!(metadata(11, &[0, 0, 0, 2, 5, 0, 5, 0]).problem, Problem::TagOrder { tag: 5, before: 5 });
    assert_eq!(metadata(11, &[0, 0, 0, 3, 5, 0]).problem, Problem::Count { count: 3, each: 2, left: 2 });
    assert_eq!(metadata(11, &[0, 0, 0, 0, 9]).problem, Problem::Trailing { left: 1 });
    let few = Limits { elements_max: 1 };
    let error = request::check_body(shape_of_request(ApiKey::Metadata), 0, &[0, 0, 0, 2, 0, 0, 0, 0], few)
        .unwrap_err();
    assert_eq!(error.problem, Problem::TooMany { limit: 1 });
}

/// A list of topics that is null, in four bytes: auto creation and authorized operations are what stands behind the first.
#[test]
fn what_librdkafka_leaves_over_when_it_asks_for_every_topic_is_forgiven() {
    let null_list_and_the_rest = [0, 0, 0, 0, 1, 0, 0];
    let metadata = [&[0, 3, 0, 13, 0, 0, 0, 7, 0xff, 0xff, 0][..], &null_list_and_the_rest].concat();
    let decoded = request::decode(&Bytes::from(metadata), Limits::REQUEST).unwrap();
    let crate::api::Request::Metadata(asked) = decoded.request else { panic!("{:?}", decoded.head) };
    assert_eq!((asked.topics, asked.allow_auto_topic_creation), (None, false));
    let cluster = [&[0, 60, 0, 0, 0, 0, 0, 7, 0xff, 0xff, 0][..], &[0, 0, 0]].concat();
    let error = request::decode(&Bytes::from(cluster), Limits::REQUEST).unwrap_err();
    assert!(error.to_string().contains("1 bytes left over"), "{error}");
}

/// A known tag's content is read by the decoder without regard to its size, so the walk must hold it to that.
#[test]
fn a_known_tag_must_be_of_the_size_it_states() {
    let shape = shape_of_request(ApiKey::Fetch);
    let mut body = Random::new(1).without_tags().message(shape, 15);
    assert_eq!(body.pop(), Some(0), "no tags at the end");
    let with = |tail: &[u8]| {
        let body = [&body[..], tail].concat();
        request::check_body(shape, 15, &body, Limits::REQUEST).map_err(|error| error.problem)
    };
    let state = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0];
    assert!(with(&[&[1, 1, 13][..], &state].concat()).is_ok());
    assert_eq!(with(&[&[1, 1, 12][..], &state].concat()), Err(Problem::TagSize { stated: 12, held: 13 }));
    let partition_tag = shape_of_request(ApiKey::Fetch);
    let mut old = Random::new(1).without_tags().message(partition_tag, 14);
    old.pop();
    old.extend([1, 1, 0]);
    let error = request::check_body(partition_tag, 14, &old, Limits::REQUEST).unwrap_err();
    assert_eq!(error.problem, Problem::TagVersion { tag: 1, version: 14 });
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 400, ..ProptestConfig::default() })]

    /// What passes the walk decodes without a panic and within the memory that its elements are counted for; what the
    /// decoder cannot read never passes.
    #[test]
    fn mutated_messages_never_harm_the_decoder(seed in any::<u64>(), changes in 0_usize..6) {
        let mut random = Random::new(seed);
        for codec in codecs() {
            let range: Vec<i16> = versions(codec.key).collect();
            let version = range[random.below(range.len() as u64) as usize];
            let mut body = random.message(codec.message, version);
            random.mutate(&mut body, changes);
            decode_if_walked(&codec, version, body)?;
        }
    }

    #[test]
    fn random_bytes_never_harm_the_decoder(seed in any::<u64>(), length in 0_usize..300) {
        let mut random = Random::new(seed);
        for codec in codecs() {
            let body = (0..length).map(|_| random.below(256) as u8).collect();
            decode_if_walked(&codec, codec.key.api().max, body)?;
        }
    }

    #[test]
    fn random_frames_never_harm_requests_or_answers(seed in any::<u64>(), length in 0_usize..200) {
        let mut random = Random::new(seed);
        for api in APIS {
            let mut frame = BytesMut::new();
            frame.extend_from_slice(&api.key.number().to_be_bytes());
            frame.extend_from_slice(&api.max.to_be_bytes());
            frame.extend((0..length).map(|_| random.below(256) as u8));
            let _ = request::decode(&frame.freeze(), Limits::REQUEST);
        }
        let frame: Bytes = (0..length).map(|_| random.below(256) as u8).collect();
        let _ = request::decode(&frame, Limits::REQUEST);
        let _ = response::decode::<m::MetadataRequest>(12, frame.clone(), Limits::RESPONSE);
        let _ = response::decode::<m::ApiVersionsRequest>(4, frame, Limits::RESPONSE);
    }
}

fn decode_if_walked(codec: &Codec, version: i16, body: Vec<u8>) -> Result<(), TestCaseError> {
    let (walked, allocated) = peak::during(|| walk_whole(codec, version, &body, Limits::REQUEST));
    match walked {
        Err(_) => prop_assert!(allocated < 4_096, "a refusal allocated {allocated} bytes"),
        Ok(elements) => {
            let mut bytes = Bytes::from(body);
            let (decoded, allocated) = peak::during(|| (codec.decode)(&mut bytes, version));
            let allowed = 4_096 + elements * ELEMENT_BYTES;
            prop_assert!(allocated <= allowed, "{allocated} bytes for {elements} elements");
            if decoded.is_ok() {
                prop_assert!(bytes.is_empty(), "{:?} {} v{version} left bytes", codec.key, codec.what);
            }
        }
    }
    Ok(())
}
