// dir.cc: listing directories, and naming the preopened ones.
//
// A listing is taken whole when a guest asks for its beginning (cookie 0), and served from that
// snapshot. So cookies are stable on every file system, and each entry that was there at the
// beginning is reported exactly once, however small the guest's buffer.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "embed/wasi/state.h"

namespace uptier::wasm::wasi {
namespace {

using namespace layout;  // NOLINT: field offsets only

// The names of one snapshot; with entries of 24 bytes each beside them. Ends in EOVERFLOW.
constexpr size_t kMaxNameBytes = size_t{64} << 20;

// Offsets in the records of SYS_getdents64; the name is at kNameOffset (getdents64(2)).
constexpr size_t kInodeOffset = 0, kLengthOffset = 16, kTypeOffset = 18, kNameOffset = 19;

FileType type_of_entry(int directory, const char* name, uint8_t type) {
  switch (type) {
    case DT_BLK: return FileType::kBlockDevice;
    case DT_CHR: return FileType::kCharacterDevice;
    case DT_DIR: return FileType::kDirectory;
    case DT_REG: return FileType::kRegularFile;
    case DT_LNK: return FileType::kSymbolicLink;
    case DT_SOCK: return FileType::kSocketStream;
    case DT_UNKNOWN: break;  // this file system does not say
    default: return FileType::kUnknown;
  }
  struct stat st;
  if (::fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) != 0) return FileType::kUnknown;
  return type_of_mode(st.st_mode);
}

// `own_inode`: reported for ".." too, so that the guest learns nothing about the directory above.
Errno add_entry(int directory, const uint8_t* raw, uint64_t own_inode, DirSnapshot* out) {
  const char* name = reinterpret_cast<const char*>(raw) + kNameOffset;
  DirSnapshot::Entry entry = {};
  std::memcpy(&entry.inode, raw + kInodeOffset, sizeof entry.inode);
  entry.name_at = out->names.size();
  entry.name_size = static_cast<uint32_t>(std::strlen(name));
  const bool up = std::strcmp(name, "..") == 0;
  if (up) entry.inode = own_inode;
  entry.type = type_of_entry(directory, up ? "." : name, raw[kTypeOffset]);
  if (out->names.size() + entry.name_size > kMaxNameBytes) return Errno::kOverflow;
  const bool added = out->names.append(name, entry.name_size) && out->entries.append(entry);
  return added ? Errno::kSuccess : Errno::kNomem;
}

Errno fill(int directory, DirSnapshot* out) {
  struct stat st;
  if (::fstat(directory, &st) != 0 || ::lseek(directory, 0, SEEK_SET) < 0) return from_host(errno);
  alignas(8) uint8_t raw[8192];
  for (;;) {
    const long size =
        retrying([&] { return ::syscall(SYS_getdents64, directory, raw, sizeof raw); });
    if (size <= 0) return status_of(size);
    for (long at = 0; at < size;) {
      uint16_t length = 0;
      std::memcpy(&length, raw + at + kLengthOffset, sizeof length);
      UPTIER_WASI_TRY(add_entry(directory, raw + at, st.st_ino, out));
      at += length;
    }
  }
}

Errno take_snapshot(FdEntry& entry) {
  std::unique_ptr<DirSnapshot> snapshot(new (std::nothrow) DirSnapshot);
  if (snapshot == nullptr) return Errno::kNomem;
  UPTIER_WASI_TRY(fill(entry.host.get(), snapshot.get()));
  entry.snapshot = std::move(snapshot);
  return Errno::kSuccess;
}

// Copies as much as fits of `from` to the guest's buffer. Returns how much.
uint32_t copy_cut(uint8_t* to, uint32_t room, const void* from, uint32_t size) {
  const uint32_t count = std::min(room, size);
  if (count != 0) std::memcpy(to, from, count);
  return count;
}

// Writes entries from `cookie` on; the last may be cut anywhere. Returns the bytes used, which
// are all of them exactly when there may be more.
uint32_t write_entries(const DirSnapshot& snapshot, uint64_t cookie, uint8_t* to, uint32_t room) {
  uint32_t used = 0;
  for (uint64_t i = cookie; i < snapshot.entries.size() && used < room; ++i) {
    const DirSnapshot::Entry& entry = snapshot.entries[i];
    uint8_t head[kDirent] = {};
    put64(head + kDirentNext, i + 1);
    put64(head + kDirentIno, entry.inode);
    put32(head + kDirentNameLength, entry.name_size);
    head[kDirentType] = static_cast<uint8_t>(entry.type);
    used += copy_cut(to + used, room - used, head, kDirent);
    used +=
        copy_cut(to + used, room - used, snapshot.names.data() + entry.name_at, entry.name_size);
  }
  return used;
}

// The entry of a preopened directory. EBADF for every other descriptor: that is where wasi-libc,
// which tries 3, 4, ... at start, stops.
Errno find_preopen(State& state, uint32_t fd, FdEntry** out) {
  *out = state.fds.find(fd);
  return *out != nullptr && (*out)->preopen ? Errno::kSuccess : Errno::kBadf;
}

}  // namespace

// (fd, pointer to the result)
Errno fd_prestat_get(State& state, GuestMemory memory, Args a) noexcept {
  if (!memory.contains(a.u32(1), kPrestat)) return Errno::kFault;
  FdEntry* entry = nullptr;
  UPTIER_WASI_TRY(find_preopen(state, a.u32(0), &entry));
  uint8_t out[kPrestat] = {};  // tag 0: a directory
  put32(out + kPrestatNameLength, static_cast<uint32_t>(entry->guest_path.size()));
  memory.write(a.u32(1), out, sizeof out);
  return Errno::kSuccess;
}

// (fd, buffer, its size): the name without a NUL
Errno fd_prestat_dir_name(State& state, GuestMemory memory, Args a) noexcept {
  if (!memory.contains(a.u32(1), a.u32(2))) return Errno::kFault;
  FdEntry* entry = nullptr;
  UPTIER_WASI_TRY(find_preopen(state, a.u32(0), &entry));
  if (a.u32(2) < entry->guest_path.size()) return Errno::kNametoolong;
  memory.write(a.u32(1), entry->guest_path.data(), entry->guest_path.size());
  return Errno::kSuccess;
}

// (fd, buffer, its size, cookie, pointer to the bytes used)
Errno fd_readdir(State& state, GuestMemory memory, Args a) noexcept {
  const uint32_t room = a.u32(2);
  uint8_t* to = memory.at(a.u32(1), room);
  if (!memory.contains(a.u32(1), room) || !memory.contains(a.u32(4), 4)) return Errno::kFault;
  FdEntry* entry = nullptr;
  UPTIER_WASI_TRY(state.fds.require(a.u32(0), kFdReaddir, &entry));
  const uint64_t cookie = a.u64(3);
  if (cookie == 0 || entry->snapshot == nullptr) UPTIER_WASI_TRY(take_snapshot(*entry));
  memory.store32(a.u32(4), write_entries(*entry->snapshot, cookie, to, room));
  return Errno::kSuccess;
}

}  // namespace uptier::wasm::wasi
