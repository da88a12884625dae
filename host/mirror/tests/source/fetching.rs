//! Batches of many partitions: what is asked, in which order, and what is handed on.

use std::time::Duration;

use bytes::Bytes;
use verbatim_batch::frames;
use verbatim_mirror::fetch::{FetchConfig, FetchOnce, Fetcher, Place};

use crate::brokers::{Brokers, only};
use crate::log::{Log, batch};
use crate::{cluster, data, fetch_config, fetcher, partition, place, read_to};

#[tokio::test]
async fn a_log_comes_whole_and_what_is_appended_follows() {
    let brokers = Brokers::start(1, vec![Log::new(1).filled(300, 1_000)]).await;
    let mut followed = fetcher(&brokers).follow(partition(0), place(0), 0);
    let mut bytes = read_to(&mut followed, 300).await;
    for end in 301..=310 {
        brokers.change(0, |log| log.append(100));
        bytes.extend(read_to(&mut followed, end).await);
    }
    assert!(bytes == brokers.log(0).bytes_from(0));
    let piece = followed.next().await.unwrap();
    assert!(piece.batches.is_empty() && !piece.proves_end);
    assert_eq!((piece.leader.high_watermark, piece.leader.log_start, piece.leader.epoch), (310, 0, 0));
}

#[tokio::test]
async fn requests_carry_epochs_and_nothing_that_a_consumer_would() {
    let brokers = Brokers::start(1, vec![Log::new(1).filled(10, 100)]).await;
    brokers.change(0, |log| log.elect(1));
    let mut followed = fetcher(&brokers).follow(partition(0), Place { offset: 4, last_epoch: 0 }, 1);
    read_to(&mut followed, 10).await;
    brokers.change(0, |log| log.append(10));
    read_to(&mut followed, 11).await;
    followed.next().await.unwrap();
    let fetches = brokers.state().fetches.clone();
    assert_eq!(fetches[0].partitions[0].last_fetched_epoch, 0);
    assert_eq!(fetches.last().unwrap().partitions[0].last_fetched_epoch, 1);
    for fetch in fetches {
        assert_eq!((fetch.isolation_level, fetch.rack.as_str(), fetch.version), (0, "", 18));
        assert_eq!(fetch.partitions[0].current_leader_epoch, 1);
    }
}

#[tokio::test]
async fn older_brokers_are_spoken_to_by_name() {
    for version in [4, 8, 11, 12] {
        let brokers =
            Brokers::start(1, vec![Log::new(1).filled(50, 1_000), Log::new(1).filled(50, 10)]).await;
        brokers.state().fetch_version_max = version;
        let fetcher = fetcher(&brokers);
        for index in 0..2 {
            let mut followed = fetcher.follow(partition(index), place(0), 0);
            assert!(read_to(&mut followed, 50).await == brokers.log(index).bytes_from(0), "v{version}");
        }
    }
}

#[tokio::test]
async fn the_first_batch_may_begin_below_the_place_and_what_lies_below_is_dropped() {
    let brokers = Brokers::start(1, vec![Log::new(1).filled(10, 100)]).await;
    // An answer from two batches before the one asked for.
    let log = brokers.log(0);
    brokers.bend(move |seen, mut answer| {
        let from = seen.partitions[0].fetch_offset.saturating_sub(2);
        only(&mut answer).records = Some(log.bytes_from(from).into());
        Some(answer)
    });
    let mut followed = fetcher(&brokers).follow(partition(0), place(6), 0);
    let piece = data(&mut followed).await;
    assert!(piece.batches == brokers.log(0).bytes_from(6));
    // A batch of several offsets, read from its middle.
    let mut wide = batch(10, 0, 50).to_vec();
    wide[23..27].copy_from_slice(&4_i32.to_be_bytes());
    verbatim_batch::reseal(&mut wide).unwrap();
    let wide = Bytes::from(wide);
    let bent = wide.clone();
    brokers.bend(move |_, mut answer| {
        only(&mut answer).records = Some(bent.clone());
        Some(answer)
    });
    brokers.change(0, |log| log.end = 15);
    followed.go_on(place(13), 0);
    assert_eq!(data(&mut followed).await.batches, wide);
}

#[tokio::test]
async fn none_starves() {
    // One partition alone would fill every answer.
    let mut logs = vec![Log::new(1).filled(2_000, 4_000)];
    logs.extend((0..20).map(|_| Log::new(1).filled(20, 3_000)));
    let brokers = Brokers::start(1, logs).await;
    let fetcher = Fetcher::start(
        cluster(&brokers),
        FetchConfig { answer_bytes_max: 20 * 1024, partition_bytes_max: 20 * 1024, ..fetch_config() },
    );
    let mut tasks = Vec::new();
    let mut greedy = fetcher.follow(partition(0), place(0), 0);
    let greedy = tokio::spawn(async move { read_to(&mut greedy, 2_000).await.len() });
    for index in 1..=20 {
        let mut followed = fetcher.follow(partition(index), place(0), 0);
        tasks.push(tokio::spawn(async move { read_to(&mut followed, 20).await }));
    }
    for (index, task) in (1..).zip(tasks) {
        assert!(task.await.unwrap() == brokers.log(index).bytes_from(0));
    }
    assert!(!greedy.is_finished(), "the small ones wait for the large one");
    greedy.abort();
}

