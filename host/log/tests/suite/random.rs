//! Random requests, failures, crashes and power losses against the model. `VERBATIM_SEED` repeats one run.

mod retention;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use verbatim_contract::EpochEntry;
use verbatim_log::{ApplyError, Commit, Config, Flush, Log, SourcePosition};

use crate::batches::{header, marker_at, next, plain, plain_at, produced_at};
use crate::disk::{Disk, Fault, Loss};
use crate::layout::Layout;
use crate::model::{Model, Request, read_all};
use crate::rng::{Rng, seeds};

const STEPS: u64 = 80;
const FAR: i64 = 3_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Normal,
    Exact,
    /// Exact, and keeps digests of what was received.
    Rewriting,
}

struct World {
    disk: Disk,
    folder: PathBuf,
    config: Config,
    rng: Rng,
    log: Option<Log>,
    model: Model,
    layout: Layout,
    /// The wall clock.
    now: i64,
    /// States that a crash may leave, oldest first. The first is durable, the one at `acked` was answered.
    chain: Vec<Model>,
    acked: usize,
    /// Epochs of requests that failed since one went well. They may be in the facts as long as the old ones are owed, and a
    /// crash leaves them, as one in the middle of the request does.
    refused: Vec<Model>,
    hint: String,
}

#[test]
fn exact_logs_survive_failures_and_crashes() {
    for seed in seeds(120) {
        World::new(seed, Kind::Exact).run();
    }
}

#[test]
fn logs_with_digests_survive_failures_and_crashes() {
    for seed in seeds(120) {
        World::new(seed, Kind::Rewriting).run();
    }
}

#[test]
fn normal_logs_survive_failures_and_crashes() {
    for seed in seeds(80) {
        World::new(seed, Kind::Normal).run();
    }
}

#[test]
fn one_seed_repeats_a_run() {
    let run = |kind| {
        let mut world = World::new(77, kind);
        world.run();
        (world.model.end, world.model.readable(), world.disk.operations())
    };
    for kind in [Kind::Normal, Kind::Exact, Kind::Rewriting] {
        assert!(run(kind) == run(kind));
    }
}

impl World {
    fn new(seed: u64, kind: Kind) -> Self {
        println!("VERBATIM_SEED={seed} {kind:?}");
        let (exact, keeps_received) = (kind != Kind::Normal, kind == Kind::Rewriting);
        let mut rng = Rng::new(seed);
        let (disk, folder) = (Disk::new(seed), PathBuf::from("/data/topic-0"));
        let config = Config {
            exact,
            keeps_received,
            topic_id: (1, 2),
            segment_bytes: 300 + rng.below(1500) as u32,
            segment_ms: 1 + rng.below(2_000) as i64,
            segment_jitter_ms: rng.below(1_000) as i64,
            segment_index_bytes: 12 + rng.below(100) as u32,
            index_interval_bytes: rng.below(300) as u32,
            flush: if rng.one_in(2) { Flush::Always } else { Flush::Never },
        };
        disk.set_short_writes(7);
        let log = Log::create(&folder, config.clone(), Arc::new(disk.clone())).unwrap();
        let model = Model::new(exact);
        let chain = vec![model.clone()];
        let layout = Layout::read(&disk, &folder, &config);
        Self {
            layout,
            now: 10_000,
            disk,
            folder,
            config,
            rng,
            log: Some(log),
            model,
            chain,
            acked: 0,
            refused: Vec::new(),
            hint: format!("seed {seed}"),
        }
    }

    fn run(&mut self) {
        let seed = self.hint.clone();
        for step in 0..STEPS {
            self.hint = format!("{seed}, step {step}");
            match self.rng.below(20) {
                0 | 1 => self.crash(),
                2 => self.close(),
                3..=5 => self.flush(),
                6 | 7 => self.retain(),
                _ => self.apply(),
            }
            self.model.check(self.log.as_ref().unwrap(), &self.hint);
        }
    }

    fn apply(&mut self) {
        self.now += self.rng.below(400) as i64;
        let request = self.request();
        self.hint = format!("{}, {}", self.hint, describe(&request));
        let steps = self.model.steps(&request);
        let batches = request.placed();
        let commit = Commit {
            cut: request.cut,
            entries: &request.entries,
            batches: &batches,
            end: request.end,
            start: request.start,
            source: request.source,
            now_ms: Some(self.now),
            ..Commit::default()
        };
        self.inject();
        let result = self.log.as_mut().unwrap().apply(&commit);
        match result {
            Ok(()) => self.applied(&request, steps),
            Err(ApplyError::Failed { cut, .. }) => {
                self.disk.clear_faults();
                if cut.is_some() {
                    let model = steps[0].clone();
                    self.durable(model);
                }
                self.refused.extend(steps);
            }
            Err(ApplyError::Offline { .. }) => {
                assert!(self.log.as_ref().unwrap().offline().is_some());
                assert!(self.log.as_mut().unwrap().flush().is_err());
                self.chain.extend(steps);
                self.restart();
                return;
            }
            Err(error) => panic!("{error}, {}", self.hint),
        }
        self.check_layout();
        if let Some(stopped) = self.stopped() {
            self.hint = format!("{}, stopped {stopped}", self.hint);
            self.restart();
        }
    }

