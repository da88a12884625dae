//! The whole-system suites: a real host, real clients, crashes and hostile peers.
//!
//! `make test` runs them; `make soak` runs the long ones at full length. A test that needs a program it does not find is
//! skipped, and says so.

mod bombs;
mod busy;
mod clients;
mod clients_foreign;
mod clients_tools;
mod crash;
mod exact_property;
mod exact_topic;
mod exact_writers;
mod fetch_sessions;
mod groups;
mod history;
mod hostile;
mod limits;
mod metrics;
mod mirror_basic;
mod mirror_clients;
mod mirror_command;
mod mirror_exact;
mod mirror_faults;
mod misbehaving;
mod module_new;
mod module_swap;
mod module_test;
mod no_compiler;
mod normal_topic;
mod reader;
mod readme;
mod redact;
mod serve;
mod tidy;
mod verify;
