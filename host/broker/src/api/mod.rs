//! One file per API key, named by its number. Each says at its head which versions it serves, what it does, and what it
//! leaves out.

mod configs;
mod group_fields;
mod k00_produce;
mod k01_fetch;
mod k02_list_offsets;
mod k03_metadata;
mod k08_offset_commit;
mod k09_offset_fetch;
mod k10_find_coordinator;
mod k11_join_group;
mod k12_heartbeat;
mod k13_leave_group;
mod k14_sync_group;
mod k15_describe_groups;
mod k16_list_groups;
mod k18_api_versions;
mod k19_create_topics;
mod k20_delete_topics;
mod k21_delete_records;
mod k22_init_producer_id;
mod k23_offset_for_leader_epoch;
mod k32_describe_configs;
mod k33_alter_configs;
mod k35_describe_log_dirs;
mod k37_create_partitions;
mod k42_delete_groups;
mod k44_incremental_alter_configs;
mod k47_offset_delete;
mod k48_describe_client_quotas;
mod k49_alter_client_quotas;
mod k60_describe_cluster;
mod k61_describe_producers;
mod k74_list_config_resources;
mod k75_describe_topic_partitions;
mod operations;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use verbatim_batch::{Attributes, Codec};
use verbatim_log::View;
use verbatim_wire::error::ErrorCode;
use verbatim_wire::server::{Event, Reply, ReplyFuture, RequestContext, Service};
use verbatim_wire::{ApiKey, Request, Response};

use crate::errors::ApiError;
use crate::metrics::Watch;
use crate::shared::Shared;

/// The broker as the server's end of the wire sees it.
pub(crate) struct Apis(pub(crate) Arc<Shared>);

impl Service for Apis {
    async fn admit(&self, context: RequestContext, request: Request) -> ReplyFuture {
        let watch = Watch::begin(request.key());
        let reply = admit(Arc::clone(&self.0), context, request).await;
        watch.over(&self.0, reply)
    }

    fn observe(&self, event: Event) {
        self.0.metrics.observe(event);
    }
}

async fn admit(shared: Arc<Shared>, context: RequestContext, request: Request) -> ReplyFuture {
    match request {
        // Appends are queued now and changes are made now, in the order of the requests, so that a write behind the
        // creation of its topic finds it. Reads happen when their turn to answer comes.
        Request::Produce(request) => k00_produce::admit(&shared, context, request).await,
        Request::Fetch(request) => k01_fetch::admit(shared, context, request),
        Request::OffsetCommit(request) => k08_offset_commit::admit(&shared, request).await,
        Request::JoinGroup(request) => k11_join_group::admit(&shared, &context, request),
        Request::SyncGroup(request) => k14_sync_group::admit(&shared, &request),
        change if changes_something(change.key()) => {
            let reply = finish(shared, context.head.version, change).await;
            Box::pin(std::future::ready(reply))
        }
        other => Box::pin(async move { Reply::Answer(answer(&shared, context.head.version, other).await) }),
    }
}

/// A change is finished even if the client that asked for it goes away meanwhile.
async fn finish(shared: Arc<Shared>, version: i16, request: Request) -> Reply {
    let finished = tokio::spawn(async move { answer(&shared, version, request).await });
    match finished.await {
        Ok(answer) => Reply::Answer(answer),
        Err(error) => Reply::Close { reason: format!("a change failed: {error}") },
    }
}

fn changes_something(key: ApiKey) -> bool {
    matches!(
        key,
        ApiKey::CreateTopics
            | ApiKey::DeleteTopics
            | ApiKey::DeleteRecords
            | ApiKey::AlterConfigs
            | ApiKey::CreatePartitions
            | ApiKey::IncrementalAlterConfigs
            | ApiKey::AlterClientQuotas
            | ApiKey::LeaveGroup
            | ApiKey::DeleteGroups
            | ApiKey::OffsetDelete
    )
}

