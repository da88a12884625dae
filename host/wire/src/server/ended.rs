//! Why a connection ends, and how loudly it is told.

use std::io;
use std::time::Duration;

use super::account::NoRoom;
use crate::api::{ApiKey, EncodeError};
use crate::frame::FrameError;
use crate::request::RequestError;

/// Why a connection ended, if not by the peer's or our own wish.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    #[error("no whole first request within {0:?}")]
    NoHandshake(Duration),
    #[error("gave way to another connection: it had not sent a request yet")]
    GaveWay,
    #[error("silent for {0:?}")]
    Idle(Duration),
    #[error("inside a request too little came within {0:?}")]
    Stalled(Duration),
    #[error("too little of an answer was taken within {0:?}")]
    NotTaken(Duration),
    #[error("writing an answer failed: {0}")]
    Write(io::Error),
    #[error("{} answered with a body of {}", .asked.name(), .answered.name())]
    WrongApi { asked: ApiKey, answered: ApiKey },
    #[error("{0}")]
    Service(String),
}

impl Ended {
    /// True if it is in the nature of connections: the peer just went away, as clients do that are stopped while a fetch
    /// waits, or had nothing to say.
    pub(super) fn is_ordinary(&self) -> bool {
        match self {
            Self::Write(error) | Self::Frame(FrameError::Io(error)) => matches!(
                error.kind(),
                io::ErrorKind::BrokenPipe
                    | io::ErrorKind::ConnectionReset
                    | io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::NotConnected
            ),
            Self::Idle(_) => true,
            _ => false,
        }
    }

    /// What is told, with control characters escaped: it may quote the peer, who shall not write lines of the log.
    pub(super) fn one_line(&self) -> String {
        let mut line = String::new();
        for letter in self.to_string().chars() {
            if letter.is_control() { line.extend(letter.escape_default()) } else { line.push(letter) }
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_cannot_write_lines_of_the_log() {
        let error = Ended::Service("topic=`x\n2026 ERROR \u{1b}[31m\u{e4}`".to_owned());
        assert_eq!(error.one_line(), "topic=`x\\n2026 ERROR \\u{1b}[31m\u{e4}`");
    }
}
