//! The disk of these tests.

pub(crate) use verbatim_test_disk::{Fault, Kind, Loss, SimDisk as Disk};
