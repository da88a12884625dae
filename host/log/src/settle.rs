//! How the facts come to the disk: replaced with a commit, owed after a failure, and settled as the last step of a start.

use crate::LogError;
use crate::facts::{Facts, write_epoch_checkpoint};
use crate::log::Log;

impl Log {
    /// The facts without a checkpoint or a cut. An exact partition keeps its epochs, but for declared ones above the end,
    /// whose request was never acknowledged. A normal one cuts them at its end and begins the next.
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

    /// Replaces the durable facts. A failure is undone on the disk too, or takes the partition offline.
    pub(crate) fn persist(&mut self, facts: Facts) -> Result<(), LogError> {
        if facts == self.facts {
            return Ok(());
        }
        if let Err(error) = facts.write(&*self.io, &self.folder) {
            // The rename may have happened, and then only writing the old ones again makes sure of what is stored.
            let replaced =
                !Facts::read(&*self.io, &self.folder).is_ok_and(|read| read.as_ref() == Some(&self.facts));
            if replaced && self.facts.write(&*self.io, &self.folder).is_err() {
                self.go_offline(&error);
            }
            return Err(error);
        }
        let epochs_changed = self.facts.epochs != facts.epochs;
        self.facts = facts;
        if epochs_changed {
            self.export_epochs();
        }
        Ok(())
    }

    /// Goes back to facts, or on to some that finish what was begun. If their file cannot be replaced now, as on a full
    /// disk, that is owed; a start that finds the file as it is does no harm as long as nothing else is written.
    pub(crate) fn settle_facts(&mut self, facts: Facts) {
        self.owed |= facts != self.facts;
        self.facts = facts;
        if let Err(error) = self.pay() {
            tracing::error!(folder = %self.folder.display(), %error, "the partition takes nothing until its facts can be written");
        }
    }

    /// Replaces the file of the facts if that is owed.
    pub(crate) fn pay(&mut self) -> Result<(), LogError> {
        if self.owed {
            self.facts.write(&*self.io, &self.folder)?;
            self.owed = false;
            self.export_epochs();
        }
        Ok(())
    }

    /// Writes Kafka's epoch checkpoint; nothing of ours depends on it.
    pub(crate) fn export_epochs(&self) {
        if let Err(error) = write_epoch_checkpoint(&*self.io, &self.folder, &self.facts.epochs) {
            tracing::warn!(%error, "the epoch checkpoint for other tools could not be written");
        }
    }
}
