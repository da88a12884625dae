//! Files in memory: nothing is ever lost, and nothing waits for a disk.

use std::collections::BTreeMap;
use std::io::{ErrorKind, IoSlice, Result};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use verbatim_log::{File, Io};

#[derive(Default)]
pub(super) struct Disk(Mutex<BTreeMap<PathBuf, Arc<Bytes>>>);

#[derive(Default)]
struct Bytes(Mutex<Vec<u8>>);

impl Io for Disk {
    fn open(&self, path: &Path, create: bool) -> Result<Arc<dyn File>> {
        let mut files = self.0.lock().unwrap();
        if create {
            files.entry(path.to_owned()).or_default();
        }
        let file = files.get(path).ok_or(ErrorKind::NotFound)?;
        Ok(Arc::<Bytes>::clone(file))
    }

    fn open_read(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.open(path, false)
    }

    fn list(&self, folder: &Path) -> Result<Vec<String>> {
        let files = self.0.lock().unwrap();
        let names = files.keys().filter_map(|path| path.strip_prefix(folder).ok()?.to_str());
        Ok(names.map(str::to_owned).collect())
    }

    fn create_folder(&self, _: &Path) -> Result<()> {
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let mut files = self.0.lock().unwrap();
        let file = files.remove(from).ok_or(ErrorKind::NotFound)?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let gone = self.0.lock().unwrap().remove(path);
        gone.map(drop).ok_or(ErrorKind::NotFound.into())
    }

    fn remove_folder(&self, _: &Path) -> Result<()> {
        Ok(())
    }

    fn sync_folder(&self, _: &Path) -> Result<()> {
        Ok(())
    }
}

impl File for Bytes {
    fn len(&self) -> Result<u64> {
        Ok(u64::try_from(self.0.lock().unwrap().len()).unwrap())
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize> {
        let bytes = self.0.lock().unwrap();
        let rest = bytes.get(usize::try_from(position).unwrap()..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_at(&self, slices: &[IoSlice<'_>], position: u64) -> Result<usize> {
        let new: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
        let mut bytes = self.0.lock().unwrap();
        let from = usize::try_from(position).unwrap();
        let to = from + new.len();
        if bytes.len() < to {
            bytes.resize(to, 0);
        }
        bytes[from..to].copy_from_slice(&new);
        Ok(new.len())
    }

    fn set_len(&self, length: u64) -> Result<()> {
        self.0.lock().unwrap().resize(usize::try_from(length).unwrap(), 0);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}
