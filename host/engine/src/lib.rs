//! Loads an admission module, calls it once per partition and request, and checks what it staged.
