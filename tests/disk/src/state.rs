//! The tree of folders and files, and each operation on it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Error, ErrorKind, Result};
use std::path::{Component, Path, PathBuf};

use crate::fault::{Kind, Plan};
use crate::file::Content;
use crate::folder::{Entry, Names};
use crate::random::Random;
use crate::{Loss, Outcome};

const ROOT: u64 = 0;

pub(crate) struct State {
    pub(crate) plan: Plan,
    /// Before which operation the machine ends.
    pub(crate) loss: Option<(u64, Loss)>,
    pub(crate) capacity: Option<u64>,
    /// Processes that have ended.
    pub(crate) life: u64,
    pub(crate) locks: BTreeSet<PathBuf>,
    pub(crate) files: BTreeMap<u64, Content>,
    folders: BTreeMap<u64, Names>,
    next: u64,
    random: Random,
}

impl State {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            plan: Plan::default(),
            loss: None,
            capacity: None,
            life: 0,
            locks: BTreeSet::new(),
            files: BTreeMap::new(),
            folders: BTreeMap::from([(ROOT, Names::default())]),
            next: ROOT + 1,
            random: Random::new(seed),
        }
    }

    pub(crate) fn end_process(&mut self) {
        (self.plan.fault, self.plan.rule, self.plan.stopped, self.loss) = (None, None, false, None);
        self.life += 1;
        self.locks.clear();
        self.forget_unnamed();
    }

    pub(crate) fn power_loss(&mut self, loss: Loss) {
        let random = &mut self.random;
        for names in self.folders.values_mut() {
            match loss {
                Loss::Everything => names.lose_everything(),
                Loss::Random => names.lose_some(random),
            }
        }
        for content in self.files.values_mut() {
            match loss {
                Loss::Everything => content.lose_everything(),
                Loss::Random => content.lose_some(random),
            }
        }
        self.end_process();
    }

    pub(crate) fn look(&mut self, kind: Kind, path: &Path) -> Result<()> {
        self.plan.look(kind, path)
    }

    /// Counts a changing operation, before which the machine may end.
    pub(crate) fn change(&mut self, kind: Kind, path: &Path) -> Result<Outcome> {
        if let Some((_, loss)) = self.loss.filter(|(at, _)| *at == self.plan.operations) {
            self.power_loss(loss);
            return Err(Error::other("the machine has ended"));
        }
        self.plan.change(kind, path)
    }

    pub(crate) fn file_at(&self, path: &Path) -> Result<u64> {
        match self.entry(path)? {
            Entry::File(inode) => Ok(inode),
            Entry::Folder(_) => Err(ErrorKind::IsADirectory.into()),
        }
    }

    pub(crate) fn create(&mut self, path: &Path) -> Result<u64> {
        let (folder, name) = self.place(path)?;
        self.check_room(1)?;
        let outcome = self.change(Kind::Create, path)?;
        let inode = self.number();
        self.files.insert(inode, Content::default());
        self.names(folder).change(vec![(name, Some(Entry::File(inode)))]);
        outcome.result().map(|()| inode)
    }

    pub(crate) fn write(&mut self, path: &Path, inode: u64, mut bytes: Vec<u8>, at: usize) -> Result<usize> {
        let outcome = self.change(Kind::Write, path)?;
        let given = bytes.len();
        match outcome {
            Outcome::PartDoneAndFailed => bytes.truncate(given * 2 / 3),
            Outcome::Short if given > 1 => bytes.truncate(given / 2 + 1),
            _ => {}
        }
        if let Some(capacity) = self.capacity {
            let room = capacity.saturating_sub(self.used()) as usize;
            let length = self.files[&inode].data.len();
            let fits = (length + room).max(length).saturating_sub(at);
            if fits == 0 && given > 0 {
                return Err(full());
            }
            bytes.truncate(fits);
        }
        let written = bytes.len();
        self.files.get_mut(&inode).unwrap().write(at, bytes, written < given);
        outcome.result().map(|()| written)
    }

    pub(crate) fn set_len(&mut self, path: &Path, inode: u64, length: usize) -> Result<()> {
        if self.files[&inode].data.len() == length {
            return Ok(());
        }
        let outcome = self.change(Kind::SetLength, path)?;
        self.files.get_mut(&inode).unwrap().set_len(length);
        outcome.result()
    }

    pub(crate) fn list(&self, folder: &Path) -> Result<Vec<String>> {
        let folder = self.folder_at(folder)?;
        Ok(self.folders[&folder].present.keys().cloned().collect())
    }

    /// Makes all that are missing, and their names durable.
    pub(crate) fn make_folder(&mut self, path: &Path) -> Result<()> {
        if self.entry(path).is_ok() {
            return self.folder_at(path).map(drop);
        }
        let (parent, name) = self.place(path)?;
        let outcome = self.change(Kind::CreateFolder, path)?;
        let inode = self.number();
        self.folders.insert(inode, Names::default());
        self.names(parent).change(vec![(name, Some(Entry::Folder(inode)))]);
        outcome.result()
    }

    pub(crate) fn create_folder(&mut self, path: &Path) -> Result<()> {
        let missing: Vec<&Path> = path.ancestors().take_while(|path| self.entry(path).is_err()).collect();
        for folder in missing.iter().rev() {
            self.make_folder(folder)?;
        }
        self.folder_at(path)?;
        let made = if missing.is_empty() { vec![path] } else { missing };
        made.iter().rev().filter_map(|folder| folder.parent()).try_for_each(|folder| self.sync_folder(folder))
    }

    pub(crate) fn rename(&mut self, from: &Path, to: &Path) -> Result<()> {
        let inode = self.file_at(from)?;
        let ((old, old_name), (new, new_name)) = (self.place(from)?, self.place(to)?);
        let outcome = self.change(Kind::Rename, from)?;
        let (added, removed) = ((new_name, Some(Entry::File(inode))), (old_name, None));
        if old == new {
            self.names(new).change(vec![added, removed]);
        } else {
            self.names(new).change(vec![added]);
            self.names(old).change(vec![removed]);
        }
        outcome.result()
    }

    pub(crate) fn remove(&mut self, path: &Path) -> Result<()> {
        self.file_at(path)?;
        let (folder, name) = self.place(path)?;
        let outcome = self.change(Kind::Remove, path)?;
        self.names(folder).change(vec![(name, None)]);
        outcome.result()
    }

    pub(crate) fn remove_folder(&mut self, path: &Path) -> Result<()> {
        let inode = self.folder_at(path)?;
        if !self.folders[&inode].present.is_empty() {
            return Err(ErrorKind::DirectoryNotEmpty.into());
        }
        let (folder, name) = self.place(path)?;
        let outcome = self.change(Kind::RemoveFolder, path)?;
        self.names(folder).change(vec![(name, None)]);
        outcome.result()
    }

    pub(crate) fn sync_folder(&mut self, path: &Path) -> Result<()> {
        let folder = self.folder_at(path)?;
        let outcome = self.change(Kind::SyncFolder, path)?;
        self.names(folder).sync();
        outcome.result()
    }

    /// All files and all names, whatever the folder.
    pub(crate) fn sync_all(&mut self, path: &Path) -> Result<()> {
        let outcome = self.change(Kind::SyncFolder, path)?;
        if outcome.is_done() {
            self.files.values_mut().for_each(Content::sync);
            self.folders.values_mut().for_each(Names::sync);
        }
        outcome.result()
    }

    pub(crate) fn used(&self) -> u64 {
        let mut used = 0;
        self.walk(&mut |_, inode| used += self.files[&inode].data.len() as u64);
        used
    }

    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        self.walk(&mut |path, _| paths.push(path.to_owned()));
        paths.sort();
        paths
    }

    fn walk(&self, found: &mut impl FnMut(&Path, u64)) {
        let mut left = vec![(PathBuf::from("/"), ROOT)];
        while let Some((path, folder)) = left.pop() {
            for (name, entry) in &self.folders[&folder].present {
                match entry {
                    Entry::File(inode) => found(&path.join(name), *inode),
                    Entry::Folder(inode) => left.push((path.join(name), *inode)),
                }
            }
        }
    }

    fn check_room(&self, bytes: u64) -> Result<()> {
        let room = self.capacity.is_none_or(|capacity| self.used() + bytes <= capacity);
        if room { Ok(()) } else { Err(full()) }
    }

    /// What no name can lead to any more goes: open files end with their process.
    fn forget_unnamed(&mut self) {
        let (mut files, mut folders, mut left) = (BTreeSet::new(), BTreeSet::from([ROOT]), vec![ROOT]);
        while let Some(folder) = left.pop() {
            for entry in self.folders[&folder].entries() {
                match entry {
                    Entry::File(inode) => _ = files.insert(inode),
                    Entry::Folder(inode) if folders.insert(inode) => left.push(inode),
                    Entry::Folder(_) => {}
                }
            }
        }
        self.files.retain(|inode, _| files.contains(inode));
        self.folders.retain(|inode, _| folders.contains(inode));
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn names(&mut self, folder: u64) -> &mut Names {
        self.folders.get_mut(&folder).expect("a folder that was found")
    }

    fn entry(&self, path: &Path) -> Result<Entry> {
        let mut at = Entry::Folder(ROOT);
        for name in names(path) {
            let Entry::Folder(folder) = at else { return Err(ErrorKind::NotADirectory.into()) };
            at = *self.folders[&folder].present.get(name).ok_or(ErrorKind::NotFound)?;
        }
        Ok(at)
    }

    fn folder_at(&self, path: &Path) -> Result<u64> {
        match self.entry(path)? {
            Entry::Folder(folder) => Ok(folder),
            Entry::File(_) => Err(ErrorKind::NotADirectory.into()),
        }
    }

    /// The folder that a name is in, and the name.
    fn place(&self, path: &Path) -> Result<(u64, String)> {
        let name = names(path).last().ok_or(ErrorKind::InvalidInput)?;
        Ok((self.folder_at(path.parent().unwrap_or(Path::new("")))?, name.to_owned()))
    }
}

fn names(path: &Path) -> impl Iterator<Item = &str> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    })
}

fn full() -> Error {
    Error::new(ErrorKind::StorageFull, "no space left on the disk")
}
