//! Looks into the segment files of a partition, Kafka's or ours: both lie in `<data>/.../<topic>-<partition>`.

use anyhow::Context;
use std::fs;
use std::path::{Path, PathBuf};
use verbatim_batch::{Batch, FramesEnd, Header, frames};

/// The folder of a partition.
///
/// # Errors
/// If there is none.
pub fn folder(data: &Path, topic: &str, partition: u32) -> anyhow::Result<PathBuf> {
    let name = format!("{topic}-{partition}");
    find_folder(data, &name)?.with_context(|| format!("no {name} in {}", data.display()))
}

/// The `.log` files of a partition, by rising base offset.
///
/// # Errors
/// If there is no such folder.
pub fn log_files(data: &Path, topic: &str, partition: u32) -> anyhow::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder(data, topic, partition)?)?.collect::<Result<Vec<_>, _>>()?;
    let mut files: Vec<_> = entries.into_iter().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    files.sort();
    Ok(files)
}

/// All bytes of a partition's segments, one after the other.
///
/// # Errors
/// If a file cannot be read.
pub fn log_bytes(data: &Path, topic: &str, partition: u32) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for path in log_files(data, topic, partition)? {
        bytes.extend(fs::read(&path).with_context(|| path.display().to_string())?);
    }
    Ok(bytes)
}

/// The headers of a run of batches; each batch must be whole and have a true checksum.
///
/// # Errors
/// If one is not.
pub fn headers(bytes: &[u8]) -> anyhow::Result<Vec<Header>> {
    let mut run = frames(bytes);
    let mut headers = Vec::new();
    for frame in run.by_ref() {
        let batch = Batch::parse(frame.bytes()).map_err(|error| anyhow::anyhow!("{error}"))?;
        headers.push(*batch.header());
    }
    anyhow::ensure!(run.end() == Some(FramesEnd::Complete), "the run ends with {:?}", run.end());
    Ok(headers)
}

fn find_folder(within: &Path, name: &str) -> anyhow::Result<Option<PathBuf>> {
    for entry in fs::read_dir(within).with_context(|| within.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            if path.ends_with(name) {
                return Ok(Some(path));
            }
            if let Some(found) = find_folder(&path, name)? {
                return Ok(Some(found));
            }
        }
    }
    Ok(None)
}
