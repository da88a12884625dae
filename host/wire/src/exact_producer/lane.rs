//! One partition's state, without a socket: what is queued, what is under way, and what every answer leads to.
//!
//! ```text
//!             open, resume                    position agrees
//!   Halted ----------------> Checking --------------------------> Running
//!      ^                      |    ^                               |    ^
//!      |     cannot be right  |    | it may pass, or connection    |    | the end is one that
//!      +----------------------+    | lost; after a pause           |    | these pieces leave
//!      |                           +-----------------+     error 1 |    |
//!      |                                             |             v    |
//!      +--- fatal, or the end is not one of ours ----+--------- Draining
//! ```
//!
//! *Draining* waits for the answers of everything under way before anything is repeated, so no two copies of a piece are
//! ever under way on one connection. An error halts: all pieces behind fail with it.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::oneshot;
use uuid::Uuid;

use super::check::{Checked, Verdict};
use super::failure::{Class, class};
use super::piece::{self, Due, Kind, Piece, Position};
use super::write::{Call, Found, Target, Write, Written};
use super::{Config, ExactError};
use crate::tag::AnswerTag;

/// What a check of the target is made for.
#[derive(Debug)]
pub(super) enum Purpose {
    Open(oneshot::Sender<Result<Found, ExactError>>),
    Resume { end: i64, epoch_before: i32, reply: oneshot::Sender<Result<(), ExactError>> },
    Continue,
}

/// A wish for a check of the target, after a pause.
pub(super) type Wish = Option<Duration>;

#[derive(Debug)]
enum State {
    Halted(ExactError),
    Checking(Purpose),
    Running,
    Draining(Why),
    /// The first piece is compared with what is stored, to learn where they differ.
    Comparing(Found),
}

#[derive(Debug)]
enum Why {
    Position(Found),
    Passing(String),
}

/// A partition.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) target: Target,
    /// As it was when the partition was opened; nil until then, or if the broker tells none.
    pub(super) topic_id: Uuid,
    /// Nobody holds the handle any more.
    pub(super) closed: bool,
    state: State,
    /// Behind everything acknowledged.
    base: Position,
    /// Behind everything queued.
    tail: Position,
    queue: VecDeque<Piece>,
    sent: VecDeque<Piece>,
    redo: VecDeque<Piece>,
    /// While comparing, until it is sent.
    comparison: Option<Piece>,
    /// Failures in a row.
    attempts: u32,
    /// The position at which error 1 made the pieces be sent again; a second time there is no use in that.
    strike: Option<Found>,
    /// A call that could not be queued: nothing may be queued behind it.
    refusing: Option<ExactError>,
    /// To be done once nothing is unsettled.
    resume: Option<Purpose>,
}

impl Lane {
    pub(super) fn open(target: Target, reply: oneshot::Sender<Result<Found, ExactError>>) -> Self {
        let nowhere = Position { end: 0, epoch_before: -1, last_epoch: -1 };
        Self {
            target,
            topic_id: Uuid::nil(),
            closed: false,
            state: State::Checking(Purpose::Open(reply)),
            base: nowhere,
            tail: nowhere,
            queue: VecDeque::new(),
            sent: VecDeque::new(),
            redo: VecDeque::new(),
            comparison: None,
            attempts: 0,
            strike: None,
            refusing: None,
            resume: None,
        }
    }

    /// True if pieces are unsettled.
    pub(super) fn has_work(&self) -> bool {
        !(self.queue.is_empty() && self.sent.is_empty() && self.redo.is_empty())
    }

    pub(super) fn is_checking(&self) -> bool {
        matches!(self.state, State::Checking(_))
    }

    /// True if it cannot go on without a connection.
    pub(super) fn needs_connection(&self) -> bool {
        match &self.state {
            State::Checking(Purpose::Continue) => self.has_work(),
            State::Checking(_) => true,
            _ => false,
        }
    }

