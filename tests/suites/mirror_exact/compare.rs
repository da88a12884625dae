//! Source and copy side by side: files and answers.

use anyhow::{bail, ensure};
use regex::Regex;
use sha2::{Digest, Sha256};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use verbatim_mirror::cluster::ClusterConfig;
use verbatim_mirror::mirror::state::PartitionStatus;
use verbatim_mirror::mirror::{Mirror, MirrorConfig};
use verbatim_tests::answers::{Answers, leader, times_of};
use verbatim_tests::client::Client;
use verbatim_tests::host::{Home, Host};
use verbatim_tests::kafka::Kafka;
use verbatim_tests::kafka::premise::WITHOUT_DATA;
use verbatim_tests::{announce, segments};

/// How long a mirror may take for anything.
pub(super) const PATIENCE: Duration = Duration::from_secs(240);

/// A mirror of these topics from Kafka to a host, which looks for changes often.
pub(super) fn config(kafka: &Kafka, host: &Host, topics: &[&str]) -> anyhow::Result<MirrorConfig> {
    let source = ClusterConfig::new(kafka.bootstrap().split(','));
    let target = ClusterConfig::new([host.bootstrap()]);
    let topics = topics.iter().map(|topic| Regex::new(topic)).collect::<Result<_, _>>()?;
    let refresh = Duration::from_millis(300);
    Ok(MirrorConfig { topics, refresh, ..MirrorConfig::new(source, target) })
}

/// Mirrors until all is caught up or stopped.
pub(super) fn once(config: MirrorConfig) -> anyhow::Result<Vec<PartitionStatus>> {
    let config = MirrorConfig { once: true, ..config };
    Runtime::new()?.block_on(async {
        let mut mirror = Mirror::start(config);
        match timeout(PATIENCE, mirror.ended()).await {
            Ok(ended) => Ok(ended?.partitions),
            Err(_) => bail!("the mirror does not end: {:#?}", mirror.snapshot()),
        }
    })
}

/// One side: who answers, and where the files of the answering broker lie.
pub(super) struct Side<'a> {
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) data: &'a Path,
}

/// The segment files of source and copy, concatenated, are the same from the batch on that holds the source's log start; prints
/// the digests of both. There is something in them, but where all is deleted or nothing was written.
pub(super) fn same_files(source: &Side<'_>, home: &Home, name: (&str, i32)) -> anyhow::Result<()> {
    let ((topic, index), number) = (name, u32::try_from(name.1)?);
    let (leader, _) = leader(&source.addresses, name)?;
    let (start, _) = Client::connect(leader)?.earliest(name)?;
    let source = segments::log_bytes(source.data, topic, number)?;
    let source = segments::from_offset(&source, start)?;
    let copy = segments::log_bytes(&home.data(), topic, number)?;
    let (ours, theirs) = (digest(source), digest(&copy));
    announce(&format!(
        "{topic}-{index} from {start}: SHA-256 source {ours} ({} bytes), copy {theirs} ({} bytes)",
        source.len(),
        copy.len()
    ));
    ensure!(source == copy, "{topic}-{index}: source {} bytes, copy {} bytes", source.len(), copy.len());
    ensure!(source.is_empty() == WITHOUT_DATA.contains(&topic), "{topic}-{index}: {} bytes", source.len());
    Ok(())
}

/// In what source and copy answer otherwise, in words.
pub(super) fn differences(
    source: &Side<'_>,
    host: &Host,
    name: (&str, i32),
    is_whole: bool,
) -> anyhow::Result<Vec<String>> {
    let log = segments::log_bytes(source.data, name.0, u32::try_from(name.1)?)?;
    let (times, left) = (times_of(&log)?, segments::headers(&log)?);
    let ours = Answers::ask(&source.addresses, name, &times)?;
    let theirs = Answers::ask(&[host.address()], name, &times)?;
    let found = ours.differences(&theirs, (!is_whole).then_some(left.as_slice()));
    Ok(found.iter().map(|difference| format!("{name:?}: {difference}")).collect())
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
