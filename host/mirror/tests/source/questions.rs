//! What a cluster is asked, and how often.

use verbatim_mirror::cluster::{At, ClusterError, Partition, Topics};
use verbatim_wire::exact_producer::EpochEnd;
use verbatim_wire::messages::{MetadataRequest, MetadataResponse};
use verbatim_wire::tag::EpochEntry;

use crate::brokers::Brokers;
use crate::log::Log;
use crate::{TOPIC, cluster, partition};

/// A log with these entries, its last epoch being current.
fn with_entries(entries: &[(i32, i64)], start: i64, end: i64) -> Log {
    let epoch = entries.last().unwrap().0;
    Log { epoch, start, end, entries: entries.to_vec(), ..Log::new(1) }
}

#[tokio::test]
async fn epochs_are_walked_down_to_the_first() {
    let histories: &[(&[(i32, i64)], i64)] = &[
        (&[(0, 0)], 0),
        (&[(0, 0), (1, 5)], 0),
        (&[(0, 3), (1, 5)], 3),
        (&[(1, 0)], 0),
        (&[(1, 4)], 4),
        (&[(7, 0)], 0),
        (&[(7, 2), (8, 9), (9, 10)], 2),
        (&[(3, 0), (5, 10), (6, 10_000), (9, 20_000)], 0),
        (&[(2, 0), (4, 1), (2_000_000_000, 40_000)], 0),
    ];
    for (entries, start) in histories {
        let brokers = Brokers::start(1, vec![with_entries(entries, *start, 40_000)]).await;
        let cluster = cluster(&brokers);
        let expected = |above: i32| -> Vec<EpochEntry> {
            let entries = entries.iter().filter(|(epoch, _)| *epoch > above);
            entries.map(|(epoch, start)| EpochEntry { epoch: *epoch, start: *start }).collect()
        };
        let current = entries.last().unwrap().0;
        for above in [-1, 0, 1, 2, 5, current - 1, current] {
            let epochs = cluster.epochs(&partition(0), above).await.unwrap();
            assert_eq!(epochs, (current, expected(above)), "{entries:?} above {above}");
        }
    }
}

#[tokio::test]
async fn epochs_are_one_question_an_entry_however_far_apart() {
    let entries = &[(3, 0), (1_000_000, 10), (2_000_000_000, 20)];
    let brokers = Brokers::start(1, vec![with_entries(entries, 0, 30)]).await;
    cluster(&brokers).epochs(&partition(0), -1).await.unwrap();
    let asked = brokers.state().epochs_asked;
    assert!(asked <= entries.len() + 2, "{asked} questions");
}

#[tokio::test]
async fn an_empty_history_and_a_cluster_without_epochs() {
    let mut log = with_entries(&[(4, 0)], 0, 0);
    log.entries.clear();
    let brokers = Brokers::start(1, vec![log]).await;
    assert_eq!(cluster(&brokers).epochs(&partition(0), -1).await.unwrap(), (4, Vec::new()));
    brokers.state().stale.insert(0, (1, -1));
    assert_eq!(cluster(&brokers).epochs(&partition(0), -1).await.unwrap(), (-1, Vec::new()));
}

#[tokio::test]
async fn a_question_follows_a_leader_that_moves() {
    let brokers = Brokers::start(3, vec![Log::new(1).filled(5, 10)]).await;
    let cluster = cluster(&brokers);
    assert_eq!(cluster.partition(&partition(0), false).await.unwrap().leader, 1);
    for leader in [2, 3, 1] {
        brokers.change(0, |log| log.elect(leader));
        let latest = cluster.list_offset(&partition(0), At::Latest, false).await.unwrap().unwrap();
        let known = cluster.partition(&partition(0), false).await.unwrap();
        assert_eq!((latest.offset, latest.leader_epoch), (5, known.leader_epoch));
        assert_eq!(known.leader, leader);
        brokers.change(0, |log| log.elect(leader));
        assert_eq!(cluster.epoch_end(&partition(0), 0).await.unwrap(), EpochEnd { epoch: 0, end: 5 });
    }
}

#[tokio::test]
async fn a_leader_epoch_never_goes_back_but_for_another_topic() {
    let brokers = Brokers::start(2, vec![Log::new(1)]).await;
    brokers.change(0, |log| (0..5).for_each(|_| log.elect(2)));
    let cluster = cluster(&brokers);
    let known = cluster.partition(&partition(0), true).await.unwrap();
    assert_eq!((known.leader, known.leader_epoch), (2, 5));
    // A broker that is behind tells of the leader before.
    brokers.state().stale.insert(0, (1, 4));
    assert_eq!(cluster.partition(&partition(0), true).await.unwrap(), known);
    let topics = cluster.topics(Topics::All).await.unwrap();
    assert_eq!(topics[0].partitions, [known]);
    brokers.state().stale.clear();
    crate::brokers::recreate(&mut brokers.state(), 8);
    assert_eq!(cluster.partition(&partition(0), true).await.unwrap().leader_epoch, 0);
}

