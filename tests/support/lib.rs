//! Support for the whole-system suites.
