#include "tiering/observe/kept_code.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "jit/code/code.h"
#include "profile/base/wall.h"
#include "tiering/model/method.h"

namespace uptier::tiering {
namespace {

using sampler::SampleGap;
using sampler::SampleLeaf;
using sampler::StackRecord;

const void* code_address(uint64_t pc) {
  return reinterpret_cast<const void*>(pc);  // NOLINT(performance-no-int-to-ptr)
}

// Code without rows is no part of a program: a thunk, for example.
bool has_image(const Version& v) {
  return v.code != nullptr && !v.freed && !v.moved && !v.code->tables().probes.empty();
}

// A method that was only inlined has a body, and no shape.
uint64_t cfg_hash_of(const Method& m) {
  const uint64_t hash = m.shape->cfg_hash;
  return hash == 0 && m.body != nullptr ? m.body->cfg_hash : hash;
}

uint32_t blocks_of(const Method& m) {
  const size_t blocks = m.shape->block_weights.size();
  return blocks == 0 && m.body != nullptr ? m.body->block_sites : static_cast<uint32_t>(blocks);
}

std::vector<uint8_t> bytes_of(const jit::Code& code) {
  std::vector<uint8_t> bytes(code.base(), code.base() + code.hot_size());
  bytes.insert(bytes.end(), code.cold_base(), code.cold_base() + (code.size() - code.hot_size()));
  return bytes;
}

// Returns the length of a call through rax, which is how indirect calls are made.
constexpr uint32_t kIndirectBytes = 2;

}  // namespace

uint32_t KeptCode::number_of(MethodId m) {
  const auto [at, fresh] = numbers_.try_emplace(m.number(), static_cast<uint32_t>(named_.size()));
  if (fresh) named_.push_back({{}, "method " + std::to_string(m.index()), 0, 0});
  ImagedMethod& to = named_[at->second];
  const Method* method = to.cfg_hash == 0 ? methods_.known(m) : nullptr;
  if (method != nullptr) {
    to = {method->info.key, method->info.name, cfg_hash_of(*method), blocks_of(*method)};
  }
  return at->second;
}

// Calls of methods lead to a stub, or through the cell of a stub to code.
uint32_t KeptCode::callee_of(const jit::Code& code, uint32_t returns, uint32_t bytes,
                             const jit::CodeSpace& space, const jit::StubTable& stubs) {
  constexpr uint32_t kNear = 5, kThroughCell = 6;
  if (bytes != kNear && bytes != kThroughCell) return ImageRow::kNoCallee;
  const auto* end = static_cast<const uint8_t*>(code.at(returns - 1)) + 1;
  int32_t distance;
  std::memcpy(&distance, end - sizeof distance, sizeof distance);
  const void* target = end + distance;
  if (bytes == kThroughCell) std::memcpy(&target, target, sizeof target);
  if (const MethodId m = stubs.method_of(target); m.valid()) {
    return number_of(methods_.latest(m.index()));
  }
  const jit::Code* owner = space.owner_of(target);
  return owner == nullptr ? ImageRow::kNoCallee : number_of(owner->method());
}

void KeptCode::add_rows(const jit::Code& code, CodeImage& to, const jit::CodeSpace& space,
                        const jit::StubTable& stubs) {
  using Kind = ImageRow::Kind;
  for (const jit::ProbeRow& r : code.tables().probes) {
    ImageRow row{r.offset, r.starts ? Kind::kBlock : Kind::kContinues, r.site, r.body};
    row.partial = r.partial;
    to.rows.push_back(row);
  }
  for (const jit::CallRow& r : code.tables().calls) {
    if (r.bytes == 0) continue;
    const bool indirect = r.bytes == kIndirectBytes;
    to.rows.push_back({r.offset - r.bytes, indirect ? Kind::kIndirectCall : Kind::kCall, r.site,
                       r.body, r.offset, callee_of(code, r.offset, r.bytes, space, stubs)});
  }
  std::ranges::stable_sort(to.rows, {}, &ImageRow::offset);
}

CodeImage KeptCode::image_of(const Version& v, const jit::CodeSpace& space,
                             const jit::StubTable& stubs) {
  const jit::Code& code = *v.code;
  CodeImage to;
  to.version = v.serial;
  to.tier = v.tier;
  to.copy = v.copy;
  to.loop = v.osr_loop;
  to.address = reinterpret_cast<uintptr_t>(code.base());
  to.cold_address = reinterpret_cast<uintptr_t>(code.cold_base());
  to.hot_size = code.hot_size();
  to.bytes = bytes_of(code);
  // If the parts are one allocation, the data lies at the end of the cold part.
  to.data_at = code.tables().data_at;
  to.data_end = to.data_at <= to.hot_size ? to.hot_size : code.size();
  to.bodies.push_back({number_of(code.method()), 0, 0});
  for (const jit::InlineRow& r : code.tables().inlined) {
    to.bodies.push_back({number_of(r.method), r.parent, r.site});
  }
  add_rows(code, to, space, stubs);
  return to;
}

void KeptCode::keep(const Version& v, const jit::CodeSpace& space,
                    const jit::StubTable& stubs) noexcept {
  if (!has_image(v)) return;
  const bool kept = kept_bytes_ + v.code->size() <= kMostBytes && finishes([&] {
                      CodeImage image = image_of(v, space, stubs);
                      image.freed = true;
                      freed_.emplace(v.serial, std::move(image));
                      kept_bytes_ += v.code->size();
                    });
  if (!kept) ++lost_codes_;
}

void KeptCode::add(const StackRecord& r, const jit::CodeSpace& space) {
  if (r.leaf != SampleLeaf::kBody || r.count == 0) {
    ++elsewhere_;
    return;
  }
  Stack stack;
  bool cut = r.gap != SampleGap::kNone;
  for (uint32_t i = 0; i < r.count; ++i) {
    const void* pc = code_address(StackRecord::pc_of(r.frames[i]));
    const jit::Code* code = space.owner_of(pc);
    if (code == nullptr || !StackRecord::is_of(r.frames[i], code->serial())) {
      cut = true;
      break;
    }
    // A caller's address lies in its call, at the last byte.
    stack.emplace_back(code->serial(), code->offset_of(pc) + (i == 0 ? 0 : 1));
  }
  if (stack.empty() || (stacks_.size() >= kMostStacks && !stacks_.contains(stack))) {
    ++lost_samples_;
    return;
  }
  Sum& sum = stacks_[std::move(stack)];
  ++sum.samples;
  sum.ns += r.weight_ns;
  if (cut) ++cut_;
}

CodeImages KeptCode::images(const jit::CodeSpace& space, const jit::StubTable& stubs) {
  CodeImages to;
  std::map<uint64_t, CodeImage> all = freed_;
  for (const auto& m : methods_.all()) {
    for (const auto& v : m->versions) {
      if (has_image(*v)) all.insert_or_assign(v->serial, image_of(*v, space, stubs));
    }
  }
  std::unordered_map<uint64_t, uint32_t> index;
  for (auto& [serial, image] : all) {
    index.emplace(serial, static_cast<uint32_t>(to.codes.size()));
    to.codes.push_back(std::move(image));
  }
  to.methods = named_;
  to.elsewhere = elsewhere_;
  to.lost_samples = lost_samples_;
  to.lost_codes = lost_codes_;
  to.cut_stacks = cut_;
  for (const auto& [stack, sum] : stacks_) {
    ImagedStack s{{}, sum.samples, sum.ns};
    for (const auto& [serial, offset] : stack) {
      const auto at = index.find(serial);
      if (at == index.end()) break;
      s.frames.push_back({at->second, offset});
    }
    if (s.frames.size() < stack.size()) to.cut_stacks += sum.samples;
    if (s.frames.empty()) {
      to.lost_samples += sum.samples;
    } else {
      to.stacks.push_back(std::move(s));
    }
  }
  return to;
}

}  // namespace uptier::tiering
