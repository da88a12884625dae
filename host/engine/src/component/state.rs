//! What a store holds, and the host's functions on it.

use verbatim_contract::Callbacks as _;
use wasmtime::component::HasData;
use wasmtime::{StoreContextMut, UpdateDeadline};

use super::bindings::verbatim::produce::{config, log, trace, types};
use super::convert;
use super::deadline::{Deadline, Pause};
use super::limits::Limiter;
use crate::Partition;
use crate::stage::{MAX_TRACE_LEN, Stage, cut_text};

/// A store's data. The stage, and in it the partition, is here only during a call of `produce`.
pub(super) struct State<P> {
    pub(super) stage: Option<Stage<P>>,
    pub(super) limiter: Limiter,
    /// See [`super::Limits::handover_bytes`]. Where records may be rewritten the store lets more through.
    pub(super) handover_bytes: usize,
    pub(super) deadline: Deadline,
    /// The last line of the present call for the log: where a module traps, it often says why before.
    pub(super) last_line: String,
}

/// Names [`State`] for the generated code.
pub(super) struct Host<P>(std::marker::PhantomData<P>);

impl<P: 'static> HasData for Host<P> {
    type Data<'a> = &'a mut State<P>;
}

impl<P: Partition> State<P> {
    /// Called at every tick that a running call sees.
    pub(super) fn tick(mut store: StoreContextMut<'_, Self>) -> wasmtime::Result<UpdateDeadline> {
        let state = store.data_mut();
        let more = state.stage.as_ref().map_or(0, Stage::handed_over);
        if state.deadline.tick(more) {
            Ok(UpdateDeadline::Continue(1))
        } else {
            Err(wasmtime::format_err!("the deadline is exceeded"))
        }
    }

    /// A text that is handed over is within the limit.
    pub(super) fn check_text(&self, text: &str) -> wasmtime::Result<()> {
        let (len, most) = (text.len(), self.handover_bytes);
        wasmtime::ensure!(len <= most, "a text of at most {most} bytes may be handed over, length=`{len}`");
        Ok(())
    }

    fn stage(&mut self) -> wasmtime::Result<&mut Stage<P>> {
        self.stage.as_mut().ok_or_else(|| wasmtime::format_err!("the log is there during `produce` only"))
    }
}

impl<P: Partition> types::Host for State<P> {}

impl<P: Partition> config::Host for State<P> {
    fn get(&mut self, key: String) -> wasmtime::Result<Option<String>> {
        self.check_text(&key)?;
        Ok(self.stage.as_mut().and_then(|stage| stage.config(&key)))
    }
}

impl<P: Partition> trace::Host for State<P> {
    fn line(&mut self, text: String) -> wasmtime::Result<()> {
        self.check_text(&text)?;
        self.last_line.clear();
        self.last_line.push_str(cut_text(&text, MAX_TRACE_LEN));
        if let Some(stage) = &mut self.stage {
            stage.trace(&text);
        }
        Ok(())
    }
}

impl<P: Partition> log::Host for State<P> {
    fn append(&mut self, index: u32, placement: log::Placement) -> wasmtime::Result<()> {
        self.stage()?.append(index, convert::placement(placement));
        Ok(())
    }

    fn duplicate(&mut self, index: u32, base_offset: i64) -> wasmtime::Result<()> {
        self.stage()?.duplicate(index, base_offset);
        Ok(())
    }

    fn rewrite(&mut self, index: u32, placement: log::Placement, records: Vec<u8>) -> wasmtime::Result<()> {
        let pause = Pause::begin();
        let stage = self.stage()?;
        stage.rewrite(index, convert::placement(placement), records);
        self.deadline.end(pause);
        Ok(())
    }

    fn compare(&mut self, index: u32, base_offset: i64) -> wasmtime::Result<log::Comparison> {
        let stage = self.stage()?;
        if let Some(batch) = stage.to_be_digested(index) {
            let pause = Pause::begin();
            batch.digest();
            self.deadline.end(pause);
        }
        Ok(convert::comparison(self.stage()?.compare(index, base_offset)))
    }

    fn cut(&mut self, target: i64) -> wasmtime::Result<log::CutPreview> {
        Ok(convert::cut_preview(self.stage()?.cut(target)))
    }

    fn producer(&mut self, producer_id: i64) -> wasmtime::Result<Option<log::ProducerState>> {
        Ok(self.stage()?.producer(producer_id).map(convert::producer_state))
    }

    fn replicas(&mut self) -> wasmtime::Result<Vec<log::Replica>> {
        Ok(self.stage()?.replicas().iter().map(convert::replica).collect())
    }

    fn records(&mut self, index: u32, max: u32) -> wasmtime::Result<Result<Vec<u8>, log::Unreadable>> {
        let stage = self.stage()?;
        // A broker may inflate all of it now.
        let pause = stage.begins_to_inflate(index).then(Pause::begin);
        let answer = stage.records(index, max).map_err(convert::unreadable);
        if let Some(pause) = pause {
            self.deadline.end(pause);
        }
        Ok(answer)
    }
}
