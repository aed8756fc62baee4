// resolve.cc: reading paths, and resolving them by the kernel.
#include "embed/wasi/resolve.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "embed/wasi/state.h"
#include "embed/wasi/walk.h"

namespace uptier::wasm::wasi {
namespace {

// The permission bits of a created file, before the process's umask.
constexpr mode_t kFileMode = 0666;

// openat2 gives EAGAIN when a rename elsewhere in the system keeps it from proving that ".." stays
// beneath. The manual asks for a retry; after this many the walk, which needs no proof, takes over.
constexpr int kMaxKernelRetries = 16;

int openat2_beneath(int directory, const char* path, int flags) {
  open_how how = {};
  how.flags = static_cast<uint64_t>(static_cast<uint32_t>(flags));
  how.mode = flags & O_CREAT ? kFileMode : 0;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(::syscall(SYS_openat2, directory, path, &how, sizeof how));
}

Errno open_by_kernel(int directory, const char* path, int flags, OwnedFd* out) {
  for (int retries = 0;;) {
    const int fd = openat2_beneath(directory, path, flags);
    if (fd >= 0) {
      *out = OwnedFd(fd);
      return Errno::kSuccess;
    }
    if (tries_again(errno)) continue;
    // RESOLVE_BENEATH reports an escape as EXDEV; no RESOLVE_NO_XDEV is asked for, so nothing
    // else does.
    if (errno == EXDEV) return Errno::kPerm;
    if (errno == EAGAIN && ++retries < kMaxKernelRetries) continue;
    return from_host(errno);
  }
}

// Splits a path into the part to open as a directory and the name to act on in it. Returns
// ENAMETOOLONG for a name that no file system can hold.
Errno split(const GuestPath& path, GuestPath* parent, LastComponent* out) {
  uint32_t end = path.size;
  while (end > 0 && path.text[end - 1] == '/') --end;
  uint32_t begin = end;
  while (begin > 0 && path.text[begin - 1] != '/') --begin;
  const uint32_t length = end - begin;
  if (length >= sizeof out->name) return Errno::kNametoolong;
  out->trailing_slash = end != path.size;
  std::memcpy(out->name, path.text + begin, length);
  out->name[length] = 0;
  // A name must not climb: "a/.." is the directory "a/.." itself, as ".".
  const bool climbs = length == 2 && std::memcmp(out->name, "..", 2) == 0;
  if (climbs) std::memcpy(out->name, ".", 2);
  parent->size = climbs ? end : begin;
  std::memcpy(parent->text, path.text, parent->size);
  parent->text[parent->size] = 0;
  return Errno::kSuccess;
}

}  // namespace

Errno load_link_text(GuestMemory memory, uint32_t address, uint32_t size, GuestPath* out) {
  if (!memory.contains(address, size)) return Errno::kFault;
  if (size >= GuestPath::kCapacity) return Errno::kNametoolong;
  if (size == 0) return Errno::kNoent;
  if (!memory.read(address, out->text, size)) return Errno::kFault;
  if (std::memchr(out->text, 0, size) != nullptr) return Errno::kInval;
  out->text[size] = 0;
  out->size = size;
  return Errno::kSuccess;
}

Errno load_path(GuestMemory memory, uint32_t address, uint32_t size, GuestPath* out) {
  const Errno error = load_link_text(memory, address, size, out);
  if (error != Errno::kSuccess) return error;
  return out->text[0] == '/' ? Errno::kPerm : Errno::kSuccess;
}

bool Resolver::kernel_can(int directory) {
  // Not only ENOSYS says no: a system call filter may answer with EPERM.
  OwnedFd probe;
  return open_by_kernel(directory, ".", O_PATH | O_DIRECTORY | O_CLOEXEC, &probe) ==
         Errno::kSuccess;
}

Errno Resolver::open(int directory, const GuestPath& path, int flags, bool follow,
                     OwnedFd* out) const {
  flags |= O_CLOEXEC | (follow ? 0 : O_NOFOLLOW);
  if (mode_ == Mode::kOpenat2) {
    const Errno error = open_by_kernel(directory, path.text, flags, out);
    if (error != Errno::kAgain) return error;
  }
  return Walk(directory).open(path.text, flags, kFileMode, out);
}

Errno Resolver::open_parent(int directory, const GuestPath& path, LastComponent* out) const {
  GuestPath parent;
  const Errno error = split(path, &parent, out);
  if (error != Errno::kSuccess) return error;
  out->directory = directory;
  if (parent.size == 0) return Errno::kSuccess;
  const Errno opened = open(directory, parent, O_PATH | O_DIRECTORY, true, &out->opened);
  out->directory = out->opened.get();
  return opened;
}

Errno Resolver::walk_to_parent(int directory, const GuestPath& path, LastComponent* out) const {
  GuestPath parent;
  const Errno error = split(path, &parent, out);
  if (error != Errno::kSuccess) return error;
  out->directory = directory;
  out->depth = 0;
  if (parent.size == 0) return Errno::kSuccess;
  Walk walk(directory);
  const Errno opened = walk.open(parent.text, O_PATH | O_DIRECTORY | O_CLOEXEC, 0, &out->opened);
  out->directory = out->opened.get();
  out->depth = walk.depth();
  return opened;
}

bool link_text_escapes(const char* text, uint32_t depth) {
  if (*text == '/') return true;
  while (*text != 0) {
    const size_t length = std::strcspn(text, "/");
    const bool up = length == 2 && text[0] == '.' && text[1] == '.';
    const bool stays = length == 0 || (length == 1 && text[0] == '.');
    if (up && depth-- == 0) return true;
    if (!up && !stays) ++depth;
    text += length + (text[length] == '/');
  }
  return false;
}

}  // namespace uptier::wasm::wasi
