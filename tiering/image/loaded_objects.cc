#include "tiering/image/loaded_objects.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>

namespace uptier::tiering {
namespace {

// Returns the build id in a segment of notes, if there is one.
profile::Bytes build_id_in(const std::byte* at, size_t size) {
  constexpr size_t kWord = 4;
  const auto padded = [](size_t n) { return (n + kWord - 1) & ~(kWord - 1); };
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof note);
    const size_t name = padded(note.n_namesz), desc = padded(note.n_descsz);
    const size_t rest = size - sizeof note;
    if (name > rest || desc > rest - name) break;
    const std::byte* text = at + sizeof note;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(text, "GNU", 4) == 0) {
      return {text + name, text + name + note.n_descsz};
    }
    at += sizeof note + name + desc;
    size -= sizeof note + name + desc;
  }
  return {};
}

int take(dl_phdr_info* info, size_t, void* to) {
  LoadedObjects::Object o;
  o.base = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& p = info->dlpi_phdr[i];
    const uintptr_t begin = o.base + p.p_vaddr;
    if (p.p_type == PT_NOTE && o.build_id.empty()) {
      o.build_id = build_id_in(reinterpret_cast<const std::byte*>(begin), p.p_filesz);
    } else if (p.p_type == PT_LOAD && (p.p_flags & PF_X) != 0) {
      o.code.push_back({begin, begin + p.p_memsz});
    }
  }
  static_cast<std::vector<LoadedObjects::Object>*>(to)->push_back(std::move(o));
  return 0;
}

}  // namespace

LoadedObjects LoadedObjects::read() {
  LoadedObjects all;
  ::dl_iterate_phdr(take, &all.objects_);
  return all;
}

const LoadedObjects::Object* LoadedObjects::of(const void* address) const {
  const auto at = reinterpret_cast<uintptr_t>(address);
  for (const Object& o : objects_) {
    for (auto [begin, end] : o.code) {
      if (at >= begin && at < end) return &o;
    }
  }
  return nullptr;
}

const LoadedObjects::Object* LoadedObjects::find(profile::ByteSpan build_id) const {
  const Object* found = nullptr;
  for (const Object& o : objects_) {
    if (o.build_id.empty() || !std::ranges::equal(o.build_id, build_id)) continue;
    if (found != nullptr) return nullptr;
    found = &o;
  }
  return found;
}

const LoadedObjects::Object* LoadedObjects::own() const {
  return of(reinterpret_cast<const void*>(&LoadedObjects::read));
}

}  // namespace uptier::tiering
