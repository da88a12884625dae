// What the generated bindings want of this header; memory.c has it.
#pragma once

#include <stddef.h>

void *realloc(void *old, size_t size);
void free(void *piece);
_Noreturn void abort(void);
