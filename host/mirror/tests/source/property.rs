//! Whatever goes wrong, a reader that does as it is told sees each byte of the log once, in order.

use std::collections::BTreeMap;
use std::time::Duration;

use verbatim_mirror::cluster::Cluster;
use verbatim_mirror::fetch::{FetchConfig, Fetcher, Followed, Place, Stop};

use crate::brokers::{Brokers, State};
use crate::log::{Log, next};
use crate::random::Random;
use crate::{cluster, partition};

const PARTITIONS: i32 = 5;
const BROKERS: i32 = 3;
/// Where in a batch begins what its checksum covers.
const COVERED_FROM: usize = 21;

/// Answers are cut off, throttled, refused, damaged, left out and lost. Only where a partition is asked for alone and at once,
/// what is there is not kept back in silence: no broker does that.
fn make_trouble(brokers: &Brokers, mut random: Random) {
    brokers.bend(move |seen, mut answer| {
        if random.one_in(15) {
            return None;
        }
        answer.throttle_time_ms = if random.one_in(20) { 2 } else { 0 };
        for data in answer.responses.iter_mut().flat_map(|topic| &mut topic.partitions) {
            let records = data.records.clone().unwrap_or_default();
            match random.below(40) {
                0 => data.error_code = [6, 7, 9, 56, 75, 78, 100][random.below(7)],
                1 if seen.min_bytes > 0 => data.records = None,
                2 if !records.is_empty() => {
                    data.records = Some(records.slice(..random.below(records.len()).max(1)));
                }
                3 if !records.is_empty() => {
                    data.records = Some(damaged(&records, &mut random).into());
                }
                4 => data.preferred_read_replica = 2.into(),
                _ => {}
            }
            if data.error_code != 0 {
                data.records = None;
            }
        }
        if random.one_in(30) {
            answer.responses.clear();
        }
        Some(answer)
    });
}

/// One bit of one batch is another, somewhere in what its checksum covers.
fn damaged(records: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = records.to_vec();
    let batches: Vec<_> = verbatim_batch::frames(records).map(|frame| frame.range()).collect();
    if !batches.is_empty() {
        let batch = batches[random.below(batches.len())].clone();
        bytes[batch.start + COVERED_FROM + random.below(batch.len() - COVERED_FROM)] ^= 1;
    }
    bytes
}

/// Logs grow, leaders move, brokers' connections are cut.
fn live(state: &mut State, random: &mut Random) {
    let index = i32::try_from(random.below(usize::try_from(PARTITIONS).unwrap())).unwrap();
    let log = state.logs.get_mut(&index).unwrap();
    match random.below(12) {
        0 => log.elect(1 + i32::try_from(random.below(usize::try_from(BROKERS).unwrap())).unwrap()),
        1 => log.end += 3,
        2 => log.append(20_000),
        _ => (0..random.below(20)).for_each(|_| log.append(500)),
    }
    if random.one_in(10) {
        state.cut = 1;
    }
}

/// Reads until it is where the log ends.
async fn reader(cluster: Cluster, mut followed: Followed, index: i32, end: i64) -> BTreeMap<i64, Vec<u8>> {
    let mut batches = BTreeMap::new();
    let mut at = Place { offset: 0, last_epoch: -1 };
    let mut epoch = 0;
    while at.offset < end {
        match followed.next().await {
            Ok(piece) => {
                for frame in verbatim_batch::frames(&piece.batches) {
                    let base = frame.prefix().base_offset;
                    assert!(base >= at.offset, "t-{index}: {base} after {at:?}");
                    assert!(batches.insert(base, frame.bytes().to_vec()).is_none());
                    at = Place { offset: next(frame.bytes()), last_epoch: frame.prefix().leader_epoch };
                }
                if piece.proves_end && piece.leader.high_watermark > at.offset {
                    let offset = piece.leader.high_watermark;
                    let (_, entries) = cluster.epochs(&partition(index), -1).await.unwrap();
                    let last = entries.iter().rev().find(|entry| entry.start < offset).unwrap();
                    at = Place { offset, last_epoch: last.epoch };
                    followed.go_on(at, epoch);
                }
            }
            Err(Stop::NewEpoch { .. }) => {
                (epoch, _) = cluster.epochs(&partition(index), -1).await.unwrap();
                followed.go_on(at, epoch);
            }
            // Damage that happened to come twice, or a run of bad luck.
            Err(Stop::Corrupt(_) | Stop::Failed(_)) => followed.go_on(at, epoch),
            Err(stop) => panic!("t-{index} at {at:?}: {stop:?}"),
        }
    }
    batches
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_byte_once_in_order_whatever_goes_wrong() {
    let mut random = Random::announced("each_byte_once_in_order_whatever_goes_wrong");
    for _ in 0..4 {
        let logs = (0..PARTITIONS).map(|index| Log::new(1 + index % BROKERS).filled(random.below(60), 700));
        let brokers = Brokers::start(BROKERS, logs.collect()).await;
        make_trouble(&brokers, random.fork());
        if random.one_in(2) {
            brokers.state().fetch_version_max = 11;
        }
        let config = FetchConfig {
            wait_max: Duration::from_millis(20),
            answer_bytes_max: 1 + random.below(40_000),
            partition_bytes_max: 1 + random.below(20_000),
            buffered_bytes_max: 1 + random.below(100_000),
        };
        let cluster = cluster(&brokers);
        let fetcher = Fetcher::start(cluster.clone(), config);
        let mut followed: Vec<Followed> = (0..PARTITIONS)
            .map(|index| fetcher.follow(partition(index), Place { offset: 0, last_epoch: -1 }, 0))
            .collect();
        for _ in 0..60 {
            live(&mut brokers.state(), &mut random);
            brokers.change(0, |_| {});
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let mut readers = Vec::new();
        for index in (0..PARTITIONS).rev() {
            let end = brokers.log(index).end;
            let followed = followed.pop().unwrap();
            readers.push((index, tokio::spawn(reader(cluster.clone(), followed, index, end))));
        }
        for (index, reader) in readers {
            let batches = reader.await.unwrap();
            let read: Vec<u8> = batches.into_values().flatten().collect();
            assert!(read == brokers.log(index).bytes_from(0), "t-{index}");
        }
    }
}
