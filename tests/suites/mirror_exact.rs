//! The mirror from a real Apache Kafka: every `.log` file of the copy is the broker's own, byte for byte, and the copy answers
//! every question as the source does.

mod captures;
mod cluster;
mod compare;
mod every_kind;
