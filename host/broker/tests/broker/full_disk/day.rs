//! The day: what is done, and what must be there after each step of it.

use std::sync::LazyLock;

use verbatim_batch::{BatchBuilder, Header, NewRecord, place};
use verbatim_wire::messages::InitProducerIdRequest;
use verbatim_wire::tag::RequestTag;

use crate::power_loss::peer::Peer;
use crate::support::{EXACT, Host, SET, batch, order};

/// A producer of long ago would be forgotten at a start.
static NOW_MS: LazyLock<i64> = LazyLock::new(|| {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(now.as_millis()).unwrap()
});

/// What is done, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    CreateCopy,
    CreatePlain,
    WriteCopy,
    /// Several epochs and segments.
    WriteEpochs,
    /// The end moves without batches, and the start after the source's.
    Declare,
    WritePlain(i32),
    DeleteRecords,
    Rewind,
    Alter,
    Grow,
    TakeProducerId,
    Promote,
    WritePromoted,
    DeletePlain,
    CreatePlainAgain,
}

/// What topics hold; none are not there.
#[derive(Clone, Debug, Default)]
pub(super) struct Day {
    copy: Option<Held>,
    plain: Option<Held>,
    /// What there may be besides, since a step that failed is done by halves.
    half: Option<(Option<Held>, Option<Held>)>,
}

#[derive(Clone, Default, PartialEq, Eq)]
struct Held {
    partitions: usize,
    start: i64,
    end: i64,
    batches: Vec<Vec<u8>>,
}

impl Step {
    pub(super) const ALL: [Self; 18] = [
        Self::CreateCopy,
        Self::CreatePlain,
        Self::WriteCopy,
        Self::WritePlain(0),
        Self::WritePlain(1),
        Self::WriteEpochs,
        Self::WritePlain(2),
        Self::Declare,
        Self::WritePlain(3),
        Self::DeleteRecords,
        Self::Rewind,
        Self::Alter,
        Self::Grow,
        Self::TakeProducerId,
        Self::Promote,
        Self::WritePromoted,
        Self::DeletePlain,
        Self::CreatePlainAgain,
    ];
}

impl Day {
    /// Does it; the host's code and text.
    pub(super) async fn take(&mut self, host: &Host, step: Step) -> (i16, String) {
        let again = self.half.is_some();
        self.half = Some(self.by_halves(step));
        let peer = Peer::connect(host.address()).await;
        let properties = [("segment.bytes", "400"), ("retention.ms", "-1")];
        match step {
            Step::CreateCopy => {
                let rewinds = ("produce.at.offset.rewind", "truncate");
                host.create("copy", 1, &[&properties[..], &[EXACT, rewinds]].concat()).await
            }
            Step::CreatePlain | Step::CreatePlainAgain => host.create("plain", 2, &properties).await,
            Step::WriteCopy => write(host, &[copied(10, 3)], &order((0, -1), (12, 3))).await,
            Step::WriteEpochs => write(host, &epochs(), &order((12, 3), (32, 6))).await,
            Step::Declare => {
                let tag = RequestTag { end_to: Some(40), source_start: 20, ..order((32, 6), (40, 6)) };
                write(host, &[], &tag).await
            }
            Step::WritePlain(number) => write_plain(host, "plain", number).await,
            Step::DeleteRecords => match peer.delete_records("plain", 3).await {
                Ok(start) => (i16::from(start != 3), format!("start {start}")),
                Err(code) => (code, "the disk fails, and no text tells it".to_owned()),
            },
            Step::Rewind => {
                // A cut lasts, also if what followed it failed.
                let is_cut = again && host.list("copy", -1, false).await.1 < 40;
                let (to, end) = if is_cut { (None, 22) } else { (Some(22), 40) };
                let tag = RequestTag { truncate_to: to, source_start: 20, ..order((end, 5), (24, 9)) };
                write(host, &[copied(22, 9)], &tag).await
            }
            Step::Alter => host.alter("plain", &[("max.message.bytes", SET, Some("5000"))], false).await,
            Step::Grow => peer.grow("plain", 3).await.unwrap(),
            Step::TakeProducerId => {
                let request = InitProducerIdRequest::default().with_transactional_id(None);
                (host.client.call(&request).await.unwrap().error_code, String::new())
            }
            Step::Promote => host.alter("copy", &[("produce.at.offset", SET, Some("false"))], false).await,
            Step::WritePromoted => write_plain(host, "copy", 0).await,
            Step::DeletePlain => match peer.delete("plain").await.unwrap() {
                // Half deleted is not there any more.
                (3, _) if again => (0, String::new()),
                told => told,
            },
        }
    }

    /// It went well.
    pub(super) fn taken(&mut self, step: Step) {
        (self.copy, self.plain) = self.after(step);
        self.half = None;
    }

    pub(super) async fn check(&self, host: &Host, hint: &str) {
        let half = self.half.clone().unwrap_or_else(|| (self.copy.clone(), self.plain.clone()));
        for (name, whole, half) in [("copy", &self.copy, half.0), ("plain", &self.plain, half.1)] {
            let Some(found) = find(host, name).await else { continue };
            let fits = found == *whole || found == half;
            assert!(fits, "{hint}: {name} holds {found:?}, expected {whole:?} or {half:?}");
        }
    }

