//! Kafka protocol: framing, hostile-length checks, versions, error codes, the exact-produce tag, a client.
