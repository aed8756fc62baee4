/* safe_load.h: loads a library only from a folder that no other user may write to. */
#ifndef UPTIER_TRACING_SAFE_LOAD_H
#define UPTIER_TRACING_SAFE_LOAD_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Loads the library at `path`: absolute, without symbolic links, a regular file that, like its
   folder, belongs to root or to the user and is not writable by others. It is opened once, so the
   checked bytes are the loaded bytes.

   Returns the handle of dlopen. On failure, returns NULL and writes the reason to `why` (`size` bytes). */
void* uptier_trace_safe_load(const char* path, char* why, size_t size);

#ifdef __cplusplus
}
#endif

#endif
