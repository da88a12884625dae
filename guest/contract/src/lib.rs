//! The contract of wit/ as plain Rust types, without WebAssembly.
#![no_std]
