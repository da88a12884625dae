//! What is counted of requests, by API.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use verbatim_wire::ApiKey;
use verbatim_wire::server::{Reply, ReplyFuture};

use super::cells::{Cell, Count, Histogram};
use super::codes::{Codes, PLACES};
use super::thread::{TIMES, nanoseconds};
use crate::shared::Shared;

/// Of one API.
pub(super) struct ApiMetrics {
    /// Requests by place of the error code.
    pub(super) codes: [Count; PLACES],
    pub(super) durations: Histogram<Count, { TIMES.len() }>,
    pub(super) received: Count,
    pub(super) sent: Count,
}

impl Default for ApiMetrics {
    fn default() -> Self {
        Self {
            codes: std::array::from_fn(|_| Count::default()),
            durations: Histogram::new(&TIMES),
            received: Count::default(),
            sent: Count::default(),
        }
    }
}

impl ApiMetrics {
    fn answered(&self, reply: &Reply, since: Instant) {
        for place in Codes::of(reply).places() {
            if let Some(count) = self.codes.get(place) {
                count.add(1);
            }
        }
        self.durations.record(nanoseconds(since.elapsed()));
    }
}

/// Watches one request, from when it was taken in until its reply is made. Whoever drops the reply unmade, because the
/// connection is gone, leaves it uncounted.
pub(crate) struct Watch {
    key: ApiKey,
    since: Instant,
}

impl Watch {
    /// It is taken in now.
    pub(crate) fn begin(key: ApiKey) -> Self {
        Self { key, since: Instant::now() }
    }

    /// The same reply, counted once it is made.
    pub(crate) fn over(self, shared: &Arc<Shared>, reply: ReplyFuture) -> ReplyFuture {
        Box::pin(Watched { reply, shared: Arc::clone(shared), watch: self })
    }
}

/// Keeps the reply until it is dropped itself, for the reply may hold what bounds answers.
struct Watched {
    reply: ReplyFuture,
    shared: Arc<Shared>,
    watch: Watch,
}

impl Future for Watched {
    type Output = Reply;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Reply> {
        let made = self.reply.as_mut().poll(context);
        if let Poll::Ready(reply) = &made {
            self.shared.metrics.api(self.watch.key, |api| api.answered(reply, self.watch.since));
        }
        made
    }
}