#[tokio::test]
async fn nobody_waits_for_another_ones_wait() {
    // Waits are far longer than the whole test may take.
    let brokers = Brokers::start(1, vec![Log::new(1), Log::new(1), Log::new(1).filled(400, 4_000)]).await;
    let config = FetchConfig { wait_max: Duration::from_secs(600), ..fetch_config() };
    let mut cluster_config = cluster(&brokers).config().clone();
    cluster_config.client.answer_max = Duration::from_secs(600);
    let fetcher = Fetcher::start(verbatim_mirror::cluster::Cluster::new(cluster_config), config);
    let mut idle = fetcher.follow(partition(0), place(0), 0);
    idle.next().await.unwrap();
    while !brokers.state().fetches.iter().any(|fetch| fetch.max_wait_ms == 600_000) {
        tokio::task::yield_now().await;
    }
    // A partition that is added while the other is waited for, piece by piece.
    let mut added = fetcher.follow(partition(2), place(0), 0);
    assert!(read_to(&mut added, 400).await == brokers.log(2).bytes_from(0));
    // And one that runs dry while the long wait goes on.
    brokers.change(2, |log| log.append(10));
    read_to(&mut added, 401).await;
}

#[tokio::test]
async fn memory_is_bounded_and_readers_that_do_not_read_hold_up_nobody_else() {
    let logs = (0..60).map(|_| Log::new(1).filled(20, 10_000)).collect();
    let brokers = Brokers::start(1, logs).await;
    let config = FetchConfig {
        answer_bytes_max: 64 * 1024,
        partition_bytes_max: 32 * 1024,
        buffered_bytes_max: 512 * 1024,
        ..fetch_config()
    };
    let fetcher = Fetcher::start(cluster(&brokers), config);
    let mut followed: Vec<_> = (0..60).map(|index| fetcher.follow(partition(index), place(0), 0)).collect();
    let mut held = Vec::new();
    // Pieces are taken and kept, until no more come.
    for one in &mut followed {
        while let Ok(Ok(piece)) = tokio::time::timeout(Duration::from_millis(100), one.next()).await {
            held.push(piece);
        }
    }
    let sum: usize = held.iter().map(|piece| piece.batches.len()).sum();
    assert!(sum <= 512 * 1024, "{sum} bytes are held");
    // A piece that is kept keeps the room of its whole answer.
    assert!(sum > 128 * 1024, "{sum} bytes are held");
    // Once they are let go all comes.
    drop(held);
    for (index, one) in (0..).zip(&mut followed) {
        one.go_on(place(0), 0);
        assert!(read_to(one, 20).await == brokers.log(index).bytes_from(0));
    }
}

#[tokio::test]
async fn what_is_put_elsewhere_goes_on_there() {
    let brokers = Brokers::start(1, vec![Log::new(1).filled(100, 1_000)]).await;
    let mut followed = fetcher(&brokers).follow(partition(0), place(0), 0);
    for offset in [50, 3, 99, 0, 77] {
        followed.go_on(place(offset), 0);
        let piece = data(&mut followed).await;
        assert_eq!(frames(&piece.batches).next().unwrap().prefix().base_offset, offset);
    }
}

#[tokio::test]
async fn one_fetch_by_itself() {
    let brokers = Brokers::start(1, vec![Log::new(1).filled(10, 100)]).await;
    let cluster = cluster(&brokers);
    let how = FetchOnce { wait: Duration::ZERO, bytes_max: 10, read_committed: true };
    let fetched = cluster.fetch_once(&partition(0), place(3), 0, how).await.unwrap();
    assert_eq!(fetched.next, Place { offset: 4, last_epoch: 0 });
    assert!(fetched.batches == brokers.log(0).batches[3]);
    let fetched =
        cluster.fetch_once(&partition(0), Place { offset: 10, last_epoch: 0 }, 0, how).await.unwrap();
    assert!(fetched.proves_end && fetched.batches.is_empty());
    assert_eq!(brokers.state().fetches.last().unwrap().isolation_level, 1);
}

#[tokio::test]
async fn everything_ends_with_the_last_handle() {
    let mut brokers = Brokers::start(1, vec![Log::new(1)]).await;
    let fetcher = fetcher(&brokers);
    let mut followed = fetcher.follow(partition(0), place(0), 0);
    followed.next().await.unwrap();
    drop(fetcher);
    followed.next().await.unwrap();
    drop(followed);
    // Connections are closed: a broker that waits for them to end does end.
    brokers.kill(1).await;
    let before = brokers.state().fetches.len();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(brokers.state().fetches.len(), before);
}
