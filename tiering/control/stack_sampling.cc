#include "tiering/control/stack_sampling.h"

#include <cassert>

#include "profile/base/wall.h"
#include "tiering/model/version.h"

namespace uptier::tiering {
namespace {

void add(sampler::StackSampler::Counts& to, const sampler::StackSampler::Counts& c) {
  to.asked_ns += c.asked_ns;
  to.dropped += c.dropped;
  to.dropped_ns += c.dropped_ns;
}

}  // namespace

StackSampling::StackSampling(const Parts& parts)
    : parts_(parts), signal_(sample_signal(parts.options)), samples_(parts.methods) {
  if (parts.options.keep_code) kept_ = std::make_unique<KeptCode>(parts.methods);
}

void StackSampling::say_fallback(const AttachedThread& t) {
  engine_ = t.sampler().engine();
  if (engine_ == parts_.options.sample_engine || fell_back_) return;
  fell_back_ = true;
  parts_.log.say(
      LogLevel::kWarning,
      "sampling: the kernel refuses sample_engine=task_clock; cpu_timer takes its place, "
      "whose signals come at the kernel's tick at most");
}

Status StackSampling::begin(AttachedThread& t) {
  const Options& o = parts_.options;
  Status s = t.sampler().prepare(o.sample_engine, signal_.number(), o.sample_ring_bytes);
  if (!s) return s;
  ever_ = true;
  say_fallback(t);
  t.sampler().change(parts_.live.sample_hz);
  return {};
}

void StackSampling::thread_came(AttachedThread& t) {
  assert(parts_.space != nullptr && parts_.stubs != nullptr);
  t.sampled_code = {parts_.space.get(), parts_.stubs.get(), &parts_.routines, &host_};
  if (!ticks()) return;
  if (Status s = begin(t); !s) parts_.log.say(LogLevel::kWarning, s.error().message);
}

void StackSampling::thread_goes(AttachedThread& t) {
  t.sampler().change(0);
  drain(t);
  add(gone_, t.sampler().counts());
}

Status StackSampling::change_rate() {
  bool on = parts_.live.sample_hz != 0;
  if (on) {
    if (Status s = signal_.take(); !s) return s;
    if (!ever_) host_.look();
  }
  on_.store(on, std::memory_order_relaxed);
  Status status;
  for (const auto& t : parts_.threads) {
    if (!on) {
      t->sampler().change(0);
    } else if (Status s = begin(*t); !s) {
      status = s;
    }
  }
  return status;
}

// If there is no memory for its sums, a record is lost, and the next one is taken.
void StackSampling::drain(AttachedThread& t) {
  while (t.sampler().read(record_)) {
    finishes([&] {
      state_lock.known_held();
      samples_.take(record_, *parts_.space, *parts_.stubs);
      note_met();
    });
    const bool kept = kept_ == nullptr || finishes([&] { kept_->add(record_, *parts_.space); });
    if (!kept) kept_->note_lost();
  }
}

void StackSampling::before_free(std::span<Version* const> versions) noexcept {
  drain();
  if (kept_ == nullptr) return;
  for (const Version* v : versions) kept_->keep(*v, *parts_.space, *parts_.stubs);
}

CodeImages StackSampling::code_images() {
  if (kept_ == nullptr || parts_.space == nullptr) return {};
  drain();
  return kept_->images(*parts_.space, *parts_.stubs);
}

void StackSampling::note_met() {
  for (MethodId id : samples_.met()) {
    Method* m = parts_.methods.known(id);
    if (m == nullptr || m->sampled) continue;
    met_.push_back(id);
    m->sampled = true;
  }
}

void StackSampling::drain() noexcept {
  if (!ever_) return;
  for (const auto& t : parts_.threads) drain(*t);
}

sampler::StackSampler::Counts StackSampling::counts() const {
  sampler::StackSampler::Counts all = gone_;
  for (const auto& t : parts_.threads) add(all, t->sampler().counts());
  return all;
}

TimeProfile StackSampling::profile() {
  if (!ever_) return {};
  drain();
  TimeProfile p = samples_.profile();
  p.asked_ns = counts().asked_ns;
  return p;
}

TimeReport StackSampling::report(Paths paths) {
  TimeReport r;
  if (!ever_) return r;
  drain();
  const sampler::StackSampler::Counts all = counts();
  r.hz = parts_.live.sample_hz;
  r.engine = engine_;
  r.asked_ns = static_cast<double>(all.asked_ns);
  r.dropped = all.dropped;
  r.dropped_ns = static_cast<double>(all.dropped_ns);
  samples_.report(r);
  if (paths == Paths::kAll) samples_.report_paths(r);
  return r;
}

}  // namespace uptier::tiering
