// Memory for one call at a time: pieces lie one behind the other, and when the last of them is given back all is empty again.
// A module has no memory of earlier calls to rely on, so it needs no more than that.

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES 65536u
#define ALIGNMENT 16u

// Where the linker put the end of what is there from the start.
extern unsigned char __heap_base;

static uintptr_t next;
static size_t pieces;

_Noreturn void abort(void) { __builtin_trap(); }

// Pieces are only ever new here: the bindings ask for strings and lists of which they know the length.
void *realloc(void *old, size_t size) {
  uintptr_t start = (uintptr_t)&__heap_base;
  if (pieces == 0) next = (start + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1);
  if (old != NULL || size > SIZE_MAX - next - ALIGNMENT) return NULL;
  uintptr_t piece = next;
  uintptr_t end = (piece + size + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1);
  size_t have = __builtin_wasm_memory_size(0);
  size_t need = end / PAGE_BYTES + 1;
  if (need > have && __builtin_wasm_memory_grow(0, need - have) == SIZE_MAX) return NULL;
  next = end;
  pieces += 1;
  return (void *)piece;
}

void free(void *piece) {
  if (piece != NULL && pieces > 0) pieces -= 1;
}

void *memcpy(void *to, const void *from, size_t length) {
  unsigned char *target = to;
  const unsigned char *source = from;
  while (length-- > 0) *target++ = *source++;
  return to;
}

size_t strlen(const char *text) {
  size_t length = 0;
  while (text[length] != 0) length += 1;
  return length;
}