#[tokio::test]
async fn what_is_not_there_is_unknown_and_left_out() {
    let brokers = Brokers::start(1, vec![Log::new(1)]).await;
    let cluster = cluster(&brokers);
    let names = ["nope".to_owned(), TOPIC.to_owned()];
    let topics = cluster.topics(Topics::Named(&names)).await.unwrap();
    assert_eq!(topics.iter().map(|topic| topic.name.as_str()).collect::<Vec<_>>(), [TOPIC]);
    let nope = Partition { topic: "nope".to_owned(), index: 0 };
    for partition in [nope, partition(1), partition(-1)] {
        let error = cluster.list_offset(&partition, At::Latest, false).await.unwrap_err();
        assert!(matches!(error, ClusterError::Unknown(_)), "{error:?}");
        let error = cluster.partition(&partition, false).await.unwrap_err();
        assert!(matches!(error, ClusterError::Unknown(_)), "{error:?}");
    }
}

#[tokio::test]
async fn nothing_there_is_none() {
    let brokers = Brokers::start(1, vec![Log::new(1).filled(3, 10)]).await;
    let cluster = cluster(&brokers);
    let at = |at, read_committed| {
        let cluster = cluster.clone();
        async move { cluster.list_offset(&partition(0), at, read_committed).await.unwrap() }
    };
    assert_eq!(at(At::Earliest, true).await.unwrap().offset, 0);
    assert_eq!(at(At::Latest, true).await.unwrap().offset, 3);
    assert_eq!(at(At::Time(1_000), false).await.unwrap().timestamp, 1_000);
    assert_eq!(at(At::Time(1_001), false).await, None);
}

#[tokio::test]
async fn lost_connections_pass() {
    let mut brokers = Brokers::start(2, vec![Log::new(1), Log::new(2)]).await;
    let cluster = cluster(&brokers);
    for round in 0..10 {
        brokers.state().cut = round % 4;
        let led_by_either = partition(i32::from(round % 2 == 0));
        cluster.list_offset(&led_by_either, At::Latest, false).await.unwrap();
        cluster.epochs(&partition(0), -1).await.unwrap();
    }
    // A broker comes back at another address, and nobody but the other one tells.
    brokers.kill(1).await;
    brokers.run(1).await;
    cluster.list_offset(&partition(0), At::Latest, false).await.unwrap();
}

#[tokio::test]
async fn many_who_ask_at_once_share_questions() {
    let brokers = Brokers::start(1, vec![Log::new(1); 200]).await;
    let cluster = cluster(&brokers);
    cluster.partition(&partition(0), false).await.unwrap();
    let before = brokers.state().metadata_asked;
    let tasks: Vec<_> = (0..200)
        .map(|index| {
            let cluster = cluster.clone();
            tokio::spawn(async move { cluster.partition(&partition(index), true).await.unwrap() })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let asked = brokers.state().metadata_asked - before;
    assert!(asked <= 10, "{asked} questions for 200 who asked at once");
}

#[tokio::test]
async fn a_dead_cluster_is_given_up_in_words() {
    let mut brokers = Brokers::start(1, vec![Log::new(1)]).await;
    let cluster = cluster(&brokers);
    brokers.kill(1).await;
    let error = cluster.partition(&partition(0), false).await.unwrap_err();
    let ClusterError::Unavailable { attempts, .. } = &error else { panic!("{error:?}") };
    assert_eq!(*attempts, cluster.config().attempts_max);
    assert!(error.to_string().contains("leader of t-0: gave up after"), "{error}");
}

#[tokio::test]
async fn questions_of_ones_own() {
    let brokers = Brokers::start(2, vec![Log::new(1)]).await;
    let cluster = cluster(&brokers);
    assert_eq!(cluster.brokers().await.unwrap().len(), 2);
    let request = MetadataRequest::default().with_topics(Some(Vec::new()));
    let code = |answer: &MetadataResponse| answer.error_code;
    assert_eq!(cluster.call_any("Metadata", 4, &request, code).await.unwrap().brokers.len(), 2);
    assert_eq!(cluster.call_controller("Metadata", 4, &request, code).await.unwrap().brokers.len(), 2);
    assert_eq!(cluster.call_broker(2, "Metadata", 4, &request, code).await.unwrap().brokers.len(), 2);
    let error = cluster.call_any("Metadata", 99, &request, code).await.unwrap_err();
    assert!(matches!(error, ClusterError::Unsupported(_)), "{error:?}");
}
