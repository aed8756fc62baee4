// Records of log probes, on their way to whoever asks.
#include "tiering/runtime_impl.h"

namespace uptier::tiering {
namespace {

// Takes what is in a thread's ring. The caller holds the state mutex, so there is one reader.
template <typename Records>
void take(AttachedThread& t, Records& out) {
  std::vector<sampler::LogRecord> taken;
  t.log().read(taken);
  for (const sampler::LogRecord& r : taken) {
    out.push_back({MethodId(r.method), r.site, r.tag, r.value, r.cycles, t.number()});
  }
}

}  // namespace

std::vector<LogRecord> RuntimeImpl::read_log() {
  if (forked()) return {};
  std::lock_guard lock(state_mutex_);
  std::vector<LogRecord> out(gone_log_.begin(), gone_log_.end());
  gone_log_.clear();
  for (const auto& t : threads_) take(*t, out);
  return out;
}

// The thread's ring goes with it.
void RuntimeImpl::keep_log_locked(AttachedThread& t) {
  take(t, gone_log_);
  while (gone_log_.size() > options_.log_records) {
    gone_log_.pop_front();
    ++losses_.log_records;
  }
}

}  // namespace uptier::tiering
