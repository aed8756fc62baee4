/* safe_load.h: loads a library only from a place that nobody else may write to. */
#ifndef UPTIER_TRACING_SAFE_LOAD_H
#define UPTIER_TRACING_SAFE_LOAD_H

#include <stddef.h>

/* Loads the library at `path`: absolute, without symbolic links, a regular file that, like its
   folder, belongs to root or to the user and that nobody else may write to. The bytes that were
   checked are the bytes that are loaded: it is opened once.

   Returns the handle of dlopen. On failure NULL, and `why` (of `size` bytes) says the reason. */
void* uptier_trace_safe_load(const char* path, char* why, size_t size);

#endif
