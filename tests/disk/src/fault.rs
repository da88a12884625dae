//! What fails, and when.

use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// What happens at the chosen operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails and does nothing.
    Fail,
    /// The disk is full: it fails and does nothing.
    Full,
    /// A write does a part and then fails; anything else fails.
    Tear,
    /// It is done, and fails all the same.
    Late,
    /// As [`Fault::Tear`], and every changing operation after it fails too: the process is dying.
    Stop,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are called what they are")]
pub enum Kind {
    Open,
    List,
    Read,
    Create,
    Write,
    SetLength,
    Sync,
    Rename,
    Remove,
    CreateFolder,
    RemoveFolder,
    SyncFolder,
}

/// An operation that is about to be done.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'a> {
    /// What it does.
    pub kind: Kind,
    /// To which file or folder; the old name of a rename.
    pub path: &'a Path,
    /// Changing operations before it.
    pub number: u64,
}

type Rule = Box<dyn FnMut(&Operation<'_>) -> Option<Fault> + Send>;

/// What is to fail.
#[derive(Default)]
pub(crate) struct Plan {
    pub(crate) operations: u64,
    pub(crate) fault: Option<(u64, Fault)>,
    pub(crate) rule: Option<Rule>,
    pub(crate) short_every: u64,
    /// The process is dying.
    pub(crate) stopped: bool,
}

/// How much of an operation is done, and what is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    DoneButFailed,
    PartDoneAndFailed,
    Short,
}

impl Plan {
    /// An operation that changes nothing.
    pub(crate) fn look(&mut self, kind: Kind, path: &Path) -> Result<()> {
        let operation = Operation { kind, path, number: self.operations };
        match self.rule.as_mut().and_then(|rule| rule(&operation)) {
            Some(fault) => Err(error(fault)),
            None => Ok(()),
        }
    }

    /// Counts a changing operation; an error where nothing of it is done.
    pub(crate) fn change(&mut self, kind: Kind, path: &Path) -> Result<Outcome> {
        let now = self.operations;
        self.operations += 1;
        if self.stopped {
            return Err(error(Fault::Stop));
        }
        let planned = self.fault.filter(|(at, _)| *at == now).map(|(_, fault)| fault);
        let operation = Operation { kind, path, number: now };
        let fault = planned.or_else(|| self.rule.as_mut().and_then(|rule| rule(&operation)));
        self.stopped |= fault == Some(Fault::Stop);
        match fault {
            None if self.short_every > 0 && now.is_multiple_of(self.short_every) => Ok(Outcome::Short),
            None => Ok(Outcome::Done),
            Some(Fault::Late) => Ok(Outcome::DoneButFailed),
            Some(Fault::Tear | Fault::Stop) if kind == Kind::Write => Ok(Outcome::PartDoneAndFailed),
            Some(fault) => Err(error(fault)),
        }
    }
}

impl Outcome {
    pub(crate) fn is_done(self) -> bool {
        self != Self::PartDoneAndFailed
    }

    pub(crate) fn result(self) -> Result<()> {
        match self {
            Self::Done | Self::Short => Ok(()),
            Self::DoneButFailed | Self::PartDoneAndFailed => Err(error(Fault::Fail)),
        }
    }
}

fn error(fault: Fault) -> Error {
    match fault {
        Fault::Full => Error::new(ErrorKind::StorageFull, "no space left on the disk"),
        Fault::Stop => Error::other("the disk fails, and does not come back"),
        Fault::Fail | Fault::Tear | Fault::Late => Error::other("the disk fails"),
    }
}
