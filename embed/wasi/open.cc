// open.cc: path_open.
//
// The new descriptor's rights are those asked for, of which each must be among the directory's
// inheriting rights, cut down to what the opened file's type can do. The host's access mode
// follows from them.
#include <fcntl.h>

#include "embed/wasi/state.h"

namespace uptier::wasm::wasi {
namespace {

// (fd, lookup flags, path, its size, oflags, base, inheriting, fdflags, pointer to the new fd)
struct Request {
  GuestPath path;
  bool follow = false;
  uint16_t oflags = 0;
  uint16_t fdflags = 0;
  Rights base = 0;
  Rights inheriting = 0;
};

Errno load_request(GuestMemory memory, Args a, Request* out) {
  if (!memory.contains(a.u32(8), 4)) return Errno::kFault;
  UPTIER_WASI_TRY(load_path(memory, a.u32(2), a.u32(3), &out->path));
  if (a.u32(1) & ~kLookupFollow) return Errno::kInval;
  if (a.u32(4) & ~uint32_t{kAllOpenFlags}) return Errno::kInval;
  if (a.u32(7) & ~uint32_t{kAllFdFlags}) return Errno::kInval;
  out->follow = a.u32(1) & kLookupFollow;
  out->oflags = static_cast<uint16_t>(a.u32(4));
  out->fdflags = static_cast<uint16_t>(a.u32(7));
  // Rights that no file or directory has (those of sockets) never apply to files opened here.
  out->base = a.u64(5) & kAllRights;
  out->inheriting = a.u64(6) & kAllRights;
  // A directory cannot be created by opening it; kernels have disagreed about the attempt.
  if ((out->oflags & kOpenCreat) && (out->oflags & kOpenDirectory)) return Errno::kInval;
  if ((out->oflags & kOpenCreat) && out->path.has_trailing_slash()) return Errno::kIsdir;
  return Errno::kSuccess;
}

Rights rights_to_open(const Request& request) {
  Rights need = kPathOpen;
  if (request.oflags & kOpenCreat) need |= kPathCreateFile;
  if (request.oflags & kOpenTrunc) need |= kPathFilestatSetSize;
  return need;
}

Rights rights_to_inherit(const Request& request) {
  Rights need = request.base | request.inheriting;
  if (request.fdflags & kFdDsync) need |= kFdDatasync;
  if (request.fdflags & (kFdSyncFlag | kFdRsync)) need |= kFdSync;
  return need;
}

int host_open_flags(const Request& request) {
  const bool reads = request.base & (kFdRead | kFdReaddir);
  const bool writes = request.base & (kFdWrite | kFdAllocate | kFdFilestatSetSize);
  int flags = writes ? (reads ? O_RDWR : O_WRONLY) : O_RDONLY;
  if (request.oflags & kOpenCreat) flags |= O_CREAT;
  if (request.oflags & kOpenDirectory) flags |= O_DIRECTORY;
  if (request.oflags & kOpenExcl) flags |= O_EXCL;
  if (request.oflags & kOpenTrunc) flags |= O_TRUNC;
  return flags | host_status_flags(request.fdflags) | O_NOCTTY;
}

}  // namespace

int host_status_flags(uint16_t fdflags) {
  int flags = 0;
  if (fdflags & kFdAppend) flags |= O_APPEND;
  if (fdflags & kFdDsync) flags |= O_DSYNC;
  if (fdflags & kFdNonblock) flags |= O_NONBLOCK;
  if (fdflags & (kFdRsync | kFdSyncFlag)) flags |= O_SYNC;
  return flags;
}

Errno path_open(State& state, GuestMemory memory, Args a) noexcept {
  Request request;
  UPTIER_WASI_TRY(load_request(memory, a, &request));
  FdEntry* directory = nullptr;
  UPTIER_WASI_TRY(state.fds.require(a.u32(0), rights_to_open(request), &directory));
  if (rights_to_inherit(request) & ~directory->inheriting) return Errno::kNotcapable;

  uint32_t fd = 0;
  UPTIER_WASI_TRY(state.fds.reserve(&fd));
  directory = state.fds.find(a.u32(0));  // reserve() may have moved the table
  FdEntry entry;
  UPTIER_WASI_TRY(state.resolver.open(directory->host.get(), request.path, host_open_flags(request),
                                      request.follow, &entry.host));
  UPTIER_WASI_TRY(from_host(describe(entry.host.get(), request.base, &entry)));
  entry.inheriting = entry.is_directory() ? request.inheriting : 0;
  state.fds.place(fd, std::move(entry));
  memory.store32(a.u32(8), fd);
  return Errno::kSuccess;
}

}  // namespace uptier::wasm::wasi
