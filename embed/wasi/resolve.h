// resolve.h: from a guest's path to a host descriptor, never leaving the directory.
//
// Two ways to the same answer. The kernel's openat2(RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)
// resolves the whole path in one call. The walk opens one component at a time with O_NOFOLLOW,
// reads links as text and resolves them itself, and goes up by returning to a descriptor it came
// through, never by opening "..". Both check exactly the file that they open: there is no moment
// between a check and an open in which the tree could change.
//
// Leaving the directory, by "..", an absolute path or a link, is EPERM.
#pragma once

#include <cstdint>

#include "embed/wasi/abi.h"
#include "embed/wasi/fds.h"
#include "embed/wasi/memory.h"

namespace uptier::wasm::wasi {

// A path as the guest gave it, copied out of its memory once. Neither empty nor absolute, and
// without NUL bytes but the last one.
struct GuestPath {
  static constexpr uint32_t kCapacity = 4096;  // the host's PATH_MAX, with the NUL
  char text[kCapacity];
  uint32_t size = 0;

  bool has_trailing_slash() const { return text[size - 1] == '/'; }
};

// Copies and checks a path. EFAULT, ENAMETOOLONG, ENOENT (empty), EINVAL (NUL), EPERM (absolute).
Errno load_path(GuestMemory memory, uint32_t address, uint32_t size, GuestPath* out);

// As load_path, but an absolute text is accepted: for the content of a link.
Errno load_link_text(GuestMemory memory, uint32_t address, uint32_t size, GuestPath* out);

// The directory that holds a path's last component, and that component: a plain name or ".",
// never "..", without slashes. System calls that take (directory, name) can act on it safely as
// long as they do not follow a final link.
struct LastComponent {
  int directory = -1;  // `opened`, or the descriptor the path was relative to
  OwnedFd opened;
  char name[256];  // NAME_MAX and the NUL
  bool trailing_slash = false;
  uint32_t depth = 0;  // of `directory`, in levels beneath the start; only set by the walk
};

class Resolver {
 public:
  enum class Mode : uint8_t { kOpenat2, kWalk };

  explicit Resolver(Mode mode) : mode_(mode) {}

  Mode mode() const { return mode_; }

  // Returns whether the kernel resolves paths for this process; `directory` is any open one.
  static bool kernel_can(int directory);

  // Opens `path` beneath `directory` with open(2) flags; O_CLOEXEC is added. A final link is
  // followed, still beneath, when `follow` is set; otherwise it is ELOOP (or ENOTDIR with
  // O_DIRECTORY), unless O_PATH asks for the link itself.
  Errno open(int directory, const GuestPath& path, int flags, bool follow, OwnedFd* out) const;

  // Opens the directory of the last component.
  Errno open_parent(int directory, const GuestPath& path, LastComponent* out) const;

  // As open_parent, always by the walk, which knows `depth`.
  Errno walk_to_parent(int directory, const GuestPath& path, LastComponent* out) const;

 private:
  Mode mode_;
};

// Returns whether a link with this text, created `depth` levels beneath the start, would lead
// outside of it as it is written. Links inside the text are not looked at: this refuses a plain
// escape early, while resolving refuses every escape.
bool link_text_escapes(const char* text, uint32_t depth);

}  // namespace uptier::wasm::wasi
