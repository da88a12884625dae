//! The end of one segment and the beginning of the next, and what is done away with afterwards.

use std::sync::Arc;

use verbatim_batch::{crc32c, crc32c_append};

use crate::checked::remove_file;
use crate::index::Sealed;
use crate::log::Log;
use crate::open::{create_segment, remove_segment};
use crate::segment::{self, Names};
use crate::{LogError, received, snapshot};

impl Log {
    /// Begins a new segment at `base`. The one before is durable first, so that only a last segment is ever torn; one
    /// that was never used gives way.
    pub(crate) fn roll(&mut self, base: i64) -> Result<(), LogError> {
        if let Some(last) = self.segments.last().cloned() {
            if last.length() > 0 {
                self.sync_last()?;
                last.write_indexes(&*self.io)?;
            } else if last.base == base {
                return Ok(());
            } else {
                self.segments.pop();
                self.unused.push(last.base);
            }
        }
        let names = Names::new(&self.folder, base);
        snapshot::write(&*self.io, &names.producers, self.producers.iter())?;
        self.segments.push(create_segment(&*self.io, &self.folder, base, self.facts.keeps_received)?);
        self.dirty = false;
        Ok(())
    }

    /// How long the segment that begins at `base` may grow: `segment.ms` without its part of `segment.jitter.ms`, which is
    /// the same after a restart.
    pub(crate) fn segment_ms(&self, base: i64) -> i64 {
        let (longest, jitter) = (self.config.segment_ms, self.config.segment_jitter_ms);
        let name = self.folder.file_name().unwrap_or_default().as_encoded_bytes();
        let chosen = i64::from(crc32c_append(crc32c(name), &base.to_be_bytes()));
        longest.saturating_sub(chosen.checked_rem(jitter.min(longest)).unwrap_or(0).max(0))
    }

    /// After a commit, and after readers were shown it: sealed segments give their indexes back to the disk, segments that
    /// are not used any more go. A failure is left to the next commit or start.
    pub(crate) fn tidy(&mut self) {
        let (before, sealed) = (self.segments.len(), self.seal());
        let deleted = self.delete_dead();
        if sealed || self.segments.len() != before {
            self.relist();
            self.publish();
        }
        if let Err(error) = deleted.and_then(|()| self.remove_unused()) {
            tracing::warn!(%error, "segments that are not needed any more could not be removed");
        }
    }

    /// How many segments lie below the start as a whole.
    pub(crate) fn dead_count(&self) -> usize {
        self.segments.iter().skip(1).take_while(|next| next.base <= self.facts.start).count()
    }

    /// Removes segments that lie below the start as a whole.
    pub(crate) fn delete_dead(&mut self) -> Result<(), LogError> {
        let (dead, mut gone) = (self.dead_count(), 0_usize);
        let deleted = self.segments.iter().take(dead).try_for_each(|segment| {
            remove_segment(&*self.io, &segment.names)?;
            remove_file(&*self.io, &segment.names.producers)?;
            if self.facts.keeps_received {
                received::remove(&*self.io, &segment.names.log)?;
            }
            gone = gone.saturating_add(1);
            Ok(())
        });
        self.segments.drain(..gone);
        deleted
    }

    /// Removes segments that were rolled away before they were used; their snapshots may still be needed.
    pub(crate) fn remove_unused(&mut self) -> Result<(), LogError> {
        while let Some(base) = self.unused.last().copied() {
            // One of that name may be in use again by now.
            if !self.segments.iter().any(|segment| segment.base == base) {
                let names = Names::new(&self.folder, base);
                remove_segment(&*self.io, &names)?;
                if self.facts.keeps_received {
                    received::remove(&*self.io, &names.log)?;
                }
            }
            self.unused.pop();
        }
        Ok(())
    }

    /// Removes what a crash left: indexes and digests without a segment, digests that are not kept any more, and snapshots
    /// that no cut can need, which are all but those of segments and the last one at or before the start.
    pub(crate) fn remove_strays(&self) -> Result<(), LogError> {
        let names = self.io.list(&self.folder).map_err(LogError::io("list", &self.folder))?;
        let is_stray =
            |offset: &i64| self.segments.binary_search_by_key(offset, |segment| segment.base).is_err();
        for extension in [".index", ".timeindex", ".txnindex"] {
            for offset in segment::offsets(&names, extension).into_iter().filter(is_stray) {
                let names = Names::new(&self.folder, offset);
                [&names.offsets, &names.times, &names.aborted]
                    .into_iter()
                    .try_for_each(|path| remove_file(&*self.io, path))?;
            }
        }
        let digests = segment::offsets(&names, ".received").into_iter();
        for offset in digests.filter(|offset| is_stray(offset) || !self.facts.keeps_received) {
            received::remove(&*self.io, &Names::new(&self.folder, offset).log)?;
        }
        let snapshots = segment::offsets(&names, ".snapshot");
        let before_start = snapshots.iter().copied().filter(|offset| *offset <= self.facts.start).max();
        for offset in snapshots.into_iter().filter(is_stray).filter(|offset| Some(*offset) != before_start) {
            remove_file(&*self.io, &Names::new(&self.folder, offset).producers)?;
        }
        Ok(())
    }

    /// Segments before the last that were growing give their files back; whether there were any.
    fn seal(&mut self) -> bool {
        let mut any = false;
        for segment in self.segments.iter_mut().rev().skip(1).take_while(|segment| segment.is_growing()) {
            let names = &segment.names;
            match Sealed::open(&self.io, &names.offsets, &names.times, segment.length()) {
                Ok(Some(sealed)) => *segment = Arc::new(segment.sealed(&self.io, sealed)),
                Ok(None) => {
                    tracing::warn!(file = %names.offsets.display(), "an index does not fit its segment")
                }
                Err(error) => tracing::warn!(%error, "an index stays in memory"),
            }
            any = true;
        }
        any
    }
}
