//! Flags for consumer groups: their times, and what their members and offsets may take.

use std::time::Duration;

use clap::Args;
use verbatim::broker::Config;

use super::super::file;
use super::interval;

#[derive(Debug, Default, Args)]
pub(super) struct Groups {
    /// Time that a group without members waits for more of them before its first generation [default: 3000]
    #[arg(long, env = "VERBATIM_GROUP_INITIAL_REBALANCE_DELAY_MS", value_name = "MS")]
    group_initial_rebalance_delay_ms: Option<u64>,
    /// Time that committed offsets are kept of a group without members [default: 604800000]
    #[arg(long, env = "VERBATIM_GROUP_OFFSETS_RETENTION_MS", value_name = "MS")]
    group_offsets_retention_ms: Option<u64>,
    /// Groups with members [default: 10000]
    #[arg(long, env = "VERBATIM_GROUPS_MAX", value_name = "N")]
    groups_max: Option<usize>,
    /// Members of one group [default: 1000]
    #[arg(long, env = "VERBATIM_GROUP_MEMBERS_MAX", value_name = "N")]
    group_members_max: Option<usize>,
    /// Shortest session timeout that a member may ask for [default: 6000]
    #[arg(long, env = "VERBATIM_GROUP_SESSION_MS_MIN", value_name = "MS")]
    group_session_ms_min: Option<u64>,
    /// Longest session timeout that a member may ask for [default: 1800000]
    #[arg(long, env = "VERBATIM_GROUP_SESSION_MS_MAX", value_name = "MS")]
    group_session_ms_max: Option<u64>,
    /// Bytes that the members of all groups may take: names, subscriptions, assignments [default: 67108864]
    #[arg(long, env = "VERBATIM_GROUP_MEMBERS_BYTES_MAX", value_name = "BYTES")]
    group_members_bytes_max: Option<usize>,
    /// Bytes that the committed offsets of all groups may take, some 160 each [default: 134217728]
    #[arg(long, env = "VERBATIM_GROUP_OFFSETS_BYTES_MAX", value_name = "BYTES")]
    group_offsets_bytes_max: Option<usize>,
    /// Bytes that a client may write to a committed offset [default: 4096]
    #[arg(long, env = "VERBATIM_GROUP_OFFSET_METADATA_BYTES_MAX", value_name = "BYTES")]
    group_offset_metadata_bytes_max: Option<usize>,
}

impl Groups {
    /// Sets what is given here, or else in the file.
    pub(super) fn set(self, file: &file::Serve, config: &mut Config) -> anyhow::Result<()> {
        if let Some(ms) = self.group_initial_rebalance_delay_ms.or(file.group_initial_rebalance_delay_ms) {
            // 0 is not to wait.
            config.group_initial_rebalance_delay = Duration::from_millis(ms);
        }
        let retention_ms = self.group_offsets_retention_ms.or(file.group_offsets_retention_ms);
        config.group_offsets_retention =
            interval("group-offsets-retention-ms", retention_ms, config.group_offsets_retention)?;
        let limits = &mut config.limits;
        for (limit, flag, file) in [
            (&mut limits.groups_max, self.groups_max, file.groups_max),
            (&mut limits.group_members_max, self.group_members_max, file.group_members_max),
            (&mut limits.group_members_bytes_max, self.group_members_bytes_max, file.group_members_bytes_max),
            (&mut limits.group_offsets_bytes_max, self.group_offsets_bytes_max, file.group_offsets_bytes_max),
            (
                &mut limits.group_offset_metadata_bytes_max,
                self.group_offset_metadata_bytes_max,
                file.group_offset_metadata_bytes_max,
            ),
        ] {
            *limit = flag.or(file).unwrap_or(*limit);
        }
        for (limit, flag, file) in [
            (&mut limits.group_session_ms_min, self.group_session_ms_min, file.group_session_ms_min),
            (&mut limits.group_session_ms_max, self.group_session_ms_max, file.group_session_ms_max),
        ] {
            *limit = flag.or(file).unwrap_or(*limit);
        }
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::net::SocketAddr;
    use std::path::PathBuf;

    use verbatim::broker::Limits;

    use super::*;

    fn default() -> Config {
        Config::new(PathBuf::new(), SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    #[test]
    fn each_setting_comes_from_its_key_and_a_flag_goes_before_it() {
        let text = "group-initial-rebalance-delay-ms = 0\ngroup-offsets-retention-ms = 2\ngroups-max = 3\n\
                    group-members-max = 4\ngroup-session-ms-min = 5\ngroup-session-ms-max = 6\n\
                    group-members-bytes-max = 7\ngroup-offsets-bytes-max = 8\n\
                    group-offset-metadata-bytes-max = 9\n";
        let file: file::Serve = toml::from_str(text).unwrap();
        let mut config = default();
        let flags = Groups { groups_max: Some(30), group_session_ms_max: Some(60), ..Groups::default() };
        flags.set(&file, &mut config).unwrap();
        assert_eq!(config.group_initial_rebalance_delay, Duration::ZERO);
        assert_eq!(config.group_offsets_retention, Duration::from_millis(2));
        let expected = Limits {
            groups_max: 30,
            group_members_max: 4,
            group_session_ms_min: 5,
            group_session_ms_max: 60,
            group_members_bytes_max: 7,
            group_offsets_bytes_max: 8,
            group_offset_metadata_bytes_max: 9,
            ..Limits::default()
        };
        assert_eq!(config.limits, expected);
        assert_eq!(config.check(), Ok(()));
    }

    #[test]
    fn what_is_given_nowhere_stays() {
        let mut config = default();
        Groups::default().set(&file::Serve::default(), &mut config).unwrap();
        // As the help says.
        assert_eq!(config.group_initial_rebalance_delay, Duration::from_millis(3_000));
        assert_eq!(config.group_offsets_retention, Duration::from_millis(604_800_000));
        assert_eq!(config.limits, Limits::default());
    }
}
