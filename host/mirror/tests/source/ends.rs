//! When the end of a log is proved, and when it is not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use verbatim_mirror::fetch::{FetchConfig, Fetcher, Followed, Piece, Place, Stop};

use crate::brokers::{Brokers, Seen, only};
use crate::log::Log;
use crate::{cluster, fetch_config, fetcher, partition, place, read_to, stop};

/// A log whose last offsets hold nothing any more.
fn with_hole(batches: usize, hole: i64) -> Log {
    let mut log = Log::new(1).filled(batches, 100);
    log.end += hole;
    log
}

async fn proof(followed: &mut Followed) -> Piece {
    loop {
        let piece = followed.next().await.unwrap();
        assert!(piece.batches.is_empty());
        if piece.proves_end {
            return piece;
        }
    }
}

#[tokio::test]
async fn a_hole_at_the_end_is_proved_by_a_request_for_that_partition_alone() {
    let brokers = Brokers::start(1, vec![with_hole(5, 3), Log::new(1).filled(5, 100), with_hole(0, 4)]).await;
    let fetcher = fetcher(&brokers);
    let mut full = fetcher.follow(partition(1), place(0), 0);
    let mut holed = fetcher.follow(partition(0), place(0), 0);
    read_to(&mut full, 5).await;
    read_to(&mut holed, 5).await;
    assert_eq!(proof(&mut holed).await.leader.high_watermark, 8);
    {
        let state = brokers.state();
        let alone = |fetch: &&Seen| {
            fetch.partitions.len() == 1 && fetch.partitions[0].partition == 0 && fetch.min_bytes == 0
        };
        let fetch = state.fetches.iter().find(alone).unwrap();
        let asked = &fetch.partitions[0];
        assert_eq!((asked.fetch_offset, asked.last_fetched_epoch, asked.current_leader_epoch), (5, 0, 0));
        assert_eq!(fetch.max_wait_ms, 0);
    }
    // A log that holds nothing at all any more.
    let mut empty = fetcher.follow(partition(2), place(0), 0);
    assert_eq!(proof(&mut empty).await.leader.high_watermark, 4);
    // The reader goes on behind the hole.
    holed.go_on(Place { offset: 8, last_epoch: 0 }, 0);
    assert!(!holed.next().await.unwrap().proves_end);
    brokers.change(0, |log| log.append(10));
    assert!(read_to(&mut holed, 9).await == brokers.log(0).batches[5]);
}

#[tokio::test]
async fn a_reader_that_stays_below_is_told_anew_when_the_end_moves() {
    let brokers = Brokers::start(1, vec![with_hole(2, 3)]).await;
    let mut followed = fetcher(&brokers).follow(partition(0), place(0), 0);
    read_to(&mut followed, 2).await;
    assert_eq!(proof(&mut followed).await.leader.high_watermark, 5);
    brokers.change(0, |log| log.end = 7);
    assert_eq!(proof(&mut followed).await.leader.high_watermark, 7);
}

/// Counts the answers to fetches like this from now on, and spoils all.
fn spoiled(
    brokers: &Brokers,
    counts: fn(&Seen) -> bool,
    spoil: fn(&mut verbatim_wire::messages::FetchResponse),
) -> Arc<AtomicUsize> {
    let answered = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&answered);
    brokers.bend(move |seen, mut answer| {
        count.fetch_add(usize::from(counts(seen)), Ordering::SeqCst);
        spoil(&mut answer);
        Some(answer)
    });
    answered
}

/// Follows for a while, and until several answers were taken in: nothing is proved.
async fn proves_nothing(followed: &mut Followed, answered: &AtomicUsize, what: &str) {
    let until = tokio::time::Instant::now() + Duration::from_millis(300);
    while answered.load(Ordering::SeqCst) < 4 || tokio::time::Instant::now() < until {
        if let Ok(piece) = tokio::time::timeout(Duration::from_millis(20), followed.next()).await {
            assert!(!piece.unwrap().proves_end, "{what}");
        }
    }
}

