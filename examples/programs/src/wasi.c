// wasi: checks what a WASI host owes a program, one line per check, and exits with 3 if all hold
// (with 1 otherwise, so that a host which drops exit codes is noticed too).
// Usage: wasi DIR [OUTSIDE...]. DIR is preopened and writable; no OUTSIDE path may be openable.
// Prints its arguments and the environment variable UPTIER_GREETING.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { kPathSize = 256, kMaxNames = 16 };

static int failures = 0;

static void check(const char* what, int holds) {
  printf("%s: %s\n", what, holds ? "ok" : "FAILED");
  if (!holds) ++failures;
}

static const char* in_dir(const char* dir, const char* name) {
  static char paths[4][kPathSize];
  static int turn = 0;
  char* path = paths[turn++ % 4];
  snprintf(path, kPathSize, "%s/%s", dir, name);
  return path;
}

static int write_text(const char* path, const char* mode, const char* text) {
  FILE* file = fopen(path, mode);
  if (file == NULL) return 0;
  int written = fputs(text, file) >= 0;
  return fclose(file) == 0 && written;
}

static int holds_text(const char* path, const char* text) {
  char buffer[kPathSize] = {0};
  FILE* file = fopen(path, "r");
  if (file == NULL) return 0;
  size_t size = fread(buffer, 1, sizeof buffer - 1, file);
  fclose(file);
  return size == strlen(text) && strcmp(buffer, text) == 0;
}

static int is_refused(const char* path) {
  int fd = open(path, O_RDONLY);
  if (fd >= 0) close(fd);
  return fd < 0;
}

static void check_files(const char* dir) {
  const char* path = in_dir(dir, "hello.txt");
  check("write", write_text(path, "w", "hello, "));
  check("append", write_text(path, "a", "world\n"));
  check("read", holds_text(path, "hello, world\n"));
  struct stat status;
  check("stat", stat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 13);
  FILE* file = fopen(path, "r+");
  char word[6] = {0};
  check("seek", file != NULL && fseek(file, 7, SEEK_SET) == 0 && fread(word, 1, 5, file) == 5 &&
                    strcmp(word, "world") == 0 && ftell(file) == 12);
  check("overwrite", file != NULL && fseek(file, -13, SEEK_END) == 0 && fputc('J', file) == 'J');
  if (file != NULL) fclose(file);
  check("truncate", truncate(path, 5) == 0 && holds_text(path, "Jello"));
  check("rename", rename(path, in_dir(dir, "renamed.txt")) == 0 && is_refused(path));
  check("exclusive create",
        open(in_dir(dir, "renamed.txt"), O_RDWR | O_CREAT | O_EXCL, 0600) < 0 && errno == EEXIST);
  check("mkdir", mkdir(in_dir(dir, "sub"), 0700) == 0);
  check("write below", write_text(in_dir(dir, "sub/below.txt"), "w", "below"));
  check("dots inside", holds_text(in_dir(dir, "sub/../sub/./below.txt"), "below"));
}

static int compare_names(const void* a, const void* b) { return strcmp(a, b); }

static void list(const char* path) {
  char names[kMaxNames][64] = {{0}};
  size_t count = 0;
  DIR* dir = opendir(path);
  check("opendir", dir != NULL);
  if (dir == NULL) return;
  for (struct dirent* entry; count < kMaxNames && (entry = readdir(dir)) != NULL;) {
    if (entry->d_name[0] == '.') continue;  // not every host lists "." and ".."
    snprintf(names[count++], sizeof names[0], "%s%s", entry->d_name,
             entry->d_type == DT_DIR ? "/" : "");
  }
  closedir(dir);
  qsort(names, count, sizeof names[0], compare_names);
  for (size_t i = 0; i < count; ++i) printf("entry: %s\n", names[i]);
}

// libc resolves absolute names itself; these go to the host as they are.
static int is_refused_at(const char* dir, const char* path) {
  int dir_fd = open(dir, O_RDONLY | O_DIRECTORY);
  int fd = openat(dir_fd, path, O_RDONLY);
  if (fd >= 0) close(fd);
  if (dir_fd >= 0) close(dir_fd);
  return dir_fd >= 0 && fd < 0;
}

