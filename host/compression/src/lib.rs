//! Kafka codecs for record batches, inflated piece by piece within limits.
