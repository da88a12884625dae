//! One partition'"s.
