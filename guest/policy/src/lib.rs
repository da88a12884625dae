//! Every admission rule, normal and exact mode, in plain Rust.
#![no_std]
