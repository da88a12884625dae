use std::io;

use verbatim_batch::Codec;

/// Why records cannot be inflated. It says the same however often it is asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InflateError {
    /// The payload is not what its codec writes, or ends too early.
    #[error("payload is not valid {codec}: {reason}")]
    Corrupt {
        /// The codec that the batch names.
        codec: Codec,
        /// What is wrong.
        reason: String,
    },
    /// The records are larger than the limit, or would take more memory than it allows.
    #[error("{codec} payload inflates to more than the limit, limit=`{limit_bytes}`")]
    TooLarge {
        /// The codec that the batch names.
        codec: Codec,
        /// The limit in bytes.
        limit_bytes: usize,
    },
    /// The attributes name a codec that does not exist (R5).
    #[error("unknown codec, codec=`{number}`")]
    UnknownCodec {
        /// Its number.
        number: u8,
    },
}

/// What went wrong inside one codec, without its name.
#[derive(Debug)]
pub(crate) enum Fault {
    Corrupt(String),
    TooLarge,
}

impl Fault {
    pub(crate) fn corrupt(reason: impl ToString) -> Self {
        Self::Corrupt(reason.to_string())
    }

    pub(crate) fn ended() -> Self {
        Self::corrupt("it ends too early")
    }

    pub(crate) fn from_io(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof { Self::ended() } else { Self::corrupt(error) }
    }

    pub(crate) fn named(self, codec: Codec, limit_bytes: usize) -> InflateError {
        match self {
            Self::Corrupt(reason) => InflateError::Corrupt { codec, reason },
            Self::TooLarge => InflateError::TooLarge { codec, limit_bytes },
        }
    }
}
