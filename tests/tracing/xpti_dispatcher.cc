// A small XPTI dispatcher for tests of the bridge. It writes each call as a line of the file that
// XPTI_TEST_OUT names:
//
//   initialize STREAM MAJOR MINOR VERSION | register STREAM NUMBER | user TOOL TYPE RESULT
//   event ID NAME | metadata ID KEY = TEXT | notify STREAM TYPE PARENT EVENT INSTANCE [DATA]
//   finalize STREAM | framework begin | framework end
//
//   XPTI_TEST_TYPES     types that are wanted, "10,11"; not set: all but those of the other generation
//   XPTI_TEST_PAYLOAD   "old": payloads and types of old libraries; otherwise those of new ones
//   XPTI_TEST_DEAF      1: makes no events
//
// Payloads are read as the libraries of each generation read them: what the flags say is there.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace {

struct NewPayload {
  const char* name;
  const char* file;
  uint32_t line, column;
  uint64_t flags;
  uint64_t id[3];
};
struct OldPayload {
  const char* name;
  const char* stack;
  const char* file;
  uint32_t line, column;
  const void* code;
  uint64_t internal;
  uint64_t flags;
  uint64_t id[3];
};
struct Arguments {
  uint32_t function_id;
  const char* function_name;
  void* arguments;
  void* result;
  void* user_data;
};
struct Event {
  int number;
};

std::mutex mutex;
std::FILE* out = nullptr;
std::map<std::string, Event> events;  // by name
std::map<std::string, uint8_t> streams, tools;
std::set<std::string> strings;
std::vector<std::string> objects;

bool is_old() {
  const char* which = std::getenv("XPTI_TEST_PAYLOAD");
  return which != nullptr && std::strcmp(which, "old") == 0;
}

int number_of(const void* event) {
  return event == nullptr ? 0 : static_cast<const Event*>(event)->number;
}

template <typename Payload>
std::string name_in(Payload* p) {
  constexpr uint64_t kName = 1, kFile = 2, kLine = 8;
  if ((p->flags & kName) == 0) return "";
  std::string name = p->name;
  if ((p->flags & kFile) != 0) name += std::string(" in ") + p->file;
  if ((p->flags & kLine) != 0) name += " at " + std::to_string(p->line);
  const bool has_id = (p->id[0] != 0 || p->id[1] != 0) && p->id[2] != 0;
  if (has_id) name += " with an id";
  p->id[0] = p->id[1] = p->id[2] = 77;  // libraries of all generations write here
  return name;
}

}  // namespace

#define XPTI_TEST_API extern "C" __attribute__((visibility("default")))

XPTI_TEST_API void xptiFrameworkInitialize() {
  const char* name = std::getenv("XPTI_TEST_OUT");
  out = std::fopen(name != nullptr ? name : "/dev/null", "w");
  std::fprintf(out, "framework begin\n");
}
XPTI_TEST_API void xptiFrameworkFinalize() {
  std::fprintf(out, "framework end\n");
  std::fclose(out);
}
XPTI_TEST_API int xptiInitialize(const char* stream, uint32_t major, uint32_t minor,
                                 const char* version) {
  std::fprintf(out, "initialize %s %u %u %s\n", stream, major, minor, version);
  return 0;
}
XPTI_TEST_API void xptiFinalize(const char* stream) { std::fprintf(out, "finalize %s\n", stream); }

XPTI_TEST_API uint8_t xptiRegisterStream(const char* name) {
  const std::lock_guard lock(mutex);
  const auto number = streams.emplace(name, static_cast<uint8_t>(streams.size() + 1)).first->second;
  std::fprintf(out, "register %s %u\n", name, number);
  return number;
}
XPTI_TEST_API int32_t xptiRegisterString(const char* text, char** kept) {
  const std::lock_guard lock(mutex);
  *kept = const_cast<char*>(strings.insert(text).first->c_str());
  return static_cast<int32_t>(strings.size());
}
XPTI_TEST_API uint16_t xptiRegisterUserDefinedTracePoint(const char* tool, uint8_t type) {
  const std::lock_guard lock(mutex);
  const auto number = tools.emplace(tool, static_cast<uint8_t>(tools.size() + 1)).first->second;
  const auto result = static_cast<uint16_t>(number << 8 | 0x80 | type);
  std::fprintf(out, "user %s %u %u\n", tool, type, result);
  return result;
}
XPTI_TEST_API void* xptiMakeEvent(const char*, void* payload, uint16_t, int, uint64_t* instance) {
  const std::lock_guard lock(mutex);
  const std::string name = is_old() ? name_in(static_cast<OldPayload*>(payload))
                                    : name_in(static_cast<NewPayload*>(payload));
  if (name.empty() || std::getenv("XPTI_TEST_DEAF") != nullptr) return nullptr;
  const auto [at, is_new] = events.try_emplace(name, Event{static_cast<int>(events.size()) + 1});
  *instance = is_new ? 1 : 2;
  std::fprintf(out, "event %d %s%s\n", at->second.number, name.c_str(), is_new ? "" : " again");
  return &at->second;
}
// Libraries of the old generation have no objects.
XPTI_TEST_API int32_t xptiRegisterObject(const char* bytes, size_t size, uint8_t kind) {
  if (is_old() || kind != 1) return -1;
  const std::lock_guard lock(mutex);
  objects.emplace_back(bytes, size);
  return static_cast<int32_t>(objects.size()) - 1;
}
XPTI_TEST_API int xptiAddMetadata(void* event, const char* key, int32_t object) {
  const std::lock_guard lock(mutex);
  std::fprintf(out, "metadata %d %s = %s\n", number_of(event), key,
               objects.at(static_cast<size_t>(object)).c_str());
  return 0;
}
XPTI_TEST_API bool xptiCheckTraceEnabled(uint16_t, uint16_t type) {
  const char* wanted = std::getenv("XPTI_TEST_TYPES");
  if (wanted == nullptr) return type != (is_old() ? 29 : 31);
  return ("," + std::string(wanted) + ",").find("," + std::to_string(type) + ",") !=
         std::string::npos;
}
XPTI_TEST_API int xptiNotifySubscribers(uint8_t stream, uint16_t type, void* parent, void* event,
                                        uint64_t instance, const void* data) {
  const std::lock_guard lock(mutex);
  std::fprintf(out, "notify %u %u %d %d %llu", stream, type, number_of(parent), number_of(event),
               static_cast<unsigned long long>(instance));
  const bool has_arguments = type == 28 || type == 29 || type == 31;
  if (data != nullptr && has_arguments) {
    const auto& a = *static_cast<const Arguments*>(data);
    std::fprintf(out, " %s(%lld)", a.function_name, *static_cast<long long*>(a.arguments));
    if (a.result != nullptr) std::fprintf(out, " = %lld", *static_cast<long long*>(a.result));
  } else if (data != nullptr) {
    std::fprintf(out, " %s", static_cast<const char*>(data));
  }
  std::fprintf(out, "\n");
  return 0;
}