    /// Queues a call, or settles it at once with why not.
    pub(super) fn call(&mut self, call: Call, due: Due, config: &Config) {
        let stopped = match &self.state {
            State::Halted(error) => Some(error),
            _ => self.refusing.as_ref(),
        };
        if let Some(error) = stopped {
            return settle(due, Err(error.clone()));
        }
        let pieces = match call {
            Call::Write(write) => piece::split(&write, self.tail, &self.target, config.request_bytes_max),
            Call::Truncate(cut) => piece::truncation(&cut, self.tail, &self.target).map(|cut| vec![cut]),
            Call::Source(source) => {
                let (batches, entries) = Default::default();
                let nothing = Write { from: self.tail.end, batches, entries, end_to: None, source };
                piece::split(&nothing, self.tail, &self.target, config.request_bytes_max)
            }
        };
        match pieces {
            Ok(mut pieces) => {
                if let Some(last) = pieces.last_mut() {
                    last.due = Some(due);
                    self.tail = last.end;
                }
                self.queue.extend(pieces);
            }
            Err(message) => {
                let error = ExactError::InvalidWrite { message };
                settle(due, Err(error.clone()));
                self.refusing = Some(error);
                if !self.has_work() {
                    self.idle();
                }
            }
        }
    }

    /// Asks for a new position, once nothing is unsettled. True if a check is wanted at once.
    pub(super) fn resume(&mut self, purpose: Purpose) -> bool {
        self.resume = Some(purpose);
        let begun = matches!(self.state, State::Checking(Purpose::Open(_) | Purpose::Resume { .. }));
        !self.has_work() && !begun && self.idle()
    }

    /// The bytes of the piece that could be sent now.
    pub(super) fn ready(&self) -> Option<usize> {
        match self.state {
            State::Running => {
                let head = self.queue.front()?;
                let alone = |last: &Piece| last.kind.is_alone() || head.kind.is_alone();
                (!self.sent.back().is_some_and(alone)).then(|| head.bytes())
            }
            State::Comparing(_) => self.comparison.as_ref().map(Piece::bytes),
            _ => None,
        }
    }

    /// Takes that piece under way.
    pub(super) fn send(&mut self, serial: u64) -> Option<&Piece> {
        self.ready()?;
        let mut piece = match self.comparison.take() {
            Some(comparison) => comparison,
            None => self.queue.pop_front()?,
        };
        piece.serial = serial;
        self.sent.push_back(piece);
        self.sent.back()
    }

    /// An answer. One to a piece that was given up in the meantime has no effect.
    pub(super) fn answer(&mut self, serial: u64, verdict: &Verdict, config: &Config) -> Wish {
        let piece = self.sent.pop_front_if(|piece| piece.serial == serial)?;
        if let State::Comparing(found) = self.state {
            return self.compared(found, verdict, config);
        }
        match (verdict.code, verdict.tag) {
            (0, Some(tag)) if tag.end >= piece.end.end => self.acknowledge(piece, tag),
            (0, _) => {
                let message = match verdict.tag {
                    None => "an answer with error 0 and without the tag".to_owned(),
                    Some(tag) => format!("an end {} after a write to {}", tag.end, piece.end.end),
                };
                self.redo.push_back(piece);
                self.halt(ExactError::NotExact { message });
            }
            _ => self.refuse(piece, verdict),
        }
        self.go_on(config)
    }

    /// The connection is lost, and with it every answer that was still to come.
    pub(super) fn lose(&mut self, reason: &str, config: &Config) {
        if matches!(self.state, State::Halted(_)) {
            return;
        }
        if let State::Comparing(_) = self.state {
            self.sent.clear();
        }
        self.comparison = None;
        self.redo.append(&mut self.sent);
        if !self.is_checking() {
            self.state = State::Checking(Purpose::Continue);
        }
        if self.needs_connection() {
            self.fail_once(reason, config);
        }
        // A check that is wanted now is made with the next connection.
        let _ = self.after_halt();
    }

