// walk.h: resolving a path component by component, for kernels without openat2.
//
// Invariants: every descriptor on the stack is a directory that was reached beneath the root
// without following a link; the top is where the next component is looked up; ".." pops, and
// popping the root is an escape. A link is read through its own descriptor and its text is put in
// front of the rest of the path.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "embed/wasi/abi.h"
#include "embed/wasi/fds.h"

namespace uptier::wasm::wasi {

// One resolution. `root` is borrowed. Holds at most kMaxDepth descriptors; uses about 10 KiB of
// stack.
class Walk {
 public:
  static constexpr uint32_t kMaxDepth = 256;
  static constexpr uint32_t kMaxLinks = 40;  // the kernel's own limit, path_resolution(7)

  explicit Walk(int root) : root_(root) {}
  ~Walk();
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;

  // Opens `path` as open(2) would with these flags, but beneath the root. O_NOFOLLOW concerns a
  // final link, as ever. EPERM: the path leads outside. Call once.
  Errno open(const char* path, int flags, mode_t mode, OwnedFd* out);

  // Returns how many levels beneath the root the last component's directory is; when the path
  // ended in a directory that was entered, that directory.
  uint32_t depth() const { return depth_; }

 private:
  static constexpr size_t kRestCapacity = 2 * 4096;

  int top() const { return depth_ == 0 ? root_ : stack_[depth_ - 1]; }
  // Puts text in front of the rest of the path. ENAMETOOLONG.
  Errno prepend(const char* text, size_t size);
  // Takes the next component into name_; returns false at the end. `last_` says whether the
  // component ends the path, without even a slash after it.
  bool next(Errno* error);
  Errno go_up();
  Errno enter(const char* name);
  Errno follow(int link);
  // Opens the last component; when it is a link to follow, sets expanded_ instead, and the link's
  // text stands in front of the rest.
  Errno open_last(int flags, mode_t mode, OwnedFd* out);

  const int root_;
  int stack_[kMaxDepth];
  uint32_t depth_ = 0;
  uint32_t links_ = 0;
  bool last_ = false;
  bool expanded_ = false;
  size_t head_ = kRestCapacity;  // the rest of the path is rest_[head_ .. kRestCapacity)
  char name_[256];
  char rest_[kRestCapacity];
};

}  // namespace uptier::wasm::wasi
