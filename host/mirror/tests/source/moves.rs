//! Leaders that move, brokers that come back, topics that go.

use std::time::Duration;

use verbatim_mirror::fetch::{Fetcher, Place, Stop};

use crate::brokers::{Brokers, recreate};
use crate::log::Log;
use crate::{cluster, data, fetch_config, fetcher, partition, place, read_to, stop};

#[tokio::test]
async fn a_leader_that_moves_stops_its_partition_until_the_reader_knows_the_epochs() {
    let brokers = Brokers::start(3, vec![Log::new(1).filled(10, 100), Log::new(2).filled(10, 100)]).await;
    let fetcher = fetcher(&brokers);
    let mut followed = fetcher.follow(partition(0), place(0), 0);
    let mut other = fetcher.follow(partition(1), place(0), 0);
    let mut bytes = read_to(&mut followed, 10).await;
    for (round, leader) in [2, 3, 3, 1].into_iter().enumerate() {
        let epoch = i32::try_from(round).unwrap() + 1;
        brokers.change(0, |log| {
            log.elect(leader);
            log.append(50);
        });
        let stopped = stop(&mut followed).await;
        assert!(matches!(stopped, Stop::NewEpoch { epoch: new } if new == epoch), "{stopped:?}");
        // The same again, however often it is asked.
        assert!(matches!(followed.next().await, Err(Stop::NewEpoch { .. })));
        let end = 10 + i64::try_from(round).unwrap();
        followed.go_on(Place { offset: end, last_epoch: epoch - 1 }, epoch);
        bytes.extend(read_to(&mut followed, end + 1).await);
    }
    assert!(bytes == brokers.log(0).bytes_from(0));
    assert!(read_to(&mut other, 10).await == brokers.log(1).bytes_from(0), "others go on");
}

#[tokio::test]
async fn a_broker_that_lags_behind_its_election_is_asked_again() {
    let brokers = Brokers::start(1, vec![Log::new(1).filled(3, 100)]).await;
    // Metadata knows epoch 1 before the leader does: 75 until it has caught up.
    brokers.state().stale.insert(0, (1, 1));
    let mut followed = fetcher(&brokers).follow(partition(0), place(0), 1);
    let seen = || brokers.state().fetches.len();
    while seen() < 3 {
        tokio::select! {
            piece = followed.next() => panic!("{piece:?}"),
            () = tokio::time::sleep(Duration::from_millis(1)) => {}
        }
    }
    brokers.change(0, |log| log.elect(1));
    read_to(&mut followed, 3).await;
}

#[tokio::test]
async fn a_place_above_what_the_new_leader_has_is_a_divergence() {
    let brokers = Brokers::start(2, vec![Log::new(1).filled(10, 100)]).await;
    let mut followed = fetcher(&brokers).follow(partition(0), place(0), 0);
    read_to(&mut followed, 10).await;
    // An unclean election: the other broker never had the last four.
    brokers.change(0, |log| {
        log.truncate(6);
        log.elect(2);
        (0..5).for_each(|_| log.append(30));
    });
    assert!(matches!(stop(&mut followed).await, Stop::NewEpoch { epoch: 1 }));
    followed.go_on(Place { offset: 10, last_epoch: 0 }, 1);
    let stopped = stop(&mut followed).await;
    assert!(matches!(stopped, Stop::Diverging { epoch: 0, end: 6 }), "{stopped:?}");
    followed.go_on(Place { offset: 6, last_epoch: 0 }, 1);
    assert!(read_to(&mut followed, 11).await == brokers.log(0).bytes_from(6));
}

#[tokio::test]
async fn a_broker_that_comes_back_is_found_under_its_new_address() {
    let mut brokers = Brokers::start(2, vec![Log::new(1).filled(500, 1_000)]).await;
    let mut followed = fetcher(&brokers).follow(partition(0), place(0), 0);
    let mut bytes = read_to(&mut followed, 100).await;
    let mut at = i64::try_from(bytes.len() / brokers.log(0).batches[0].len()).unwrap();
    brokers.kill(1).await;
    brokers.run(1).await;
    while at < 500 {
        let piece = data(&mut followed).await;
        at = crate::log::next(brokers.log(0).batches.last().unwrap())
            .min(at + i64::try_from(piece.batches.len() / brokers.log(0).batches[0].len()).unwrap());
        bytes.extend_from_slice(&piece.batches);
    }
    assert!(bytes == brokers.log(0).bytes_from(0));
}

#[tokio::test]
async fn connections_that_are_cut_lose_nothing_and_repeat_nothing() {
    let brokers = Brokers::start(1, vec![Log::new(1).filled(300, 1_000), Log::new(1).filled(300, 700)]).await;
    let mut count = 0;
    brokers.bend(move |_, answer| {
        count += 1;
        (count % 3 != 0).then_some(answer)
    });
    let fetcher = fetcher(&brokers);
    for index in 0..2 {
        let mut followed = fetcher.follow(partition(index), place(0), 0);
        assert!(read_to(&mut followed, 300).await == brokers.log(index).bytes_from(0));
    }
}

#[tokio::test]
async fn a_broker_that_has_just_started_knows_no_topics_for_a_moment() {
    let mut brokers = Brokers::start(2, vec![Log::new(1).filled(3, 100)]).await;
    let mut followed = fetcher(&brokers).follow(partition(0), place(0), 0);
    read_to(&mut followed, 3).await;
    brokers.state().topic_code = 3;
    brokers.kill(1).await;
    brokers.run(1).await;
    let asked = brokers.state().metadata_asked;
    let looks = || brokers.state().metadata_asked - asked;
    while looks() < 3 {
        tokio::select! {
            piece = followed.next() => drop(piece.unwrap()),
            () = tokio::time::sleep(Duration::from_millis(1)) => {}
        }
    }
    brokers.state().topic_code = 0;
    brokers.change(0, |log| log.append(10));
    read_to(&mut followed, 4).await;
}

#[tokio::test]
async fn a_topic_that_stays_away_is_gone() {
    let brokers = Brokers::start(1, vec![Log::new(1).filled(3, 100)]).await;
    let mut followed = fetcher(&brokers).follow(partition(0), place(0), 0);
    read_to(&mut followed, 3).await;
    brokers.state().topic_code = 3;
    brokers.bend(|_, mut answer| {
        crate::brokers::only(&mut answer).error_code = 100;
        Some(answer)
    });
    let Stop::Gone(why) = stop(&mut followed).await else { panic!() };
    let expected =
        "topic t: UNKNOWN_TOPIC_OR_PARTITION (3); it was there with topic id AAAAAAAAAAAAAAAAAAAABw";
    assert_eq!(why, expected);
}

#[tokio::test]
async fn another_topic_of_the_same_name_is_never_read() {
    let brokers = Brokers::start(1, vec![Log::new(1).filled(3, 100)]).await;
    let fetcher = Fetcher::start(cluster(&brokers), fetch_config());
    let mut followed = fetcher.follow(partition(0), place(0), 0);
    read_to(&mut followed, 3).await;
    recreate(&mut brokers.state(), 8);
    brokers.change(0, |log| (0..9).for_each(|_| log.append(20)));
    let Stop::Gone(why) = stop(&mut followed).await else { panic!() };
    let ids = "its topic id is AAAAAAAAAAAAAAAAAAAACA, expected AAAAAAAAAAAAAAAAAAAABw";
    assert!(why.contains(ids), "{why}");
    // Nor by whoever expects the one before.
    let mut late = fetcher.follow_topic(partition(0), uuid::Uuid::from_u128(7), place(0), 0);
    assert!(matches!(late.next().await, Err(Stop::Gone(_))));
}
