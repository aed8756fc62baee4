// The key of images of this process, and the options that rule images out.
#include <array>
#include <string>

#include "jit/code/code_space.h"
#include "jit/code/cpu_features.h"
#include "sampler/context.h"
#include "tiering/image/image_code.h"
#include "tiering/image/loaded_objects.h"

namespace uptier::tiering {
namespace {

// FNV-1a over what code knows of structures.
constexpr uint64_t layout_hash() {
  constexpr std::array<uint64_t, 12> kKnown = {
      sizeof(sampler::MethodState),  sizeof(sampler::ThreadContext), sampler::kMethodsOffset,
      sampler::kStackLimitOffset,    sampler::kRuntimeOffset,        sampler::kPendingTrapOffset,
      sampler::kCallCountdownOffset, sampler::kLoopCountdownOffset,  sampler::kSlabOffset,
      sampler::kOptimizedSlabOffset, sampler::kBlockMethods,         jit::CodeSpace::kLine};
  uint64_t hash = 0xcbf29ce484222325;
  for (uint64_t n : kKnown) {
    for (int shift = 0; shift < 64; shift += 8) hash = (hash ^ (n >> shift & 0xff)) * 0x100000001b3;
  }
  return hash;
}

Error ruled_out(const char* option, const char* why) {
  return {ErrorCode::kUnsupported, std::string("option ") + option + " rules images out: " + why};
}

}  // namespace

Status allows_images(const Options& o) {
  if (o.tier == TierMode::kInstrumented || o.tier == TierMode::kOptimized) {
    return ruled_out("tier", "first code is not plain baseline code");
  }
  if (o.fuel != 0) return ruled_out("fuel", "code counts fuel at a place of this process");
  if (o.gap == GapMode::kExact) return ruled_out("gap", "with exact gaps, all code counts");
  if (o.interval == 1) return ruled_out("interval", "with interval=1, all first code counts");
  if (o.workers == 0) return ruled_out("workers", "without a worker, first code counts");
  if (o.counters != CounterMode::kPerThread) return ruled_out("counters", "they are shared");
  if (o.loops) return ruled_out("loops", "timing loops needs descriptions");
  if (!o.stress.empty()) return ruled_out("stress", "it changes code");
  return {};
}

Result<profile::ImageKey> image_key(const Options& o, const jit::CodeSpace& space, bool lines) {
  profile::ImageKey key;
  const LoadedObjects loaded = LoadedObjects::read();
  const LoadedObjects::Object* own = loaded.own();
  if (own == nullptr || own->build_id.empty()) {
    return Error{ErrorCode::kUnsupported,
                 "the library was linked without a build id; link with -Wl,--build-id"};
  }
  key.build = own->build_id;
  for (uint64_t word : jit::cpu_features()) { profile::ByteWriter(key.processor).u64(word); }
  key.layout = layout_hash();
  const auto flag = [&](const char* name, bool on) {
    key.options += std::string(key.options.empty() ? "" : " ") + name + (on ? "=on" : "=off");
  };
  flag("loop_checks", o.tier != TierMode::kBaseline);
  flag("block_rows", o.probe_table);
  flag("line_rows", lines);
  flag("landing_pads", space.hardening().landing_pads);
  flag("blind_constants", space.hardening().blind_constants);
  flag("packed", space.packed());
  flag("value_versions", o.value_versions);
  return key;
}

}  // namespace uptier::tiering
