// fds.h: the guest's descriptor table.
//
// A guest descriptor is an index into this table and never a host number. 0, 1 and 2 are the
// standard streams; everything else takes the lowest free index from 3 on, preopened directories
// first. An entry carries the rights it was given, and every operation asks the table for the
// rights it needs, so a right that was dropped cannot be used by accident.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "embed/wasi/abi.h"

namespace uptier::wasm::wasi {

// A host descriptor that is closed when its owner goes.
class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(other.release()) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = other.release();
    }
    return *this;
  }
  ~OwnedFd() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  // Closes now. Returns 0 or the host errno of close(2); the descriptor is gone in both cases.
  int reset();

 private:
  int fd_ = -1;
};

// A growing array whose growth can fail: what a guest can make large must not end the process.
template <typename T>
class GrowingArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  GrowingArray() = default;
  GrowingArray(const GrowingArray&) = delete;
  GrowingArray& operator=(const GrowingArray&) = delete;
  ~GrowingArray() { std::free(data_); }

  // Appends `count` items. Returns false, and changes nothing, when memory is refused.
  [[nodiscard]] bool append(const T* items, size_t count) {
    if (count > capacity_ - size_ && !grow(size_ + count)) return false;
    for (size_t i = 0; i < count; ++i) data_[size_ + i] = items[i];
    size_ += count;
    return true;
  }
  [[nodiscard]] bool append(const T& item) { return append(&item, 1); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }

 private:
  bool grow(size_t wanted) {
    const size_t capacity = wanted > capacity_ * 2 ? wanted : capacity_ * 2;
    if (capacity > SIZE_MAX / sizeof(T)) return false;
    void* grown = std::realloc(static_cast<void*>(data_), capacity * sizeof(T));
    if (grown == nullptr) return false;
    data_ = static_cast<T*>(grown);
    capacity_ = capacity;
    return true;
  }

  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

// A directory's content at the moment its reading began. Cookie n stands for entry n, so a cookie
// stays good while entries come and go, on every file system.
struct DirSnapshot {
  struct Entry {
    uint64_t inode;
    uint64_t name_at;  // offset in `names`
    uint32_t name_size;
    FileType type;
  };
  GrowingArray<Entry> entries;
  GrowingArray<char> names;
};

// One open guest descriptor.
struct FdEntry {
  bool open = false;
  bool owned = true;         // false: a stream that the host lent
  bool nonblocking = false;  // a lent stream's own mode; the host's is left alone
  bool preopen = false;
  FileType type = FileType::kUnknown;
  bool signals_on_write = false;  // a pipe or socket: a write may raise SIGPIPE
  Rights base = 0;
  Rights inheriting = 0;
  OwnedFd host;
  std::string_view guest_path;  // of a preopen; the bytes belong to the configuration
  std::unique_ptr<DirSnapshot> snapshot;

  bool is_directory() const { return type == FileType::kDirectory; }
};

class FdTable {
 public:
  // Guest descriptors are capped so that a guest cannot make the table itself large.
  static constexpr uint32_t kFirst = 3;
  static constexpr uint32_t kMax = 1u << 16;

  FdTable() = default;
  ~FdTable();
  FdTable(const FdTable&) = delete;
  FdTable& operator=(const FdTable&) = delete;

  // Returns the open entry, or null. The pointer is good until the next reserve().
  FdEntry* find(uint32_t fd);

  // Finds an entry that has all the rights in `need`. EBADF when closed; when a right is missing,
  // EISDIR or ENOTDIR if the type explains it, else ENOTCAPABLE.
  Errno require(uint32_t fd, Rights need, FdEntry** out);

  // Makes sure that place() will succeed and says where: so that a full table is known before
  // anything is done to the outside world. EMFILE or ENOMEM.
  Errno reserve(uint32_t* fd);

  // Puts an entry at a free index below the capacity (0 to 2, or one that reserve() gave).
  void place(uint32_t fd, FdEntry entry);

  // Makes room for the standard streams. ENOMEM.
  Errno reserve_stdio() { return grow(kFirst); }

  // Closes a descriptor. EBADF, or what close(2) said; the index is free in both cases.
  Errno close(uint32_t fd);

  // Moves `from` over `to`, which is closed. Both must be open.
  Errno renumber(uint32_t from, uint32_t to);

 private:
  Errno grow(uint32_t wanted);

  std::unique_ptr<FdEntry[]> entries_;
  uint32_t capacity_ = 0;
};

// Reads a host descriptor's type; kUnknown for pipes and whatever WASI has no name for.
FileType type_of_mode(uint32_t mode);

// Describes an open host descriptor as a guest's: type and base rights, `wanted` cut down to what
// the type can do. Returns 0 or a host errno.
int describe(int host, Rights wanted, FdEntry* entry);

}  // namespace uptier::wasm::wasi
