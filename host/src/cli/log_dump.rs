//! `verbatim log dump`: the batches of a partition's folder.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Subcommand;
use serde::Serialize;
use verbatim::batch::TimestampType;
use verbatim::log::DiskIo;
use verbatim::log::dump::{Dump, DumpedBatch};

use super::output::Output;

#[derive(Debug, Subcommand)]
pub(super) enum Log {
    /// List the batches of a partition's folder, whether or not a host runs; exit code 1 if something is damaged
    Dump {
        /// The partition's folder, such as DATA/orders-0
        folder: PathBuf,
    },
}

impl Log {
    pub(super) fn run(self, output: Output) -> anyhow::Result<()> {
        let Self::Dump { folder } = self;
        let mut damaged = 0_u64;
        for batch in Dump::open(&folder, Arc::new(DiskIo))? {
            match batch {
                Ok(batch) => {
                    damaged = damaged.saturating_add(u64::from(!batch.crc_ok));
                    let line = Line::new(&batch);
                    output.write(&line, || line.text())?;
                }
                Err(error) => {
                    damaged = damaged.saturating_add(1);
                    super::output::complain(&error.into());
                }
            }
        }
        anyhow::ensure!(damaged == 0, "damaged places: {damaged}, folder=`{}`", folder.display());
        Ok(())
    }
}

#[derive(Serialize)]
struct Line {
    file: String,
    position: u64,
    bytes: u64,
    base_offset: i64,
    last_offset: Option<i64>,
    records: i32,
    leader_epoch: i32,
    codec: String,
    timestamp_type: &'static str,
    max_timestamp: i64,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    transactional: bool,
    control: bool,
    crc: String,
    crc_ok: bool,
}

impl Line {
    fn new(batch: &DumpedBatch) -> Self {
        let header = &batch.header;
        let attributes = header.attributes;
        Self {
            file: batch.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            position: batch.position,
            bytes: batch.length,
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
            records: header.record_count,
            leader_epoch: header.leader_epoch,
            codec: attributes
                .codec()
                .map_or_else(|number| format!("unknown {number}"), |codec| codec.to_string()),
            timestamp_type: match attributes.timestamp_type() {
                TimestampType::CreateTime => "CreateTime",
                TimestampType::LogAppendTime => "LogAppendTime",
            },
            max_timestamp: header.max_timestamp,
            producer_id: header.producer_id,
            producer_epoch: header.producer_epoch,
            base_sequence: header.base_sequence,
            transactional: attributes.is_transactional(),
            control: attributes.is_control(),
            crc: format!("{:08x}", header.crc),
            crc_ok: batch.crc_ok,
        }
    }

    fn text(&self) -> String {
        let last = self.last_offset.map_or_else(|| "?".to_owned(), |last| last.to_string());
        let flags = [
            (self.transactional, " transactional"),
            (self.control, " control"),
            (!self.crc_ok, " CRC DIFFERS"),
        ];
        let flags: String = flags.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
        format!(
            "{} position {} bytes {} offsets {}..={last} records {} epoch {} codec {} {} {} producer {} {} {} crc {}{flags}",
            self.file,
            self.position,
            self.bytes,
            self.base_offset,
            self.records,
            self.leader_epoch,
            self.codec,
            self.timestamp_type,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.crc,
        )
    }
}
