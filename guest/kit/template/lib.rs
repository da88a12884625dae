//! The module `MODULE_NAME`: every rule of normal and exact topics, and before them one of its own.

use verbatim_kit::{
    Batch, Callbacks, Description, EpochEntry, ExactMirroring, Policy, Position, ProducePath, Reason, Refusal,
    Request, description, numbered, refuse, setting,
};

/// The most records of a batch, unless the topic says otherwise.
const RECORDS_MAX: i32 = 100;

/// The topic's setting that says otherwise.
const RECORDS_MAX_KEY: &str = "MODULE_NAME.records.max";

/// A batch holds so many records at most.
pub struct Rules;

verbatim_kit::module!(Rules);

impl ProducePath for Rules {
    fn produce(
        &self,
        policy: &Policy,
        position: &Position,
        request: &Request,
        entries: &[EpochEntry],
        batches: &[Batch],
        log: &mut dyn Callbacks,
    ) -> Result<(), Refusal> {
        let max = setting(log, RECORDS_MAX_KEY, RECORDS_MAX)?;
        for (index, batch) in numbered(batches) {
            let count = batch.header.record_count;
            if count > max {
                let expectation = format!("a batch holds {max} records at most");
                let refusal = refuse(Reason::Other(87), expectation, "recordCount", count);
                return Err(refusal.of_batch(index).expecting(i64::from(max)));
            }
        }
        ExactMirroring.produce(policy, position, request, entries, batches, log)
    }

    fn describe(&self) -> Description {
        description!()
    }
}

#[cfg(test)]
mod tests {
    use verbatim_kit::batch::{BatchBuilder, NewRecord};
    use verbatim_kit::testing::{Call, Settled};

    use super::*;

    fn call(records: i32) -> Call {
        let batch = (0..records).fold(BatchBuilder::new(0), |batch, offset| batch.record(NewRecord::new(offset, 0)));
        Call::normal().batch(&batch.build().unwrap())
    }

    #[test]
    fn a_batch_of_some_records_is_placed() {
        let judged = call(RECORDS_MAX).judge(&Rules);
        assert_eq!(judged.verdict, Ok(()));
        assert!(matches!(judged.settled[..], [Settled::Appended(0, placement)] if placement.base_offset == 0));
    }

    #[test]
    fn one_of_too_many_is_refused() {
        let refusal = call(RECORDS_MAX + 1).judge(&Rules).verdict.unwrap_err();
        assert_eq!((refusal.reason, refusal.batch), (Reason::Other(87), Some(0)));
        assert_eq!(refusal.text, "a batch holds 100 records at most, recordCount=`101`");
    }

    #[test]
    fn the_topic_may_say_how_many() {
        assert!(call(2).config(RECORDS_MAX_KEY, "1").judge(&Rules).verdict.is_err());
        assert!(call(200).config(RECORDS_MAX_KEY, "200").judge(&Rules).verdict.is_ok());
    }
}
