//! Consumer groups over the wire: members, committed offsets, and what tools ask.

mod offsets;

use verbatim_wire::ApiKey;
use verbatim_wire::client::Connection;
use verbatim_wire::messages::join_group_request::JoinGroupRequestProtocol;
use verbatim_wire::messages::leave_group_request::MemberIdentity;
use verbatim_wire::messages::sync_group_request::SyncGroupRequestAssignment;
use verbatim_wire::messages::*;
use verbatim_wire::protocol::StrBytes;

use crate::support::{Host, text};

/// A host whose groups do not wait for more members.
async fn host() -> Host {
    Host::with_config(|config| config.group_initial_rebalance_delay = std::time::Duration::ZERO).await
}

fn group(id: &str) -> GroupId {
    GroupId(text(id))
}

fn join_request(id: &str, member: &StrBytes) -> JoinGroupRequest {
    let protocol =
        JoinGroupRequestProtocol::default().with_name(text("range")).with_metadata(subscription(&["plain"]));
    JoinGroupRequest::default()
        .with_group_id(group(id))
        .with_session_timeout_ms(10_000)
        .with_rebalance_timeout_ms(10_000)
        .with_member_id(member.clone())
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![protocol])
}

/// A consumer's metadata in version 0.
fn subscription(topics: &[&str]) -> bytes::Bytes {
    let mut out = vec![0, 0];
    out.extend(i32::try_from(topics.len()).unwrap().to_be_bytes());
    for topic in topics {
        out.extend(i16::try_from(topic.len()).unwrap().to_be_bytes());
        out.extend(topic.as_bytes());
    }
    out.extend([0xff; 4]);
    out.into()
}

/// Joins, with an id that was given first where the version wants that.
async fn join(client: &Connection, version: i16, id: &str, member: &StrBytes) -> JoinGroupResponse {
    let answer = client.send(version, &join_request(id, member)).await.unwrap();
    if answer.error_code != 79 {
        return answer;
    }
    assert!(version >= 4 && member.is_empty() && !answer.member_id.is_empty());
    client.send(version, &join_request(id, &answer.member_id)).await.unwrap()
}

async fn sync(client: &Connection, version: i16, id: &str, joined: &JoinGroupResponse) -> SyncGroupResponse {
    let part = |member: &join_group_response::JoinGroupResponseMember| {
        SyncGroupRequestAssignment::default()
            .with_member_id(member.member_id.clone())
            .with_assignment(member.member_id.clone().into_bytes())
    };
    let request = SyncGroupRequest::default()
        .with_group_id(group(id))
        .with_generation_id(joined.generation_id)
        .with_member_id(joined.member_id.clone())
        .with_assignments(joined.members.iter().map(part).collect());
    client.send(version, &request).await.unwrap()
}

async fn heartbeat(client: &Connection, version: i16, id: &str, joined: &JoinGroupResponse) -> i16 {
    let request = HeartbeatRequest::default()
        .with_group_id(group(id))
        .with_generation_id(joined.generation_id)
        .with_member_id(joined.member_id.clone());
    client.send(version, &request).await.unwrap().error_code
}

async fn leave(client: &Connection, version: i16, id: &str, member: &StrBytes) -> i16 {
    let mut request = LeaveGroupRequest::default().with_group_id(group(id));
    if version >= 3 {
        request.members = vec![MemberIdentity::default().with_member_id(member.clone())];
    } else {
        request.member_id = member.clone();
    }
    let answer = client.send(version, &request).await.unwrap();
    answer.members.first().map_or(answer.error_code, |one| one.error_code)
}

async fn describe(host: &Host, id: &str) -> describe_groups_response::DescribedGroup {
    let request = DescribeGroupsRequest::default().with_groups(vec![group(id)]);
    host.client.call(&request).await.unwrap().groups.remove(0)
}

/// Ids of the groups in these states.
async fn list(host: &Host, states: &[&str]) -> Vec<String> {
    let request =
        ListGroupsRequest::default().with_states_filter(states.iter().map(|state| text(state)).collect());
    let answer = host.client.call(&request).await.unwrap();
    assert!(answer.groups.iter().all(|group| group.group_type.as_str() == "Classic"));
    answer.groups.into_iter().map(|group| group.group_id.to_string()).collect()
}

async fn delete(host: &Host, id: &str) -> i16 {
    let request = DeleteGroupsRequest::default().with_groups_names(vec![group(id)]);
    host.client.call(&request).await.unwrap().results[0].error_code
}

