//! Writes that are queued and not acknowledged, in their order.

use std::collections::VecDeque;
use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::task::ready;

use verbatim_wire::exact_producer::{ExactError, Receipt};

use crate::fetch::Piece;
use crate::mirror::progress::Amount;

/// A write under way.
#[derive(Debug)]
pub(super) struct Flight {
    /// Where the copy ends once it is acknowledged.
    pub(super) end: i64,
    pub(super) amount: Amount,
    /// What was read keeps its room until then.
    pub(super) _room: Option<Piece>,
}

impl Flight {
    /// One without data.
    pub(super) fn to(end: i64) -> Self {
        Self { end, amount: Amount::default(), _room: None }
    }
}

/// Writes under way.
#[derive(Debug, Default)]
pub(super) struct Flights {
    queue: VecDeque<(Receipt, Flight)>,
}

impl Flights {
    pub(super) fn push(&mut self, receipt: Receipt, flight: Flight) {
        self.queue.push_back((receipt, flight));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The oldest write's answer; waits for ever if there is none. Cancel safe.
    pub(super) async fn settled(&mut self) -> (Flight, Result<(), ExactError>) {
        let settled = poll_fn(|context| {
            let Some((receipt, _)) = self.queue.front_mut() else { return std::task::Poll::Pending };
            let settled = ready!(Pin::new(receipt).poll(context));
            std::task::Poll::Ready(self.queue.pop_front().map(|(_, flight)| (flight, settled.map(drop))))
        });
        match settled.await {
            Some(settled) => settled,
            // The queue has a front, as its receipt was asked.
            None => pending().await,
        }
    }
}
