// The bridge to XPTI: passes all events on to a dispatcher of XPTI, whose own subscribers get them.
//
//   arguments   the dispatcher's library; none: the one that XPTI_FRAMEWORK_DISPATCHER names. It is
//               loaded under the rules for subscribers (tracing/proxy/safe_load.h)
//
// A stream of ours is a stream there, with the same name and version. A construct is an event there,
// whose name contains the place, "step (guest.src:3)", or our id, "sum [optimized] #12": the
// generations of XPTI agree on nothing but the name (xpti_calls.h). The ids are those that other
// tools show. Its metadata, as they are when it is first told, are metadata there, as texts, if the
// library can register objects. XPTI knows no times: an event that is reported later happens there when it is reported.
//
// The bridge asks once for each stream and kind whether the dispatcher has a subscriber: when the
// stream is announced or, for a user-defined kind, at its first event. Kinds without one cost nothing
// from then on.
#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "tracing/proxy/safe_load.h"
#include "tracing/subscribers/tool.h"
#include "tracing/subscribers/xpti_calls.h"
#include "uptier/thread_safety.h"

namespace uptier::tracing {
namespace {

constexpr uint16_t kArgumentsEnd = UPTIER_TRACE_END(UPTIER_TRACE_ARGUMENTS);
constexpr uint16_t kOldArgumentsEnd = 31;
constexpr uint8_t kMostUserTypes = 63;  // of one tool, for XPTI

XptiEvent event_kind(uint32_t kind) {
  switch (kind) {
    case UPTIER_TRACE_GRAPH:
    case UPTIER_TRACE_NODE:
    case UPTIER_TRACE_EDGE: return XptiEvent::kGraph;
    case UPTIER_TRACE_BARRIER:
    case UPTIER_TRACE_WAIT: return XptiEvent::kBarrier;
    case UPTIER_TRACE_LOCK: return XptiEvent::kLock;
    default: return XptiEvent::kAlgorithm;
  }
}

XptiActivity activity(uint32_t kind) {
  const XptiEvent e = event_kind(kind);
  const bool waits = e == XptiEvent::kBarrier || e == XptiEvent::kLock;
  return waits ? XptiActivity::kOverhead : XptiActivity::kActive;
}

class Xpti final : public Tool {
 public:
  explicit Xpti(const XptiCalls& calls) : calls_(calls) { calls_.FrameworkInitialize(); }
  ~Xpti() override {
    for (const auto& [stream, known] : streams_) calls_.Finalize(known.name.c_str());
    calls_.FrameworkFinalize();
  }

  void meet(const uptier_trace_stream* stream, const char* name, uint32_t major,
            uint32_t minor) override {
    const std::string version = std::to_string(major) + "." + std::to_string(minor);
    calls_.Initialize(name, major, minor, version.c_str());
    const uint8_t number = calls_.RegisterStream(name);
    const bool is_old = calls_.CheckTraceEnabled(number, kOldArgumentsEnd) &&
                        !calls_.CheckTraceEnabled(number, kArgumentsEnd);
    const Held lock(mutex_);
    streams_[stream] = {number, name, is_old ? kOldArgumentsEnd : kArgumentsEnd};
  }

  bool wants(const uptier_trace_stream* stream, uint32_t kind) override {
    if (kind > UPTIER_TRACE_ARGUMENTS) return kind >= UPTIER_TRACE_FIRST_USER_KIND;
    const Held lock(mutex_);
    return is_enabled(streams_.at(stream).number, UPTIER_TRACE_BEGIN(kind));
  }

  // No lock is held during the notification: its receiver may cause other events.
  void tell(const uptier_trace_record& r) override {
    Found found;
    {
      const Held lock(mutex_);
      found = find(r);
    }
    if (!found.wanted) return;
    const uint32_t kind = r.type >> 1;
    const void* data = kind == UPTIER_TRACE_FUNCTION ? r.user_data : nullptr;
    if (kind != UPTIER_TRACE_ARGUMENTS || r.user_data == nullptr) return notify(found, r, data);
    const auto& a = *static_cast<const uptier_trace_arguments*>(r.user_data);
    std::vector<int64_t> values;
    for (uint32_t i = 0; i < a.count; ++i) values.push_back(a.arguments[i].as.integer);
    int64_t result = a.result == nullptr ? 0 : a.result->as.integer;
    XptiArguments there = {0, a.function, values.data(), a.result == nullptr ? nullptr : &result,
                           nullptr};
    notify(found, r, &there);
  }

