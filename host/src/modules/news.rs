//! What happens to modules by itself: told in the host's log at once, and kept by a thread of its own, because who judges
//! must not wait for the disk.

use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;

use verbatim_engine::{Cause, Digest, Event, Generation, TakenBack, Witness};

use super::metrics::Outcomes;
use super::status::{BY_ITSELF, described};
use super::store::{Change, Entry, Outcome, Store};
use super::swap::now_ms;

/// The way to the thread.
pub(super) struct News {
    rollbacks: Sender<(String, Change, Entry)>,
}

impl News {
    /// Starts the thread; it ends with the last sender. Without one, rollbacks are lost at the next start, as is logged.
    pub(super) fn start(store: Arc<Store>) -> Self {
        let (rollbacks, told) = mpsc::channel::<(String, Change, Entry)>();
        let spawned = thread::Builder::new().name("modules".to_owned()).spawn(move || {
            for (name, change, entry) in told {
                if let Err(error) = store.note_taken_back(&name, change, entry) {
                    tracing::error!(module = name, %error, "a rollback cannot be kept: the next start takes the module that was taken back");
                }
            }
        });
        if let Err(error) = spawned {
            tracing::error!(%error, "no thread keeps what happens to modules");
        }
        Self { rollbacks }
    }

    /// What a slot tells of itself goes here; `own` is what the host is started with.
    pub(super) fn observer(&self, own: Digest, outcomes: Arc<Outcomes>) -> Arc<dyn Fn(&Event) + Send + Sync> {
        let rollbacks = self.rollbacks.clone();
        Arc::new(move |event| match event {
            Event::Evidence { slot, generation, witness } => {
                let (number, digest) = (generation.number(), generation.digest());
                tracing::warn!(module = slot, generation = number, %digest, %witness, "a module fails on what the one before it judges");
            }
            Event::Switched { slot, from, to } => {
                let (number, digest, cause) = (to.number(), to.digest(), to.cause());
                let before = from.number();
                tracing::info!(module = slot, generation = number, before, %digest, %cause, "another module serves");
                if let Cause::Rollback(why @ TakenBack::Failing { witnesses }) = cause {
                    outcomes.count(Outcome::RolledBackByItself);
                    tracing::error!(module = slot, %why, "a module was taken back");
                    let stored_as = |digest: Digest| (digest != own).then(|| digest.to_string());
                    let (serves, before) = (stored_as(to.digest()), stored_as(from.digest()));
                    let change = Change::To { serves, before };
                    // Without the thread it was logged that nothing is kept.
                    let _ = rollbacks.send((slot.clone(), change, by_itself(to, witnesses)));
                }
            }
        })
    }
}

fn by_itself(to: &Generation, witnesses: &[Witness]) -> Entry {
    Entry {
        at_ms: now_ms(),
        generation: to.number(),
        outcome: Outcome::RolledBackByItself,
        sha256: to.digest().to_string(),
        described: described(to.module()),
        reason: BY_ITSELF.to_owned(),
        evidence: witnesses.iter().map(Witness::to_string).collect(),
    }
}
