//! Apache Kafka's own command-line tools, on a host and on Apache Kafka alike.
