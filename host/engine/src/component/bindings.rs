//! What is generated from `wit/`.

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "module-with-all",
    imports: { default: trappable },
});
