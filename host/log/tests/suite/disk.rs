//! A disk in memory that can fail, tear, stop, and forget what was not made durable.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, IoSlice, Result};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use verbatim_log::{File, Io};

use crate::rng::Rng;

const SECTOR: usize = 512;

/// What happens at the chosen operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It fails and does nothing.
    Fail,
    /// A write does a part and then fails; anything else fails.
    Tear,
    /// It fails after a part, and so does everything after it: the process is dying.
    Stop,
}

#[derive(Clone, Default)]
pub(crate) struct Disk(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    inodes: BTreeMap<u64, Inode>,
    names: BTreeMap<PathBuf, u64>,
    durable_names: BTreeMap<PathBuf, u64>,
    /// Changes of names that are not durable, in order, each whole or not at all: names and what they now mean.
    pending: Vec<Vec<(PathBuf, Option<u64>)>>,
    next_inode: u64,
    operations: u64,
    fault: Option<(u64, Fault)>,
    stopped: bool,
    /// Handles of an earlier life are dead.
    life: u64,
}

#[derive(Clone, Default)]
struct Inode {
    data: Vec<u8>,
    durable: Vec<u8>,
}

struct Handle {
    disk: Disk,
    inode: u64,
    life: u64,
}

impl Disk {
    /// Changing operations so far.
    pub(crate) fn operations(&self) -> u64 {
        self.0.lock().unwrap().operations
    }

    /// At the `after`-th changing operation from now, counted from 0.
    pub(crate) fn set_fault(&self, after: u64, fault: Fault) {
        let mut state = self.0.lock().unwrap();
        state.fault = Some((state.operations + after, fault));
    }

    pub(crate) fn clear_fault(&self) {
        self.0.lock().unwrap().fault = None;
    }

    /// The process ends: what was written is there.
    pub(crate) fn kill(&self) {
        let mut state = self.0.lock().unwrap();
        (state.fault, state.stopped) = (None, false);
        state.life += 1;
    }

    /// The machine ends: of what was not made durable, any part is there.
    pub(crate) fn power_loss(&self, rng: &mut Rng) {
        self.kill();
        let mut state = self.0.lock().unwrap();
        let kept = rng.below(state.pending.len() as u64 + 1) as usize;
        let pending = std::mem::take(&mut state.pending);
        let mut names = state.durable_names.clone();
        for (path, inode) in pending.into_iter().take(kept).flatten() {
            match inode {
                Some(inode) => names.insert(path, inode),
                None => names.remove(&path),
            };
        }
        state.names = names.clone();
        state.durable_names = names;
        for inode in state.inodes.values_mut() {
            inode.lose(rng);
        }
    }

    /// A file's bytes.
    pub(crate) fn bytes(&self, path: &Path) -> Vec<u8> {
        let state = self.0.lock().unwrap();
        state.inodes[&state.names[path]].data.clone()
    }

    /// Replaces a file's bytes, durably.
    pub(crate) fn set_bytes(&self, path: &Path, bytes: Vec<u8>) {
        let mut state = self.0.lock().unwrap();
        let inode = state.names[path];
        state.inodes.insert(inode, Inode { data: bytes.clone(), durable: bytes });
    }
}

impl Inode {
    fn lose(&mut self, rng: &mut Rng) {
        if self.data != self.durable {
            let lengths = [self.data.len(), self.durable.len()];
            let (short, long) = (lengths[0].min(lengths[1]), lengths[0].max(lengths[1]));
            let length = match rng.below(3) {
                0 => self.data.len(),
                1 => self.durable.len(),
                // A file that was cut has the one or the other length; one that grew, any in between.
                _ if self.data.len() < self.durable.len() => self.durable.len(),
                _ => short + rng.below((long - short) as u64 + 1) as usize,
            };
            let mut survived = vec![0; length];
            for (index, sector) in survived.chunks_mut(SECTOR).enumerate() {
                let old = rng.one_in(2) && length != self.data.len() || rng.one_in(4);
                let from = if old { &self.durable } else { &self.data };
                let part = from.get(index * SECTOR..).unwrap_or_default();
                let count = part.len().min(sector.len());
                sector[..count].copy_from_slice(&part[..count]);
            }
            self.data = survived;
        }
        self.durable = self.data.clone();
    }
}

impl State {
    /// Counts a changing operation; the part of it that is still done, in percent.
    fn operate(&mut self) -> std::result::Result<(), Fault> {
        let now = self.operations;
        self.operations += 1;
        if self.stopped {
            return Err(Fault::Fail);
        }
        match self.fault {
            Some((at, fault)) if at == now => {
                self.stopped = fault == Fault::Stop;
                Err(fault)
            }
            _ => Ok(()),
        }
    }

