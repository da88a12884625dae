//! What the property tests of this crate share.
#![expect(clippy::expect_used, reason = "tests")]

use std::time::{SystemTime, UNIX_EPOCH};

use proptest::test_runner::{Config, RngSeed};

/// So many cases, whose seed is `VERBATIM_SEED`, else of the moment; it is printed with a test that fails.
pub(crate) fn cases(cases: u32) -> Config {
    let clock =
        || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| u64::from(now.subsec_nanos()));
    let seed = std::env::var("VERBATIM_SEED")
        .map_or_else(|_| clock(), |text| text.parse().expect("VERBATIM_SEED must be a number"));
    println!("replay with VERBATIM_SEED={seed}");
    Config { cases, failure_persistence: None, rng_seed: RngSeed::Fixed(seed), ..Config::default() }
}
