//! What can go wrong, in words for an operator.

use std::path::{Path, PathBuf};

/// Why a partition folder or a data folder cannot be opened or kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The operating system refused an operation.
    #[error("{what} failed, file=`{}`: {source}{}", file.display(), remedy(.source))]
    Io {
        /// The operation.
        what: &'static str,
        /// The file or folder.
        file: PathBuf,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// Stored bytes are damaged where no crash can have done it; nothing was changed.
    #[error("damaged data, {detail}, position=`{position}`, file=`{}`", file.display())]
    Corrupt {
        /// The file.
        file: PathBuf,
        /// Byte position in it.
        position: u64,
        /// What is wrong there.
        detail: String,
    },
    /// The file was written by a newer version of this software.
    #[error("{kind} has version {version}, newer than the {newest} known here, file=`{}`", file.display())]
    Newer {
        /// What the file holds.
        kind: String,
        /// Its version.
        version: u32,
        /// The newest version that is understood.
        newest: u32,
        /// The file.
        file: PathBuf,
    },
    /// Another host holds the data folder.
    #[error("data folder is in use by {}, folder=`{}`", holder(.pid), folder.display())]
    Locked {
        /// The data folder.
        folder: PathBuf,
        /// The holder's process id where it is known.
        pid: Option<u32>,
    },
    /// The folder does not belong to this topic, or is none.
    #[error("{detail}, folder=`{}`", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What was expected and what was found.
        detail: String,
    },
    /// An earlier failure could not be undone: the partition accepts nothing until it is opened again.
    #[error("partition is offline until restart: {reason}")]
    Offline {
        /// The failure.
        reason: String,
    },
}

impl LogError {
    pub(crate) fn io(what: &'static str, file: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { what, file: file.to_owned(), source }
    }

    pub(crate) fn corrupt(file: &Path, position: u64, detail: impl Into<String>) -> Self {
        Self::Corrupt { file: file.to_owned(), position, detail: detail.into() }
    }
}

/// Why a [`crate::Commit`] was not carried out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// The commit contradicts the log or itself; nothing was changed. A checked request never gets here.
    #[error("commit does not fit the log: {detail}")]
    Invalid {
        /// Field, value and expectation.
        detail: String,
    },
    /// A write failed and was undone: the log is as before, or, if the commit began with a cut that succeeded, as after
    /// that cut (I6).
    #[error("append failed and was undone{}: {source}", after_cut(.cut))]
    Failed {
        /// The end to which the log stays cut.
        cut: Option<i64>,
        /// The failure.
        source: LogError,
    },
    /// The failure could not be undone, or one before it: the partition is offline until it is opened again.
    #[error("partition is offline until restart: {reason}")]
    Offline {
        /// The failure.
        reason: String,
    },
}

/// Why a read gave nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The offset is below the start or above the end (Kafka error 1).
    #[error("offset is outside the log, expected {start}..={end}, offset=`{offset}`")]
    OutOfRange {
        /// The offset asked for.
        offset: i64,
        /// Log start offset.
        start: i64,
        /// The bound up to which was asked, at most the log end offset.
        end: i64,
    },
    /// The stored bytes cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// What to do about it, where the operating system's words do not say.
fn remedy(source: &std::io::Error) -> &'static str {
    let is = |errno: rustix::io::Errno| source.raw_os_error() == Some(errno.raw_os_error());
    if is(rustix::io::Errno::MFILE) {
        "; raise the process's hard limit of open files (LimitNOFILE, ulimit -Hn) and start it again: it needs the \
         connections it may have, plus 600, plus two for each partition, three where records may be rewritten"
    } else {
        ""
    }
}

fn holder(pid: &Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

fn after_cut(cut: &Option<i64>) -> String {
    cut.map_or_else(String::new, |to| format!(" (the log stays cut to {to})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_open_files_are_told_with_what_to_do() {
        let told = |errno: rustix::io::Errno| {
            let source = std::io::Error::from_raw_os_error(errno.raw_os_error());
            LogError::Io { what: "open", file: "/data/t-0/0.log".into(), source }.to_string()
        };
        assert!(told(rustix::io::Errno::MFILE).contains("hard limit of open files"));
        assert!(!told(rustix::io::Errno::NOSPC).contains("open files"));
    }
}
