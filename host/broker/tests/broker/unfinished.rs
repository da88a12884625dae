//! What a crash left in the middle of a change is finished, or taken back, by the next start.

use std::path::Path;
use std::sync::Arc;

use verbatim_broker::{Broker, Config, NativeJudges};
use verbatim_log::{DiskIo, folder};
use verbatim_policy::ExactMirroring;

use crate::support::{DELETE, Host, batch, order};

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_left_half_made_or_half_deleted_goes_with_its_folders() {
    for state in ["creating", "deleting"] {
        let host = Host::start().await;
        host.create("half", 2, &[]).await;
        host.create("whole", 1, &[]).await;
        let data = host.data();
        let left = host.stop().await;
        set_state(&data, "half", state);
        std::fs::remove_dir_all(data.join("half-1")).unwrap();
        let host = Host::start_in(left).await;
        assert_eq!(host.metadata("half").await.error_code, 3, "{state}");
        assert!(!data.join("half-0").exists(), "{state}");
        assert_eq!(host.metadata("whole").await.error_code, 0, "{state}");
        assert_eq!(host.create("half", 1, &[]).await.0, 0, "{state}: the name is free");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_promotion_goes_on_where_it_stopped() {
    let host = Host::start().await;
    host.exact("copy", &[]).await;
    host.write("copy", &batch(10, 4, &["a"]), &order((0, -1), (20, 6))).await;
    let data = host.data();
    let left = host.stop().await;
    // Step 3 of it: decided, and no partition done yet.
    set_state(&data, "copy", "promoting");
    edit(&data, "\"produce.at.offset\": \"true\"", "\"retention.ms\": \"1000\"");
    let host = Host::start_in(left).await;
    assert_eq!(host.shown("copy").await, 7);
    let answer = host.produce("copy", &batch(0, 0, &["b"]), None).await;
    assert_eq!((answer.error_code, answer.base_offset), (0, 11));
    let left = host.stop().await;
    // After the log was promoted, but before the catalogue said that it is done.
    set_state(&data, "copy", "promoting");
    let host = Host::start_in(left).await;
    assert_eq!(host.produce("copy", &batch(0, 0, &["c"]), None).await.base_offset, 12);
    assert_eq!(
        host.epoch_end("copy", 6, -1).await,
        (0, 4, 11),
        "epochs before the promotion are as they were"
    );
    assert_eq!(host.alter("copy", &[("produce.at.offset", DELETE, None)], false).await.0, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_in_use_or_of_a_newer_version_is_refused_by_name() {
    let host = Host::start().await;
    let data = host.data();
    let second = start(&data).await.err().unwrap();
    assert!(second.contains("in use"), "{second}");
    let _left = host.stop().await;
    let (_, content) =
        folder::read_checked(&DiskIo, &data.join("catalogue"), "catalogue", 1).unwrap().unwrap();
    folder::atomic_replace(&DiskIo, &data.join("catalogue"), "catalogue", 2, &content).unwrap();
    let newer = start(&data).await.err().unwrap();
    assert!(newer.contains("version 2"), "{newer}");
}

async fn start(data: &Path) -> Result<Broker, String> {
    let config = Config::new(data.to_owned(), ([127, 0, 0, 1], 0).into());
    Broker::start(config, Arc::new(NativeJudges(ExactMirroring))).await.map_err(|error| error.to_string())
}

/// Writes another state of a topic into the catalogue, as a crash would have left it.
fn set_state(data: &Path, topic: &str, state: &str) {
    let content = read(data);
    let mut catalogue: serde_json::Value = serde_json::from_str(&content).unwrap();
    let topics = catalogue["topics"].as_array_mut().unwrap();
    let found = topics.iter_mut().find(|found| found["name"] == topic).unwrap();
    found["state"] = state.into();
    write(data, &serde_json::to_string_pretty(&catalogue).unwrap());
}

fn edit(data: &Path, from: &str, to: &str) {
    let content = read(data);
    assert!(content.contains(from), "{content}");
    write(data, &content.replace(from, to));
}

fn read(data: &Path) -> String {
    let (_, content) =
        folder::read_checked(&DiskIo, &data.join("catalogue"), "catalogue", 1).unwrap().unwrap();
    String::from_utf8(content).unwrap()
}

fn write(data: &Path, content: &str) {
    folder::atomic_replace(&DiskIo, &data.join("catalogue"), "catalogue", 1, content.as_bytes()).unwrap();
}
