//! Prints a partition's records, and goes on where the log was truncated: BOOTSTRAP TOPIC PARTITION [OFFSET [EPOCH]].
//!
//! ```text
//! cargo run -p verbatim-mirror --example read -- localhost:9092 orders 0
//! ```
//!
//! Ends with Ctrl-C, and says then with which OFFSET and EPOCH to go on.

use std::error::Error;

use verbatim_mirror::cluster::{Cluster, ClusterConfig, Partition};
use verbatim_mirror::reader::{Position, ReadErrorKind, Reader, ReaderConfig, Record, Seek};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [bootstrap, topic, index, place @ ..] = &arguments[..] else {
        return Err("expected BOOTSTRAP TOPIC PARTITION [OFFSET [EPOCH]]".into());
    };
    let partition = Partition { topic: topic.clone(), index: index.parse()? };
    let from = match place {
        [] => Seek::Beginning,
        [offset] => Seek::To(Position::new(offset.parse()?, None)),
        [offset, epoch, ..] => Seek::To(Position::new(offset.parse()?, Some(epoch.parse()?))),
    };
    let mut reader = Reader::new(Cluster::new(ClusterConfig::new([bootstrap])), ReaderConfig::default());
    reader.assign(&partition, from);
    loop {
        tokio::select! {
            next = reader.next() => match next {
                Ok(record) => print(&record),
                Err(error) => {
                    eprintln!("{error}");
                    let ReadErrorKind::TruncatedPartition { first_truncated: Some(first), .. } = error.kind else {
                        return Err("cannot go on".into());
                    };
                    reader.seek(&partition, Seek::To(first));
                }
            },
            end = tokio::signal::ctrl_c() => {
                end?;
                if let Some(Position { offset, leader_epoch }) = reader.position(&partition) {
                    eprintln!("go on with {offset} {}", leader_epoch.map_or_else(String::new, |epoch| epoch.to_string()));
                }
                return Ok(());
            }
        }
    }
}

fn print(record: &Record) {
    let text = |bytes: &Option<_>| bytes.as_ref().map_or("null".into(), |bytes| format!("{bytes:?}"));
    let epoch = record.leader_epoch.map_or_else(|| "-".to_owned(), |epoch| epoch.to_string());
    println!("{} {epoch} {} {} {}", record.offset, record.timestamp, text(&record.key), text(&record.value));
}
