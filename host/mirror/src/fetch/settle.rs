//! What becomes of each partition after an answer, or without one.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use verbatim_wire::error::describe;

use super::board::{Board, Line, Phase, Raw};
use super::exchange::{Answer, Ask, Found};
use super::frames::Unusable;
use super::once::old_format;
use super::room::{Reserved, Room};
use super::shared::Shared;
use super::{Leader, Place, Stop};
use crate::cluster::{ClusterError, Fault};

/// The pause before a partition is asked for again whose leader cannot tell yet (78), or left it out.
const LATER: Duration = Duration::from_millis(100);
/// An end that was proved is proved again after so long, if its reader stays below it.
const PROVED_AGAIN: Duration = Duration::from_secs(1);

/// What was true of the whole answer.
#[derive(Debug, Clone, Copy)]
struct Circumstances {
    /// The request was for one partition and nothing spoke against what it brought: emptiness is proof, unless the log was cut.
    proves: bool,
    /// That would have been told.
    notices_truncation: bool,
    /// The answer may have had no room for a partition that was not its first.
    is_full: bool,
    is_throttled: bool,
    is_alone: bool,
}

impl Shared {
    /// Takes an answer.
    pub(super) fn settle(
        self: &Arc<Self>,
        node: i32,
        asks: Vec<Ask>,
        answer: Answer,
        room: Reserved,
        bytes_max: usize,
        is_alone: bool,
    ) {
        let is_throttled = !answer.throttle.is_zero();
        let full_from = bytes_max.saturating_sub(self.config.partition_bytes_max.min(bytes_max / 2));
        let circumstances = Circumstances {
            proves: is_alone
                && asks.len() == 1
                && answer.is_fenced
                && !is_throttled
                && answer.bytes == 0
                && !self.read_committed,
            notices_truncation: answer.notices_truncation,
            is_full: answer.bytes >= full_from,
            is_throttled,
            is_alone,
        };
        let batches = |found: &Found| match found {
            Found::Data { whole, .. } => Some(whole.batches.clone()),
            _ => None,
        };
        let mut pieces = room.deal(answer.found.iter().filter_map(batches).collect()).into_iter();
        let mut starved = Vec::new();
        let mut board = self.board();
        board.throttle(node, answer.throttle);
        for (index, (ask, found)) in asks.into_iter().zip(answer.found).enumerate() {
            let piece = if matches!(found, Found::Data { .. }) { pieces.next() } else { None };
            if board.line(ask.line, ask.generation).is_none() {
                continue;
            }
            let starves = circumstances.is_full && index > 0;
            match found {
                Found::Data { whole, leader, aborted } => {
                    let (batches, room) = piece.unwrap_or_default();
                    let from = ask.place;
                    let raw = Raw { batches, from, leader, proves_end: false, aborted, room };
                    data(&mut board, &ask, whole.next, raw);
                }
                Found::Nothing { leader, .. } if starves && ask.place.offset < self.readable_end(leader) => {
                    starved.push(ask);
                }
                Found::Nothing { leader, is_plain, .. } => {
                    let proves = circumstances.proves && is_plain && ask.leader_epoch >= 0;
                    self.nothing(&mut board, &ask, leader, Circumstances { proves, ..circumstances });
                }
                other => self.odd(&mut board, &ask, other, is_throttled),
            }
        }
        // The first that had no room comes first.
        for ask in starved.into_iter().rev() {
            self.queue(&mut board, ask.line, Phase::Hot, true);
        }
    }

    /// No answer came.
    pub(super) fn unanswered(self: &Arc<Self>, asks: Vec<Ask>, fault: Fault) {
        match fault {
            Fault::Passing(why) | Fault::Unknown(why) => {
                for ask in asks {
                    self.failed(ask.line, ask.generation, &why);
                }
            }
            Fault::Final(error) => {
                let mut board = self.board();
                for ask in asks {
                    if let Some(line) = board.line(ask.line, ask.generation) {
                        line.stop(Stop::Failed(error.clone()));
                    }
                }
            }
        }
    }

    fn nothing(self: &Arc<Self>, board: &mut Board, ask: &Ask, leader: Leader, about: Circumstances) {
        let Some(line) = board.line(ask.line, ask.generation) else { return };
        line.failures = 0;
        let now = Instant::now();
        let readable_end = self.readable_end(leader);
        let is_proved =
            line.proved.is_some_and(|(end, at)| end == readable_end && at.elapsed() < PROVED_AGAIN);
        if ask.place.offset < readable_end && !is_proved {
            if about.proves && (about.notices_truncation || ask.place.last_epoch < 0) {
                return line.prove(ask.place, leader);
            }
            if about.proves {
                line.phase = Phase::Finding;
                return self.confirm(ask.clone(), leader);
            }
            if !about.is_alone || about.is_throttled {
                self.queue(board, ask.line, Phase::Alone, false);
                return;
            }
        }
        // A little less than the wait, or every other answer to a wait would come too early.
        let told_for = self.config.wait_max.mul_f32(0.75);
        let is_news = line.told.is_none_or(|(told, at)| told != leader || now - at >= told_for);
        if is_news {
            line.give(nothing(ask.place, leader, false));
        }
        self.queue(board, ask.line, Phase::Cold, false);
    }