static void check_escapes(const char* dir, int outside_count, char** outside) {
  check("parent refused", is_refused(in_dir(dir, "..")));
  check("parent from below refused", is_refused(in_dir(dir, "sub/../..")));
  check("parent of a directory refused", is_refused_at(in_dir(dir, "sub"), "../.."));
  check("write outside refused", !write_text(in_dir(dir, "../escape.txt"), "w", "out"));
  check("mkdir outside refused", mkdir(in_dir(dir, "../escape"), 0700) != 0);
  check("rename outside refused",
        rename(in_dir(dir, "sub/below.txt"), in_dir(dir, "../escape.txt")) != 0);
  check("unopened path refused", is_refused("/etc/passwd"));
  check("absolute path refused", is_refused_at(dir, "/etc/passwd"));
  // A host may refuse to make the link, or to follow it.
  int made = symlink("../..", in_dir(dir, "sub/up")) == 0;
  check("link outside refused", !made || is_refused(in_dir(dir, "sub/up")));
  check("path through the link refused", !made || is_refused(in_dir(dir, "sub/up/.")));
  if (made) unlink(in_dir(dir, "sub/up"));
  int inside = symlink("below.txt", in_dir(dir, "sub/near")) == 0;
  check("link inside followed", !inside || holds_text(in_dir(dir, "sub/near"), "below"));
  if (inside) unlink(in_dir(dir, "sub/near"));
  for (int i = 0; i < outside_count; ++i) check("outside refused", is_refused(outside[i]));
}

static void remove_files(const char* dir) {
  check("rmdir of a full directory refused", rmdir(in_dir(dir, "sub")) != 0);
  check("unlink", unlink(in_dir(dir, "sub/below.txt")) == 0);
  check("rmdir", rmdir(in_dir(dir, "sub")) == 0);
  check("unlink again refused", unlink(in_dir(dir, "hello.txt")) != 0 && errno == ENOENT);
  check("unlink the last", unlink(in_dir(dir, "renamed.txt")) == 0);
}

static int64_t nanoseconds(clockid_t clock) {
  struct timespec time = {0};
  if (clock_gettime(clock, &time) != 0) return -1;
  return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static void check_clocks(void) {
  int64_t before = nanoseconds(CLOCK_MONOTONIC), now = before;
  int backwards = 0;
  for (int i = 0; i < 100; ++i) {
    int64_t next = nanoseconds(CLOCK_MONOTONIC);
    backwards += next < now;
    now = next;
  }
  check("monotonic clock", before >= 0 && backwards == 0);
  check("real time is past 2022", nanoseconds(CLOCK_REALTIME) > INT64_C(1640995200000000000));
  struct timespec pause = {0, 5000000};
  check("sleep", nanosleep(&pause, NULL) == 0);
  int64_t slept = nanoseconds(CLOCK_MONOTONIC) - now;
  check("slept 5 ms or more, under 10 s", slept >= 5000000 && slept < INT64_C(10000000000));
}

static void check_random(void) {
  uint8_t a[16] = {0}, b[16] = {0};
  check("random", getentropy(a, sizeof a) == 0 && getentropy(b, sizeof b) == 0 &&
                      memcmp(a, b, sizeof a) != 0);
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: wasi DIR [OUTSIDE...]\n");
    return 2;
  }
  for (int i = 1; i < argc; ++i) printf("argument %d: %s\n", i, argv[i]);
  const char* greeting = getenv("UPTIER_GREETING");
  printf("greeting: %s\n", greeting != NULL ? greeting : "(none)");
  check_files(argv[1]);
  list(argv[1]);
  check_escapes(argv[1], argc - 2, argv + 2);
  remove_files(argv[1]);
  check_clocks();
  check_random();
  printf("%d failures\n", failures);
  return failures == 0 ? 3 : 1;
}
