//! A running module.

use std::sync::Arc;
use std::time::Duration;

use verbatim_contract::{Batch, Description, EpochEntry, MAX_TEXT_LEN, Position, Refusal, Replica};
use wasmtime::Store;

use super::bindings::exports::verbatim::produce::{configuration, membership, produce_path};
use super::deadline::Deadline;
use super::limits::Limiter;
use super::module::Linked;
use super::state::State;
use super::{Engine, LoadError, convert};
use crate::rewrite::MAX_REWRITTEN_LEN;
use crate::stage::{Stage, TraceBudget, cut_text};
use crate::{Call, Failure, Judge, Judged, Misconfigured, NotJoined, Partition, may_join};

/// The longest text of a trap that is kept, in bytes.
const MAX_TRAP_LEN: usize = 2048;

/// The judge of one append thread: a module in its own store. When the module fails, store and instance go, and the next
/// call gets new ones; the partition comes back unharmed.
pub struct Instance<P: Partition> {
    linked: Arc<Linked<P>>,
    live: Option<Live<P>>,
    description: Description,
    trace: TraceBudget,
    engine: Engine,
    memory_bytes: usize,
}

/// A store and what is called in it.
struct Live<P: Partition> {
    store: Store<State<P>>,
    produce_path: produce_path::Guest,
    membership: Option<membership::Guest>,
    configuration: Option<configuration::Guest>,
}

/// Why there is no instance.
pub(super) enum NotStarted {
    Failed(Failure),
    /// An export has another type than the contract says.
    OtherTypes(String),
}

impl From<Failure> for NotStarted {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<NotStarted> for Failure {
    /// Whatever it was: it started as it was loaded, and now it does not.
    fn from(not_started: NotStarted) -> Self {
        match not_started {
            NotStarted::Failed(failure @ Self::Start { .. }) => failure,
            NotStarted::Failed(failure) => Self::Start { text: failure.to_string() },
            NotStarted::OtherTypes(text) => Self::Start { text },
        }
    }
}

impl From<NotStarted> for LoadError {
    fn from(not_started: NotStarted) -> Self {
        match not_started {
            NotStarted::Failed(failure) => Self::Failed(failure),
            NotStarted::OtherTypes(text) => Self::MissingExport {
                symbol: format!("produce-path, membership or configuration of the contract's type, {text}"),
            },
        }
    }
}

impl<P: Partition> Instance<P> {
    pub(super) fn start(
        engine: Engine,
        linked: Arc<Linked<P>>,
        description: Description,
    ) -> Result<Self, Failure> {
        let live = Live::new(&engine, &linked).map_err(Failure::from)?;
        let memory_bytes = live.memory_bytes();
        Ok(Self {
            linked,
            live: Some(live),
            description,
            trace: TraceBudget::default(),
            engine,
            memory_bytes,
        })
    }

    /// The most linear memory that it ever had, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// A module is not asked about topics of a mode that it says it does not judge.
    fn check_mode(&self, exact: bool) -> Result<(), Failure> {
        let Description { name, supports_exact, supports_normal, .. } = &self.description;
        let (mode, judges) = if exact { ("exact", supports_exact) } else { ("normal", supports_normal) };
        let text = || format!("it judges no {mode} topics, module=`{name}`");
        if *judges { Ok(()) } else { Err(Failure::Start { text: text() }) }
    }

    /// The store and instance that there are, or new ones. They are put back if they did not fail.
    fn take_live(&mut self) -> Result<Live<P>, Failure> {
        match self.live.take() {
            Some(live) => Ok(live),
            None => Ok(Live::new(&self.engine, &self.linked).map_err(Failure::from)?),
        }
    }
}

impl<P: Partition> Judge<P> for Instance<P> {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn judge(&mut self, call: Call, partition: P) -> Judged<P> {
        let live = self.check_mode(call.policy.exact).and_then(|()| self.take_live());
        let mut live = match live {
            Ok(live) => live,
            Err(failure) => return Stage::new(call, partition, self.trace).finish(Err(failure)),
        };
        let (stage, answer) = live.produce(Stage::new(call, partition, self.trace));
        self.trace = stage.trace_budget();
        self.memory_bytes = self.memory_bytes.max(live.memory_bytes());
        if answer.is_ok() {
            self.live = Some(live);
        }
        stage.finish(answer)
    }

