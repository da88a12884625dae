//! Looks into the segment files of a partition, Kafka's or ours: both lie in `<data>/.../<topic>-<partition>`.

use anyhow::{Context, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use verbatim_batch::{Batch, FramesEnd, Header, frames};
use verbatim_wire::tag::EpochEntry;

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
    ensure!(run.end() == Some(FramesEnd::Complete), "the run ends with {:?}", run.end());
    Ok(headers)
}

/// A log's bytes from the first batch on that ends above this offset; batches are checked as by [`headers`].
///
/// # Errors
/// If one is not whole.
pub fn from_offset(log: &[u8], offset: i64) -> anyhow::Result<&[u8]> {
    let headers = headers(log)?;
    let below = headers.iter().take_while(|header| header.next_offset().is_some_and(|next| next <= offset));
    log.get(below.filter_map(Header::total_len).sum()..).context("not so long")
}

/// The entries of the `leader-epoch-checkpoint` in a folder of Kafka's: version 0, their number, and a line of epoch and first
/// offset for each.
///
/// # Errors
/// If it is something else.
pub fn leader_epochs(folder: &Path) -> anyhow::Result<Vec<EpochEntry>> {
    let entry = |line: &str| {
        let (epoch, start) = line.split_once(' ').with_context(|| format!("no entry: {line}"))?;
        Ok(EpochEntry { epoch: epoch.parse()?, start: start.parse()? })
    };
    checkpoint(&folder.join("leader-epoch-checkpoint"))?.iter().map(|line| entry(line)).collect()
}

/// The log start offset of a partition that was stopped in good order: as `log-start-offset-checkpoint` in Kafka's data folder
/// has it, or where it is not, the first segment's base offset.
///
/// # Errors
/// If a file cannot be read.
pub fn log_start(data: &Path, topic: &str, partition: u32) -> anyhow::Result<i64> {
    let prefix = format!("{topic} {partition} ");
    let noted = checkpoint(&data.join("log-start-offset-checkpoint"))?;
    if let Some(start) = noted.iter().find_map(|line| line.strip_prefix(&prefix)) {
        return Ok(start.parse()?);
    }
    let files = log_files(data, topic, partition)?;
    let name = files.first().and_then(|path| path.file_stem()?.to_str()).context("no segment")?;
    Ok(name.parse()?)
}

/// The entries of a checkpoint file of Kafka's, a line for each: they come after the version, 0, and their number.
fn checkpoint(file: &Path) -> anyhow::Result<Vec<String>> {
    let content = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let mut lines = content.lines();
    ensure!(lines.next() == Some("0"), "not version 0: {}", file.display());
    let count: usize = lines.next().context("no count")?.parse()?;
    let entries: Vec<String> = lines.map(ToOwned::to_owned).collect();
    ensure!(entries.len() == count, "{} entries, not {count}: {}", entries.len(), file.display());
    Ok(entries)
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