    fn inject(&mut self) {
        if self.rng.one_in(3) {
            let fault = [Fault::Fail, Fault::Tear, Fault::Late, Fault::Stop][self.rng.below(4) as usize];
            let after = self.rng.below(25);
            self.disk.set_fault(after, fault);
            self.hint = format!("{}, {fault:?} after {after}", self.hint);
        }
    }

    /// A stop that the request did not notice: whatever comes next would. Nothing of the log's own folder is made durable.
    fn stopped(&mut self) -> Option<u64> {
        let operations = self.disk.operations();
        self.disk.clear_faults();
        verbatim_log::Io::sync_folder(&self.disk, Path::new("/data")).err().map(|_| operations)
    }

    fn applied(&mut self, request: &Request, steps: Vec<Model>) {
        let mut last = steps.last().unwrap().clone();
        for batch in request.batches.iter().filter(|_| !self.config.exact) {
            self.layout.append(batch, self.now);
        }
        if last.start != self.model.start && !self.config.exact {
            self.layout.advance_start(last.start, last.end);
        }
        if self.config.flush != Flush::Always {
            last.high_watermark = last.end;
        }
        if request.cut.is_some() {
            self.chain.clear();
        }
        let declares = !request.entries.is_empty() || request.end.is_some() || request.start.is_some();
        self.chain.extend(steps);
        self.acked = self.chain.len() - 1;
        self.refused.clear();
        self.model = last.clone();
        // Declared facts are durable with the answer, and what lies before them with them.
        if declares && (!request.entries.is_empty() || last.start != self.chain[0].start) {
            self.durable(last);
        }
    }

    fn durable(&mut self, model: Model) {
        self.chain = vec![model.clone()];
        self.acked = 0;
        self.model = model;
    }

    fn flush(&mut self) {
        self.log.as_mut().unwrap().flush().unwrap();
        let mut model = self.model.clone();
        model.high_watermark = model.end;
        self.durable(model);
    }

    fn close(&mut self) {
        self.log.take().unwrap().close().unwrap();
        let mut model = self.model.clone();
        model.high_watermark = model.end;
        self.durable(model);
        self.reopen(true);
    }

    fn crash(&mut self) {
        self.restart();
    }

    fn restart(&mut self) {
        self.log = None;
        let power = self.rng.one_in(2);
        self.hint = format!("{}, power loss {power}", self.hint);
        if power {
            power_loss(&mut self.rng, &self.disk);
        } else {
            self.disk.end_process();
            self.chain.drain(..self.acked);
        }
        self.acked = 0;
        while self.rng.one_in(4) {
            // The start itself is interrupted.
            let after = self.rng.below(12);
            self.disk.set_fault(after, Fault::Stop);
            drop(Log::open(&self.folder, self.config.clone(), Arc::new(self.disk.clone())));
            if power && self.rng.one_in(2) {
                power_loss(&mut self.rng, &self.disk);
            } else {
                self.disk.end_process();
            }
        }
        self.reopen(false);
    }

    fn reopen(&mut self, clean: bool) {
        let opened = Log::open(&self.folder, self.config.clone(), Arc::new(self.disk.clone()));
        let (log, recovery) = opened.unwrap_or_else(|error| panic!("{error}, {}", self.hint));
        assert_eq!(recovery.clean, clean, "{}", self.hint);
        assert!(!recovery.promoted);
        let position = log.position();
        let bytes = read_all(&log);
        let fits = |state: &&Model| {
            (state.start, state.end) == (position.start, position.end)
                && state.readable() == bytes
                && state.has_digests(&log, &self.hint)
        };
        let found = self.chain.iter().rposition(|state| fits(&state));
        let states: Vec<_> = self.chain.iter().map(|state| (state.start, state.end)).collect();
        let found = found.unwrap_or_else(|| {
            panic!("no state fits {:?} of {states:?}, {}", (position.start, position.end), self.hint)
        });
        let mut model = self.chain[found].clone();
        let possible: Vec<_> = self
            .chain
            .iter()
            .chain(&self.refused)
            .map(|state| self.recovered_epochs(state, &model, position.shown_epoch))
            .collect();
        let epochs = log.epochs().entries().to_vec();
        assert!(possible.contains(&epochs), "epochs {epochs:?}, possible {possible:?}, {}", self.hint);
        assert!(position.shown_epoch >= self.model.shown_epoch, "the shown epoch fell, {}", self.hint);
        if !self.config.exact {
            assert!(position.shown_epoch > self.model.shown_epoch, "no new epoch, {}", self.hint);
        }
        model.epochs = log.epochs().clone();
        model.shown_epoch = position.shown_epoch;
        model.high_watermark = model.end;
        self.log = Some(log);
        self.refused.clear();
        self.durable(model);
        self.check_tidy(clean);
        self.model.check(self.log.as_ref().unwrap(), &self.hint);
    }

