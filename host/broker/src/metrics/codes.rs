//! Which error codes an answer contains.

use verbatim_wire::Response;
use verbatim_wire::error::ErrorCode;
use verbatim_wire::server::Reply;

/// Places of codes: -1 to 133 by rising number, then all others together.
pub(super) const PLACES: usize = 136;
/// The place of codes that have none of their own.
const OTHER: usize = PLACES - 1;

/// A set of places; NONE is in it if no other is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Codes([u64; 3]);

/// The name of a place, as Kafka calls the code.
pub(super) fn place_name(place: usize) -> &'static str {
    let number = i16::try_from(place).unwrap_or(i16::MAX).saturating_sub(1);
    ErrorCode::from_number(number).filter(|_| place != OTHER).map_or("OTHER", ErrorCode::name)
}

impl Codes {
    /// Those in a reply. A connection that is closed instead of an answer counts as UNKNOWN_SERVER_ERROR.
    pub(super) fn of(reply: &Reply) -> Self {
        let mut codes = Self::default();
        match reply {
            Reply::Answer(answer) => codes.read(answer),
            Reply::Silent => {}
            Reply::Close { .. } => codes.add(ErrorCode::UnknownServerError.number()),
            Reply::Muted { reply, .. } => return Self::of(reply),
        }
        if codes == Self::default() {
            codes.set(place(ErrorCode::None.number()));
        }
        codes
    }

    /// The places in it.
    pub(super) fn places(self) -> impl Iterator<Item = usize> {
        let words = (0_usize..).step_by(64).zip(self.0).filter(|(_, word)| *word != 0);
        let bits = |(from, word): (usize, u64)| {
            (0..64_usize).filter(move |bit| word >> bit & 1 == 1).map(move |bit| from.saturating_add(bit))
        };
        words.flat_map(bits)
    }

    fn add(&mut self, code: i16) {
        if code != 0 {
            self.set(place(code));
        }
    }

    fn set(&mut self, place: usize) {
        if let Some(word) = self.0.get_mut(place / 64) {
            *word |= 1 << (place % 64);
        }
    }

    fn read(&mut self, answer: &Response) {
        match answer {
            Response::Produce(answer) => {
                let parts = answer.responses.iter().flat_map(|topic| &topic.partition_responses);
                parts.for_each(|part| self.add(part.error_code));
            }
            Response::Fetch(answer) => {
                self.add(answer.error_code);
                let parts = answer.responses.iter().flat_map(|topic| &topic.partitions);
                parts.for_each(|part| self.add(part.error_code));
            }
            Response::ListOffsets(answer) => {
                let parts = answer.topics.iter().flat_map(|topic| &topic.partitions);
                parts.for_each(|part| self.add(part.error_code));
            }
            Response::OffsetForLeaderEpoch(answer) => {
                let parts = answer.topics.iter().flat_map(|topic| &topic.partitions);
                parts.for_each(|part| self.add(part.error_code));
            }
            Response::DeleteRecords(answer) => {
                let parts = answer.topics.iter().flat_map(|topic| &topic.partitions);
                parts.for_each(|part| self.add(part.error_code));
            }
            Response::DescribeProducers(answer) => {
                let parts = answer.topics.iter().flat_map(|topic| &topic.partitions);
                parts.for_each(|part| self.add(part.error_code));
            }
            Response::Metadata(answer) => {
                for topic in &answer.topics {
                    self.add(topic.error_code);
                    topic.partitions.iter().for_each(|part| self.add(part.error_code));
                }
            }
            Response::DescribeTopicPartitions(answer) => {
                for topic in &answer.topics {
                    self.add(topic.error_code);
                    topic.partitions.iter().for_each(|part| self.add(part.error_code));
                }
            }
            Response::OffsetCommit(_)
            | Response::OffsetFetch(_)
            | Response::JoinGroup(_)
            | Response::Heartbeat(_)
            | Response::LeaveGroup(_)
            | Response::SyncGroup(_)
            | Response::DescribeGroups(_)
            | Response::ListGroups(_)
            | Response::DeleteGroups(_)
            | Response::OffsetDelete(_) => self.read_group(answer),
            flat => self.read_flat(flat),
        }
    }

    /// Answers about groups.
    fn read_group(&mut self, answer: &Response) {
        match answer {
            Response::OffsetCommit(answer) => {
                let parts = answer.topics.iter().flat_map(|topic| &topic.partitions);
                parts.for_each(|part| self.add(part.error_code));
            }
            Response::OffsetFetch(answer) => {
                self.add(answer.error_code);
                let parts = answer.topics.iter().flat_map(|topic| &topic.partitions);
                parts.for_each(|part| self.add(part.error_code));
                for group in &answer.groups {
                    self.add(group.error_code);
                    let parts = group.topics.iter().flat_map(|topic| &topic.partitions);
                    parts.for_each(|part| self.add(part.error_code));
                }
            }
            Response::LeaveGroup(answer) => {
                self.add(answer.error_code);
                answer.members.iter().for_each(|one| self.add(one.error_code));
            }
            Response::OffsetDelete(answer) => {
                self.add(answer.error_code);
                let parts = answer.topics.iter().flat_map(|topic| &topic.partitions);
                parts.for_each(|part| self.add(part.error_code));
            }
            Response::DescribeGroups(answer) => answer.groups.iter().for_each(|one| self.add(one.error_code)),
            Response::DeleteGroups(answer) => answer.results.iter().for_each(|one| self.add(one.error_code)),
            Response::JoinGroup(answer) => self.add(answer.error_code),
            Response::Heartbeat(answer) => self.add(answer.error_code),
            Response::SyncGroup(answer) => self.add(answer.error_code),
            Response::ListGroups(answer) => self.add(answer.error_code),
            _ => {}
        }
    }

