#include "sampler/host_code.h"

#include <link.h>

#include <cassert>

namespace uptier::sampler {
namespace {

// Recognizes the forms of an indirect call that may precede a return address: call [rip + x], call
// reg, call [reg], call [reg + d8], call [reg + d32].
bool ends_with_indirect_call(const uint8_t* end) noexcept {
  auto indirect = [&](int back, uint8_t mode) {
    return end[-back] == 0xff && (end[1 - back] & 0xf8) == mode;
  };
  return (end[-6] == 0xff && end[-5] == 0x15) || indirect(2, 0xd0) || indirect(2, 0x10) ||
         indirect(3, 0x50) || indirect(6, 0x90) || (end[-3] == 0xff && end[-2] == 0x14) ||
         (end[-4] == 0xff && end[-3] == 0x54) ||
         (end[-7] == 0xff && (end[-6] == 0x14 || end[-6] == 0x94));
}

}  // namespace

void HostCode::look() {
  count_ = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* to) {
        auto& all = *static_cast<HostCode*>(to);
        for (int i = 0; i < info->dlpi_phnum && all.count_ < kMost; ++i) {
          const ElfW(Phdr)& p = info->dlpi_phdr[i];
          if (p.p_type != PT_LOAD || (p.p_flags & (PF_X | PF_R)) != (PF_X | PF_R)) continue;
          uint64_t from = info->dlpi_addr + p.p_vaddr;
          all.ranges_[all.count_++] = {from, from + p.p_memsz};
        }
        return 0;
      },
      this);
  assert(count_ != 0);
}

bool HostCode::holds(uint64_t from, uint64_t to) const noexcept {
  for (uint32_t i = 0; i < count_; ++i) {
    if (from >= ranges_[i].from && to <= ranges_[i].to) return true;
  }
  return false;
}

bool HostCode::called_by_address(uint64_t pc) const noexcept {
  if (pc < 8 || !holds(pc - 8, pc)) return false;
  return ends_with_indirect_call(
      reinterpret_cast<const uint8_t*>(pc));  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace uptier::sampler