    fn may_join(
        &mut self,
        replica: &Replica,
        replica_end: i64,
        position: &Position,
    ) -> Result<(), NotJoined> {
        if self.linked.membership.is_none() {
            return may_join(replica, replica_end, position).map_err(NotJoined::Refused);
        }
        let mut live = self.take_live()?;
        let answer = live.may_join(replica, replica_end, position)?;
        self.live = Some(live);
        answer.map_err(NotJoined::Refused)
    }
}

/// What a module says of itself, by an instance of its own.
pub(super) fn describe<P: Partition>(engine: &Engine, linked: &Linked<P>) -> Result<Description, NotStarted> {
    Ok(Live::new(engine, linked)?.describe()?)
}

/// What a module says of a topic's keys, by an instance of its own.
pub(super) fn check_configuration<P: Partition>(
    engine: &Engine,
    linked: &Linked<P>,
    keys: &[(String, String)],
) -> Result<(), Misconfigured> {
    Live::new(engine, linked).map_err(Failure::from)?.check(keys)?.map_err(Misconfigured::Refused)
}

impl<P: Partition> Live<P> {
    fn new(engine: &Engine, linked: &Linked<P>) -> Result<Self, NotStarted> {
        let limits = engine.limits();
        let state = State {
            stage: None,
            limiter: Limiter::new(limits),
            handover_bytes: limits.handover_bytes,
            deadline: Deadline::default(),
            last_line: String::new(),
        };
        let mut store = Store::new(engine.wasmtime(), state);
        store.limiter(|state| &mut state.limiter);
        store.epoch_deadline_callback(State::tick);
        begin(&mut store, Handed::default(), 0);
        let instance =
            linked.pre.instantiate(&mut store).map_err(|error| match failure(store.data(), &error) {
                Failure::Trap { text } => Failure::Start { text },
                failure => failure,
            })?;
        // These compare types, and call nothing.
        let membership = linked.membership.as_ref().map(|indices| indices.load(&mut store, &instance));
        let configuration = linked.configuration.as_ref().map(|indices| indices.load(&mut store, &instance));
        let other_types = |error: wasmtime::Error| NotStarted::OtherTypes(format!("{error:#}"));
        Ok(Self {
            produce_path: linked.produce_path.load(&mut store, &instance).map_err(other_types)?,
            membership: membership.transpose().map_err(other_types)?,
            configuration: configuration.transpose().map_err(other_types)?,
            store,
        })
    }

    fn memory_bytes(&self) -> usize {
        self.store.data().limiter.memory_bytes()
    }

    fn describe(&mut self) -> Result<Description, Failure> {
        begin(&mut self.store, Handed::default(), 0);
        let answer = self.produce_path.call_describe(&mut self.store);
        answer.map(convert::description).map_err(|error| failure(self.store.data(), &error))
    }

    /// Lets the module judge. The stage, and with it the partition, comes back after a trap too.
    fn produce(&mut self, stage: Stage<P>) -> (Stage<P>, Result<Result<(), Refusal>, Failure>) {
        let call = stage.call();
        let (policy, position, request) = (
            convert::policy(&call.policy),
            convert::position(&call.position),
            convert::request(&call.request),
        );
        let entries: Vec<_> = call.entries.iter().copied().map(convert::epoch_entry).collect();
        let batches: Vec<_> = call.batches.iter().map(|batch| convert::batch(&batch.facts)).collect();
        let lists = size_of::<Batch>() * batches.len() + size_of::<EpochEntry>() * entries.len();

        let rewritten = if call.policy.may_rewrite { MAX_REWRITTEN_LEN } else { 0 };
        let handed = Handed { bytes: u64::try_from(lists).unwrap_or(u64::MAX), records: call.record_count() };
        begin(&mut self.store, handed, rewritten);
        self.store.data_mut().stage = Some(stage);
        let answer =
            self.produce_path.call_produce(&mut self.store, policy, position, request, &entries, &batches);
        let answer = answer
            .and_then(|answer| match answer {
                Err(refusal) => {
                    self.store.data().check_text(&refusal.text).map(|()| Err(convert::refusal(refusal)))
                }
                Ok(()) => Ok(Ok(())),
            })
            .map_err(|error| failure(self.store.data(), &error));
        #[expect(clippy::expect_used, reason = "put there a few lines above, and nothing else takes it")]
        let stage = self.store.data_mut().stage.take().expect("the stage is where it was put");
        (stage, answer)
    }

