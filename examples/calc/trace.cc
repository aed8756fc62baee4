#include "trace.h"

#include "bytecode.h"

namespace calc {
namespace {

uptier_trace_event* event_of(const Code& code, const Proto& p, const char* program) {
  uptier_trace_payload payload = {};
  payload.size = sizeof payload;
  payload.name = payload.function = p.name.c_str();
  payload.file = program;
  payload.line = static_cast<uint32_t>(code.lines[p.begin]);
  return uptier_trace->event(&payload);
}

uptier_trace_value bytes_value(size_t bytes) {
  uptier_trace_value v = {};
  v.kind = UPTIER_TRACE_INT;
  v.as.integer = static_cast<int64_t>(bytes);
  return v;
}

}  // namespace

void Trace::start(const Code& code, const char* program) {
  stream_ = uptier_trace->stream("calc", 1, 0);
  tells_calls_ = UPTIER_TRACE_ON(stream_, UPTIER_TRACE_BEGIN(UPTIER_TRACE_FUNCTION));
  if (!tells_calls_) return;
  for (const auto& p : code.protos) functions_.push_back(event_of(code, *p, program));
}

void Trace::enter(const Proto& p) {
  uptier_trace_event* f = functions_[p.index];
  open_.push_back(
      {f, uptier_trace->begin(stream_, UPTIER_TRACE_FUNCTION, nullptr, f, p.name.c_str())});
}

void Trace::leave_until(size_t open_calls) {
  while (open_.size() > open_calls) {
    const Call c = open_.back();
    open_.pop_back();
    UPTIER_TRACE_LEAVE(stream_, UPTIER_TRACE_FUNCTION, nullptr, c.function, c.instance, nullptr);
  }
}

uint64_t Trace::begin_collection(size_t bytes_in_use) const {
  if (!UPTIER_TRACE_ON(stream_, UPTIER_TRACE_BEGIN(UPTIER_TRACE_ARGUMENTS))) return 0;
  const uptier_trace_value in_use = bytes_value(bytes_in_use);
  const uptier_trace_arguments a = {sizeof a, "collect", 1, &in_use, nullptr, nullptr};
  return uptier_trace->begin(stream_, UPTIER_TRACE_ARGUMENTS, nullptr, nullptr, &a);
}

void Trace::end_collection(uint64_t instance, size_t bytes_in_use, size_t bytes_found_dead) const {
  if (instance == 0) return;
  const uptier_trace_value in_use = bytes_value(bytes_in_use), dead = bytes_value(bytes_found_dead);
  const uptier_trace_arguments a = {sizeof a, "collect", 1, &in_use, nullptr, &dead};
  UPTIER_TRACE_LEAVE(stream_, UPTIER_TRACE_ARGUMENTS, nullptr, nullptr, instance, &a);
}

}  // namespace calc
