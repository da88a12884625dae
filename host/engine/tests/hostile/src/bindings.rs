//! What is generated from `wit/`: the only unsafe code of the module.
#![expect(unsafe_code, reason = "the canonical ABI moves values through linear memory by address")]

use crate::module::Module;

wit_bindgen::generate!({
    path: "../../../../wit",
    world: "module-with-all",
    generate_all,
});

export!(Module);
