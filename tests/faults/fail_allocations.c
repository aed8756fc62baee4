// fail_allocations.c: refuses memory on purpose, as a preloaded library, or linked into a program,
// which can then choose the allocations (fail_allocations_from).
//
// Allocations are numbered from 1, from the moment that the program's own code may run.
//
//   FAIL_AT=n        the first allocation that fails; 0, or unset: none fails
//   FAIL_MODE=       once: only that one; after: all from there on; second: every second from there on
//   FAIL_COUNTS=f    a file for the number of allocations, in total and by thread. It is mapped, so it is
//                    right however the program ends.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void*, size_t),
    *__libc_memalign(size_t, size_t);

enum { kThreads = 62 };
static struct Counts {
  atomic_long all, failed;
  atomic_long of_thread[kThreads];  // in the order of their first allocations; the last counts all
                                    // other threads
} own, *counts = &own;
static atomic_int threads;
static __thread int thread __attribute__((tls_model("initial-exec"))) = -1;
static long at;
static char mode = 'o';
static int on;

__attribute__((constructor)) static void begin(void) {
  const char *n = getenv("FAIL_AT"), *m = getenv("FAIL_MODE"), *path = getenv("FAIL_COUNTS");
  if (n != NULL) at = atol(n);
  if (m != NULL) mode = m[0];
  if (path != NULL) {
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file >= 0 && ftruncate(file, sizeof own) == 0) {
      void* map = mmap(NULL, sizeof own, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      if (map != MAP_FAILED) counts = map;
    }
    if (file >= 0) close(file);
  }
  on = 1;
}

// Lets the n-th allocation from now on fail, and more of them by the mode; 0: none. Returns the
// number of allocations since the last call.
long fail_allocations_from(long n, char by) {
  mode = by;
  at = n;
  return atomic_exchange(&counts->all, 0);
}

static int fails(void) {
  if (!on) return 0;
  long k = atomic_fetch_add(&counts->all, 1) + 1;
  if (thread < 0) thread = atomic_fetch_add(&threads, 1);
  atomic_fetch_add(&counts->of_thread[thread < kThreads ? thread : kThreads - 1], 1);
  if (at == 0 || k < at) return 0;
  if (mode == 'o' && k != at) return 0;
  if (mode == 's' && (k - at) % 2 != 0) return 0;
  atomic_fetch_add(&counts->failed, 1);
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t n) { return fails() ? NULL : __libc_malloc(n); }
void* calloc(size_t n, size_t size) { return fails() ? NULL : __libc_calloc(n, size); }
void* realloc(void* p, size_t n) { return fails() ? NULL : __libc_realloc(p, n); }
void* memalign(size_t align, size_t n) { return fails() ? NULL : __libc_memalign(align, n); }
void* aligned_alloc(size_t align, size_t n) { return memalign(align, n); }
int posix_memalign(void** p, size_t align, size_t n) {
  void* got = memalign(align, n);
  if (got == NULL) return ENOMEM;
  *p = got;
  return 0;
}
