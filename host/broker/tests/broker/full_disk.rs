//! One operator's and two writers' day on a disk that fails at its first operation, at its second, and so on: once, or by
//! being full from there on until there is room again. What fails is refused with 56 and the cause, and leaves everything
//! as it was; asked again it goes well, without a restart unless the partition is offline by name; and nothing that was
//! acknowledged is lost, also not by a power loss at the day's end.

mod day;

use verbatim_test_disk::{Fault, Kind, Loss, SimDisk};

use crate::support::Host;
use day::{Day, Step};

#[tokio::test(flavor = "multi_thread")]
async fn whatever_fails_once_is_refused_and_goes_well_afterwards() {
    let faults = [Fault::Full, Fault::Fail, Fault::Tear, Fault::Late];
    let (first, stride) = sweep();
    for round in if stride == 1 { 0..faults.len() } else { 0..1 } {
        for (index, operation) in (usize::try_from(first).unwrap() + round..)
            .zip((first % stride..).step_by(usize::try_from(stride).unwrap()))
        {
            let fault = faults[index % faults.len()];
            let hint = format!("{fault:?} at operation {operation}");
            if !run(operation, &hint, |disk| disk.set_fault(operation, fault)).await.reached {
                assert!(operation > 200, "only {operation} operations");
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_full_disk_everything_is_refused_and_goes_well_once_there_is_room() {
    let (first, stride) = sweep();
    for operation in (first % stride..).step_by(usize::try_from(stride).unwrap()) {
        let ran = run(operation, &format!("full from operation {operation} on"), |disk| {
            let from = disk.operations() + operation;
            disk.set_rule(move |operation| {
                let grows = matches!(operation.kind, Kind::Create | Kind::Write | Kind::CreateFolder);
                (grows && operation.number >= from).then_some(Fault::Full)
            });
        })
        .await;
        assert!(!ran.restarted, "a full disk takes no partition offline, operation {operation}");
        if !ran.reached {
            assert!(operation > 200, "only {operation} operations");
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_starts_on_a_full_disk_is_offline_by_name_and_whole_once_there_is_room() {
    let disk = SimDisk::new(0);
    let host = Host::on(disk.process()).await;
    let mut day = Day::default();
    for step in Step::ALL.into_iter().take_while(|step| *step != Step::DeletePlain) {
        assert_eq!(day.take(&host, step).await.0, 0, "{step:?}");
        day.taken(step);
    }
    disk.power_loss(Loss::Everything);
    disk.set_rule(|operation| matches!(operation.kind, Kind::Create | Kind::Write).then_some(Fault::Full));
    let host = host.crash(disk.process()).await;
    for name in ["plain", "copy"] {
        assert!(host.metadata(name).await.partitions.iter().all(|partition| partition.error_code == 5));
        let answer = host.produce(name, &crate::support::batch(0, 0, &["lost"]), None).await;
        let text = answer.error_message.unwrap_or_default().to_string();
        assert!(answer.error_code == 56 && text.contains("no space left on the disk"), "{text}");
    }
    disk.clear_faults();
    let host = host.restart().await;
    day.check(&host, "after a start with room").await;
    assert!(host.metadata("plain").await.partitions.iter().all(|partition| partition.error_code == 0));
}

/// The operation to begin with, and how many are passed over each time: none in the long runs.
fn sweep() -> (u64, u64) {
    let given = std::env::var("VERBATIM_SEED").ok().map(|seed| seed.parse().unwrap());
    let seed = given.unwrap_or_else(|| u64::from(uuid::Uuid::new_v4().as_fields().0));
    println!("VERBATIM_SEED={seed}");
    if std::env::var_os("VERBATIM_SOAK").is_some() { (0, 1) } else { (seed % 1_000, 5) }
}

/// What became of a day.
#[derive(Clone, Copy, Debug)]
struct Ran {
    /// There were so many operations that it came to the failure.
    reached: bool,
    /// The host had to be started again.
    restarted: bool,
}

/// The day on a disk that `fail` makes fail at some operation.
async fn run(operation: u64, hint: &str, fail: impl FnOnce(&SimDisk)) -> Ran {
    let disk = SimDisk::new(operation);
    let mut host = Host::on(disk.process()).await;
    let (mut day, mut failed, mut restarted) = (Day::default(), false, false);
    let from = disk.operations() + operation;
    fail(&disk);
    for step in Step::ALL {
        let mut answer = day.take(&host, step).await;
        if answer.0 != 0 {
            assert!(!failed, "{hint}: {step:?} fails too, {answer:?}");
            failed = true;
            check_refusal(step, &answer, hint);
            day.check(&host, hint).await;
            disk.clear_faults();
            answer = day.take(&host, step).await;
            if answer.0 == 56 && answer.1.contains("offline") {
                host = host.restart().await;
                restarted = true;
                answer = day.take(&host, step).await;
            }
        }
        assert_eq!(answer.0, 0, "{hint}: {step:?}, {answer:?}");
        day.taken(step);
        day.check(&host, hint).await;
    }
    let reached = disk.operations() > from;
    disk.power_loss(Loss::Everything);
    let host = host.crash(disk.process()).await;
    day.check(&host, hint).await;
    Ran { reached, restarted }
}

fn check_refusal(step: Step, (code, text): &(i16, String), hint: &str) {
    assert_eq!(*code, 56, "{hint}: {step:?}, {text}");
    let named = ["no space left on the disk", "the disk fails"].iter().any(|cause| text.contains(cause));
    assert!(named || step == Step::TakeProducerId, "{hint}: {step:?}, {text}");
}
