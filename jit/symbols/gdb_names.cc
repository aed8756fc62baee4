#include "jit/symbols/gdb_names.h"

#include <algorithm>
#include <mutex>
#include <ranges>

#include "jit/code/global_locks.h"
#include "jit/symbols/gdb_image.h"

// gdb looks for these names ("JIT Compilation Interface" in its manual). Weak, so that another
// compiler in the process may define them, too: there is one list.
extern "C" {
struct jit_code_entry {
  jit_code_entry* next_entry;
  jit_code_entry* prev_entry;
  const char* symfile_addr;
  uint64_t symfile_size;
};
struct jit_descriptor {
  uint32_t version;
  uint32_t action_flag;
  jit_code_entry* relevant_entry;
  jit_code_entry* first_entry;
};
[[gnu::weak, gnu::noinline]] void __jit_debug_register_code() { asm volatile("" ::: "memory"); }
[[gnu::weak]] jit_descriptor __jit_debug_descriptor = {1, 0, nullptr, nullptr};
}

namespace uptier::jit {
namespace {

enum Action : uint32_t { kNothing, kRegister, kUnregister };

CheckedLock<std::mutex>& list_mutex() { return global_lock(GlobalLock::kGdbNames); }

void announce(Action action, jit_code_entry& entry) {
  __jit_debug_descriptor.action_flag = action;
  __jit_debug_descriptor.relevant_entry = &entry;
  __jit_debug_register_code();
  __jit_debug_descriptor.action_flag = kNothing;
  __jit_debug_descriptor.relevant_entry = nullptr;
}

}  // namespace

// It is in the list as long as it exists.
struct GdbNames::File {
  explicit File(std::vector<NamedCode> named) : codes(std::move(named)), image(gdb_image(codes)) {
    entry.symfile_addr = reinterpret_cast<const char*>(image.data());
    entry.symfile_size = image.size();
    const Held lock(list_mutex());
    entry.prev_entry = nullptr;
    entry.next_entry = __jit_debug_descriptor.first_entry;
    if (entry.next_entry != nullptr) entry.next_entry->prev_entry = &entry;
    __jit_debug_descriptor.first_entry = &entry;
    announce(kRegister, entry);
  }
  ~File() {
    const Held lock(list_mutex());
    if (entry.next_entry != nullptr) entry.next_entry->prev_entry = entry.prev_entry;
    (entry.prev_entry != nullptr ? entry.prev_entry->next_entry
                                 : __jit_debug_descriptor.first_entry) = entry.next_entry;
    announce(kUnregister, entry);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  std::vector<NamedCode> codes;
  std::vector<uint8_t> image;
  jit_code_entry entry = {};
};

GdbNames::GdbNames() = default;
GdbNames::~GdbNames() = default;

size_t GdbNames::codes() const {
  size_t n = 0;
  for (const auto& f : files_) n += f == nullptr ? 0 : f->codes.size();
  return n;
}

void GdbNames::forget(const NamedCode& code) {
  const auto overlaps = [&](const NamedCode& c) {
    return c.base < code.base + code.size && code.base < c.base + c.size;
  };
  for (auto& f : files_) {
    // Null: memory for the remaining bodies of a file was refused, and their names are lost.
    if (f == nullptr || std::ranges::none_of(f->codes, overlaps)) continue;
    std::vector<NamedCode> rest = std::move(f->codes);
    std::erase_if(rest, overlaps);
    f.reset();
    if (!rest.empty()) f = std::make_unique<File>(std::move(rest));
  }
  std::erase(files_, nullptr);
}

void GdbNames::add(NamedCode code) {
  forget(code);
  std::vector<NamedCode> codes;
  codes.push_back(std::move(code));
  while (!files_.empty() && files_.back()->codes.size() <= codes.size()) {
    auto& last = files_.back()->codes;
    if (last.size() + codes.size() > kMostGdbCodes) break;
    std::ranges::move(last, std::back_inserter(codes));
    files_.pop_back();
  }
  files_.push_back(std::make_unique<File>(std::move(codes)));
}

}  // namespace uptier::jit
