//! Runs scenario files against any admission policy, native or component.
