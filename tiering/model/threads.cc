#include "tiering/model/threads.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "profile/base/wall.h"

namespace uptier::tiering {
namespace {

// Takes the records from a thread's ring. The caller holds the state mutex, so there is one reader.
template <typename Records>
void take(AttachedThread& t, Records& out) {
  std::vector<sampler::LogRecord> taken;
  t.log().read(taken);
  for (const sampler::LogRecord& r : taken) {
    out.push_back({MethodId(r.method), r.site, r.tag, r.value, r.cycles, t.number()});
  }
}

LossReport losses_of(const AttachedThread& t) {
  LossReport l;
  l.samples_without_copy = t.samples_without_copy;
  l.slabs_refused = t.slabs_refused;
  l.flushes_delayed = t.flushes_delayed;
  sampler::LoopTimer::Losses loops = t.loops().losses();
  l.loops_full = loops.full;
  l.loops_stale = loops.stale;
  l.loops_spoiled = loops.spoiled;
  l.log_records = t.log().lost();
  l.stack_samples = t.sampler().counts().dropped;
  l.traps_lost = t.context().traps_lost.load(std::memory_order_relaxed);
  return l;
}

// Adds the losses of threads.
void add(LossReport& to, const LossReport& l) {
  to.samples_without_copy += l.samples_without_copy;
  to.slabs_refused += l.slabs_refused;
  to.flushes_delayed += l.flushes_delayed;
  to.loops_full += l.loops_full;
  to.loops_stale += l.loops_stale;
  to.loops_spoiled += l.loops_spoiled;
  to.log_records += l.log_records;
  to.stack_samples += l.stack_samples;
  to.traps_lost += l.traps_lost;
}

uint64_t lived(const AttachedThread& t) { return t.cpu_ns() - t.attached_cpu_ns; }

}  // namespace

void Threads::add(std::unique_ptr<AttachedThread> t) {
  assert(t->number() != 0 && t->number() <= numbers_);
  t->attached_cpu_ns = t->seen_cpu_ns = t->cpu_ns();
  threads_.push_back(std::move(t));
}

void Threads::remove(const AttachedThread& t) {
  auto at = std::ranges::find(threads_, &t, &std::unique_ptr<AttachedThread>::get);
  assert(at != threads_.end());
  const uint64_t waiting = t.log().waiting();
  if (!finishes([&] {
        state_lock.known_held();
        keep_log(**at);
      }))
    gone_losses_.log_records += waiting;
  tiering::add(gone_losses_, losses_of(t));
  gone_lived_ns_ += lived(t);
  threads_.erase(at);
}

std::vector<LogRecord> Threads::read_log() {
  std::vector<LogRecord> out(gone_log_.begin(), gone_log_.end());
  gone_log_.clear();
  for (const auto& t : threads_) take(*t, out);
  return out;
}

void Threads::keep_log(AttachedThread& t) {
  take(t, gone_log_);
  while (gone_log_.size() > log_records_) {
    gone_log_.pop_front();
    ++gone_losses_.log_records;
  }
}

void Threads::add_losses(LossReport& to) const {
  tiering::add(to, gone_losses_);
  for (const auto& t : threads_) tiering::add(to, losses_of(*t));
}

uint64_t Threads::lived_ns() const {
  uint64_t sum = gone_lived_ns_;
  for (const auto& t : threads_) sum += lived(*t);
  return sum;
}

}  // namespace uptier::tiering
