#define _GNU_SOURCE
#include "tracing/proxy/safe_load.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Says whether only root and the user may change the file in `s`; `what` is its name in `why`. */
static int is_ours(const struct stat* s, const char* what, char* why, size_t size) {
  if (s->st_uid != 0 && s->st_uid != geteuid()) {
    snprintf(why, size, "%s belongs to user %u, neither to root nor to this user", what,
             (unsigned)s->st_uid);
    return 0;
  }
  if ((s->st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    snprintf(why, size, "others may write to %s (mode %03o); chmod go-w it", what,
             (unsigned)(s->st_mode & 0777));
    return 0;
  }
  return 1;
}

/* Says whether `path` contains no symbolic link. */
static int is_plain(const char* path, char* why, size_t size) {
  char real[PATH_MAX];
  if (realpath(path, real) == NULL) {
    snprintf(why, size, "%s", strerror(errno));
    return 0;
  }
  if (strcmp(path, real) != 0) {
    snprintf(why, size, "the path is not plain; it stands for %.3000s", real);
    return 0;
  }
  return 1;
}

/* Opens the library and its folder, and checks the opened files. Returns the descriptor or -1. */
static int open_checked(const char* path, char* why, size_t size) {
  char folder[PATH_MAX];
  const char* slash = strrchr(path, '/');
  const size_t length = slash == path ? 1 : (size_t)(slash - path);
  struct stat s;
  if (length >= sizeof folder) {
    snprintf(why, size, "the path is too long");
    return -1;
  }
  memcpy(folder, path, length);
  folder[length] = '\0';
  const int dir = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (dir < 0 || fstat(dir, &s) != 0) {
    snprintf(why, size, "its folder cannot be opened: %s", strerror(errno));
    if (dir >= 0) close(dir);
    return -1;
  }
  if (!is_ours(&s, "its folder", why, size)) {
    close(dir);
    return -1;
  }
  const int file = openat(dir, slash + 1, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  const int error = errno;
  close(dir);
  if (file < 0 || fstat(file, &s) != 0) {
    snprintf(why, size, "%s", strerror(file < 0 ? error : errno));
    if (file >= 0) close(file);
    return -1;
  }
  if (!S_ISREG(s.st_mode)) {
    snprintf(why, size, "it is not a regular file");
    close(file);
    return -1;
  }
  if (!is_ours(&s, "the file", why, size)) {
    close(file);
    return -1;
  }
  return file;
}

void* uptier_trace_safe_load(const char* path, char* why, size_t size) {
  if (path == NULL || path[0] != '/') {
    snprintf(why, size, "the path is not absolute");
    return NULL;
  }
  if (!is_plain(path, why, size)) return NULL;
  const int file = open_checked(path, why, size);
  if (file < 0) return NULL;
  char name[32];
  snprintf(name, sizeof name, "/proc/self/fd/%d", file);
  void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    const char* reason = dlerror();
    snprintf(why, size, "%s", reason != NULL ? reason : "dlopen failed");
    close(file);
  }
  /* The descriptor stays open: its number is part of the path that was loaded, and the loader
     identifies libraries by path, so no other library may get this number. */
  return handle;
}
