// What the generated bindings want of this header; memory.c has it.
#pragma once

#include <stddef.h>

void *memcpy(void *to, const void *from, size_t length);
size_t strlen(const char *text);
