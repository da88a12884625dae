//! The last step of a start: what the epochs become, and the facts without a checkpoint or a cut.

use crate::LogError;
use crate::facts::Facts;
use crate::log::Log;

impl Log {
    /// An exact partition keeps its epochs, but for declared ones above the end, whose request was never acknowledged. A
    /// normal one cuts them at its end and begins the next.
    pub(crate) fn settle(&mut self, exact: bool) -> Result<(), LogError> {
        let mut facts = Facts { cut: None, checkpoint: None, exact, ..self.facts.clone() };
        facts.keeps_received &= exact;
        if exact {
            facts.epochs_mut().truncate(self.end.saturating_add(1));
        } else {
            facts.epochs_mut().truncate(self.end);
            let last = facts.epochs.last().map_or(-1, |last| last.epoch);
            let epoch = facts.shown_epoch.max(last).checked_add(1).ok_or_else(|| LogError::Folder {
                folder: self.folder.clone(),
                detail: format!("leader epochs are used up, epoch=`{}`", i32::MAX),
            })?;
            facts.epochs_mut().assign(epoch, self.end);
            facts.shown_epoch = epoch;
            self.source.forget(&*self.io)?;
        }
        if self.facts.start == self.end {
            self.roll(self.end)?;
        }
        facts.write(&*self.io, &self.folder)?;
        self.facts = facts;
        self.tidy();
        self.remove_strays()
    }
}