 private:
  struct Known {
    uint8_t number = 0;
    std::string name;
    uint16_t arguments_end = kArgumentsEnd;
  };
  struct Found {
    bool wanted = false;
    uint8_t stream = 0;
    uint16_t type = 0;
    void* parent = nullptr;
    void* event = nullptr;
  };

  void notify(const Found& f, const uptier_trace_record& r, const void* data) const {
    calls_.NotifySubscribers(f.stream, f.type, f.parent, f.event, r.instance, data);
  }

  bool is_enabled(uint8_t stream, uint16_t type) const {
    return calls_.CheckTraceEnabled(stream, type) ||
           calls_.CheckTraceEnabled(stream, static_cast<uint16_t>(type | 1));
  }

  Found find(const uptier_trace_record& r) UPTIER_REQUIRES(mutex_) {
    Found f;
    const uint32_t kind = r.type >> 1;
    const Known& stream = streams_.at(r.stream);
    f.stream = stream.number;
    f.type = r.type == kArgumentsEnd ? stream.arguments_end : r.type;
    if (kind >= UPTIER_TRACE_FIRST_USER_KIND) {
      const UserType& type = user_type(kind, f.stream);
      if (!type.wanted) return f;
      f.type = (r.type & 1) != 0 ? type.end : type.begin;
    }
    f.wanted = true;
    f.parent = event_of(r.parent, kind);
    f.event = event_of(r.event, kind);
    return f;
  }

  // A kind of ours is "tool.name". XPTI numbers the types of each tool by itself.
  struct UserType {
    bool wanted = false;
    uint16_t begin = 0, end = 0;
  };
  const UserType& user_type(uint32_t kind, uint8_t stream) UPTIER_REQUIRES(mutex_) {
    const auto [at, is_new] = user_types_.try_emplace({kind, stream});
    if (!is_new) return at->second;
    auto number = numbers_.find(kind);
    const std::string name(kind_name(kind));
    const std::string tool = name.substr(0, name.find('.'));
    if (number == numbers_.end()) number = numbers_.emplace(kind, ++made_by_[tool] - 1).first;
    if (number->second >= kMostUserTypes) return at->second;
    const auto begin = static_cast<uint8_t>(number->second << 1);
    UserType& type = at->second;
    type.begin = calls_.RegisterUserDefinedTracePoint(tool.c_str(), begin);
    type.end = calls_.RegisterUserDefinedTracePoint(tool.c_str(), begin | 1);
    type.wanted =
        calls_.CheckTraceEnabled(stream, type.begin) || calls_.CheckTraceEnabled(stream, type.end);
    return type;
  }

  void* event_of(const uptier_trace_event* e, uint32_t kind) UPTIER_REQUIRES(mutex_) {
    if (e == nullptr) return nullptr;
    const auto [at, is_new] = events_.try_emplace(e);
    if (!is_new) return at->second;
    // The dispatcher keeps the text of its string table, which lives as long as it does.
    const std::string name = unique_name(e);
    char* kept = nullptr;
    calls_.RegisterString(name.c_str(), &kept);
    if (kept == nullptr) return nullptr;
    XptiPayload payload;
    payload.name = kept;
    payload.flags_of_new = payload.flags_of_old = kXptiHasName;
    uint64_t instance = 0;
    at->second = calls_.MakeEvent(kept, &payload, event_kind(kind), activity(kind), &instance);
    if (at->second != nullptr) add_metadata(e, at->second);
    if (at->second == nullptr && !has_said_) {
      api().say(("the XPTI dispatcher makes no event of " + name).c_str());
      has_said_ = true;
    }
    return at->second;
  }