    fn may_join(
        &mut self,
        replica: &Replica,
        replica_end: i64,
        position: &Position,
    ) -> Result<Result<(), String>, Failure> {
        let Some(membership) = &self.membership else {
            return Ok(may_join(replica, replica_end, position));
        };
        begin(&mut self.store, Handed::default(), 0);
        let (replica, position) = (convert::replica(replica), convert::position(position));
        let answer = membership.call_may_join(&mut self.store, replica, replica_end, position);
        answer.map(|answer| answer.map_err(bounded)).map_err(|error| failure(self.store.data(), &error))
    }

    fn check(&mut self, keys: &[(String, String)]) -> Result<Result<(), String>, Failure> {
        let Some(configuration) = &self.configuration else { return Ok(Ok(())) };
        let len = keys
            .iter()
            .fold(0, |len: usize, (name, value)| len.saturating_add(name.len()).saturating_add(value.len()));
        begin(&mut self.store, Handed { bytes: u64::try_from(len).unwrap_or(u64::MAX), records: 0 }, 0);
        let answer = configuration.call_check(&mut self.store, keys);
        answer.map(|answer| answer.map_err(bounded)).map_err(|error| failure(self.store.data(), &error))
    }
}

/// A reason, cut to what counts of it.
fn bounded(text: String) -> String {
    cut_text(&text, MAX_TEXT_LEN).to_owned()
}

/// What goes into a call: its lists, in bytes, and the records that its batches say they have.
#[derive(Default)]
struct Handed {
    bytes: u64,
    records: u64,
}

/// A call begins, in which a callback takes so many bytes of rewritten records: its deadline counts from the next tick on.
fn begin<P: Partition>(store: &mut Store<State<P>>, handed: Handed, rewritten: usize) {
    store.set_epoch_deadline(1);
    store.set_hostcall_fuel(store.data().handover_bytes.saturating_add(rewritten));
    let state = store.data_mut();
    state.deadline.begin(handed.bytes, handed.records);
    state.limiter.begin();
    state.last_line.clear();
}

/// Why a call did not return. Time and memory come first: what a module does when it runs out of them looks like any trap.
fn failure<P>(state: &State<P>, error: &wasmtime::Error) -> Failure {
    if let Some(budget) = state.deadline.missed() {
        return Failure::Deadline { budget_us: microseconds(budget) };
    }
    if let Some(wanted) = state.limiter.denied() {
        return Failure::Memory { wanted, limit: state.limiter.limit() };
    }
    let text = trap_text(&error.root_cause().to_string(), &state.last_line, &error.to_string());
    Failure::Trap { text: cut_text(text.trim_end(), MAX_TRAP_LEN).to_owned() }
}

/// The cause and what the module said last, in one line, so that they come first; then the backtrace, if there is one.
fn trap_text(cause: &str, last_line: &str, backtrace: &str) -> String {
    let said = if last_line.is_empty() {
        String::new()
    } else {
        format!(", its last line: `{}`", last_line.escape_debug())
    };
    let frames = if backtrace == cause { "" } else { backtrace };
    format!("{cause}{said}\n{frames}")
}

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

// An append thread may be handed its judge by another thread.
const _: fn() = || {
    fn sendable<T: Send>() {}
    sendable::<Instance<crate::Memory>>();
};
