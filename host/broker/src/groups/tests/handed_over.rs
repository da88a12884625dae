//! What is judged right is handed over at once: who comes while there is no room for it, is judged with.

use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;

use uuid::Uuid;
use verbatim_test_disk::SimDisk;
use verbatim_wire::error::ErrorCode;

use super::super::Groups;
use super::super::asked::Who;
use super::super::keeper::{self, TOGETHER_MAX};
use super::super::offsets::{Committed, Stored};
use super::member;
use crate::config::Config;
use crate::shared::PartitionId;

const NOBODY: Who<'_> = Who { member_id: "", instance: None, generation: -1 };

fn start(disk: &SimDisk) -> (Groups, JoinHandle<()>) {
    let config = Config::new(PathBuf::from("/data"), SocketAddr::from(([127, 0, 0, 1], 0)));
    let io = disk.process();
    io.create_folder(Path::new("/data")).unwrap();
    Groups::start(&config, Path::new("/data"), io, |_| true).unwrap()
}

fn offsets(offset: i64) -> Vec<Stored> {
    let committed = Committed { offset, leader_epoch: 3, metadata: String::new(), at_ms: 5 };
    vec![Stored::new(PartitionId { topic: Uuid::from_u128(7), index: 0 }, committed)]
}

/// Does `act` while there is no room for changes, a member joins then, and there is room again.
async fn meanwhile_joined<T>(groups: &Groups, act: impl Future<Output = T>) -> T {
    let mut rooms = Vec::new();
    for _ in 0..TOGETHER_MAX {
        rooms.push(groups.keeper().room().await);
    }
    let mut act = pin!(act);
    let polled = act.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Pending), "there was no room");
    let _joined = groups.join("g", &member("late"));
    drop(rooms);
    act.await
}

#[tokio::test]
async fn nobody_moves_or_removes_offsets_under_a_member_that_came_meanwhile() {
    let disk = SimDisk::new(1);
    let (groups, thread) = start(&disk);
    let kept = groups.commit("g", NOBODY, offsets(4)).await.unwrap().unwrap();
    keeper::kept(kept).await.unwrap();
    let refused = meanwhile_joined(&groups, groups.commit("g", NOBODY, offsets(9))).await;
    assert_eq!(refused.err(), Some(ErrorCode::UnknownMemberId));
    let there = groups.keeper().offsets().group("g").cloned().unwrap();
    assert_eq!(there.values().map(|one| one.offset).collect::<Vec<_>>(), [4]);

    groups.leave("g", ("late-id", None)).unwrap();
    let refused = meanwhile_joined(&groups, groups.delete("g")).await;
    assert_eq!(refused.map_err(|error| error.code), Err(ErrorCode::NonEmptyGroup));
    assert_eq!(groups.keeper().offsets().group("g"), Some(&there));

    groups.leave("g", ("late-id", None)).unwrap();
    groups.delete("g").await.unwrap();
    assert_eq!(groups.keeper().offsets().group("g"), None);
    groups.keeper().stop().await;
    thread.join().unwrap();
}
