//! The mirror from one host to another: what it copies is the source's, byte for byte and epoch for epoch; where it must not
//! go on it stops in the state that says so, and writes nothing.

mod chains;
mod copies;
mod follows;
mod pair;
mod redacting;
mod stops;
mod together;
mod watermark;