async fn answer(shared: &Shared, version: i16, request: Request) -> Response {
    match request {
        // Handled before; a second way to it would lose the order.
        Request::Produce(_) => Response::Produce(Default::default()),
        // Handled before, too, since its answer holds room.
        Request::Fetch(_) => Response::Fetch(Default::default()),
        Request::ListOffsets(request) => k02_list_offsets::handle(shared, version, request).await.into(),
        Request::Metadata(request) => k03_metadata::handle(shared, version, request).into(),
        // Handled before, too, since their answers wait for others.
        Request::OffsetCommit(_) => Response::OffsetCommit(Default::default()),
        Request::JoinGroup(_) => Response::JoinGroup(Default::default()),
        Request::SyncGroup(_) => Response::SyncGroup(Default::default()),
        Request::OffsetFetch(request) => k09_offset_fetch::handle(shared, version, request).into(),
        Request::FindCoordinator(request) => k10_find_coordinator::handle(shared, version, request).into(),
        Request::Heartbeat(request) => k12_heartbeat::handle(shared, &request).into(),
        Request::LeaveGroup(request) => k13_leave_group::handle(shared, version, request).into(),
        Request::DescribeGroups(request) => k15_describe_groups::handle(shared, version, request).into(),
        Request::ListGroups(request) => k16_list_groups::handle(shared, &request).into(),
        Request::DeleteGroups(request) => k42_delete_groups::handle(shared, request).await.into(),
        Request::OffsetDelete(request) => k47_offset_delete::handle(shared, request).await.into(),
        Request::ApiVersions(_) => k18_api_versions::handle().into(),
        Request::CreateTopics(request) => k19_create_topics::handle(shared, request).await.into(),
        Request::DeleteTopics(request) => k20_delete_topics::handle(shared, version, request).await.into(),
        Request::DeleteRecords(request) => k21_delete_records::handle(shared, request).await.into(),
        Request::InitProducerId(request) => k22_init_producer_id::handle(shared, &request).into(),
        Request::OffsetForLeaderEpoch(request) => k23_offset_for_leader_epoch::handle(shared, request).into(),
        Request::DescribeConfigs(request) => k32_describe_configs::handle(shared, request).into(),
        Request::AlterConfigs(request) => k33_alter_configs::handle(shared, request).await.into(),
        Request::DescribeLogDirs(request) => k35_describe_log_dirs::handle(shared, request).await.into(),
        Request::CreatePartitions(request) => k37_create_partitions::handle(shared, request).await.into(),
        Request::IncrementalAlterConfigs(request) => {
            k44_incremental_alter_configs::handle(shared, request).await.into()
        }
        Request::DescribeClientQuotas(request) => k48_describe_client_quotas::handle(shared, &request).into(),
        Request::AlterClientQuotas(request) => k49_alter_client_quotas::handle(shared, request).into(),
        Request::DescribeCluster(request) => k60_describe_cluster::handle(shared, version, &request).into(),
        Request::DescribeProducers(request) => k61_describe_producers::handle(shared, request).await.into(),
        Request::ListConfigResources(request) => {
            k74_list_config_resources::handle(shared, version, &request).into()
        }
        Request::DescribeTopicPartitions(request) => {
            k75_describe_topic_partitions::handle(shared, &request).into()
        }
    }
}

/// The broker's wall clock, milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
}

/// R32: a reader that names the leader epoch it knows must know the shown one; -1 names none.
pub(crate) fn check_leader_epoch(view: &View, current: i32) -> Result<(), ApiError> {
    let shown = view.shown_epoch;
    if current < 0 || current == shown {
        return Ok(());
    }
    let code = if current < shown { ErrorCode::FencedLeaderEpoch } else { ErrorCode::UnknownLeaderEpoch };
    Err(ApiError::new(code, format!("the leader epoch is {shown}, current_leader_epoch=`{current}`")))
}

/// Whether reads end at the stable offset: isolation level 1, read_committed, as opposed to 0, read_uncommitted.
fn is_committed(isolation_level: i8) -> Result<bool, ApiError> {
    match isolation_level {
        0 => Ok(false),
        1 => Ok(true),
        other => {
            let text = format!("isolation_level must be 0 or 1, isolation_level=`{other}`");
            Err(ApiError::new(ErrorCode::InvalidRequest, text))
        }
    }
}

/// Only topics have properties that can be changed; `names` are those that were to be.
fn only_topics<'a>(resource_type: i8, names: impl Iterator<Item = &'a str>) -> Result<(), ApiError> {
    if resource_type == configs::TOPIC {
        return Ok(());
    }
    let names = names.collect::<Vec<_>>().join(", ");
    let text = format!(
        "resource_type must be 2 (topic), nothing else can be changed while the host runs, \
         resource_type=`{resource_type}`, properties=`{names}`"
    );
    Err(ApiError::new(ErrorCode::InvalidRequest, text))
}

/// Inflates a stored batch's records for a search in them.
fn inflate(codec: Codec, payload: &[u8], limit: usize) -> Result<Bytes, String> {
    let attributes = Attributes::default().with_codec(codec);
    verbatim_compression::inflate(attributes, Bytes::copy_from_slice(payload), limit)
        .map_err(|error| error.to_string())
}
