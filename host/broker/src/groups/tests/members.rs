//! What single members are told.

use super::*;

#[test]
fn two_members_share_one_leaves_and_the_other_gets_all() {
    let mut world = World::new();
    let joined = world.stable(&["a", "b"]);
    assert!(joined.iter().all(|one| one.generation == 1 && one.leader == joined[0].leader));
    let leader = joined.iter().position(|one| one.member_id == one.leader).unwrap();
    assert_eq!(joined[leader].members.len(), 2);
    assert!(joined[1 - leader].members.is_empty());
    let left = &joined[leader];
    let stays = &joined[1 - leader];
    assert_eq!(world.leave(&left.member_id, None), Ok(()));
    assert_eq!(world.heartbeat(who(stays)), Err(ErrorCode::RebalanceInProgress));
    assert_eq!(world.heartbeat(who(left)), Err(ErrorCode::UnknownMemberId));
    let name = stays.member_id.trim_end_matches("-id").to_owned();
    let token = world.join(&again(stays, &member(&name)));
    let joined = world.joined(token);
    assert_eq!((joined.generation, joined.members.len()), (2, 1));
    assert_eq!(joined.leader, joined.member_id);
    let token = world.sync(who(&joined), &[(&joined.member_id, "all")]);
    assert_eq!(world.synced(token).assignment, "all");
    assert_eq!(world.heartbeat(who(&joined)), Ok(()));
    assert_eq!(world.heartbeat(who(stays)), Err(ErrorCode::IllegalGeneration));
}

#[test]
fn a_first_generation_waits_for_more_members_but_not_for_ever() {
    let mut world = World::new();
    let first = world.join(&member("a"));
    world.pass(2_900);
    let second = world.join(&member("b"));
    world.pass(200);
    assert_eq!(world.taken(first), None, "one came meanwhile");
    world.pass(2_800);
    let third = world.join(&member("c"));
    world.pass(REBALANCE_MS);
    let generations = [first, second, third].map(|token| world.joined(token).generation);
    assert_eq!(generations, [1; 3]);
}

#[test]
fn a_member_without_an_id_gets_one_and_comes_again() {
    let mut world = World::new();
    let join = Join { needs_known_id: true, ..member("a") };
    let token = world.join(&join);
    let told = world.joined(token);
    assert_eq!((told.error, told.member_id.as_str()), (ErrorCode::MemberIdRequired, "a-id"));
    let token = world.join(&again(&told, &join));
    world.pass(5_000);
    assert_eq!(world.joined(token).generation, 1);
    // One that does not come again is forgotten.
    let other = Join { needs_known_id: true, ..member("b") };
    let token = world.join(&other);
    let told = world.joined(token);
    world.pass(SESSION_MS);
    let token = world.join(&again(&told, &other));
    assert_eq!(world.joined(token).error, ErrorCode::UnknownMemberId);
}

#[test]
fn an_id_that_is_awaited_delays_the_others_no_longer_than_its_session() {
    let mut world = World::new();
    let token = world.join(&Join { needs_known_id: true, ..member("b") });
    world.joined(token);
    let token = world.join(&member("a"));
    world.pass(SESSION_MS);
    assert_eq!(world.joined(token).generation, 1);
}

#[test]
fn a_member_that_is_not_heard_of_is_gone_after_its_session() {
    let mut world = World::new();
    let joined = world.stable(&["a", "b"]);
    for _ in 0..3 {
        world.pass(SESSION_MS - 1_000);
        let _ = world.heartbeat(who(&joined[0]));
    }
    assert_eq!(world.heartbeat(who(&joined[0])), Err(ErrorCode::RebalanceInProgress));
    assert_eq!(world.heartbeat(who(&joined[1])), Err(ErrorCode::UnknownMemberId));
    world.pass(60_000);
    assert_eq!(world.state(), Some(State::Empty));
}

#[test]
fn who_does_not_ask_for_its_assignment_is_removed_and_the_others_go_on() {
    let mut world = World::new();
    let tokens = ["a", "b"].map(|name| world.join(&member(name)));
    world.pass(9_000);
    let [a, b] = tokens.map(|token| world.joined(token));
    let (leader, other) = if a.leader == a.member_id { (a, b) } else { (b, a) };
    let waiting = world.sync(who(&other), &[]);
    // The leader lives but hands out nothing.
    for _ in 0..5 {
        world.pass(5_000);
        let _ = world.heartbeat(who(&leader));
    }
    assert_eq!(world.synced(waiting).error, ErrorCode::RebalanceInProgress);
    assert_eq!(world.heartbeat(who(&leader)), Err(ErrorCode::UnknownMemberId));
}

#[test]
fn a_static_member_comes_back_to_its_place_and_fences_what_it_was() {
    let mut world = World::new();
    let fixed =
        |fresh: &str| Join { instance: Some("one".to_owned()), fresh_id: fresh.to_owned(), ..member("s") };
    let token = world.join(&fixed("s-1"));
    world.pass(9_000);
    let first = world.joined(token);
    let token = world.sync(Who { instance: Some("one"), ..who(&first) }, &[("s-1", "mine")]);
    assert_eq!(world.synced(token).assignment, "mine");
    let token = world.join(&fixed("s-2"));
    let second = world.joined(token);
    assert_eq!((second.error, second.generation), (ErrorCode::None, first.generation));
    assert_ne!(second.leader, second.member_id, "it must not hand out anything anew");
    let now = Who { instance: Some("one"), ..who(&second) };
    let token = world.sync(now, &[]);
    assert_eq!(world.synced(token).assignment, "mine");
    let before = Who { instance: Some("one"), ..who(&first) };
    assert_eq!(world.heartbeat(before), Err(ErrorCode::FencedInstanceId));
    assert_eq!(world.commit(before), Err(ErrorCode::FencedInstanceId));
    assert_eq!(world.leave("s-1", Some("one")), Err(ErrorCode::FencedInstanceId));
    let token = world.join(&Join { may_skip: true, ..fixed("s-3") });
    let third = world.joined(token);
    assert!(third.skip_assignment && third.leader == third.member_id && third.members.len() == 1);
    assert_eq!(world.leave("", Some("one")), Ok(()));
    assert_eq!(world.state(), Some(State::Empty));
}

