//! Topics come and go, get partitions and properties, and are promoted: one change at a time.

use std::collections::BTreeMap;
use std::time::Duration;

use verbatim_test_disk::Random;

use super::Life;
use super::peer::Peer;
use crate::support::{batch, order};

const NAMES: u64 = 5;
const PROPERTY: &str = "max.message.bytes";
const EXACT: &str = "produce.at.offset";
const SOURCE_EPOCH: i32 = 3;

/// By name, what each topic may be: one thing, or two after a change that was not acknowledged.
#[derive(Clone, Default)]
pub(super) struct Topics(BTreeMap<String, Vec<Option<Topic>>>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Topic {
    partitions: i32,
    property: u64,
    exact: bool,
    /// Writes to its first partition, of one record each.
    written: i64,
    shown: i32,
}

impl Topics {
    /// Changes topics until the host refuses.
    pub(super) async fn change(mut self, life: Life, mut random: Random) -> Self {
        let peer = life.peer().await;
        loop {
            tokio::time::sleep(Duration::from_millis(random.below(4))).await;
            let name = format!("topic-{}", random.below(NAMES));
            let before = self.0.get(&name).and_then(|states| states.last().cloned()).flatten();
            let (after, code) = change(&peer, &name, before.as_ref(), &mut random, |after| {
                self.0.insert(name.clone(), vec![before.clone(), after]);
            })
            .await;
            if code != Some(0) {
                life.refused(&format!("{name}, {before:?} to {after:?}"), &code);
                return self;
            }
            self.0.insert(name, vec![after]);
        }
    }

    pub(super) async fn check(&mut self, peer: &Peer, lost: &mut Vec<String>) {
        for (name, states) in &mut self.0 {
            let found = find(peer, name).await;
            let fits = |state: &&Option<Topic>| match (state, &found) {
                (None, None) => true,
                (Some(state), Some(found)) => {
                    let Topic { partitions, property, exact, .. } = *state;
                    (partitions, property, exact) == (found.partitions, found.property, found.exact)
                        && found.written <= state.written
                }
                _ => false,
            };
            let state =
                states.iter().find(fits).unwrap_or_else(|| panic!("{name}: {found:?}, not {states:?}"));
            if let (Some(state), Some(found)) = (state, &found) {
                assert!(found.shown >= state.shown, "{name}: the epoch fell, {found:?}, {state:?}");
                // The last write may not have been acknowledged.
                let acked = states.iter().flatten().map(|state| state.written).min().unwrap_or(0);
                if found.written < acked {
                    lost.push(format!("{name}: {acked} writes acknowledged, {} left", found.written));
                }
            }
            *states = vec![found];
        }
    }

    /// Folders of all partitions, once checked.
    pub(super) fn folders(&self) -> Vec<String> {
        let topics = self.0.iter().filter_map(|(name, states)| Some((name, states.last()?.as_ref()?)));
        topics
            .flat_map(|(name, topic)| (0..topic.partitions).map(move |index| format!("{name}-{index}")))
            .collect()
    }
}

/// Makes one change; what the topic is afterwards, told before it is asked for, and the host's answer.
async fn change(
    peer: &Peer,
    name: &str,
    before: Option<&Topic>,
    random: &mut Random,
    mut announce: impl FnMut(Option<Topic>),
) -> (Option<Topic>, Option<i16>) {
    let mut announced = |after: Option<Topic>| {
        announce(after.clone());
        after
    };
    let Some(before) = before else {
        let (partitions, property, exact) = (1 + random.below(3) as i32, number(random), random.one_in(2));
        let after = announced(Some(Topic { partitions, property, exact, written: 0, shown: -1 }));
        let text = property.to_string();
        let configs = [(PROPERTY, text.as_str()), ("retention.ms", "-1"), (EXACT, "true")];
        let configs = if exact { &configs[..] } else { &configs[..2] };
        return (after, peer.create(name, partitions, configs).await.ok());
    };
    match random.below(6) {
        0 => (announced(None), peer.delete(name).await.ok().map(|told| told.0)),
        1 if !before.exact && before.partitions < 4 => {
            let after = Topic { partitions: before.partitions + 1, ..before.clone() };
            let count = after.partitions;
            (announced(Some(after)), peer.grow(name, count).await.ok().map(|told| told.0))
        }
        2 if before.exact => {
            let shown = if before.written == 0 { 0 } else { SOURCE_EPOCH + 1 };
            let after = announced(Some(Topic { exact: false, shown, ..before.clone() }));
            (after, peer.alter(name, EXACT, "false").await.ok())
        }
        3 if !before.exact => {
            let property = number(random);
            let after = announced(Some(Topic { property, ..before.clone() }));
            (after, peer.alter(name, PROPERTY, &property.to_string()).await.ok())
        }
        _ => {
            let end = before.written;
            let after = announced(Some(Topic { written: end + 1, ..before.clone() }));
            let epoch = if end == 0 { -1 } else { SOURCE_EPOCH };
            let tag = before.exact.then(|| order((end, epoch), (end + 1, SOURCE_EPOCH)));
            let base = if before.exact { end } else { 0 };
            let answer = peer.produce(name, &batch(base, SOURCE_EPOCH, &["x"]), tag.as_ref()).await;
            (after, answer.ok().map(|answer| answer.error_code))
        }
    }
}

async fn find(peer: &Peer, name: &str) -> Option<Topic> {
    let told = peer.metadata(name).await;
    if told.error_code == 3 {
        return None;
    }
    assert_eq!(told.error_code, 0, "{name}");
    assert!(told.partitions.iter().all(|partition| partition.error_code == 0), "{name}: {told:?}");
    let (written, shown) = peer.list(name, -1).await.unwrap();
    Some(Topic {
        partitions: i32::try_from(told.partitions.len()).unwrap(),
        property: peer.property(name, PROPERTY).await.parse().unwrap(),
        exact: peer.property(name, EXACT).await == "true",
        written,
        shown,
    })
}

fn number(random: &mut Random) -> u64 {
    100_000 + random.below(1_000)
}
