//! The broker in this process, spoken to over TCP, judged by the policy compiled in.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

mod described;
mod disk;
mod exact;
mod failures;
mod full_disk;
mod groups;
mod heads;
mod hostile;
mod metrics;
mod module_keys;
mod operations;
mod peers;
mod power_loss;
mod promotion;
mod quotas;
mod reads;
mod records;
mod retention;
mod rewrites;
mod sessions;
mod support;
mod topics;
mod transactions;
mod unfinished;
mod versions;