    /// Answers without partitions.
    fn read_flat(&mut self, answer: &Response) {
        match answer {
            Response::FindCoordinator(answer) => {
                self.add(answer.error_code);
                answer.coordinators.iter().for_each(|one| self.add(one.error_code));
            }
            Response::DescribeLogDirs(answer) => {
                self.add(answer.error_code);
                answer.results.iter().for_each(|one| self.add(one.error_code));
            }
            Response::CreateTopics(answer) => answer.topics.iter().for_each(|one| self.add(one.error_code)),
            Response::DeleteTopics(answer) => {
                answer.responses.iter().for_each(|one| self.add(one.error_code));
            }
            Response::DescribeConfigs(answer) => {
                answer.results.iter().for_each(|one| self.add(one.error_code));
            }
            Response::AlterConfigs(answer) => {
                answer.responses.iter().for_each(|one| self.add(one.error_code));
            }
            Response::IncrementalAlterConfigs(answer) => {
                answer.responses.iter().for_each(|one| self.add(one.error_code));
            }
            Response::CreatePartitions(answer) => {
                answer.results.iter().for_each(|one| self.add(one.error_code));
            }
            Response::AlterClientQuotas(answer) => {
                answer.entries.iter().for_each(|one| self.add(one.error_code));
            }
            Response::DescribeClientQuotas(answer) => self.add(answer.error_code),
            Response::ListConfigResources(answer) => self.add(answer.error_code),
            Response::ApiVersions(answer) => self.add(answer.error_code),
            Response::InitProducerId(answer) => self.add(answer.error_code),
            Response::DescribeCluster(answer) => self.add(answer.error_code),
            Response::Produce(_)
            | Response::Fetch(_)
            | Response::ListOffsets(_)
            | Response::OffsetForLeaderEpoch(_)
            | Response::DeleteRecords(_)
            | Response::DescribeProducers(_)
            | Response::Metadata(_)
            | Response::DescribeTopicPartitions(_)
            | Response::OffsetCommit(_)
            | Response::OffsetFetch(_)
            | Response::JoinGroup(_)
            | Response::Heartbeat(_)
            | Response::LeaveGroup(_)
            | Response::SyncGroup(_)
            | Response::DescribeGroups(_)
            | Response::ListGroups(_)
            | Response::DeleteGroups(_)
            | Response::OffsetDelete(_) => {}
        }
    }
}

fn place(code: i16) -> usize {
    code.checked_add(1).and_then(|place| usize::try_from(place).ok()).map_or(OTHER, |place| place.min(OTHER))
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
    use kafka_protocol::messages::{DescribeClusterResponse, FetchResponse};

    use super::*;

    fn names(reply: &Reply) -> Vec<&'static str> {
        Codes::of(reply).places().map(place_name).collect()
    }

    #[test]
    fn each_code_counts_once_and_none_only_if_nothing_failed() {
        let fetch = |codes: &[i16]| {
            let part = |code: &i16| PartitionData::default().with_error_code(*code);
            let topic = FetchableTopicResponse::default().with_partitions(codes.iter().map(part).collect());
            Reply::Answer(FetchResponse::default().with_responses(vec![topic]).into())
        };
        assert_eq!(names(&fetch(&[])), ["NONE"]);
        assert_eq!(names(&fetch(&[0, 0])), ["NONE"]);
        assert_eq!(
            names(&fetch(&[3, 0, 78, 3, 120])),
            ["UNKNOWN_TOPIC_OR_PARTITION", "OFFSET_NOT_AVAILABLE", "TRANSACTION_ABORTABLE"]
        );
        assert_eq!(names(&fetch(&[i16::MIN, i16::MAX, 134, -2])), ["OTHER"]);
    }

    #[test]
    fn replies_that_are_no_answers_count_too() {
        assert_eq!(names(&Reply::Silent), ["NONE"]);
        assert_eq!(names(&Reply::Close { reason: String::new() }), ["UNKNOWN_SERVER_ERROR"]);
        let muted = Reply::Answer(DescribeClusterResponse::default().with_error_code(42).into())
            .muted(std::time::Duration::from_secs(1));
        assert_eq!(names(&muted), ["INVALID_REQUEST"]);
    }

    #[test]
    fn every_code_that_the_wire_knows_has_a_place_with_its_name() {
        for code in ErrorCode::ALL {
            assert_eq!(place_name(place(code.number())), code.name());
        }
    }
}