    /// The target was checked. Gives the pause before it is to be checked again.
    pub(super) fn checked(&mut self, checked: Checked, config: &Config) -> Wish {
        let recreated = |id: &Uuid| !self.topic_id.is_nil() && !id.is_nil() && *id != self.topic_id;
        let (topic_id, found) = match checked {
            Checked::Sound { topic_id, .. } if recreated(&topic_id) => {
                let message = format!("topic {} was re-created, its id is {topic_id}", self.target.topic);
                self.fail(ExactError::UnknownPartition { message });
                return self.after_halt();
            }
            Checked::Sound { topic_id, found } => (topic_id, found),
            Checked::Passing(message) => {
                self.fail_once(&message, config);
                return if self.is_checking() {
                    Some(config.retry.pause(self.attempts))
                } else {
                    self.after_halt()
                };
            }
            Checked::Fatal(error) => {
                self.fail(error);
                return self.after_halt();
            }
        };
        let state = std::mem::replace(&mut self.state, State::Halted(ExactError::Realign { found }));
        let State::Checking(purpose) = state else {
            self.state = state;
            return None;
        };
        match purpose {
            Purpose::Open(reply) => {
                (self.attempts, self.topic_id) = (0, topic_id);
                // Whoever opens may have gone away.
                self.closed |= reply.send(Ok(found)).is_err();
            }
            Purpose::Resume { end, epoch_before, reply } => {
                self.attempts = 0;
                let agrees = end == found.end && epoch_before <= found.last_epoch;
                if agrees {
                    self.base = Position { end, epoch_before, last_epoch: found.last_epoch };
                    (self.tail, self.refusing, self.strike) = (self.base, None, None);
                    self.state = State::Running;
                }
                let answer = if agrees { Ok(()) } else { Err(ExactError::Realign { found }) };
                // Whoever resumes may have gone away.
                let _ = reply.send(answer);
            }
            Purpose::Continue => self.realign(found),
        }
        self.after_halt()
    }

    /// Stops everything with an error.
    pub(super) fn fail(&mut self, error: ExactError) {
        match std::mem::replace(&mut self.state, State::Halted(error.clone())) {
            State::Checking(Purpose::Open(reply)) => {
                let _ = reply.send(Err(error));
                self.closed = true;
            }
            State::Checking(Purpose::Resume { reply, .. }) => {
                let _ = reply.send(Err(error));
            }
            _ => self.halt(error),
        }
    }

    fn acknowledge(&mut self, piece: Piece, tag: AnswerTag) {
        (self.attempts, self.strike) = (0, None);
        // A source's position may have failed before it, and is passed then.
        if piece.end.end >= self.base.end || piece.kind == Kind::Truncate {
            self.base = piece.end;
        }
        let written = Written { end: piece.end.end, shown_epoch: tag.shown_epoch };
        if let Some(due) = piece.due {
            settle(due, Ok(written));
        }
    }

    fn refuse(&mut self, piece: Piece, verdict: &Verdict) {
        let diverged = verdict.tag.and_then(|tag| tag.diverged);
        let class = class(verdict.code, &verdict.message, diverged);
        // Behind a piece that is to be repeated nothing is judged yet: it was sent for a position that never came.
        let first = self.redo.is_empty();
        self.redo.push_back(piece);
        match (class, verdict.tag) {
            (Class::Position, Some(tag)) => {
                if !matches!(self.state, State::Draining(Why::Passing(_))) {
                    self.state = State::Draining(Why::Position(Found::from(tag)));
                }
            }
            (Class::Position, None) => {
                self.halt(ExactError::NotExact {
                    message: "an answer with error 1 and without the tag".to_owned(),
                });
            }
            (Class::Passing, _) => self.state = State::Draining(Why::Passing(verdict.message.clone())),
            (Class::Fatal(error), _) if first => self.halt(error),
            (Class::Fatal(_), _) => {}
        }
    }

    /// What is due after an answer: nothing, or, once nothing is under way, to go on from where the host is.
    fn go_on(&mut self, config: &Config) -> Wish {
        if self.sent.is_empty() {
            match std::mem::replace(&mut self.state, State::Running) {
                State::Draining(Why::Position(found)) => {
                    self.strike_or_realign(found);
                }
                State::Draining(Why::Passing(message)) => {
                    self.state = State::Checking(Purpose::Continue);
                    self.fail_once(&message, config);
                    if self.is_checking() {
                        return Some(config.retry.pause(self.attempts));
                    }
                }
                state => self.state = state,
            }
        }
        self.after_halt()
    }

    /// After error 1: once, the pieces are sent again; if that leads to the same place, more of it is no use.
    fn strike_or_realign(&mut self, found: Found) {
        if self.strike.replace(found) != Some(found) {
            return self.realign(found);
        }
        let first = self.redo.front().filter(|first| first.kind == Kind::Data && found.end > first.begin.end);
        let place = self.place(found).map(|(_, position)| position);
        let (Some(first), Some(place)) = (first, place) else {
            return self.halt(ExactError::Realign { found });
        };
        // The end is ours and yet the piece is not what is stored below it: the host shall say where they differ.
        self.comparison = Some(piece::comparison(first, &self.target, place));
        self.state = State::Comparing(found);
    }

