// Putting versions in service and taking them out.
//
// Install publishes in the order code bytes and tables (done by the compiler), version, cell: a
// thread that reaches the code through the cell or a pointer below finds everything it leads to.
#include "tiering/runtime_impl.h"

namespace uptier::tiering {

void RuntimeImpl::install(Method& m, std::unique_ptr<Version> version) {
  compile_ns_total_ += version->compile_ns;
  Version* v = version.get();
  m.versions.push_back(std::move(version));
  if (perf_map_ != nullptr) {
    std::string name = m.info.name + " [" + tier_name(v->tier);
    if (v->tier == Tier::kBaseline) name += std::string(" ") + copy_name(v->copy);
    if (v->osr_loop.valid()) name += " osr " + std::to_string(v->osr_loop.index());
    perf_map_->add(v->code->base(), v->code_bytes, name + "]");
  }
  if (v->osr_loop.valid()) {
    // Release pairs with the acquire in osr_target().
    m.osr[v->osr_loop.index()].store(v, std::memory_order_release);
    return;
  }
  if (v->tier == Tier::kOptimized) {
    m.optimized_versions++;
    m.optimized.store(v, std::memory_order_release);
    stubs_->set_target(m.id, v->code->entry());
    retire_baseline(m);
    reclaim_locked();
    return;
  }
  if (v->copy == Copy::kInstrumented) {
    m.instrumented.store(v, std::memory_order_release);
    if (always_instrumented_) {
      stubs_->set_target(m.id, v->code->entry());
    } else if (options_.gap != GapMode::kExact) {
      fast_->set_entry(m.id.index(), v->code->entry());
    }
    return;
  }
  m.plain.store(v, std::memory_order_release);
  stubs_->set_target(m.id, v->code->entry());
}

// Calls do not reach the baseline copies any more; frames that still run there keep them alive, and
// leave by OSR or by returning.
void RuntimeImpl::retire_baseline(Method& m) {
  fast_->set_entry(m.id.index(), nullptr);
  for (auto& v : m.versions) {
    if (v->tier == Tier::kBaseline && !v->retired) reclaimer_.retire(*v);
  }
}

void RuntimeImpl::reclaim_locked() {
  if (reclaimer_.has_limbo()) reclaimer_.reclaim(threads_);
}

}  // namespace uptier::tiering
