// names.cc: the names of the public enumerators, for text forms and messages.
//
// They are on the lowest floor, so that every floor may print them. A value outside its enum (for
// example from a damaged file) has the name "?".
#include <array>

#include "uptier/events.h"
#include "uptier/ids.h"
#include "uptier/result.h"

namespace uptier {

const char* type_name(Type t) {
  switch (t) {
    case Type::kNone: return "none";
    case Type::kI32: return "i32";
    case Type::kI64: return "i64";
    case Type::kF32: return "f32";
    case Type::kF64: return "f64";
    case Type::kRef: return "ref";
  }
  return "?";
}

const char* tier_name(Tier t) {
  switch (t) {
    case Tier::kHost: return "host";
    case Tier::kBaseline: return "baseline";
    case Tier::kOptimized: return "optimized";
  }
  return "?";
}

const char* copy_name(Copy c) {
  switch (c) {
    case Copy::kPlain: return "plain";
    case Copy::kInstrumented: return "instrumented";
  }
  return "?";
}

const char* event_kind_name(EventKind k) {
  static constexpr std::array<const char*, kEventKinds> kNames = {
      "lost",    "added",   "removed",       "forgotten",      "described",  "compiled",
      "failed",  "refused", "dropped",       "installed",      "first_call", "entered",
      "left",    "retired", "freed",         "moved",          "evicted",    "flushed",
      "decided", "saved",   "worker_paused", "worker_resumed", "ended"};
  auto i = static_cast<size_t>(k);
  return i < kNames.size() ? kNames[i] : "?";
}

const char* error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return "invalid argument";
    case ErrorCode::kInvalidInput: return "invalid input";
    case ErrorCode::kCorruptInput: return "corrupt input";
    case ErrorCode::kUnsupported: return "unsupported";
    case ErrorCode::kResourceExhausted: return "resource exhausted";
    case ErrorCode::kIo: return "input/output error";
    case ErrorCode::kNotFound: return "not found";
    case ErrorCode::kForked: return "forked";
  }
  return "?";
}

}  // namespace uptier
