//! Which changes of state are worth a line.

use std::collections::HashMap;

use verbatim::mirror::mirror::state::{PartitionStatus, State};

/// What was told last of each partition.
#[derive(Debug, Default)]
pub(in super::super) struct News {
    told: HashMap<(String, i32), (State, Option<String>)>,
}

impl News {
    /// True if it is to be told. It is not for looking around without a reason, for going on after having been caught up,
    /// which a live topic does all the time, and for what was told last.
    pub(in super::super) fn is_news(&mut self, status: &PartitionStatus) -> bool {
        let now = (status.state, status.reason.clone());
        let partition = (status.topic.clone(), status.partition);
        let told = self.told.get(&partition);
        let is_routine = match now {
            (State::Aligning, None) => true,
            (State::Mirroring, None) => told.is_some_and(|(state, _)| *state == State::CaughtUp),
            _ => false,
        };
        if is_routine || told == Some(&now) {
            return false;
        }
        self.told.insert(partition, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::status;
    use super::*;

    #[test]
    fn what_is_routine_or_was_told_is_no_news() {
        let mut news = News::default();
        let mut is_news = |partition: i32, state: State, reason: Option<&str>| {
            news.is_news(&PartitionStatus {
                reason: reason.map(str::to_owned),
                ..status("a", partition, state)
            })
        };
        assert!(!is_news(0, State::Aligning, None));
        assert!(is_news(0, State::Mirroring, None));
        assert!(is_news(0, State::CaughtUp, None));
        assert!(!is_news(0, State::Mirroring, None));
        assert!(!is_news(0, State::CaughtUp, None));
        assert!(is_news(1, State::CaughtUp, None));
        assert!(is_news(0, State::Waiting, Some("x")));
        assert!(!is_news(0, State::Aligning, None));
        assert!(!is_news(0, State::Waiting, Some("x")));
        assert!(is_news(0, State::Waiting, Some("y")));
        assert!(is_news(0, State::Mirroring, None));
        assert!(is_news(0, State::Failed, Some("y")));
    }
}