  // Before the event is handed out: later its receivers may be reading them.
  void add_metadata(const uptier_trace_event* e, void* there) const {
    if (calls_.RegisterObject == nullptr || calls_.AddMetadata == nullptr) return;
    struct Visit {
      const Xpti* tool;
      void* there;
    } visit{this, there};
    api().each_metadata(
        e,
        [](void* user, uptier_trace_string key, const uptier_trace_value* value) {
          const auto& v = *static_cast<Visit*>(user);
          const char* name = v.tool->api().string_text(key);
          const std::string text = v.tool->plain_text(*value);
          const int32_t object =
              v.tool->calls_.RegisterObject(text.c_str(), text.size(), kXptiText);
          if (name != nullptr && object >= 0) v.tool->calls_.AddMetadata(v.there, name, object);
          return 1;
        },
        &visit);
  }

  std::string plain_text(const uptier_trace_value& v) const {
    if (v.kind != UPTIER_TRACE_STRING) return value_text(v);
    const char* text = api().string_text(v.as.string);
    return text == nullptr ? "" : text;
  }

  // Two constructs have two names, since XPTI takes equal names for the same construct.
  std::string unique_name(const uptier_trace_event* e) const {
    uptier_trace_payload p = {};
    p.size = sizeof p;
    api().event_payload(e, &p);
    const std::string name = event_name(e);
    if (p.file == nullptr) return name + " #" + std::to_string(api().event_id(e));
    std::string place = p.file;
    if (p.line != 0) place += ":" + std::to_string(p.line);
    if (p.column != 0) place += ":" + std::to_string(p.column);
    if (p.function != nullptr && p.function != name) place += ", " + std::string(p.function);
    return name + " (" + place + ")";
  }

  const XptiCalls calls_;
  CheckedLock<std::mutex> mutex_;
  std::map<const uptier_trace_stream*, Known> streams_ UPTIER_GUARDED_BY(mutex_);
  std::unordered_map<const uptier_trace_event*, void*> events_ UPTIER_GUARDED_BY(mutex_);
  std::map<std::pair<uint32_t, uint8_t>, UserType> user_types_ UPTIER_GUARDED_BY(mutex_);
  std::map<uint32_t, uint32_t> numbers_ UPTIER_GUARDED_BY(mutex_);     // of kinds, in their tools
  std::map<std::string, uint32_t> made_by_ UPTIER_GUARDED_BY(mutex_);  // kinds, by tool
  bool has_said_ UPTIER_GUARDED_BY(mutex_) = false;
};

// Returns whether the library has all functions; says which one is missing.
bool find_calls(void* library, XptiCalls& calls, std::string& missing) {
#define UPTIER_XPTI_FIND(name, result, parameters)                                     \
  calls.name = reinterpret_cast<result(*) parameters>(::dlsym(library, "xpti" #name)); \
  if (calls.name == nullptr) missing = "xpti" #name;
  UPTIER_XPTI_CALLS(UPTIER_XPTI_FIND)
#undef UPTIER_XPTI_FIND
#define UPTIER_XPTI_FIND_NEW(name, result, parameters) \
  calls.name = reinterpret_cast<result(*) parameters>(::dlsym(library, "xpti" #name));
  UPTIER_XPTI_NEW_CALLS(UPTIER_XPTI_FIND_NEW)
#undef UPTIER_XPTI_FIND_NEW
  if (calls.RegisterObject == nullptr) calls.AddMetadata = nullptr;
  return missing.empty();
}

}  // namespace

std::unique_ptr<Tool> make_tool(const uptier_trace_api* api, const char* arguments) {
  const char* path =
      arguments[0] != '\0' ? arguments : ::secure_getenv("XPTI_FRAMEWORK_DISPATCHER");
  if (path == nullptr) {
    api->say("no XPTI dispatcher: XPTI_FRAMEWORK_DISPATCHER names no library");
    return nullptr;
  }
  char why[4200];
  void* library = uptier_trace_safe_load(path, why, sizeof why);
  if (library == nullptr) {
    api->say((std::string(path) + " is not loaded: " + why).c_str());
    return nullptr;
  }
  XptiCalls calls;
  std::string missing;
  if (find_calls(library, calls, missing)) return std::make_unique<Xpti>(calls);
  api->say(
      (std::string(path) + " is not used: it is no XPTI dispatcher, " + missing + " is missing")
          .c_str());
  ::dlclose(library);
  return nullptr;
}

}  // namespace uptier::tracing
