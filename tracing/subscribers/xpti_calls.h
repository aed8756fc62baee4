// xpti_calls.h: the functions of an XPTI dispatcher that the bridge calls, and their data.
//
// XPTI's libraries exist in several generations that are not compatible with each other. This
// file has only those parts that are the same in all of them:
//
//   types       kinds 1 to 14 have the numbers of UPTIER_TRACE_GRAPH to UPTIER_TRACE_ARGUMENTS,
//               and begin and end are made of them in the same way; but the end of ARGUMENTS is 29
//               in new libraries and 31 in old ones
//   payload     all begin with the name. The flags, which say what else is there, are the fourth
//               word in new libraries and the seventh in old ones. A payload with the name alone can
//               be read by both: nobody looks at a member whose flag is not set
//   events      opaque
//   metadata    a key and an object in new libraries, which can register objects; old ones cannot, and
//               their function of the same name takes other arguments
#pragma once

#include <cstddef>
#include <cstdint>

namespace uptier::tracing {

struct XptiPayload {
  const char* name = nullptr;
  uint64_t source[2] = {};  // file, line and column, or others: never set
  uint64_t flags_of_new = 0;
  uint64_t unused[2] = {};
  uint64_t flags_of_old = 0;
  uint64_t room[9] = {};  // that libraries of any generation may write
};
inline constexpr uint64_t kXptiHasName = 1;  // a flag

// User data of calls with arguments.
struct XptiArguments {
  uint32_t function_id;
  const char* function_name;
  void* arguments;  // int64_t for each
  void* result;     // int64_t, or null
  void* user_data;
};

// Kinds of events and of activities, for MakeEvent.
enum class XptiEvent : uint16_t {
  kUnknown,
  kGraph,
  kAlgorithm,
  kBarrier,
  kScheduler,
  kAsync,
  kLock
};
enum class XptiActivity : int { kUnknown = 0, kActive = 1, kOverhead = 2 };

// Each line: the name after "xpti", the result, the parameters.
#define UPTIER_XPTI_CALLS(X)                                                                    \
  X(FrameworkInitialize, void, ())                                                              \
  X(FrameworkFinalize, void, ())                                                                \
  X(Initialize, int, (const char* stream, uint32_t, uint32_t, const char* version))             \
  X(Finalize, void, (const char* stream))                                                       \
  X(RegisterString, int32_t, (const char* text, char** kept))                                   \
  X(RegisterStream, uint8_t, (const char* name))                                                \
  X(RegisterUserDefinedTracePoint, uint16_t, (const char* tool, uint8_t type))                  \
  X(MakeEvent, void*, (const char*, XptiPayload*, XptiEvent, XptiActivity, uint64_t*))          \
  X(NotifySubscribers, int,                                                                     \
    (uint8_t stream, uint16_t type, void* parent, void* event, uint64_t instance, const void*)) \
  X(CheckTraceEnabled, bool, (uint16_t stream, uint16_t type))

// The same for functions that old libraries do not have, or have with other parameters.
#define UPTIER_XPTI_NEW_CALLS(X)                                             \
  X(RegisterObject, int32_t, (const char* bytes, size_t size, uint8_t kind)) \
  X(AddMetadata, int, (void* event, const char* key, int32_t object))
inline constexpr uint8_t kXptiText = 1;  // a kind of object

struct XptiCalls {
#define UPTIER_XPTI_MEMBER(name, result, parameters) result(*name) parameters = nullptr;
  UPTIER_XPTI_CALLS(UPTIER_XPTI_MEMBER)
  UPTIER_XPTI_NEW_CALLS(UPTIER_XPTI_MEMBER)  // null in old libraries
#undef UPTIER_XPTI_MEMBER
};

}  // namespace uptier::tracing
