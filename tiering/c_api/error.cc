// Error results, text output and names of numbers in the C API.
#include <algorithm>
#include <cstring>

#include "tiering/c_api/c_api.h"

namespace uptier::tiering {

// ErrorCodes added later than UPTIER_TRAPPED have greater status numbers.
uptier_status status_of(ErrorCode code) {
  return code == ErrorCode::kForked ? UPTIER_FORKED : static_cast<uptier_status>(code) + 1;
}

uptier_status fail(uptier_error* error, uptier_status status, std::string_view message) {
  if (error == nullptr) return status;
  error->status = status;
  size_t n = std::min(message.size(), sizeof error->message - 1);
  // A truncated text must end with a whole UTF-8 character.
  while (n != 0 && n < message.size() && (static_cast<uint8_t>(message[n]) & 0xc0) == 0x80) --n;
  std::memmove(error->message, message.data(), n);  // may be the error's own text
  error->message[n] = 0;
  return status;
}

uptier_status fail(uptier_error* error, const Error& e) {
  return fail(error, status_of(e.code), e.message);
}

uptier_status bad_argument(uptier_error* error, std::string_view message) {
  return fail(error, UPTIER_INVALID_ARGUMENT, message);
}

uptier_status ran_out(uptier_error* error) noexcept {
  return fail(error, UPTIER_RESOURCE_EXHAUSTED, "memory is refused");
}

uptier_status wrong_struct(const char* name, const char* why, uptier_error* error) {
  return fail(error, why == kNewer ? UPTIER_UNSUPPORTED : UPTIER_INVALID_ARGUMENT,
              std::string(name) + ": " + why);
}

uptier_status write_text(std::string_view text, char* buffer, size_t capacity, size_t* length,
                         uptier_error* error) {
  if (buffer == nullptr && capacity != 0) return bad_argument(error, "the buffer is NULL");
  if (capacity != 0) {
    size_t n = std::min(text.size(), capacity - 1);
    std::memcpy(buffer, text.data(), n);
    buffer[n] = 0;
  }
  if (length != nullptr) *length = text.size();
  return UPTIER_OK;
}

Result<Signature> signature_of(const uptier_signature& s) {
  auto refuse = [](const char* why) { return Error{ErrorCode::kInvalidArgument, why}; };
  if (s.param_count > UPTIER_MAX_PARAMS) return refuse("a signature has too many parameters");
  if (s.params == nullptr && s.param_count != 0) return refuse("the list of parameters is NULL");
  if (s.result > UPTIER_TYPE_REF) return refuse("a signature has an unknown result type");
  Signature out;
  out.result = static_cast<Type>(s.result);
  out.params.reserve(s.param_count);
  for (uptier_type t : std::span(s.params, s.param_count)) {
    if (t == UPTIER_TYPE_NONE || t > UPTIER_TYPE_REF) {
      return refuse("a signature has a parameter without a type");
    }
    out.params.push_back(static_cast<Type>(t));
  }
  return out;
}

std::string wrong_count(size_t given, const Signature& s) {
  if (given == s.params.size()) return "";
  return std::to_string(given) + " arguments, where the signature has " +
         std::to_string(s.params.size());
}

// Numbers that do not come from a common table must match.
namespace {

template <typename E>
constexpr bool same(int c, E cc) {
  return c == static_cast<int>(cc);
}

static_assert(same(UPTIER_INVALID_ARGUMENT - 1, ErrorCode::kInvalidArgument));
static_assert(same(UPTIER_INVALID_INPUT - 1, ErrorCode::kInvalidInput));
static_assert(same(UPTIER_CORRUPT_INPUT - 1, ErrorCode::kCorruptInput));
static_assert(same(UPTIER_UNSUPPORTED - 1, ErrorCode::kUnsupported));
static_assert(same(UPTIER_RESOURCE_EXHAUSTED - 1, ErrorCode::kResourceExhausted));
static_assert(same(UPTIER_IO - 1, ErrorCode::kIo));
static_assert(same(UPTIER_NOT_FOUND - 1, ErrorCode::kNotFound));
static_assert(same(UPTIER_TYPE_NONE, Type::kNone) && same(UPTIER_TYPE_I32, Type::kI32));
static_assert(same(UPTIER_TYPE_I64, Type::kI64) && same(UPTIER_TYPE_F32, Type::kF32));
static_assert(same(UPTIER_TYPE_F64, Type::kF64) && same(UPTIER_TYPE_REF, Type::kRef));
static_assert(same(UPTIER_TIER_HOST, Tier::kHost) && same(UPTIER_TIER_BASELINE, Tier::kBaseline));
static_assert(same(UPTIER_TIER_OPTIMIZED, Tier::kOptimized));
static_assert(same(UPTIER_MEM_TRAPS, kMemTraps) && same(UPTIER_MEM_INVARIANT, kMemInvariant));
static_assert(same(UPTIER_CALL_MAY_TRAP, kCallMayTrap) && same(UPTIER_MEM_FENCED, kMemFenced));
static_assert(same(UPTIER_LOG_INFO, LogLevel::kInfo) &&
              same(UPTIER_LOG_WARNING, LogLevel::kWarning) &&
              same(UPTIER_LOG_ERROR, LogLevel::kError));
static_assert(UPTIER_FENCE_BYTES == kFenceBytes);

}  // namespace
}  // namespace uptier::tiering

using namespace uptier;

extern "C" {

const char* uptier_status_name(uptier_status status) noexcept {
  switch (status) {
    case UPTIER_OK: return "ok";
    case UPTIER_TRAPPED: return "trapped";
    case UPTIER_FORKED: return error_code_name(ErrorCode::kForked);
    case UPTIER_INVALID_ARGUMENT:
    case UPTIER_INVALID_INPUT:
    case UPTIER_CORRUPT_INPUT:
    case UPTIER_UNSUPPORTED:
    case UPTIER_RESOURCE_EXHAUSTED:
    case UPTIER_IO:
    case UPTIER_NOT_FOUND: return error_code_name(static_cast<ErrorCode>(status - 1));
    default: return "?";
  }
}

const char* uptier_type_name(uptier_type type) noexcept {
  return type <= UPTIER_TYPE_REF ? type_name(static_cast<Type>(type)) : "?";
}

const char* uptier_opcode_name(uptier_opcode opcode) noexcept {
  return opcode < UPTIER_OPCODE_COUNT ? info(static_cast<Opcode>(opcode)).text : "?";
}

const char* uptier_trap_text(uptier_trap trap) noexcept {
  return trap < UPTIER_TRAP_COUNT ? trap_text(static_cast<TrapCode>(trap)) : "?";
}

const char* uptier_guard_reason_name(uptier_guard_reason reason) noexcept {
  return reason < UPTIER_GUARD_REASON_COUNT ? guard_reason_name(static_cast<GuardReason>(reason))
                                            : "?";
}

const char* uptier_probe_kind_name(uptier_probe_kind kind) noexcept {
  return kind <= static_cast<uint32_t>(kLastProbeKind)
             ? probe_kind_name(static_cast<ProbeKind>(kind))
             : "?";
}

const char* uptier_tier_name(uptier_tier tier) noexcept {
  return tier <= UPTIER_TIER_OPTIMIZED ? tier_name(static_cast<Tier>(tier)) : "?";
}

}  // extern "C"
