//! Retention and the layout of segments in the random test.

use verbatim_log::{ApplyError, Io as _, Reason, Retention};

use super::World;
use crate::layout::Layout;

impl World {
    pub(super) fn retain(&mut self) {
        self.now += self.rng.below(400) as i64;
        let retention = Retention {
            bytes: self.rng.one_in(2).then(|| self.rng.below(4_000)),
            ms: self.rng.one_in(2).then(|| self.rng.below(2_500) as i64),
            segments_max: 1 + self.rng.below(4) as usize,
        };
        self.hint = format!("{}, at {} {retention:?}", self.hint, self.now);
        if self.config.exact {
            let operations = self.disk.operations();
            let refused = self.log.as_mut().unwrap().retain(self.now, &retention);
            assert!(matches!(refused, Err(ApplyError::Invalid { .. })), "{}", self.hint);
            assert_eq!(self.disk.operations(), operations, "{}", self.hint);
            return;
        }
        let (due, start) = self.layout.due(&retention, self.now, (self.model.high_watermark, self.model.end));
        let mut after = self.model.clone();
        if let Some(start) = start {
            after.start = start;
            after.epochs.advance_start(start);
        }
        self.inject();
        match self.log.as_mut().unwrap().retain(self.now, &retention) {
            Ok(removed) => {
                let gone = removed.segments.iter().map(|segment| (segment.base, segment.reason));
                let gone: Vec<_> = gone.filter(|(_, reason)| *reason != Reason::Start).collect();
                assert_eq!((gone, removed.start), (due, after.start), "{}", self.hint);
                if start.is_some() {
                    self.layout.advance_start(after.start, after.end);
                    // The start is durable, and all that it stands on.
                    self.durable(after);
                }
            }
            Err(ApplyError::Failed { .. }) => self.disk.clear_faults(),
            Err(ApplyError::Offline { .. }) => {
                self.chain.push(after);
                self.restart();
                return;
            }
            Err(error) => panic!("{error}, {}", self.hint),
        }
        self.check_layout();
        if let Some(stopped) = self.stopped() {
            self.hint = format!("{}, stopped {stopped}", self.hint);
            self.restart();
        }
    }

    /// The files are what was predicted, but for what a fault kept from being removed.
    pub(super) fn check_layout(&self) {
        if !self.config.exact {
            let start = self.model.start;
            let found = Layout::read(&self.disk, &self.folder, &self.config);
            assert_eq!(found.alive(start), self.layout.alive(start), "segments, {}", self.hint);
        }
    }

    /// A start leaves nothing that is not needed.
    pub(super) fn check_tidy(&mut self, clean: bool) {
        if clean && !self.config.exact {
            self.layout.reopen(self.model.start, self.model.end);
            self.check_layout();
        } else {
            self.layout = Layout::read(&self.disk, &self.folder, &self.config);
        }
        assert_eq!(self.layout.alive(self.model.start), self.layout.alive(i64::MIN), "dead, {}", self.hint);
        let names = self.disk.list(&self.folder).unwrap();
        for name in &names {
            let is_index =
                [".index", ".timeindex", ".txnindex"].iter().any(|extension| name.ends_with(extension));
            let is_stray =
                (is_index || name.ends_with(".received")) && !names.contains(&format!("{}.log", &name[..20]));
            assert!(!is_stray, "stray {name}, {}", self.hint);
            if name.ends_with(".log") {
                self.check_received(&name[..20]);
            }
        }
    }

    /// Beside each segment there are as many digests as batches, or none where they are not kept.
    fn check_received(&self, base: &str) {
        let digests = self.folder.join(format!("{base}.received"));
        let bytes = self.disk.bytes(&self.folder.join(format!("{base}.log")));
        let kept = self.disk.files().contains(&digests).then(|| self.disk.bytes(&digests).len());
        let expected = self.config.keeps_received.then(|| 48 * verbatim_batch::frames(&bytes).count());
        assert_eq!(kept, expected, "{}, {}", digests.display(), self.hint);
    }
}
