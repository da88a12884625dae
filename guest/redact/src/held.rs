//! Callbacks that hold back where batches go until it is known which of them are redacted.

use verbatim_kit::{Again, Callbacks, Comparison, CutPreview, Placement, ProducerState, Replica, Unreadable};

/// The host's callbacks for the rules that are judged first: what they read can be read again, and what they append waits.
pub(crate) struct Held<'a> {
    log: Again<'a>,
    placements: Vec<(u32, Placement)>,
    too_large: Option<u32>,
}

impl<'a> Held<'a> {
    /// Keeps at most `bytes_max` bytes of records at a time.
    pub(crate) fn new(log: &'a mut dyn Callbacks, bytes_max: usize) -> Self {
        Self { log: Again::new(log, bytes_max), placements: Vec::new(), too_large: None }
    }

    /// The batch that was too large to be read.
    pub(crate) fn too_large(&self) -> Option<u32> {
        self.too_large
    }

    /// The host's callbacks, with what was read, and where the batches are to go.
    pub(crate) fn into_parts(self) -> (Again<'a>, Vec<(u32, Placement)>) {
        (self.log, self.placements)
    }
}

impl Callbacks for Held<'_> {
    fn append(&mut self, index: u32, placement: Placement) {
        self.placements.push((index, placement));
    }

    fn records(&mut self, index: u32, max: u32) -> Result<Vec<u8>, Unreadable> {
        let piece = self.log.records(index, max);
        if piece == Err(Unreadable::TooLarge) {
            self.too_large.get_or_insert(index);
        }
        piece
    }

    fn duplicate(&mut self, index: u32, base_offset: i64) {
        self.log.duplicate(index, base_offset);
    }

    fn rewrite(&mut self, index: u32, placement: Placement, records: Vec<u8>) {
        self.log.rewrite(index, placement, records);
    }

    fn compare(&mut self, index: u32, base_offset: i64) -> Comparison {
        self.log.compare(index, base_offset)
    }

    fn cut(&mut self, to: i64) -> CutPreview {
        self.log.cut(to)
    }

    fn producer(&mut self, producer_id: i64) -> Option<ProducerState> {
        self.log.producer(producer_id)
    }

    fn replicas(&mut self) -> Vec<Replica> {
        self.log.replicas()
    }

    fn config(&mut self, key: &str) -> Option<String> {
        self.log.config(key)
    }

    fn trace(&mut self, line: &str) {
        self.log.trace(line);
    }
}
