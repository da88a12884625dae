//! Answers that are not what was hoped for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use verbatim_mirror::cluster::ClusterError;
use verbatim_mirror::fetch::{Place, Stop};
use verbatim_wire::messages::FetchResponse;

use crate::brokers::{Brokers, Seen, only};
use crate::log::Log;
use crate::{data, fetcher, partition, place, read_to, stop};

async fn ten() -> Brokers {
    Brokers::start(1, vec![Log::new(1).filled(10, 100)]).await
}

/// Bends answers that hold records, as often as said.
fn bend_data(
    brokers: &Brokers,
    times: usize,
    mut bend: impl FnMut(&mut FetchResponse) + Send + 'static,
) -> Arc<AtomicUsize> {
    let bent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&bent);
    brokers.bend(move |_: &Seen, mut answer| {
        let has_records = only(&mut answer).records.as_ref().is_some_and(|records| !records.is_empty());
        if has_records && count.load(Ordering::SeqCst) < times {
            count.fetch_add(1, Ordering::SeqCst);
            bend(&mut answer);
        }
        Some(answer)
    });
    bent
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_asks_for_silence_gets_it() {
    let brokers = ten().await;
    let silence = Duration::from_millis(300);
    bend_data(&brokers, 1, |answer| answer.throttle_time_ms = 300);
    let mut followed = fetcher(&brokers).follow(partition(0), place(0), 0);
    read_to(&mut followed, 10).await;
    brokers.change(0, |log| log.append(10));
    read_to(&mut followed, 11).await;
    let fetches = brokers.state().fetches.clone();
    let gaps: Vec<_> = fetches.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    assert!(gaps[0] >= silence, "{gaps:?}");
}

#[tokio::test]
async fn a_throttled_answer_that_names_no_partition_is_no_failure() {
    let brokers = ten().await;
    let mut followed = fetcher(&brokers).follow(partition(0), place(0), 0);
    // More often than failures in a row are allowed.
    let mut count = 0;
    brokers.bend(move |_, mut answer| {
        count += 1;
        if count < 30 {
            answer.throttle_time_ms = 1;
            answer.responses.clear();
        }
        Some(answer)
    });
    read_to(&mut followed, 10).await;
}

#[tokio::test]
async fn a_batch_larger_than_all_limits_comes_whole() {
    let mut log = Log::new(1).filled(2, 100);
    log.append(3_000_000);
    let brokers = Brokers::start(1, vec![log.filled(2, 100)]).await;
    let mut followed = fetcher(&brokers).follow(partition(0), place(0), 0);
    assert!(read_to(&mut followed, 5).await == brokers.log(0).bytes_from(0));
}

#[tokio::test]
async fn a_batch_that_is_cut_off_is_asked_for_with_more_room() {
    let brokers = Brokers::start(1, vec![Log::new(1).filled(1, 300_000).filled(1, 100)]).await;
    // As brokers before KIP-74 do it, and with the length itself cut off.
    for tail in [usize::MAX, 5] {
        brokers.bend(move |seen, mut answer| {
            let limit = usize::try_from(seen.partitions[0].partition_max_bytes).unwrap();
            let records = only(&mut answer).records.as_mut().unwrap();
            if records.len() > limit {
                records.truncate(limit.min(tail));
            }
            Some(answer)
        });
        let mut followed = fetcher(&brokers).follow(partition(0), place(0), 0);
        assert!(read_to(&mut followed, 2).await == brokers.log(0).bytes_from(0));
    }
}

