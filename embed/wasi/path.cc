// path.cc: operations on names.
//
// Each acts on (directory, name): the directory was opened beneath the guest's, the name is one
// component without slashes and not "..", and no call made here follows a final link. So a name
// that is swapped for a link in the meantime changes the link, not what it points to.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "embed/wasi/state.h"

namespace uptier::wasm::wasi {
namespace {

// Loads a path and opens the directory of its last component.
Errno find_parent(State& state, uint32_t fd, Rights need, const GuestPath& path,
                  LastComponent* out) {
  FdEntry* entry = nullptr;
  UPTIER_WASI_TRY(state.fds.require(fd, need, &entry));
  return state.resolver.open_parent(entry->host.get(), path, out);
}

bool is_directory(const LastComponent& at) {
  struct stat st;
  return ::fstatat(at.directory, at.name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

// Returns the error of a call that creates a non-directory with a name that ends in a slash: such a
// name can only mean a directory.
Errno refuse_slash(const LastComponent& at) {
  struct stat st;
  if (::fstatat(at.directory, at.name, &st, AT_SYMLINK_NOFOLLOW) != 0) return from_host(errno);
  return S_ISDIR(st.st_mode) ? Errno::kExist : Errno::kNotdir;
}

// Links `file`, open with O_PATH, into a directory. There is no call for that without privileges
// but the descriptor's name in /proc, which leads to this very file.
Errno link_open_file(int file, const LastComponent& to) {
  char name[32];
  std::snprintf(name, sizeof name, "/proc/self/fd/%d", file);
  return status_of(::linkat(AT_FDCWD, name, to.directory, to.name, AT_SYMLINK_FOLLOW));
}

// The three calls with one path: (fd, path, its size).
Errno load_one(State& state, GuestMemory memory, Args a, Rights need, LastComponent* out) {
  GuestPath path;
  UPTIER_WASI_TRY(load_path(memory, a.u32(1), a.u32(2), &path));
  return find_parent(state, a.u32(0), need, path, out);
}

}  // namespace

Errno path_create_directory(State& state, GuestMemory memory, Args a) noexcept {
  LastComponent at;
  UPTIER_WASI_TRY(load_one(state, memory, a, kPathCreateDirectory, &at));
  return status_of(::mkdirat(at.directory, at.name, 0777));
}

Errno path_remove_directory(State& state, GuestMemory memory, Args a) noexcept {
  LastComponent at;
  UPTIER_WASI_TRY(load_one(state, memory, a, kPathRemoveDirectory, &at));
  return status_of(::unlinkat(at.directory, at.name, AT_REMOVEDIR));
}

Errno path_unlink_file(State& state, GuestMemory memory, Args a) noexcept {
  LastComponent at;
  UPTIER_WASI_TRY(load_one(state, memory, a, kPathUnlinkFile, &at));
  if (at.trailing_slash) {
    const Errno error = refuse_slash(at);
    return error == Errno::kExist ? Errno::kIsdir : error;
  }
  return status_of(::unlinkat(at.directory, at.name, 0));
}

// (old fd, lookup flags, old path, its size, new fd, new path, its size)
Errno path_link(State& state, GuestMemory memory, Args a) noexcept {
  GuestPath from_path, to_path;
  UPTIER_WASI_TRY(load_path(memory, a.u32(2), a.u32(3), &from_path));
  UPTIER_WASI_TRY(load_path(memory, a.u32(5), a.u32(6), &to_path));
  if (a.u32(1) & ~kLookupFollow) return Errno::kInval;
  LastComponent from, to;
  UPTIER_WASI_TRY(find_parent(state, a.u32(0), kPathLinkSource, from_path, &from));
  UPTIER_WASI_TRY(find_parent(state, a.u32(4), kPathLinkTarget, to_path, &to));
  if (to.trailing_slash) return refuse_slash(to);
  if (from.trailing_slash && !is_directory(from)) return Errno::kNotdir;
  if (!(a.u32(1) & kLookupFollow)) {
    return status_of(::linkat(from.directory, from.name, to.directory, to.name, 0));
  }
  OwnedFd file;
  const int directory = state.fds.find(a.u32(0))->host.get();
  UPTIER_WASI_TRY(state.resolver.open(directory, from_path, O_PATH, true, &file));
  return link_open_file(file.get(), to);
}

// (fd, path, its size, buffer, its size, pointer to the bytes used): cut to fit, as POSIX does
Errno path_readlink(State& state, GuestMemory memory, Args a) noexcept {
  const uint32_t room = a.u32(4);
  if (!memory.contains(a.u32(3), room) || !memory.contains(a.u32(5), 4)) return Errno::kFault;
  LastComponent at;
  UPTIER_WASI_TRY(load_one(state, memory, a, kPathReadlink, &at));
  if (at.trailing_slash) return is_directory(at) ? Errno::kInval : Errno::kNotdir;
  char text[GuestPath::kCapacity];
  const ssize_t size = ::readlinkat(at.directory, at.name, text, sizeof text);
  if (size < 0) return from_host(errno);
  const uint32_t used = std::min(static_cast<uint32_t>(size), room);
  memory.write(a.u32(3), text, used);
  memory.store32(a.u32(5), used);
  return Errno::kSuccess;
}

// (old fd, old path, its size, new fd, new path, its size)
Errno path_rename(State& state, GuestMemory memory, Args a) noexcept {
  LastComponent from, to;
  GuestPath from_path, to_path;
  UPTIER_WASI_TRY(load_path(memory, a.u32(1), a.u32(2), &from_path));
  UPTIER_WASI_TRY(load_path(memory, a.u32(4), a.u32(5), &to_path));
  UPTIER_WASI_TRY(find_parent(state, a.u32(0), kPathRenameSource, from_path, &from));
  UPTIER_WASI_TRY(find_parent(state, a.u32(3), kPathRenameTarget, to_path, &to));
  const bool needs_directory = from.trailing_slash || to.trailing_slash;
  if (needs_directory && !is_directory(from)) {
    struct stat st;
    const bool exists = ::fstatat(from.directory, from.name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    return exists ? Errno::kNotdir : from_host(errno);
  }
  return status_of(::renameat(from.directory, from.name, to.directory, to.name));
}

// (text, its size, fd, path, its size)
Errno path_symlink(State& state, GuestMemory memory, Args a) noexcept {
  GuestPath text, path;
  UPTIER_WASI_TRY(load_link_text(memory, a.u32(0), a.u32(1), &text));
  UPTIER_WASI_TRY(load_path(memory, a.u32(3), a.u32(4), &path));
  FdEntry* entry = nullptr;
  UPTIER_WASI_TRY(state.fds.require(a.u32(2), kPathSymlink, &entry));
  LastComponent at;
  UPTIER_WASI_TRY(state.resolver.walk_to_parent(entry->host.get(), path, &at));
  if (at.trailing_slash) return refuse_slash(at);
  if (link_text_escapes(text.text, at.depth)) return Errno::kPerm;
  return status_of(::symlinkat(text.text, at.directory, at.name));
}

}  // namespace uptier::wasm::wasi
