//! The exact-mirroring module: WIT bindings around the admission policy.
