//! A disk in memory for tests that promises what POSIX promises, and not more.
//!
//! **What is durable.** A file's bytes and length: as of the last `sync` of that file. A name (a file or folder that was
//! created, renamed or removed): as of the last `sync_folder` of the folder it is in. A synced file whose name is not
//! durable is lost with its name. `create_folder` makes the names of new folders durable, and `sync_all` everything that was
//! done before it, as [`verbatim_log::Io`] says.
//!
//! **A power loss** ([`SimDisk::power_loss`]) leaves what is durable and, with [`Loss::Random`], any part of the rest:
//! - of each file: nothing of the rest, all of it, the first writes and truncations with the next write torn at any byte,
//!   or each 512-byte sector as it was after another one of them, under a length that the file had or grew through;
//! - of each folder: none of the changes of names, all, the first of them, or any of them without others. A rename within
//!   a folder is done as a whole or not at all;
//! - files and folders independently of each other, so that what was done later may be there without what came before.
//!
//! **The end of a process** ([`SimDisk::end_process`]) loses nothing that was written. After either, the files that were
//! open and what [`SimDisk::process`] gave are dead: a process that goes on does not reach the disk any more.
//!
//! **Faults** come at the N-th changing operation ([`SimDisk::set_fault`]) or where a rule says so
//! ([`SimDisk::set_rule`]); a disk with a capacity ([`SimDisk::set_capacity`]) takes the part of a write that fits, and
//! then nothing. Writes may be short at any time ([`SimDisk::set_short_writes`]).
//!
//! One seed and the same operations give the same disk.
//!
//! Left out: a sector is never torn itself, and a write that the system took in two parts counts as one at a power loss. A
//! failed `sync` leaves pending what was pending; some systems forget it and let the next `sync` succeed.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "test support: a wrong test may stop here"
)]

mod fault;
mod file;
mod folder;
mod random;
mod state;
#[cfg(test)]
mod tests;

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use verbatim_log::{File, Io, Lock};

pub use fault::{Fault, Kind, Operation};
pub use random::Random;

use fault::Outcome;
use state::State;

/// What a power loss leaves of what was not made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Nothing.
    Everything,
    /// Any part.
    Random,
}

/// The disk; clones are the same disk. As an [`Io`] it belongs to whatever process runs at present.
#[derive(Clone)]
pub struct SimDisk(Arc<Mutex<State>>);

impl Default for SimDisk {
    /// [`SimDisk::new`] with the seed 0.
    fn default() -> Self {
        Self::new(0)
    }
}

/// The disk as one process sees it.
struct Process {
    disk: SimDisk,
    life: u64,
}

struct Handle {
    disk: SimDisk,
    path: PathBuf,
    inode: u64,
    life: u64,
}

struct Held {
    disk: SimDisk,
    path: PathBuf,
    life: u64,
}

impl SimDisk {
    /// An empty disk; the seed decides what power losses leave.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State::new(seed))))
    }

    /// The disk as the present process sees it: it fails from the next end of a process on.
    #[must_use]
    pub fn process(&self) -> Arc<dyn Io> {
        let life = self.state().life;
        Arc::new(Process { disk: self.clone(), life })
    }

    /// Changing operations so far, also those that failed.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.state().plan.operations
    }

    /// The fault happens at the `after`-th changing operation from now, counted from 0.
    pub fn set_fault(&self, after: u64, fault: Fault) {
        let plan = &mut self.state().plan;
        plan.fault = Some((plan.operations + after, fault));
    }

    /// Every operation, reading ones included, is shown to the rule, which may have it fail.
    pub fn set_rule(&self, rule: impl FnMut(&Operation<'_>) -> Option<Fault> + Send + 'static) {
        self.state().plan.rule = Some(Box::new(rule));
    }

    /// Nothing fails any more by fault or rule; a power loss that was to come does not.
    pub fn clear_faults(&self) {
        let mut state = self.state();
        (state.plan.fault, state.plan.rule, state.plan.stopped, state.loss) = (None, None, false, None);
    }

    /// Every so-manyth changing operation that is a write takes half of what it is given, which is no error; 0 = none.
    pub fn set_short_writes(&self, every: u64) {
        self.state().plan.short_every = every;
    }

    /// Bytes that all files together may have; `None` is without end. A disk may hold more than that already.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.state().capacity = bytes;
    }

    /// Bytes of all files that have a name.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.state().used()
    }

    /// The process ends: what was written is there. Faults are over.
    pub fn end_process(&self) {
        self.state().end_process();
    }

    /// The machine ends, and the process with it. Faults are over.
    pub fn power_loss(&self, loss: Loss) {
        self.state().power_loss(loss);
    }

    /// The machine ends just before the `after`-th changing operation from now, counted from 0.
    pub fn set_power_loss(&self, after: u64, loss: Loss) {
        let mut state = self.state();
        state.loss = Some((state.plan.operations + after, loss));
    }

    /// How many processes have ended.
    #[must_use]
    pub fn lives(&self) -> u64 {
        self.state().life
    }

    /// A file's bytes; it must be there.
    #[must_use]
    pub fn bytes(&self, path: &Path) -> Vec<u8> {
        let state = self.state();
        let inode = state.file_at(path).expect("a file");
        state.files[&inode].data.clone()
    }

    /// Replaces a file's bytes, durably; it must be there.
    pub fn set_bytes(&self, path: &Path, bytes: Vec<u8>) {
        let mut state = self.state();
        let inode = state.file_at(path).expect("a file");
        state.files.insert(inode, file::Content::durable(bytes));
    }

    /// All files that have a name, in order.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        self.state().paths()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// The disk for a process of this life; the present one if none is given.
    fn living(&self, life: Option<u64>) -> Result<MutexGuard<'_, State>> {
        let state = self.state();
        if life.is_some_and(|life| life != state.life) {
            return Err(Error::other("the process has ended"));
        }
        Ok(state)
    }

    fn open(&self, life: Option<u64>, path: &Path, create: bool) -> Result<Arc<dyn File>> {
        let mut state = self.living(life)?;
        state.look(Kind::Open, path)?;
        let inode = match state.file_at(path) {
            Err(error) if error.kind() == ErrorKind::NotFound && create => state.create(path)?,
            found => found?,
        };
        Ok(Arc::new(Handle { disk: self.clone(), path: path.to_owned(), inode, life: state.life }))
    }

    fn lock(&self, life: Option<u64>, path: &Path) -> Result<Lock> {
        drop(self.open(life, path, true)?);
        let mut state = self.living(life)?;
        if !state.locks.insert(path.to_owned()) {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(Held { disk: self.clone(), path: path.to_owned(), life: state.life }))
    }

    fn list(&self, life: Option<u64>, folder: &Path) -> Result<Vec<String>> {
        let mut state = self.living(life)?;
        state.look(Kind::List, folder)?;
        state.list(folder)
    }
}