#[tokio::test]
async fn an_empty_answer_is_no_proof_where_anything_speaks_against_it() {
    let spoilers: &[fn(&mut verbatim_wire::messages::FetchResponse)] =
        &[|answer| answer.throttle_time_ms = 1, |answer| only(answer).preferred_read_replica = 2.into()];
    for (index, spoil) in spoilers.iter().enumerate() {
        let brokers = Brokers::start(1, vec![with_hole(2, 3)]).await;
        let mut followed = fetcher(&brokers).follow(partition(0), place(0), 0);
        read_to(&mut followed, 2).await;
        let answered = spoiled(&brokers, |seen| seen.min_bytes == 0, *spoil);
        followed.go_on(Place { offset: 2, last_epoch: 0 }, 0);
        proves_nothing(&mut followed, &answered, &format!("spoiler {index}")).await;
        let asked = brokers.state().fetches.len();
        assert!(asked < 2_000, "{asked} requests: a storm");
        brokers.bend(|_, answer| Some(answer));
        proof(&mut followed).await;
    }
}

#[tokio::test]
async fn a_broker_that_takes_no_last_epoch_is_asked_for_it_beside() {
    let brokers = Brokers::start(1, vec![with_hole(2, 3), with_hole(0, 4)]).await;
    brokers.state().fetch_version_max = 11;
    let fetcher = fetcher(&brokers);
    let mut followed = fetcher.follow(partition(0), place(0), 0);
    read_to(&mut followed, 2).await;
    let asked = brokers.state().epochs_asked;
    followed.go_on(Place { offset: 2, last_epoch: 0 }, 0);
    assert_eq!(proof(&mut followed).await.leader.high_watermark, 5);
    assert!(brokers.state().epochs_asked > asked);
    // Where nothing was read there is nothing to ask for.
    let asked = brokers.state().epochs_asked;
    let mut empty = fetcher.follow(partition(1), place(0), 0);
    assert_eq!(proof(&mut empty).await.leader.high_watermark, 4);
    assert_eq!(brokers.state().epochs_asked, asked);
    // What was read was cut, and other offsets took its place.
    for (told, end) in [((0, 1), 1), ((-1, -1), -1)] {
        brokers.state().bend_end = Box::new(move |_, _| told);
        followed.go_on(Place { offset: 2, last_epoch: 0 }, 0);
        match stop(&mut followed).await {
            Stop::Diverging { epoch, end: at } => assert_eq!((epoch, at), told),
            other => assert!(end < 0 && matches!(other, Stop::OutOfRange), "{other:?}"),
        }
    }
    // Another leader: the reader learns the epochs anew.
    brokers.state().bend_end = Box::new(|_, end| end);
    followed.go_on(Place { offset: 2, last_epoch: 0 }, 0);
    brokers.change(0, |log| log.elect(1));
    assert!(matches!(stop(&mut followed).await, Stop::NewEpoch { epoch: 1 }));
}

#[tokio::test]
async fn a_broker_that_takes_no_epoch_at_all_proves_nothing() {
    let brokers = Brokers::start(1, vec![with_hole(2, 3)]).await;
    brokers.state().fetch_version_max = 8;
    let mut followed = fetcher(&brokers).follow(partition(0), place(0), 0);
    read_to(&mut followed, 2).await;
    let answered = spoiled(&brokers, |seen| seen.partitions[0].fetch_offset == 2, |_| ());
    proves_nothing(&mut followed, &answered, "version 8").await;
}

#[tokio::test]
async fn a_batch_that_did_not_fit_among_others_is_no_hole() {
    // In the shadow of the first partition a batch above the limits is left out of answers without a word.
    let logs = vec![Log::new(1).filled(200, 2_000), Log::new(1).filled(3, 100_000)];
    let brokers = Brokers::start(1, logs).await;
    let config = FetchConfig { answer_bytes_max: 32 * 1024, partition_bytes_max: 8 * 1024, ..fetch_config() };
    let fetcher = Fetcher::start(cluster(&brokers), config);
    let mut small = fetcher.follow(partition(0), place(0), 0);
    let mut large = fetcher.follow(partition(1), place(0), 0);
    let small = tokio::spawn(async move { read_to(&mut small, 200).await });
    let mut at = Vec::new();
    while at.len() < brokers.log(1).bytes_from(0).len() {
        let piece = large.next().await.unwrap();
        assert!(!piece.proves_end);
        at.extend_from_slice(&piece.batches);
    }
    assert!(at == brokers.log(1).bytes_from(0));
    assert!(small.await.unwrap() == brokers.log(0).bytes_from(0));
}