    fn change(&mut self) -> Result<()> {
        self.operate().map_err(|_| Error::other("injected"))
    }

    fn name(&mut self, changes: &[(&Path, Option<u64>)]) {
        for (path, inode) in changes {
            match inode {
                Some(inode) => self.names.insert(path.to_path_buf(), *inode),
                None => self.names.remove(*path),
            };
        }
        self.pending.push(changes.iter().map(|(path, inode)| (path.to_path_buf(), *inode)).collect());
    }
}

impl Io for Disk {
    fn open(&self, path: &Path, create: bool) -> Result<Arc<dyn File>> {
        let mut state = self.0.lock().unwrap();
        let inode = match state.names.get(path) {
            Some(inode) => *inode,
            None if create => {
                state.change()?;
                state.next_inode += 1;
                let inode = state.next_inode;
                state.inodes.insert(inode, Inode::default());
                state.name(&[(path, Some(inode))]);
                inode
            }
            None => return Err(ErrorKind::NotFound.into()),
        };
        Ok(Arc::new(Handle { disk: self.clone(), inode, life: state.life }))
    }

    fn open_read(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.open(path, false)
    }

    fn list(&self, folder: &Path) -> Result<Vec<String>> {
        let state = self.0.lock().unwrap();
        let inside = state.names.keys().filter(|path| path.parent() == Some(folder));
        Ok(inside.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect())
    }

    fn create_folder(&self, _: &Path) -> Result<()> {
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let mut state = self.0.lock().unwrap();
        state.change()?;
        let inode = *state.names.get(from).ok_or(ErrorKind::NotFound)?;
        state.name(&[(to, Some(inode)), (from, None)]);
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let mut state = self.0.lock().unwrap();
        if !state.names.contains_key(path) {
            return Err(ErrorKind::NotFound.into());
        }
        state.change()?;
        state.name(&[(path, None)]);
        Ok(())
    }

    fn remove_folder(&self, _: &Path) -> Result<()> {
        Ok(())
    }

    fn sync_folder(&self, _: &Path) -> Result<()> {
        let mut state = self.0.lock().unwrap();
        state.change()?;
        state.durable_names = state.names.clone();
        state.pending.clear();
        Ok(())
    }
}

impl Handle {
    fn with<T>(&self, act: impl FnOnce(&mut State, u64) -> Result<T>) -> Result<T> {
        let mut state = self.disk.0.lock().unwrap();
        if state.life != self.life {
            return Err(Error::other("handle of an earlier life"));
        }
        act(&mut state, self.inode)
    }
}

impl File for Handle {
    fn len(&self) -> Result<u64> {
        self.with(|state, inode| Ok(state.inodes[&inode].data.len() as u64))
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize> {
        self.with(|state, inode| {
            let rest = state.inodes[&inode].data.get(position as usize..).unwrap_or_default();
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            Ok(count)
        })
    }

    fn write_at(&self, slices: &[IoSlice<'_>], position: u64) -> Result<usize> {
        self.with(|state, inode| {
            let mut bytes = slices.iter().flat_map(|slice| slice.iter().copied()).collect::<Vec<_>>();
            let fault = state.operate().err();
            match fault {
                Some(Fault::Fail) => return Err(Error::other("injected")),
                Some(_) => bytes.truncate(bytes.len() * 2 / 3),
                // Now and then the system takes less than it was given, which is no error.
                None if state.operations % 7 == 0 && bytes.len() > 1 => bytes.truncate(bytes.len() / 2 + 1),
                None => {}
            }
            let data = &mut state.inodes.get_mut(&inode).unwrap().data;
            let end = position as usize + bytes.len();
            if data.len() < end {
                data.resize(end, 0);
            }
            data[position as usize..end].copy_from_slice(&bytes);
            if fault.is_some() { Err(Error::other("injected")) } else { Ok(bytes.len()) }
        })
    }

    fn set_len(&self, length: u64) -> Result<()> {
        self.with(|state, inode| {
            if state.inodes[&inode].data.len() as u64 == length {
                return Ok(());
            }
            state.change()?;
            state.inodes.get_mut(&inode).unwrap().data.resize(length as usize, 0);
            Ok(())
        })
    }

    fn sync(&self) -> Result<()> {
        self.with(|state, inode| {
            state.change()?;
            let inode = state.inodes.get_mut(&inode).unwrap();
            inode.durable = inode.data.clone();
            Ok(())
        })
    }
}
