//! What is generated from `wit/`.

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "module-with-membership",
    imports: { default: trappable },
});
