//! The whole-system suites.
