//! The host's imports as the policy knows them.

use alloc::{string::String, vec::Vec};

use verbatim_contract::{Callbacks, Comparison, CutPreview, Placement, ProducerState, Replica, Unreadable};

use super::bindings::verbatim::produce::{config, log, trace};
use super::convert;

/// Asks the host.
pub(crate) struct Imports;

impl Callbacks for Imports {
    fn append(&mut self, index: u32, placement: Placement) {
        log::append(index, convert::placement(placement));
    }

    fn duplicate(&mut self, index: u32, base_offset: i64) {
        log::duplicate(index, base_offset);
    }

    fn rewrite(&mut self, index: u32, placement: Placement, records: Vec<u8>) {
        log::rewrite(index, convert::placement(placement), &records);
    }

    fn compare(&mut self, index: u32, base_offset: i64) -> Comparison {
        convert::comparison(log::compare(index, base_offset))
    }

    fn cut(&mut self, to: i64) -> CutPreview {
        convert::cut_preview(log::cut(to))
    }

    fn producer(&mut self, producer_id: i64) -> Option<ProducerState> {
        log::producer(producer_id).map(convert::producer_state)
    }

    fn replicas(&mut self) -> Vec<Replica> {
        log::replicas().into_iter().map(convert::replica).collect()
    }

    fn records(&mut self, index: u32, max: u32) -> Result<Vec<u8>, Unreadable> {
        log::records(index, max).map_err(convert::unreadable)
    }

    fn config(&mut self, key: &str) -> Option<String> {
        config::get(key)
    }

    fn trace(&mut self, line: &str) {
        trace::line(line);
    }
}
