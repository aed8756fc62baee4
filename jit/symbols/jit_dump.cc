#include "jit/symbols/jit_dump.h"

#include <elf.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "jit/symbols/tool_file.h"
#include "profile/base/write_all.h"

namespace uptier::jit {
namespace {

constexpr uint32_t kMagic = 0x4A695444;  // "JiTD"
constexpr size_t kPage = 4096;

enum class Kind : uint32_t { kCodeLoad = 0, kDebugInfo = 2, kCodeClose = 3 };

struct Header {
  uint32_t magic = kMagic;
  uint32_t version = 1;
  uint32_t size = sizeof(Header);
  uint32_t machine = EM_X86_64;
  uint32_t reserved = 0;
  uint32_t process = 0;
  uint64_t time = 0;
  uint64_t flags = 0;
};
static_assert(sizeof(Header) == 40);

struct Record {
  Kind kind = Kind::kCodeLoad;
  uint32_t size = 0;
  uint64_t time = 0;
};
static_assert(sizeof(Record) == 16);

struct CodeLoad {
  Record record;
  uint32_t process = 0;
  uint32_t thread = 0;
  uint64_t address = 0;
  uint64_t mapped_at = 0;
  uint64_t code_size = 0;
  uint64_t index = 0;  // unique in the file
};
static_assert(sizeof(CodeLoad) == 56);

struct DebugInfo {
  Record record;
  uint64_t address = 0;
  uint64_t entries = 0;  // each: address, line, discriminator, the file's name with its zero
};
static_assert(sizeof(DebugInfo) == 32);

// The clock of `perf record -k mono`.
uint64_t now() {
  timespec t = {};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

template <class T>
profile::ByteSpan bytes_of(const T& what) {
  return std::as_bytes(std::span(&what, 1));
}

template <class T>
void put(std::string& to, const T& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Returns the record of the lines, which comes before that of the body; empty if none is known.
// An entry holds up to the next one; line 0 is that of code without a line.
std::string debug_info(const NamedCode& code) {
  std::string entries;
  DebugInfo info{{Kind::kDebugInfo, 0, now()}, reinterpret_cast<uintptr_t>(code.base), 0};
  for (const NativeLines::Row& r : code.lines.rows) {
    put(entries, info.address + r.offset);
    put(entries, r.at.line);
    put<uint32_t>(entries, 0);
    const std::string& file = code.lines.files[r.at.file];
    entries.append(file.c_str(), file.size() + 1);
    ++info.entries;
  }
  if (info.entries == 0) return {};
  info.record.size = static_cast<uint32_t>(sizeof info + entries.size());
  std::string bytes;
  put(bytes, info);
  return bytes + entries;
}

}  // namespace

Result<std::unique_ptr<JitDump>> JitDump::create() {
  std::string path = "/tmp/jit-" + std::to_string(getpid()) + ".dump";
  Result<int> made = create_tool_file(path);
  if (!made) return made.error();
  int fd = *made;
  Header header;
  header.process = static_cast<uint32_t>(getpid());
  header.time = now();
  void* marker = mmap(nullptr, kPage, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
  int error = marker == MAP_FAILED ? errno : 0;
  if (error == 0) error = profile::write_all(fd, bytes_of(header));
  if (error != 0) {
    Error e{ErrorCode::kIo, path + ": " + std::strerror(error)};
    if (marker != MAP_FAILED) munmap(marker, kPage);
    close(fd);
    unlink(path.c_str());
    return e;
  }
  return std::unique_ptr<JitDump>(new JitDump(fd, marker));
}

JitDump::~JitDump() {
  // A file without this record is complete all the same.
  (void)file_.append(bytes_of(Record{Kind::kCodeClose, sizeof(Record), now()}));
  munmap(marker_, kPage);
}

bool JitDump::add(const NamedCode& code) {
  const std::string_view name(code.name.c_str(),
                              code.name.size() + 1);  // includes the terminating zero
  CodeLoad load;
  load.record.size = static_cast<uint32_t>(sizeof load + name.size() + code.size);
  load.record.time = now();
  load.process = static_cast<uint32_t>(getpid());
  load.thread = static_cast<uint32_t>(syscall(SYS_gettid));
  load.address = load.mapped_at = reinterpret_cast<uintptr_t>(code.base);
  load.code_size = code.size;
  load.index = codes_++;
  std::string bytes = debug_info(code);
  put(bytes, load);
  bytes += name;
  bytes.append(reinterpret_cast<const char*>(code.base), code.size);
  return file_.append(std::as_bytes(std::span(bytes)));
}

}  // namespace uptier::jit