#[test]
fn the_protocol_that_most_want_is_chosen_and_strangers_are_refused() {
    let mut world = World::new();
    let wants = |name: &str, protocols: &[&str]| Join {
        protocols: protocols.iter().map(|name| ((*name).to_owned(), Bytes::new())).collect(),
        ..member(name)
    };
    let tokens = [
        world.join(&wants("a", &["x", "y", "z"])),
        world.join(&wants("b", &["z", "y"])),
        world.join(&wants("c", &["y", "z"])),
    ];
    let stranger = world.join(&wants("d", &["w"]));
    assert_eq!(world.joined(stranger).error, ErrorCode::InconsistentGroupProtocol);
    let stranger = world.join(&Join { protocol_type: "connect".to_owned(), ..wants("e", &["y"]) });
    assert_eq!(world.joined(stranger).error, ErrorCode::InconsistentGroupProtocol);
    world.pass(20_000);
    assert!(tokens.into_iter().all(|token| world.joined(token).protocol.as_deref() == Some("y")));
}

#[test]
fn a_second_request_of_a_member_takes_the_place_of_the_first() {
    let mut world = World::new();
    let first = world.join(&member("a"));
    let second = world.join(&Join { member_id: "a-id".to_owned(), ..member("a") });
    assert_eq!(world.joined(first).error, ErrorCode::RebalanceInProgress);
    world.pass(9_000);
    let joined = world.joined(second);
    assert_eq!(joined.generation, 1);
    // The answer was lost: the same request is told the same.
    let token = world.join(&again(&joined, &member("a")));
    assert_eq!(world.joined(token), joined);
}

#[test]
fn offsets_are_committed_by_members_of_the_generation_or_where_there_are_none() {
    let mut world = World::new();
    let nobody = Who { member_id: "", instance: None, generation: -1 };
    let stale = Who { member_id: "a-id", instance: None, generation: 7 };
    assert_eq!(world.commit(nobody), Ok(()));
    assert_eq!(world.commit(stale), Err(ErrorCode::IllegalGeneration));
    let joined = world.stable(&["a"]).remove(0);
    assert_eq!(world.commit(nobody), Err(ErrorCode::UnknownMemberId));
    assert_eq!(world.commit(stale), Err(ErrorCode::IllegalGeneration));
    assert_eq!(world.commit(who(&joined)), Ok(()));
    let token = world.join(&member("b"));
    assert_eq!(world.commit(who(&joined)), Ok(()), "before it joins again");
    world.join(&again(&joined, &member("a")));
    assert_eq!(world.commit(who(&joined)), Err(ErrorCode::IllegalGeneration));
    let other = world.joined(token);
    assert_eq!(world.commit(who(&other)), Err(ErrorCode::RebalanceInProgress));
    world.pass(120_000);
    assert_eq!(world.commit(nobody), Ok(()));
}

#[test]
fn members_groups_and_bytes_are_bounded() {
    let mut world = World::new();
    for name in ["a", "b", "c", "d"] {
        world.join(&member(name));
    }
    let token = world.join(&member("e"));
    assert_eq!(world.joined(token).error, ErrorCode::GroupMaxSizeReached);
    let token = world.join(&Join { session_ms: 5_999, ..member("e") });
    assert_eq!(world.joined(token).error, ErrorCode::InvalidSessionTimeout);
    for group in ["h", "i"] {
        world.join_group(group, &member("a"));
    }
    let token = world.join_group("j", &member("a"));
    assert_eq!(world.joined(token).error, ErrorCode::GroupMaxSizeReached);
    let large = Join { protocols: vec![("range".to_owned(), Bytes::from(vec![0; 20_000]))], ..member("b") };
    let token = world.join_group("i", &large);
    assert_eq!(world.joined(token).error, ErrorCode::GroupMaxSizeReached);
    // What is unused makes room.
    world.pass(400_000);
    let token = world.join_group("j", &member("a"));
    world.pass(9_000);
    assert_eq!(world.joined(token).error, ErrorCode::None);
    for id in ["", &"x".repeat(1_001)] {
        let token = world.join_group(id, &member("a"));
        assert_eq!(world.joined(token).error, ErrorCode::InvalidGroupId);
    }
}

#[test]
fn a_group_is_deleted_only_without_members() {
    let mut world = World::new();
    assert_eq!(world.coordinator.delete("g"), Ok(false));
    let joined = world.stable(&["a"]).remove(0);
    assert_eq!(world.coordinator.delete("g"), Err(ErrorCode::NonEmptyGroup));
    assert_eq!(world.leave(&joined.member_id, None), Ok(()));
    assert_eq!(world.state(), Some(State::Empty));
    assert_eq!(world.coordinator.delete("g"), Ok(true));
    assert_eq!((world.state(), world.coordinator.deadline()), (None, None));
}
