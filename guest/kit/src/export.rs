//! The macros that an author writes once.

/// Exports a policy as a component: `module!(MyPolicy)` as the world `module`. What else it exports is named behind it:
/// `membership`, `configuration`, or both. The policy is any expression; it is evaluated at each call, as a module keeps no
/// state.
///
/// A panic is told by `trace`, with its place, before it becomes a trap. Elsewhere than on wasm32 nothing is exported;
/// that the policy implements the traits is checked there too.
///
/// ```
/// # use verbatim_kit::ExactMirroring;
/// verbatim_kit::module!(ExactMirroring, membership);
/// verbatim_kit::module!(ExactMirroring, membership, configuration);
/// ```
#[cfg(not(target_arch = "wasm32"))]
#[macro_export]
macro_rules! module {
    ($policy:expr $(, $export:ident)*) => {
        const _: fn() = || {
            fn judges(_: impl $crate::ProducePath) {}
            judges($policy);
            $($crate::__implements!($export, $policy);)*
        };
    };
}

#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __implements {
    (membership, $policy:expr) => {
        fn decides(_: impl $crate::Membership) {}
        decides($policy);
    };
    (configuration, $policy:expr) => {
        fn checks(_: impl $crate::Configuration) {}
        checks($policy);
    };
}

/// Exports a policy as a component: `module!(MyPolicy)` as the world `module`. What else it exports is named behind it:
/// `membership`, `configuration`, or both. The policy is any expression; it is evaluated at each call, as a module keeps no
/// state.
#[cfg(target_arch = "wasm32")]
#[macro_export]
macro_rules! module {
    ($policy:expr $(, $export:ident)*) => {
        const _: () = {
            struct Exports;
            $crate::__produce_path!(Exports, $policy);
            $($crate::__exports!($export, Exports, $policy);)*
        };
    };
}

#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
#[macro_export]
macro_rules! __produce_path {
    ($exports:ident, $policy:expr) => {
        impl $crate::component::produce_path::Guest for $exports {
            fn produce(
                policy: $crate::component::types::Policy,
                position: $crate::component::types::Position,
                request: $crate::component::types::Request,
                entries: Vec<$crate::component::types::EpochEntry>,
                batches: Vec<$crate::component::types::Batch>,
            ) -> Result<(), $crate::component::types::Refusal> {
                $crate::component::produce(&$policy, policy, position, request, entries, batches)
            }

            fn describe() -> $crate::component::produce_path::Description {
                $crate::component::describe(&$policy)
            }
        }

        $crate::component::bindings::export_module!($exports with_types_in $crate::component::bindings);
    };
}

#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
#[macro_export]
macro_rules! __exports {
    (membership, $exports:ident, $policy:expr) => {
        impl $crate::component::membership::Guest for $exports {
            fn may_join(
                replica: $crate::component::types::Replica,
                replica_end: i64,
                position: $crate::component::types::Position,
            ) -> Result<(), String> {
                $crate::component::may_join(&$policy, replica, replica_end, position)
            }
        }

        $crate::component::bindings::with_membership::export_membership!(
            $exports with_types_in $crate::component::bindings::with_membership
        );
    };
    (configuration, $exports:ident, $policy:expr) => {
        impl $crate::component::configuration::Guest for $exports {
            fn check(keys: Vec<(String, String)>) -> Result<(), String> {
                $crate::component::check(&$policy, &keys)
            }
        }

        $crate::component::bindings::with_configuration::export_configuration!(
            $exports with_types_in $crate::component::bindings::with_configuration
        );
    };
}

/// What a module says of itself, with the name and version of the crate in which this is written. It judges exact and
/// normal topics and does not rewrite; say otherwise so:
///
/// ```
/// use verbatim_kit::{Description, description};
///
/// let described = Description { supports_normal: false, ..description!() };
/// assert_eq!(described.name, env!("CARGO_PKG_NAME"));
/// ```
#[macro_export]
macro_rules! description {
    () => {
        $crate::Description {
            name: ::core::env!("CARGO_PKG_NAME").into(),
            version: ::core::env!("CARGO_PKG_VERSION").into(),
            supports_exact: true,
            supports_normal: true,
            rewrites: false,
        }
    };
}
