//! Mirrors Kafka topics verbatim: the library facade and the verbatim command.