    /// Nothing came, in a version that does not tell whether the log was cut below the place: asks for that by itself, under the
    /// same leader epoch.
    fn confirm(self: &Arc<Self>, ask: Ask, leader: Leader) {
        let shared = Arc::clone(self);
        self.spawn(async move {
            let Place { offset, last_epoch } = ask.place;
            let end = shared.cluster.epoch_end_under(&ask.partition, ask.leader_epoch, last_epoch).await;
            let mut board = shared.board();
            let Some(line) = board.line(ask.line, ask.generation) else { return };
            match end {
                Ok(Some(end)) if end.epoch < 0 => line.stop(Stop::OutOfRange),
                Ok(Some(end)) if end.epoch < last_epoch || end.end < offset => {
                    line.stop(Stop::Diverging { epoch: end.epoch, end: end.end });
                }
                Ok(Some(_)) => line.prove(ask.place, leader),
                // The leader has another epoch by now.
                Ok(None) => shared.find(ask.line, ask.generation, LATER, true),
                Err(error) => line.stop(Stop::Failed(error)),
            }
        });
    }

    /// Everything that is neither data nor its absence.
    fn odd(self: &Arc<Self>, board: &mut Board, ask: &Ask, found: Found, is_throttled: bool) {
        let (id, generation) = (ask.line, ask.generation);
        let Some(line) = board.line(id, generation) else { return };
        let stop = match found {
            Found::Diverging(end) => Stop::Diverging { epoch: end.epoch, end: end.end },
            Found::OutOfRange => Stop::OutOfRange,
            Found::Refused(code) => {
                Stop::Failed(ClusterError::Refused { what: format!("Fetch of {}", ask.partition), code })
            }
            Found::Unusable(Unusable::Format { offset, magic }) => old_format(ask, offset, magic),
            Found::Unusable(Unusable::Damaged { offset, why }) => {
                tracing::warn!(partition = %ask.partition, offset, why, "a batch came damaged");
                line.phase = Phase::Finding;
                return self.damaged(board, id, offset);
            }
            Found::Unusable(Unusable::CutOff(length)) => return self.cut_off(board, ask, length),
            Found::Missing if is_throttled => return self.queue(board, id, Phase::Hot, true),
            Found::Missing => return self.later(board, ask, "the answer does not name it".to_owned(), true),
            Found::Moved(code) => return self.later(board, ask, describe(code), true),
            Found::Passing(code) => {
                let counts = code != verbatim_wire::ErrorCode::OffsetNotAvailable.number();
                return self.later(board, ask, describe(code), counts);
            }
            Found::Data { .. } | Found::Nothing { .. } => return,
        };
        line.stop(stop);
    }

    /// An answer brought a part of one batch and nothing else: it is asked for with as much room as it needs.
    fn cut_off(self: &Arc<Self>, board: &mut Board, ask: &Ask, length: Option<usize>) {
        let Some(line) = board.line(ask.line, ask.generation) else { return };
        let wanted = length.unwrap_or(0).max(ask.bytes_max.saturating_mul(2));
        let most = self.cluster.config().client.answer_bytes_max;
        if wanted > most && ask.bytes_max >= most {
            let what =
                format!("the batch at {} of {} is cut off at {most} bytes", ask.place.offset, ask.partition);
            return line.stop(Stop::Failed(ClusterError::Refused { what, code: 10 }));
        }
        line.bytes_wanted = wanted.min(most);
        self.queue(board, ask.line, Phase::Alone, false);
    }

    /// Looks for the leader again after a pause, once the board is free.
    fn later(self: &Arc<Self>, board: &mut Board, ask: &Ask, why: String, counts: bool) {
        let (id, generation) = (ask.line, ask.generation);
        if let Some(line) = board.line(id, generation) {
            line.phase = Phase::Finding;
        }
        let shared = Arc::clone(self);
        self.spawn(async move {
            if counts {
                shared.failed(id, generation, &why);
            } else {
                shared.find(id, generation, LATER, true);
            }
        });
    }
}

impl Line {
    /// There is nothing between the place and the high watermark. Only readers of everything are told so.
    fn prove(&mut self, place: Place, leader: Leader) {
        self.proved = Some((leader.high_watermark, Instant::now()));
        self.phase = Phase::Full;
        self.give(nothing(place, leader, true));
    }
}

/// A piece without batches.
fn nothing(from: Place, leader: Leader, proves_end: bool) -> Raw {
    let (batches, aborted, room) = (bytes::Bytes::new(), Vec::new(), Room::default());
    Raw { batches, from, leader, proves_end, aborted, room }
}

fn data(board: &mut Board, ask: &Ask, next: Place, piece: Raw) {
    let Some(line) = board.line(ask.line, ask.generation) else { return };
    (line.failures, line.bytes_wanted) = (0, 0);
    line.place = next;
    line.phase = Phase::Full;
    line.give(piece);
}
