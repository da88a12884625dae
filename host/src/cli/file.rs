//! The configuration file: the same options under the same names, in TOML.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use verbatim::broker::FlushPolicy;

use super::Usage;
use super::logging::LogFormat;
use super::mirror::Asked;
use super::output::Output;
use super::verify;

/// What the file says.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Settings {
    pub(super) log_format: Option<LogFormat>,
    pub(super) output: Option<Output>,
    pub(super) bootstrap_server: Option<String>,
    #[serde(default)]
    pub(super) serve: Serve,
    #[serde(default)]
    pub(super) mirror: Asked,
    #[serde(default)]
    pub(super) verify: verify::Asked,
}

/// The table `[serve]`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Serve {
    pub(super) data: Option<PathBuf>,
    pub(super) listen: Option<SocketAddr>,
    pub(super) metrics_listen: Option<SocketAddr>,
    pub(super) advertise: Option<String>,
    pub(super) node_id: Option<i32>,
    pub(super) flush: Option<FlushPolicy>,
    pub(super) flush_interval_ms: Option<u64>,
    pub(super) retention_check_interval_ms: Option<u64>,
    pub(super) append_threads: Option<usize>,
    pub(super) exact_batch_bytes_max: Option<usize>,
    pub(super) inflate_bytes_max: Option<usize>,
    pub(super) connections_max: Option<usize>,
    pub(super) connections_per_ip_max: Option<usize>,
    pub(super) request_bytes_max: Option<usize>,
    pub(super) in_flight_requests_per_connection_max: Option<usize>,
    pub(super) in_flight_bytes_per_connection_max: Option<usize>,
    pub(super) in_flight_bytes_max: Option<usize>,
    pub(super) fetch_buffered_bytes_max: Option<usize>,
    pub(super) handshake_ms_max: Option<u64>,
    pub(super) idle_ms_max: Option<u64>,
    pub(super) stall_ms_max: Option<u64>,
    pub(super) fetch_sessions_max: Option<usize>,
    pub(super) fetch_session_partitions_max: Option<usize>,
    pub(super) group_initial_rebalance_delay_ms: Option<u64>,
    pub(super) group_offsets_retention_ms: Option<u64>,
    pub(super) groups_max: Option<usize>,
    pub(super) group_members_max: Option<usize>,
    pub(super) group_session_ms_min: Option<u64>,
    pub(super) group_session_ms_max: Option<u64>,
    pub(super) group_members_bytes_max: Option<usize>,
    pub(super) group_offsets_bytes_max: Option<usize>,
    pub(super) group_offset_metadata_bytes_max: Option<usize>,
    pub(super) control_listen: Option<SocketAddr>,
    pub(super) control_token_file: Option<PathBuf>,
    pub(super) allow_plaintext: Option<bool>,
    #[serde(default)]
    pub(super) module: BTreeMap<String, PathBuf>,
    /// Each table `[[serve.mirror]]`.
    #[serde(default)]
    pub(super) mirror: Vec<Asked>,
}

impl Settings {
    /// Reads the file, if there is one.
    pub(super) fn read(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = path else { return Ok(Self::default()) };
        let shown = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| Usage(format!("configuration file cannot be read, file=`{shown}`: {error}")))?;
        let read = toml::from_str(&text);
        read.map_err(|error| Usage(format!("configuration file is wrong, file=`{shown}`: {error}")).into())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_the_flags_names_and_no_others() {
        let text = "log-format = 'json'\n[serve]\ndata = 'd'\nflush = 'interval'\n\
                    flush-interval-ms = 5\n[serve.module]\nmine = 'm.wasm'\n";
        let settings: Settings = toml::from_str(text).unwrap();
        assert_eq!(settings.log_format, Some(LogFormat::Json));
        assert_eq!(settings.serve.flush, Some(FlushPolicy::Interval));
        assert_eq!(settings.serve.flush_interval_ms, Some(5));
        assert_eq!(settings.serve.module.get("mine"), Some(&PathBuf::from("m.wasm")));
        let error = toml::from_str::<Settings>("[serve]\nlisen = \"x\"\n").unwrap_err();
        assert!(error.to_string().contains("lisen"), "{error}");
        for table in ["[mirror]", "[[serve.mirror]]", "[verify]"] {
            assert!(toml::from_str::<Settings>(&format!("{table}\ntopics = ['a']\n")).is_ok());
            let error = toml::from_str::<Settings>(&format!("{table}\ntopic = ['a']\n")).unwrap_err();
            assert!(error.to_string().contains("topic"), "{error}");
        }
    }
}
