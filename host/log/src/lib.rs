//! One partition's log on disk in Kafka's segment format, with epochs, producers, transactions and recovery.