    fn recovered_epochs(&self, state: &Model, data: &Model, shown_epoch: i32) -> Vec<EpochEntry> {
        let mut epochs = state.epochs.clone();
        if self.config.exact {
            epochs.truncate(data.end + 1);
        } else {
            epochs.truncate(data.end);
            epochs.assign(shown_epoch, data.end);
        }
        epochs.entries().to_vec()
    }

    fn request(&mut self) -> Request {
        let mut request = Request { original: self.rng.below(3), ..Request::default() };
        let mut model = self.model.clone();
        if self.config.exact {
            if self.rng.one_in(8) {
                request.cut = self.cut_target();
                model = model.steps(&request).pop().unwrap();
            }
            if self.rng.one_in(3) {
                let (start, end, epoch) =
                    (model.start, model.end + self.rng.below(9) as i64, model.shown_epoch);
                request.source = Some(SourcePosition { start, end, epoch });
            }
        }
        let mut end = model.end;
        let mut epoch = if self.config.exact {
            model.epochs.last().map_or(3, |last| last.epoch)
        } else {
            model.shown_epoch
        };
        let restarts = self.config.exact && model.start == end && end > 2 && self.rng.one_in(2);
        if restarts {
            request.batches.push(plain(end - 2, epoch, 4));
            end += 2;
        } else if self.config.exact && self.rng.one_in(6) {
            end += self.gap();
            epoch += 1 + self.rng.below(3) as i32;
            request.entries.push(EpochEntry { epoch, start: end });
            if self.rng.one_in(3) {
                end += 1 + self.rng.below(5) as i64;
                epoch += 1;
                request.entries.push(EpochEntry { epoch, start: end });
            }
        }
        for _ in 0..self.rng.below(5) {
            if self.config.exact {
                end += self.gap();
                epoch += i32::from(self.rng.one_in(8));
            }
            let batch = self.batch(end, epoch);
            end = next(&batch);
            request.batches.push(batch);
        }
        if self.config.exact && (self.rng.one_in(8) || (request.batches.is_empty() && end > model.end)) {
            end += self.gap();
            request.end = Some(end);
        }
        if self.rng.one_in(8) {
            let start = if self.rng.one_in(3) {
                end
            } else {
                model.start + self.rng.below((end - model.start) as u64 + 1) as i64
            };
            request.start = Some(start);
        }
        request
    }

    fn gap(&mut self) -> i64 {
        match self.rng.below(30) {
            0 => FAR,
            1..=4 => 1 + self.rng.below(20) as i64,
            _ => 0,
        }
    }

    fn batch(&mut self, base: i64, epoch: i32) -> Vec<u8> {
        let producer = (10 + self.rng.below(3) as i64, self.rng.below(2) as i16);
        let sequence = self.rng.below(100) as i32;
        let count = 1 + self.rng.below(5) as i32;
        let timestamp = if self.rng.one_in(8) { -1 } else { self.now - self.rng.below(1_000) as i64 };
        match self.rng.below(6) {
            0 | 1 => plain_at(base, epoch, count, timestamp),
            2 => produced_at(base, epoch, count, (producer.0, producer.1, sequence), false, timestamp),
            3 | 4 => produced_at(base, epoch, count, (producer.0, producer.1, sequence), true, timestamp),
            _ => marker_at(base, epoch, producer, self.rng.one_in(2), timestamp),
        }
    }

    /// A batch boundary, or a place in a hole, or the end.
    fn cut_target(&mut self) -> Option<i64> {
        let (start, end) = (self.model.start, self.model.end);
        let mut targets = vec![end, start + self.rng.below((end - start) as u64 + 1) as i64];
        for batch in &self.model.batches {
            targets.extend([header(batch).base_offset, next(batch)]);
        }
        let whole = |to: i64| {
            !self.model.batches.iter().any(|batch| header(batch).base_offset < to && to < next(batch))
        };
        targets.retain(|to| *to >= start && *to <= end && whole(*to));
        targets.get(self.rng.below(targets.len() as u64) as usize).copied()
    }
}

/// Now and then the strictest one.
fn power_loss(rng: &mut Rng, disk: &Disk) {
    disk.power_loss(if rng.one_in(3) { Loss::Everything } else { Loss::Random });
}

fn describe(request: &Request) -> String {
    let batches: Vec<_> =
        request.batches.iter().map(|batch| (header(batch).base_offset, next(batch))).collect();
    let Request { cut, entries, end, start, .. } = request;
    format!("cut {cut:?} entries {entries:?} batches {batches:?} end {end:?} start {start:?}")
}
