//! The `exact-mirroring` module: the rules of `verbatim-policy` as a component.

verbatim_kit::module!(verbatim_kit::ExactMirroring, membership);
