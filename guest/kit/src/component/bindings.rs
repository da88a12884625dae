//! What is generated from `wit/`: the only unsafe code of a module.
//!
//! There is one set of types. The world `module` is generated whole; what other worlds have beside it, the exports
//! `membership` and `configuration`, is generated each on its own and joined to it as the component is made.
#![expect(missing_docs, reason = "these items are documented in `wit/`")]

wit_bindgen::generate!({
    path: "../../wit",
    world: "module",
    generate_all,
    pub_export_macro: true,
    export_macro_name: "export_module",
});

/// The export `membership` alone.
pub mod with_membership {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package verbatim:kit;

            world membership {
                export verbatim:produce/membership@1.0.0;
            }
        ",
        with: { "verbatim:produce/types@1.0.0": crate::component::bindings::verbatim::produce::types },
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_membership",
    });
}

/// The export `configuration` alone.
pub mod with_configuration {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "
            package verbatim:kit;

            world configuration {
                export verbatim:produce/configuration@1.0.0;
            }
        ",
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_configuration",
    });
}
