//! The rules for readers: R32, R42 to R47, over the wire.

use crate::support::{Fetch, Host, TIME_MS, batch, builder, order};
use bytes::Bytes;
use verbatim_batch::{BatchBuilder, Codec, ControlType, place};
use verbatim_wire::messages::fetch_response::PartitionData;

/// An exact topic with offsets 100..103 under epoch 5 and 110..112 under epoch 7.
async fn two_epochs(host: &Host) -> (Vec<u8>, Vec<u8>) {
    host.exact("copy", &[]).await;
    let (old, new) = (batch(100, 5, &["a", "b", "c"]), batch(110, 7, &["d", "e"]));
    host.write("copy", &old, &order((0, -1), (103, 5))).await;
    host.write("copy", &new, &order((103, 5), (112, 7))).await;
    (old, new)
}

#[tokio::test(flavor = "multi_thread")]
async fn r32_every_reader_is_fenced_by_the_shown_epoch() {
    let host = Host::start().await;
    two_epochs(&host).await;
    assert_eq!(host.shown("copy").await, 7);
    for (current, code) in [(-1, 0), (7, 0), (6, 74), (8, 75)] {
        let fetched = host.fetch("copy", Fetch { current, ..Fetch::at(100) }).await;
        assert_eq!(fetched.error_code, code, "Fetch, current {current}");
        assert_eq!(host.list_as("copy", -1, false, current).await.0, code, "ListOffsets, current {current}");
        assert_eq!(
            host.epoch_end("copy", 5, current).await.0,
            code,
            "OffsetForLeaderEpoch, current {current}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r42_an_epoch_ends_where_the_next_begins() {
    let host = Host::start().await;
    two_epochs(&host).await;
    for (asked, expected) in
        [(-1, (-1, -1)), (4, (4, 100)), (5, (5, 110)), (6, (5, 110)), (7, (7, 112)), (8, (-1, -1))]
    {
        let (code, epoch, end) = host.epoch_end("copy", asked, -1).await;
        assert_eq!((code, (epoch, end)), (0, expected), "asked {asked}");
    }
    host.create("plain", 1, &[]).await;
    assert_eq!(host.epoch_end("plain", 0, -1).await, (0, 0, 0));
    assert_eq!(host.epoch_end("none", 0, -1).await, (3, -1, -1));
}

#[tokio::test(flavor = "multi_thread")]
async fn r42_r43b_a_lagging_copy_answers_as_its_source() {
    let host = Host::start().await;
    two_epochs(&host).await;
    // The source is at 130 by now; the copy ends at 112.
    host.write("copy", &batch(112, 7, &["f"]), &order((112, 7), (130, 7))).await;
    assert_eq!(host.epoch_end("copy", 7, -1).await, (0, 7, 130));
    for (offset, code) in [(113, 0), (114, 78), (130, 78), (131, 1)] {
        let fetched = host.fetch("copy", Fetch { last: 7, ..Fetch::at(offset) }).await;
        let diverging = fetched.diverging_epoch.epoch;
        // Above the declared end the epoch's own end is below the offset, which R43 tells first.
        let expected = if offset == 131 { (0, 7) } else { (code, -1) };
        assert_eq!((fetched.error_code, diverging), expected, "offset {offset} with a last epoch");
        let fetched = host.fetch("copy", Fetch::at(offset)).await;
        assert_eq!(fetched.error_code, code, "offset {offset}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r43_a_reader_of_another_history_learns_where_it_parts() {
    let host = Host::start().await;
    two_epochs(&host).await;
    let ask = |offset, last| Fetch { last, ..Fetch::at(offset) };
    for (ask, code, diverging) in [
        (ask(103, 5), 0, (-1, -1)),
        (ask(112, 7), 0, (-1, -1)),
        (ask(111, 5), 0, (5, 110)),
        (ask(111, 6), 0, (5, 110)),
        (ask(111, 8), 1, (-1, -1)),
    ] {
        let fetched = host.fetch("copy", ask).await;
        let found = (fetched.diverging_epoch.epoch, fetched.diverging_epoch.end_offset);
        assert_eq!((fetched.error_code, found), (code, diverging), "offset {} last {}", ask.offset, ask.last);
        if diverging.0 >= 0 {
            assert!(fetched.records.unwrap_or_default().is_empty());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn r44_a_read_inside_a_batch_or_a_hole_gives_whole_batches() {
    let host = Host::start().await;
    let (old, new) = two_epochs(&host).await;
    let all = [old.clone(), new.clone()].concat();
    for (offset, expected) in [(0, &all), (100, &all), (102, &all), (103, &new), (107, &new), (111, &new)] {
        let fetched = host.fetch("copy", Fetch::at(offset)).await;
        assert_eq!(
            (fetched.error_code, fetched.records),
            (0, Some(Bytes::from(expected.clone()))),
            "offset {offset}"
        );
        assert_eq!(
            (fetched.high_watermark, fetched.last_stable_offset, fetched.log_start_offset),
            (112, 112, 0)
        );
    }
    assert_eq!(host.fetch("copy", Fetch::at(112)).await.records, Some(Bytes::new()));
    assert_eq!(host.fetch("copy", Fetch::at(113)).await.error_code, 1);
    assert_eq!(host.fetch("copy", Fetch::at(-1)).await.error_code, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_are_bounded_but_the_first_batch_is_given() {
    let host = Host::start().await;
    let (old, new) = two_epochs(&host).await;
    host.create("plain", 1, &[]).await;
    host.produce("plain", &batch(0, 0, &["x"]), None).await;
    let one = |bytes: &[u8]| Some(Bytes::copy_from_slice(bytes));
    let small = Fetch { max_bytes: 1, ..Fetch::at(100) };
    assert_eq!(host.fetch("copy", small).await.records, one(&old));
    let exact_fit = Fetch { max_bytes: i32::try_from(old.len() + new.len()).unwrap(), ..Fetch::at(100) };
    assert_eq!(host.fetch("copy", exact_fit).await.records, one(&[old.clone(), new].concat()));
    // The first partition takes all there is for everybody.
    let both = [("copy", Fetch::at(100)), ("plain", Fetch::at(0))];
    let tight = Fetch { max_bytes_in_all: 1, ..Fetch::at(100) };
    let fetched = host.fetch_all(&both, tight).await;
    assert_eq!(fetched[0].records, one(&old));
    assert_eq!((fetched[1].error_code, fetched[1].records.clone()), (0, Some(Bytes::new())));
}

#[tokio::test(flavor = "multi_thread")]
async fn r45_offsets_carry_their_epochs() {
    let host = Host::start().await;
    host.exact("empty", &[]).await;
    for (timestamp, expected) in
        [(-1, (0, 0, -1, -1)), (-2, (0, 0, -1, -1)), (-3, (0, -1, -1, -1)), (0, (0, -1, -1, -1))]
    {
        assert_eq!(host.list("empty", timestamp, false).await, expected, "timestamp {timestamp}");
    }
    two_epochs(&host).await;
    for (timestamp, expected) in [
        (-1, (0, 112, -1, 7)),
        (-2, (0, 0, -1, 5)),
        (-3, (0, 102, TIME_MS + 2, 5)),
        (-4, (0, 0, -1, 5)),
        (-5, (0, -1, -1, -1)),
        (0, (0, 100, TIME_MS, 5)),
        (TIME_MS + 1, (0, 101, TIME_MS + 1, 5)),
        (TIME_MS + 3, (0, -1, -1, -1)),
        (-9, (35, -1, -1, -1)),
    ] {
        assert_eq!(host.list("copy", timestamp, false).await, expected, "timestamp {timestamp}");
    }
    assert_eq!(host.list("none", -1, false).await, (3, -1, -1, -1));
}

#[tokio::test(flavor = "multi_thread")]
async fn r46_read_committed_ends_at_the_stable_offset_and_lists_what_was_aborted() {
    let host = Host::start().await;
    host.exact("copy", &[]).await;
    let open = builder(10, 1, &["lost"]).producer(7, 0, 0).transactional().build().unwrap();
    host.write("copy", &[batch(8, 1, &["a", "b"]), open.clone()].concat(), &order((0, -1), (11, 1))).await;
    let committed = |offset| Fetch { committed: true, ..Fetch::at(offset) };
    let fetched = host.fetch("copy", committed(8)).await;
    assert_eq!((fetched.last_stable_offset, fetched.high_watermark), (10, 11));
    assert_eq!(fetched.records, Some(Bytes::from(batch(8, 1, &["a", "b"]))));
    assert_eq!(fetched.aborted_transactions, Some(Vec::new()));
    assert_eq!(host.fetch("copy", committed(10)).await.records, Some(Bytes::new()));
    assert_eq!((host.list("copy", -1, true).await.1, host.list("copy", -1, false).await.1), (10, 11));

    let mut marker = BatchBuilder::marker(11, (7, 0), TIME_MS, ControlType::Abort, 0).unwrap();
    place(&mut marker, 11, 1).unwrap();
    host.write("copy", &marker, &order((11, 1), (12, 1))).await;
    let fetched = host.fetch("copy", committed(9)).await;
    let aborted: Vec<(i64, i64)> = fetched
        .aborted_transactions
        .unwrap()
        .iter()
        .map(|one| (one.producer_id.0, one.first_offset))
        .collect();
    assert_eq!((fetched.last_stable_offset, aborted), (12, vec![(7, 10)]));
    assert_eq!(host.fetch("copy", Fetch::at(9)).await.aborted_transactions, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn r47_zstd_is_not_given_to_readers_that_do_not_know_it() {
    let host = Host::start().await;
    host.create("plain", 1, &[]).await;
    let plain = builder(0, 0, &["x"]);
    let payload = verbatim_compression::deflate(Codec::Zstd, &plain.plain_records().unwrap()).unwrap();
    let compressed = plain.build_compressed(Codec::Zstd, &payload).unwrap();
    assert_eq!(host.produce("plain", &compressed, None).await.error_code, 0);
    assert_eq!(host.fetch("plain", Fetch { version: 9, ..Fetch::at(0) }).await.error_code, 76);
    assert_eq!(
        host.fetch("plain", Fetch { version: 10, ..Fetch::at(0) }).await.records,
        Some(Bytes::from(compressed))
    );
    let (produced, _) = host
        .produce_as(
            6,
            -1,
            "plain",
            &builder(0, 0, &["x"]).build_compressed(Codec::Zstd, &payload).unwrap(),
            None,
        )
        .await;
    assert_eq!(produced.error_code, 76);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_poll_ends_with_what_is_written_meanwhile() {
    let host = Host::start().await;
    host.create("plain", 1, &[]).await;
    let written = batch(0, 0, &["x"]);
    assert_eq!(
        host.fetch("plain", Fetch { wait_ms: 20, min_bytes: 1, ..Fetch::at(0) }).await.records,
        Some(Bytes::new())
    );
    // Far longer than a client waits: only the write can end it. On a connection of its own, since a connection's answers
    // keep their order.
    let patient = Fetch { min_bytes: 1, wait_ms: 29_000, ..Fetch::at(0) };
    let other = host.connect().await;
    let asks = [("plain", patient)];
    let (fetched, produced) =
        tokio::join!(crate::support::fetch_on(&other, &asks, patient), host.produce("plain", &written, None));
    assert_eq!((produced.error_code, produced.base_offset), (0, 0));
    assert_eq!(fetched[0].records, Some(Bytes::from(written)));
}

/// Waits for longer than a client does: nothing but what is written can end it.
async fn waits_for_ever(
    host: &Host,
    ask: Fetch,
    topics: &[&str],
) -> tokio::task::JoinHandle<Vec<PartitionData>> {
    let client = host.connect().await;
    let patient = Fetch { wait_ms: i32::MAX, ..ask };
    let asks: Vec<(String, Fetch)> = topics.iter().map(|name| ((*name).to_owned(), patient)).collect();
    let waiting = tokio::spawn(async move {
        let asks: Vec<_> = asks.iter().map(|(name, ask)| (name.as_str(), *ask)).collect();
        crate::support::fetch_on(&client, &asks, patient).await
    });
    // It is right in either order; this makes it wait before anything is written.
    tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    waiting
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_poll_waits_for_as_much_as_is_wanted_over_all_its_partitions() {
    let host = Host::with_config(|config| config.limits.fetch_wait_ms_max = u64::MAX).await;
    host.create("one", 1, &[]).await;
    host.create("two", 1, &[]).await;
    let written = batch(0, 0, &["some of it"]);
    host.produce("one", &written, None).await;
    let wanted = written.len() * 3;
    let ask = Fetch { min_bytes: i32::try_from(wanted).unwrap(), ..Fetch::at(0) };
    let waiting = waits_for_ever(&host, ask, &["one", "two"]).await;
    host.produce("two", &written, None).await;
    host.produce("one", &written, None).await;
    let fetched = waiting.await.unwrap();
    let lengths: Vec<usize> = fetched.iter().map(|part| part.records.as_ref().unwrap().len()).collect();
    assert_eq!(lengths, [written.len() * 2, written.len()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_poll_ends_with_a_small_marker_that_makes_much_readable() {
    let host = Host::with_config(|config| config.limits.fetch_wait_ms_max = u64::MAX).await;
    host.exact("copy", &[]).await;
    let open = builder(0, 1, &[&"x".repeat(10_000)]).producer(7, 0, 0).transactional().build().unwrap();
    host.write("copy", &open, &order((0, -1), (1, 1))).await;
    let ask = Fetch { committed: true, min_bytes: 5_000, ..Fetch::at(0) };
    let waiting = waits_for_ever(&host, ask, &["copy"]).await;
    let mut marker = BatchBuilder::marker(1, (7, 0), TIME_MS, ControlType::Commit, 0).unwrap();
    place(&mut marker, 1, 1).unwrap();
    host.write("copy", &marker, &order((1, 1), (2, 1))).await;
    assert_eq!(waiting.await.unwrap()[0].records, Some(Bytes::from([open, marker].concat())));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_answers_those_who_wait_for_data() {
    let host = Host::start().await;
    host.create("plain", 1, &[]).await;
    host.create("other", 1, &[]).await;
    let patient = Fetch { min_bytes: 1, wait_ms: 29_000, ..Fetch::at(0) };
    let client = host.connect().await;
    let fetch = crate::support::fetch_request(&[("plain", patient)], patient);
    let waiting = client.submit(patient.version, &fetch).await.unwrap();
    // Requests of a connection are taken in in their order: once this write is there, so is the Fetch before it.
    let _written =
        client.submit(12, &crate::support::produce_request("other", batch(0, 0, &["x"]))).await.unwrap();
    while host.list("other", -1, false).await.1 == 0 {
        tokio::task::yield_now().await;
    }
    host.stop().await;
    let fetched = waiting.await.unwrap().responses.remove(0).partitions.remove(0);
    assert_eq!((fetched.error_code, fetched.records), (0, Some(Bytes::new())));
}