#[tokio::test]
async fn a_damaged_batch_is_fetched_once_more_and_what_precedes_it_is_handed_on() {
    let brokers = ten().await;
    let damage = |answer: &mut FetchResponse| {
        let records = only(answer).records.as_mut().unwrap();
        let one = records.len() / 10;
        let mut bytes = records.to_vec();
        bytes[4 * one + 80] ^= 1;
        *records = bytes.into();
    };
    let bent = bend_data(&brokers, 1, damage);
    let mut followed = fetcher(&brokers).follow(partition(0), place(0), 0);
    let piece = data(&mut followed).await;
    assert!(piece.batches == brokers.log(0).batches[..4].concat());
    assert!(read_to(&mut followed, 10).await == brokers.log(0).bytes_from(4));
    assert_eq!(bent.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn several_batches_that_came_damaged_once_each_stop_nothing() {
    let brokers = ten().await;
    // Another batch of each answer: 1, then 3, then 6.
    let mut index = 0;
    bend_data(&brokers, 3, move |answer| {
        index += 1;
        let records = only(answer).records.as_mut().unwrap();
        let at = verbatim_batch::frames(records).nth(index).unwrap().range().end - 1;
        let mut bytes = records.to_vec();
        bytes[at] ^= 1;
        *records = bytes.into();
    });
    let mut followed = fetcher(&brokers).follow(partition(0), place(0), 0);
    assert!(read_to(&mut followed, 10).await == brokers.log(0).bytes_from(0));
}

#[tokio::test]
async fn a_batch_that_stays_damaged_stops_the_partition() {
    let mut log = Log::new(1).filled(10, 100);
    let mut bytes = log.batches[4].to_vec();
    bytes[80] ^= 1;
    log.batches[4] = bytes.into();
    let brokers = Brokers::start(1, vec![log]).await;
    let mut followed = fetcher(&brokers).follow(partition(0), place(0), 0);
    let piece = data(&mut followed).await;
    assert!(piece.batches == brokers.log(0).batches[..4].concat());
    assert!(matches!(followed.next().await, Err(Stop::Corrupt(4))));
    let fetches = brokers.state().fetches.clone();
    let asked = fetches.iter().filter(|fetch| fetch.partitions[0].fetch_offset == 4).count();
    assert_eq!(asked, 1, "once behind the good ones, after it came damaged the first time");
    // Put there again, it is looked at twice again.
    followed.go_on(place(4), 0);
    assert!(matches!(followed.next().await, Err(Stop::Corrupt(4))));
    followed.go_on(place(5), 0);
    assert!(read_to(&mut followed, 10).await == brokers.log(0).bytes_from(5));
}

#[tokio::test]
async fn what_is_no_run_of_batches_stops_the_partition() {
    let log = Log::new(1).filled(10, 100);
    let batches = log.batches.clone();
    let swapped = [&batches[3][..], &batches[2][..]].concat();
    let small = [&batches[0][..8], &3_i32.to_be_bytes()[..], &batches[0][12..]].concat();
    let backwards = {
        let mut bytes = batches[0].to_vec();
        bytes[23..27].copy_from_slice(&(-1_i32).to_be_bytes());
        bytes
    };
    for (records, corrupt) in [(swapped, 2), (small, 0), (backwards, 0)] {
        let brokers = Brokers::start(1, vec![log.clone()]).await;
        let records = Bytes::from(records);
        let bent = records.clone();
        brokers.bend(move |seen, mut answer| {
            if seen.partitions[0].fetch_offset < 4 {
                only(&mut answer).records = Some(bent.clone());
            } else {
                only(&mut answer).records = Some(bent.slice(bent.len() / 2..));
            }
            Some(answer)
        });
        let mut followed = fetcher(&brokers).follow(partition(0), place(0), 0);
        let stopped = stop(&mut followed).await;
        let at = if corrupt == 2 { 4 } else { corrupt };
        assert!(matches!(stopped, Stop::Corrupt(offset) if offset == at), "{stopped:?}");
    }
}

#[tokio::test]
async fn older_message_formats_are_refused_by_name() {
    for magic in [0, 1] {
        let brokers = ten().await;
        brokers.bend(move |_, mut answer| {
            let records = only(&mut answer).records.as_mut().unwrap();
            let mut bytes = records.to_vec();
            bytes[16] = magic;
            *records = bytes.into();
            Some(answer)
        });
        let mut followed = fetcher(&brokers).follow(partition(0), place(0), 0);
        let Stop::Failed(error) = stop(&mut followed).await else { panic!() };
        let expected = format!("message format at 0 of t-0: magic {magic}, expected 2");
        assert!(error.to_string().starts_with(&expected), "{error}");
    }
}

#[tokio::test]
async fn a_place_outside_the_log_is_out_of_range() {
    let brokers = ten().await;
    brokers.change(0, |log| log.start = 5);
    let mut followed = fetcher(&brokers).follow(partition(0), place(2), 0);
    assert!(matches!(stop(&mut followed).await, Stop::OutOfRange));
    followed.go_on(place(11), 0);
    assert!(matches!(stop(&mut followed).await, Stop::OutOfRange));
    followed.go_on(place(5), 0);
    read_to(&mut followed, 10).await;
}

#[tokio::test]
async fn an_epoch_that_ends_below_the_place_is_a_divergence() {
    let brokers = Brokers::start(1, vec![Log::new(1).filled(5, 100)]).await;
    brokers.change(0, |log| {
        log.elect(1);
        (0..5).for_each(|_| log.append(10));
    });
    let mut followed = fetcher(&brokers).follow(partition(0), Place { offset: 8, last_epoch: 0 }, 1);
    assert!(matches!(stop(&mut followed).await, Stop::Diverging { epoch: 0, end: 5 }));
}

#[tokio::test]
async fn codes_that_pass_are_waited_out_and_others_stop() {
    for (code, times) in [(78, 30), (7, 5), (56, 5), (6, 5), (3, 5), (100, 5), (103, 5), (9, 5)] {
        let brokers = ten().await;
        let left = Arc::new(AtomicUsize::new(times));
        brokers.bend(move |_, mut answer| {
            if left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
                *only(&mut answer) = only(&mut answer).clone().with_error_code(code).with_records(None);
            }
            Some(answer)
        });
        let mut followed = fetcher(&brokers).follow(partition(0), place(0), 0);
        read_to(&mut followed, 10).await;
    }
    for code in [29, 76, -1] {
        let brokers = ten().await;
        brokers.bend(move |_, mut answer| {
            only(&mut answer).error_code = code;
            Some(answer)
        });
        let mut followed = fetcher(&brokers).follow(partition(0), place(0), 0);
        let stopped = stop(&mut followed).await;
        assert!(matches!(stopped, Stop::Failed(ClusterError::Refused { code: told, .. }) if told == code));
    }
}

#[tokio::test]
async fn what_does_not_pass_is_given_up_without_a_storm() {
    let brokers = ten().await;
    brokers.bend(|_, mut answer| {
        only(&mut answer).error_code = 56;
        Some(answer)
    });
    let mut followed = fetcher(&brokers).follow(partition(0), place(0), 0);
    let Stop::Failed(error) = stop(&mut followed).await else { panic!() };
    assert!(
        error.to_string().starts_with("Fetch of t-0: gave up after 12 attempts: KAFKA_STORAGE_ERROR"),
        "{error}"
    );
    assert_eq!(brokers.state().fetches.len(), 12);
}