fn versions(key: ApiKey) -> std::ops::RangeInclusive<i16> {
    key.api().min..=key.api().max
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_comes_stays_and_leaves_in_every_version() {
    let host = host().await;
    for version in versions(ApiKey::JoinGroup) {
        let id = format!("group-{version}");
        let capped = |key: ApiKey| version.min(key.api().max);
        let joined = join(&host.client, version, &id, &text("")).await;
        assert_eq!((joined.error_code, joined.generation_id), (0, 1), "JoinGroup v{version}");
        assert_eq!(joined.protocol_name, Some(text("range")));
        assert_eq!((&joined.leader, joined.members.len()), (&joined.member_id, 1));
        let synced = sync(&host.client, capped(ApiKey::SyncGroup), &id, &joined).await;
        assert_eq!((synced.error_code, &synced.assignment[..]), (0, joined.member_id.as_bytes()));
        assert_eq!(heartbeat(&host.client, capped(ApiKey::Heartbeat), &id, &joined).await, 0);
        let described = describe(&host, &id).await;
        assert_eq!((described.error_code, described.group_state.as_str()), (0, "Stable"));
        assert_eq!(described.members[0].client_host.as_str(), "/127.0.0.1");
        assert_eq!(described.members[0].member_assignment, synced.assignment);
        assert_eq!(leave(&host.client, capped(ApiKey::LeaveGroup), &id, &joined.member_id).await, 0);
        assert_eq!(heartbeat(&host.client, capped(ApiKey::Heartbeat), &id, &joined).await, 25);
        assert_eq!(describe(&host, &id).await.group_state.as_str(), "Empty");
    }
    for version in [0, 1, 2, 3] {
        assert_eq!(leave(&host.client, version, "none", &text("x")).await, 25, "LeaveGroup v{version}");
        let nobody = JoinGroupResponse::default().with_member_id(text("x"));
        assert_eq!(heartbeat(&host.client, version, "none", &nobody).await, 25, "Heartbeat v{version}");
        assert_eq!(sync(&host.client, version, "none", &nobody).await.error_code, 25, "SyncGroup v{version}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_members_share_and_when_one_leaves_the_other_gets_all() {
    let host = host().await;
    let first = join(&host.client, 9, "g", &text("")).await;
    assert_eq!(sync(&host.client, 5, "g", &first).await.error_code, 0);
    let other = host.connect().await;
    let coming = tokio::spawn(async move { (join(&other, 9, "g", &text("")).await, other) });
    while heartbeat(&host.client, 4, "g", &first).await != 27 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(describe(&host, "g").await.group_state.as_str(), "PreparingRebalance");
    let again = join(&host.client, 9, "g", &first.member_id).await;
    let (second, other) = coming.await.unwrap();
    assert_eq!((again.generation_id, second.generation_id), (2, 2));
    assert_eq!((again.members.len(), second.members.len()), (2, 0));
    assert_eq!(list(&host, &["completingrebalance"]).await, ["g"]);
    let (a, b) = tokio::join!(sync(&host.client, 5, "g", &again), sync(&other, 5, "g", &second));
    assert_eq!(
        (&a.assignment[..], &b.assignment[..]),
        (again.member_id.as_bytes(), second.member_id.as_bytes())
    );
    assert_eq!(delete(&host, "g").await, 68);
    assert_eq!(leave(&other, 5, "g", &second.member_id).await, 0);
    assert_eq!(heartbeat(&host.client, 4, "g", &again).await, 27);
    let last = join(&host.client, 9, "g", &again.member_id).await;
    assert_eq!((last.generation_id, last.members.len()), (3, 1));
    assert_eq!(leave(&host.client, 5, "g", &last.member_id).await, 0);
    assert_eq!(delete(&host, "g").await, 0);
    assert_eq!((delete(&host, "g").await, list(&host, &[]).await.len()), (69, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_others_is_answered_when_the_host_shuts_down() {
    let host = Host::start().await;
    let client = host.connect().await;
    let waiting = tokio::spawn(async move { join(&client, 9, "g", &text("")).await });
    while describe(&host, "g").await.group_state.as_str() != "PreparingRebalance" {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    host.stop().await;
    assert_eq!(waiting.await.unwrap().error_code, 15);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_too_long_are_refused_and_what_is_long_can_be_told() {
    let host = host().await;
    for id in [String::new(), "x".repeat(1_001)] {
        let joined = host.client.send(9, &join_request(&id, &text(""))).await.unwrap();
        assert_eq!((joined.error_code, describe(&host, &id).await.error_code), (24, 24));
        assert_eq!(delete(&host, &id).await, 24);
        let request = FindCoordinatorRequest::default().with_coordinator_keys(vec![text(&id)]);
        assert_eq!(host.client.send(6, &request).await.unwrap().coordinators[0].error_code, 24);
    }
    let mut request = join_request("g", &text(""));
    request.protocols[0].name = text(&"x".repeat(256));
    assert_eq!(host.client.send(9, &request).await.unwrap().error_code, 42);
    let id = "x".repeat(1_000);
    let joined = join(&host.client, 2, &id, &text("")).await;
    assert_eq!(joined.error_code, 0);
    for version in versions(ApiKey::DescribeGroups) {
        let request = DescribeGroupsRequest::default().with_groups(vec![group(&id), group("none")]);
        let answer = host.client.send(version, &request).await.unwrap();
        let none = if version >= 6 { (69, text("Dead")) } else { (0, text("Dead")) };
        assert_eq!(answer.groups[0].group_state.as_str(), "CompletingRebalance");
        assert_eq!((answer.groups[1].error_code, answer.groups[1].group_state.clone()), none, "v{version}");
    }
    for version in versions(ApiKey::ListGroups) {
        let answer = host.client.send(version, &ListGroupsRequest::default()).await.unwrap();
        assert_eq!((answer.error_code, answer.groups.len()), (0, 1), "ListGroups v{version}");
    }
    for version in versions(ApiKey::DeleteGroups) {
        let request = DeleteGroupsRequest::default().with_groups_names(vec![group("none")]);
        let answer = host.client.send(version, &request).await.unwrap();
        assert_eq!(answer.results[0].error_code, 69, "DeleteGroups v{version}");
    }
}
