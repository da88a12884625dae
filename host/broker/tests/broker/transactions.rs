//! Many transactions side by side on an exact topic: a read_committed reader sees what was committed, and nothing else.

use std::collections::{BTreeMap, HashSet};

use verbatim_batch::{BatchBuilder, ControlType, frames, place};

use crate::support::{Fetch, Host, TIME_MS, builder, order};

/// Offsets of batches by producers whose transaction is open, and of those that count.
#[derive(Default)]
struct Model {
    open: BTreeMap<i64, Vec<i64>>,
    committed: Vec<i64>,
}

#[tokio::test(flavor = "multi_thread")]
async fn read_committed_readers_see_what_was_committed() {
    let seed = uuid::Uuid::new_v4().as_u64_pair().0;
    println!("seed {seed}");
    let mut random = seed | 1;
    let mut below = move |bound: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % bound
    };
    let mut host = Host::start().await;
    host.exact("copy", &[("segment.bytes", "2000")]).await;
    let (mut model, mut end, mut epoch) = (Model::default(), 0_i64, -1);
    for step in 0..300 {
        let base = end + i64::from(below(5) == 0) * 3;
        let producer = 1 + i64::try_from(below(4)).unwrap();
        let epoch_now = epoch.max(0) + i32::from(below(40) == 0);
        let bytes = match below(5) {
            0 | 1 if model.open.contains_key(&producer) => {
                let commit = below(2) == 0;
                let kind = if commit { ControlType::Commit } else { ControlType::Abort };
                let offsets = model.open.remove(&producer).unwrap();
                if commit {
                    model.committed.extend(offsets);
                }
                let mut marker = BatchBuilder::marker(base, (producer, 0), TIME_MS, kind, 0).unwrap();
                place(&mut marker, base, epoch_now).unwrap();
                marker
            }
            2 => {
                model.committed.push(base);
                builder(base, epoch_now, &["plain"]).build().unwrap()
            }
            _ => {
                model.open.entry(producer).or_default().push(base);
                builder(base, epoch_now, &["x"]).producer(producer, 0, 0).transactional().build().unwrap()
            }
        };
        let told = host.write("copy", &bytes, &order((end, epoch), (base + 1, epoch_now))).await;
        (end, epoch) = (told.end, told.last_epoch);
        if step % 25 == 24 {
            check(&host, &model, end, below(u64::try_from(end).unwrap())).await;
        }
        if step % 100 == 99 {
            host = host.restart().await;
            check(&host, &model, end, 0).await;
        }
    }
}

async fn check(host: &Host, model: &Model, end: i64, from: u64) {
    let stable = model.open.values().flatten().min().copied().unwrap_or(end);
    let mut position = i64::try_from(from).unwrap();
    let mut seen = HashSet::new();
    while position < stable {
        let ask = Fetch { committed: true, max_bytes: 700, max_bytes_in_all: 700, ..Fetch::at(position) };
        let part = host.fetch("copy", ask).await;
        assert_eq!((part.error_code, part.last_stable_offset), (0, stable));
        let records = part.records.unwrap();
        let aborted = part.aborted_transactions.unwrap();
        // As clients do it: a producer is aborted from a listed first offset until its next marker.
        let mut listed: Vec<(i64, i64)> =
            aborted.iter().map(|one| (one.first_offset, one.producer_id.0)).collect();
        listed.sort_unstable();
        let mut active = HashSet::new();
        let mut listed = listed.into_iter().peekable();
        let mut next = position;
        for frame in frames(&records) {
            let header = frame.header().unwrap();
            while let Some((_, producer)) =
                listed.next_if(|(first, _)| *first <= header.last_offset().unwrap())
            {
                active.insert(producer);
            }
            if header.attributes.is_control() {
                active.remove(&header.producer_id);
            } else if !(header.attributes.is_transactional() && active.contains(&header.producer_id)) {
                seen.insert(header.base_offset);
            }
            next = header.next_offset().unwrap();
        }
        assert!(next > position || records.is_empty(), "no progress at {position}");
        if records.is_empty() {
            break;
        }
        position = next;
    }
    let expected: HashSet<i64> = model
        .committed
        .iter()
        .copied()
        .filter(|o| *o >= i64::try_from(from).unwrap() && *o < stable)
        .collect();
    assert_eq!(seen, expected, "from {from}, stable {stable}");
}