/// Both the disk itself and one process's view of it do the same, the latter while the process lives.
macro_rules! io {
    ($type:ty, |$self:ident| $disk:expr, $life:expr) => {
        impl Io for $type {
            fn open(&$self, path: &Path, create: bool) -> Result<Arc<dyn File>> {
                $disk.open($life, path, create)
            }

            fn open_read(&$self, path: &Path) -> Result<Arc<dyn File>> {
                $disk.open($life, path, false)
            }

            fn lock(&$self, path: &Path) -> Result<Lock> {
                $disk.lock($life, path)
            }

            fn list(&$self, folder: &Path) -> Result<Vec<String>> {
                $disk.list($life, folder)
            }

            fn create_folder(&$self, folder: &Path) -> Result<()> {
                $disk.living($life)?.create_folder(folder)
            }

            fn make_folder(&$self, folder: &Path) -> Result<()> {
                $disk.living($life)?.make_folder(folder)
            }

            fn rename(&$self, from: &Path, to: &Path) -> Result<()> {
                $disk.living($life)?.rename(from, to)
            }

            fn remove(&$self, path: &Path) -> Result<()> {
                $disk.living($life)?.remove(path)
            }

            fn remove_folder(&$self, folder: &Path) -> Result<()> {
                $disk.living($life)?.remove_folder(folder)
            }

            fn sync_folder(&$self, folder: &Path) -> Result<()> {
                $disk.living($life)?.sync_folder(folder)
            }

            fn sync_all(&$self, folder: &Path) -> Result<()> {
                $disk.living($life)?.sync_all(folder)
            }
        }
    };
}

io!(SimDisk, |self| self, None);
io!(Process, |self| self.disk, Some(self.life));

impl Handle {
    fn state(&self) -> Result<MutexGuard<'_, State>> {
        self.disk.living(Some(self.life))
    }
}

impl File for Handle {
    fn len(&self) -> Result<u64> {
        Ok(self.state()?.files[&self.inode].data.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize> {
        let mut state = self.state()?;
        state.look(Kind::Read, &self.path)?;
        let rest = state.files[&self.inode].data.get(position as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_at(&self, slices: &[IoSlice<'_>], position: u64) -> Result<usize> {
        let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
        self.state()?.write(&self.path, self.inode, bytes, position as usize)
    }

    fn set_len(&self, length: u64) -> Result<()> {
        self.state()?.set_len(&self.path, self.inode, length as usize)
    }

    fn sync(&self) -> Result<()> {
        let mut state = self.state()?;
        let outcome = state.change(Kind::Sync, &self.path)?;
        if outcome.is_done() {
            state.files.get_mut(&self.inode).unwrap().sync();
        }
        outcome.result()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Ok(mut state) = self.disk.living(Some(self.life)) {
            state.locks.remove(&self.path);
        }
    }
}
