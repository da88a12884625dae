//! The broker front end: one file per API key; produce path from wire to engine to log; topics.
