//! Builds the modules for wasm32 and hands their component bytes to the host.
