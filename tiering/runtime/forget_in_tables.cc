// Writes down what tables of call targets hold of methods that are forgotten (observe/forgotten_targets.cc).
#include <algorithm>
#include <map>
#include <vector>

#include "sampler/site_counts.h"
#include "tiering/model/optimized_slab.h"
#include "tiering/observe/forgotten_targets.h"
#include "tiering/runtime/runtime_impl.h"

namespace uptier::tiering {

namespace {

// Where stubs are: what an entry's key is, where it is that of a method.
struct Stubs {
  const jit::CodeSpace& space;
  const jit::StubTable& table;

  bool name_one_of(uint64_t word, const Places::Set& places) const;
};

bool Stubs::name_one_of(uint64_t word, const Places::Set& places) const {
  auto* pc = reinterpret_cast<const void*>(word);  // NOLINT(performance-no-int-to-ptr)
  if (!space.contains(pc)) return false;
  MethodId m = table.method_of(pc);
  return m.valid() && m.index() < places.size() && places[m.index()];
}

// Writes down what the tables of a slab, or of a snapshot of it, hold of the methods of some places.
void forget_in_slab(const Method& m, uint32_t stream, const uint64_t* slab, uint64_t size,
                    const Stubs& stubs, const Places::Set& places, ForgottenTargets& held) {
  if (slab == nullptr) return;
  for (const TargetTable& t : m.probes->target_tables((stream & kOptimizedStream) != 0)) {
    if (t.word + t.shape.words() > size) return;
    std::vector<uint64_t> words(t.shape.words());
    if (!sampler::copy_table(slab + t.word, t.shape, words.data())) {
      for (uint32_t p = 0; p < places.size(); ++p) {
        if (!places[p]) continue;
        auto stub = reinterpret_cast<uintptr_t>(stubs.table.stub(MethodId(p)));
        held[{t.site, stub}] = UINT64_MAX;
      }
      continue;
    }
    for (const sampler::TableEntry& e : sampler::read_table(words, t.shape).entries) {
      if (!stubs.name_one_of(e.key, places)) continue;
      uint64_t& most = held[{t.site, e.key}];
      most = std::max(most, e.count);
    }
  }
}

}  // namespace

// No word becomes the address of a method that is not called any more; so whatever is in the rings
// by now, or comes later from before this, names no more than is found here.
void RuntimeImpl::forget_in_tables_locked(const Places::Set& places) {
  if (std::ranges::find(places, true) == places.end()) return;
  drain_locked();
  const Stubs stubs{*space_, *stubs_};
  for (const auto& m : methods_.all()) {
    if (m->forgotten || !m->has_shape() || m->probes->target_tables(false).empty()) continue;
    std::map<uint32_t, ForgottenTargets> held;
    for (const auto& t : threads_) {
      sampler::MethodState& s = t->state(m->id);
      // The owner sets them once, or changes to a larger one.
      auto* slab = __atomic_load_n(&s.slab, __ATOMIC_ACQUIRE);
      auto* optimized = __atomic_load_n(&s.optimized_slab, __ATOMIC_ACQUIRE);
      uint32_t number = t->number();
      forget_in_slab(*m, number, slab, m->slab_words.load(), stubs, places, held[number]);
      number |= kOptimizedStream;
      forget_in_slab(*m, number, optimized, optimized_words(optimized), stubs, places,
                     held[number]);
    }
    for (const auto& [number, s] : m->flushed->streams) {
      forget_in_slab(*m, number, s.words.data(), s.words.size(), stubs, places, held[number]);
    }
    for (const auto& [number, entries] : held) {
      if (!entries.empty()) forget_targets(*m, number, entries, observer_.directory.method_at());
    }
  }
}

}  // namespace uptier::tiering