    fn after(&self, step: Step) -> (Option<Held>, Option<Held>) {
        let (mut copy, mut plain) = (self.copy.clone(), self.plain.clone());
        match step {
            Step::CreateCopy => copy = Some(Held { partitions: 1, ..Held::default() }),
            Step::CreatePlain | Step::CreatePlainAgain => {
                plain = Some(Held { partitions: 2, ..Held::default() });
            }
            Step::WriteCopy => copy.as_mut().unwrap().append(copied(10, 3), 12),
            Step::WriteEpochs => {
                for (batch, end) in epochs().into_iter().zip([14, 22, 24, 32]) {
                    copy.as_mut().unwrap().append(batch, end);
                }
            }
            Step::Declare => {
                let copy = copy.as_mut().unwrap();
                (copy.start, copy.end) = (20, 40);
                copy.batches.drain(..2);
            }
            Step::WritePlain(number) => {
                plain
                    .as_mut()
                    .unwrap()
                    .append(plainly(i64::from(number) * 2, number), i64::from(number) * 2 + 2);
            }
            Step::DeleteRecords => {
                let plain = plain.as_mut().unwrap();
                plain.start = 3;
                plain.batches.drain(..1);
            }
            Step::Rewind => {
                let copy = copy.as_mut().unwrap();
                copy.batches.truncate(1);
                copy.append(copied(22, 9), 24);
            }
            Step::Grow => plain.as_mut().unwrap().partitions = 3,
            Step::WritePromoted => copy.as_mut().unwrap().append(plainly(24, 0), 26),
            Step::DeletePlain => plain = None,
            Step::Alter | Step::TakeProducerId | Step::Promote => {}
        }
        (copy, plain)
    }

    /// What a step leaves that failed in the middle, besides what was before it.
    fn by_halves(&self, step: Step) -> (Option<Held>, Option<Held>) {
        let (mut copy, plain) = (self.copy.clone(), self.plain.clone());
        match step {
            Step::Rewind => {
                let copy = copy.as_mut().unwrap();
                copy.batches.truncate(1);
                copy.end = 22;
            }
            Step::DeletePlain => return (copy, None),
            _ => {}
        }
        (copy, plain)
    }
}

impl std::fmt::Debug for Held {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { partitions, start, end, batches } = self;
        let headers: Vec<_> = batches.iter().filter_map(|batch| Header::read(batch)).collect();
        write!(formatter, "{partitions} partitions, {start}..{end}, {headers:?}")
    }
}

impl Held {
    fn append(&mut self, batch: Vec<u8>, end: i64) {
        self.batches.push(batch);
        self.end = end;
    }
}

/// What a topic holds, its batches without the leader epoch where the host chose it; none if it is offline.
async fn find(host: &Host, name: &str) -> Option<Option<Held>> {
    let told = host.metadata(name).await;
    if told.error_code == 3 {
        return Some(None);
    }
    if told.partitions.iter().any(|partition| partition.error_code != 0) {
        return None;
    }
    let peer = Peer::connect(host.address()).await;
    let ((end, _), (start, _)) = (peer.list(name, -1).await.unwrap(), peer.list(name, -2).await.unwrap());
    let stored = peer.fetch_all(name, start, end).await;
    let by_host = |bytes: &[u8]| bytes.windows(5).any(|word| word == b"plain");
    let batches = stored.into_iter().map(|mut batch| {
        if by_host(&batch.bytes) {
            place(&mut batch.bytes, batch.base, 0).unwrap();
        }
        batch.bytes
    });
    Some(Some(Held { partitions: told.partitions.len(), start, end, batches: batches.collect() }))
}

async fn write(host: &Host, batches: &[Vec<u8>], tag: &RequestTag) -> (i16, String) {
    let answer = host.produce("copy", &batches.concat(), Some(tag)).await;
    (answer.error_code, answer.error_message.unwrap_or_default().to_string())
}

async fn write_plain(host: &Host, name: &str, number: i32) -> (i16, String) {
    let answer = host.produce(name, &plainly(0, number), None).await;
    (answer.error_code, answer.error_message.unwrap_or_default().to_string())
}

/// A batch of the source with two records.
fn copied(base: i64, epoch: i32) -> Vec<u8> {
    batch(base, epoch, &["copied", &"x".repeat(120)])
}

fn epochs() -> [Vec<u8>; 4] {
    [copied(12, 5), copied(20, 5), copied(22, 6), copied(30, 6)]
}

/// An idempotent producer's batch with two records.
fn plainly(base: i64, number: i32) -> Vec<u8> {
    let filler = "y".repeat(200);
    let record = |delta, value| NewRecord::new(delta, *NOW_MS).value(value);
    let records = BatchBuilder::new(base).record(record(0, b"plain")).record(record(1, filler.as_bytes()));
    records.producer(77, 0, number * 2).build().unwrap()
}