    fn compared(&mut self, found: Found, verdict: &Verdict, config: &Config) -> Wish {
        let diverged = verdict.tag.and_then(|tag| tag.diverged);
        match class(verdict.code, &verdict.message, diverged) {
            Class::Passing => {
                self.state = State::Draining(Why::Passing(verdict.message.clone()));
                return self.go_on(config);
            }
            Class::Fatal(error @ ExactError::Diverged { .. }) => self.halt(error),
            _ => self.halt(ExactError::Realign { found }),
        }
        self.after_halt()
    }

    /// Goes on from where the host is, if the pieces that may have reached it lead there.
    fn realign(&mut self, found: Found) {
        // What was requeued may have been sent before, and may be carried out late, from an old connection.
        while let Some(piece) = self.queue.pop_front_if(|piece| piece.serial > 0) {
            self.redo.push_back(piece);
        }
        if self.place(found).is_none() {
            return self.halt(ExactError::Realign { found });
        }
        self.requeue_from(found.end);
        self.state = State::Running;
    }

    /// The piece at or in which the host's end lies, and the position there.
    fn place(&self, found: Found) -> Option<(usize, Position)> {
        let at_base = (found.end == self.base.end).then_some((0, self.base));
        let place = at_base.or_else(|| {
            let mut inside = self.redo.iter().enumerate();
            inside.find_map(|(index, piece)| Some((index, piece.boundary(found.end)?)))
        })?;
        // A crash may leave an epoch without the batch that brought it.
        let declared = self.redo.iter().skip(place.0).any(|piece| piece.knows_epoch(found.last_epoch));
        (found.last_epoch == place.1.last_epoch || declared).then_some(place)
    }

    /// Puts what is to be repeated before the queue, but for what needs no repetition at this end.
    fn requeue_from(&mut self, end: i64) {
        let (redo, mut again) = (std::mem::take(&mut self.redo), VecDeque::new());
        for piece in redo {
            let passed = match piece.kind {
                Kind::Source => piece.begin.end < end,
                Kind::Advance => piece.end.end < end,
                Kind::Data | Kind::Declare | Kind::Truncate => false,
            };
            if !passed {
                again.push_back(piece);
            } else if let Some(due) = piece.due {
                // The end has passed it, so a later piece was carried out, which tells of a later source.
                let written = Written { end: piece.end.end, shown_epoch: piece.tag.source_epoch };
                settle(due, Ok(written));
            }
        }
        again.append(&mut self.queue);
        self.queue = again;
    }

    /// One failure more. Too many in a row halt.
    fn fail_once(&mut self, message: &str, config: &Config) {
        self.attempts = self.attempts.saturating_add(1);
        if self.attempts > config.retry.attempts_max {
            let attempts = std::mem::take(&mut self.attempts);
            self.fail(ExactError::Unavailable { attempts, message: message.to_owned() });
        }
    }

    fn halt(&mut self, error: ExactError) {
        let pieces = self.redo.drain(..).chain(self.sent.drain(..)).chain(self.queue.drain(..));
        for due in pieces.filter_map(|piece| piece.due) {
            settle(due, Err(error.clone()));
        }
        self.state = State::Halted(error);
    }

    /// A resumption that waited for this end may begin now.
    fn after_halt(&mut self) -> Wish {
        (!self.has_work() && !self.is_checking() && self.idle()).then_some(Duration::ZERO)
    }

    /// Nothing is unsettled: turns to the resumption or the refusal that waited for that. True if a check is wanted.
    fn idle(&mut self) -> bool {
        if let Some(purpose) = self.resume.take() {
            self.state = State::Checking(purpose);
            return true;
        }
        if let (Some(error), State::Running) = (&self.refusing, &self.state) {
            self.state = State::Halted(error.clone());
        }
        false
    }
}

/// Answers the caller and gives the bytes back. The caller may not care any more.
fn settle(due: Due, result: Result<Written, ExactError>) {
    drop(due.room);
    let _ = due.receipt.send(result);
}
