// The dispatcher: the table of functions that programs and subscribers call. It connects the parts.
//
// Functions that an embedder calls never throw: if memory runs out, they return 0 or null.
#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "tracing/dispatcher/events.h"
#include "tracing/dispatcher/kinds.h"
#include "tracing/dispatcher/streams.h"
#include "tracing/dispatcher/tables.h"
#include "tracing/proxy/dispatcher_entry.h"

namespace uptier::tracing {
namespace {

struct Loaded {
  std::string path;
  void* library;
  uptier_trace_subscriber_finish_fn finish;
};

// All state of the dispatcher in a process; made by init, and never destroyed, because threads may
// notify at exit.
struct Dispatcher {
  Strings strings;
  Objects objects;
  Events events{strings};
  Kinds kinds;
  Streams streams;
  uptier_trace_dispatcher_options options = {};
  std::vector<Loaded> loaded;
  std::atomic<uint64_t> lost_by_tools = 0;
};

Dispatcher* self = nullptr;  // C functions have no other way to reach it

// Runs a function that may run out of memory; returns `refused` then.
template <typename Answer, typename Function>
Answer guarded(Answer refused, Function function) noexcept {
  try {
    return function();
  } catch (const std::bad_alloc&) { return refused; }
}

Stream& as_stream(uptier_trace_stream* s) { return *static_cast<Stream*>(s); }

// stream() returns this if there is no memory.
Stream nobody;

void lost(uint64_t events) { self->lost_by_tools.fetch_add(events, std::memory_order_relaxed); }

uptier_trace_stream* make_stream(const char* name, uint32_t major, uint32_t minor) {
  auto* s = guarded<uptier_trace_stream*>(nullptr,
                                          [&] { return self->streams.stream(name, major, minor); });
  if (s != nullptr) return s;
  lost(1);  // at least
  return &nobody;
}
const char* stream_name(const uptier_trace_stream* s, uint32_t* major, uint32_t* minor) {
  const auto& stream = *static_cast<const Stream*>(s);
  if (major != nullptr) *major = stream.major;
  if (minor != nullptr) *minor = stream.minor;
  return stream.name.c_str();
}
uptier_trace_string string(const char* text) {
  return guarded<uptier_trace_string>(0, [&] { return self->strings.intern(text); });
}
const char* string_text(uptier_trace_string id) { return self->strings.text(id); }
uptier_trace_object object(const void* bytes, size_t size, uint32_t kind) {
  if (bytes == nullptr && size != 0) return 0;
  return guarded<uptier_trace_object>(0, [&] {
    return self->objects.intern({static_cast<const char*>(bytes), size}, kind);
  });
}
int object_bytes(uptier_trace_object id, const void** bytes, size_t* size, uint32_t* kind) {
  return self->objects.find(id, bytes, size, kind) ? 1 : 0;
}
uptier_trace_event* event(const uptier_trace_payload* payload) {
  if (payload == nullptr) return nullptr;
  return guarded<uptier_trace_event*>(nullptr, [&] { return self->events.make(*payload); });
}
uptier_trace_event* event_of_id(uint64_t id) { return self->events.find(id); }
uint64_t event_id(const uptier_trace_event* e) { return e == nullptr ? 0 : e->id; }
uint64_t event_instances(const uptier_trace_event* e) {
  return e == nullptr ? 0 : e->instances.load(std::memory_order_relaxed);
}
int event_payload(const uptier_trace_event* e, uptier_trace_payload* out) {
  if (e == nullptr || out == nullptr) return 0;
  self->events.payload(*e, *out);
  return 1;
}
int set_metadata(uptier_trace_event* e, uptier_trace_string key, const uptier_trace_value* value) {
  if (e == nullptr || key == 0 || value == nullptr) return 0;
  return guarded(0, [&] { return Events::set_metadata(*e, key, *value), 1; });
}
int each_metadata(const uptier_trace_event* e, uptier_trace_visitor visit, void* user) {
  if (e == nullptr || visit == nullptr) return 0;
  return guarded(0, [&] { return Events::each_metadata(*e, visit, user), 1; });
}
uint32_t user_kind(const char* tool, const char* name) {
  if (tool == nullptr || name == nullptr) return 0;
  return guarded<uint32_t>(0, [&] { return self->kinds.user(tool, name); });
}
const char* kind_name(uint32_t kind) { return self->kinds.name(kind); }
void notify(uptier_trace_stream* s, uptier_trace_type type, uptier_trace_event* parent,
            uptier_trace_event* e, const void* data) {
  self->streams.notify(as_stream(s), type, parent, e, data);
}
uint64_t begin(uptier_trace_stream* s, uint32_t kind, uptier_trace_event* parent,
               uptier_trace_event* e, const void* data) {
  return self->streams.begin(as_stream(s), kind, parent, e, data);
}
void end(uptier_trace_stream* s, uint32_t kind, uptier_trace_event* parent, uptier_trace_event* e,
         uint64_t instance, const void* data) {
  self->streams.end(as_stream(s), kind, parent, e, instance, data);
}
Streams::When time_of(const uptier_trace_when* when) {
  return when == nullptr ? Streams::When{0, 0} : Streams::When{when->at_ns, when->thread};
}
void notify_at(uptier_trace_stream* s, uptier_trace_type type, uptier_trace_event* parent,
               uptier_trace_event* e, const void* data, const uptier_trace_when* when) {
  self->streams.notify(as_stream(s), type, parent, e, data, time_of(when));
}
uint64_t begin_at(uptier_trace_stream* s, uint32_t kind, uptier_trace_event* parent,
                  uptier_trace_event* e, const void* data, const uptier_trace_when* when) {
  return self->streams.begin(as_stream(s), kind, parent, e, data, time_of(when));
}
void end_at(uptier_trace_stream* s, uint32_t kind, uptier_trace_event* parent,
            uptier_trace_event* e, uint64_t instance, const void* data,
            const uptier_trace_when* when) {
  self->streams.end(as_stream(s), kind, parent, e, instance, data, time_of(when));
}
int subscribe(uptier_trace_stream* s, uint32_t kind, uptier_trace_callback callback, void* user) {
  if (s == nullptr || s == &nobody) return 0;
  return guarded(false,
                 [&] { return self->streams.subscribe(as_stream(s), kind, callback, user); });
}
int unsubscribe(uptier_trace_stream* s, uint32_t kind, uptier_trace_callback callback, void* user) {
  if (s == &nobody) return 0;
  return guarded(false, [&] {
    return self->streams.unsubscribe(static_cast<Stream*>(s), kind, callback, user);
  });
}
int listen(uptier_trace_listener listener, void* user) {
  return guarded(false, [&] { return self->streams.listen(listener, user); });
}
int unlisten(uptier_trace_listener listener, void* user) {
  return self->streams.unlisten(listener, user);
}
void say(const char* line) { self->options.log(line); }

constexpr uptier_trace_api kApi = {
    .size = sizeof(uptier_trace_api),
    .version = UPTIER_TRACE_VERSION,
    .stream = make_stream,
    .stream_name = stream_name,
    .string = string,
    .string_text = string_text,
    .object = object,
    .object_bytes = object_bytes,
    .event = event,
    .event_of_id = event_of_id,
    .event_id = event_id,
    .event_instances = event_instances,
    .event_payload = event_payload,
    .set_metadata = set_metadata,
    .each_metadata = each_metadata,
    .user_kind = user_kind,
    .kind_name = kind_name,
    .notify = notify,
    .begin = begin,
    .end = end,
    .subscribe = subscribe,
    .unsubscribe = unsubscribe,
    .listen = listen,
    .unlisten = unlisten,
    .say = say,
    .notify_at = notify_at,
    .begin_at = begin_at,
    .end_at = end_at,
    .lost = lost,
};

void refuse(const std::string& path, const std::string& why) {
  say((path + " is not loaded: " + why).c_str());
}

template <typename F>
F symbol(void* library, const char* name) {
  return reinterpret_cast<F>(dlsym(library, name));
}

void load_one(const std::string& words) {
  const size_t sign = words.find('=');
  const std::string path = words.substr(0, sign);
  const std::string arguments = sign == words.npos ? "" : words.substr(sign + 1);
  char why[4200] = "";
  void* library = self->options.load(path.c_str(), why, sizeof why);
  if (library == nullptr) return refuse(path, why);
  // Nothing may fail once the tool has begun.
  self->loaded.reserve(self->loaded.size() + 1);
  auto init = symbol<uptier_trace_subscriber_init_fn>(library, UPTIER_TRACE_SUBSCRIBER_INIT);
  auto finish = symbol<uptier_trace_subscriber_finish_fn>(library, UPTIER_TRACE_SUBSCRIBER_FINISH);
  if (init == nullptr || finish == nullptr) {
    refuse(path, "it is no subscriber: " UPTIER_TRACE_SUBSCRIBER_INIT
                 " or " UPTIER_TRACE_SUBSCRIBER_FINISH " is missing");
  } else if (Loaded one = {path, library, finish}; init(&kApi, arguments.c_str()) == 0) {
    refuse(path, "it does not want to be");
  } else {
    self->loaded.push_back(std::move(one));
    return;
  }
  dlclose(library);
}

// Returns the address range of the library that contains `function`.
std::pair<uintptr_t, uintptr_t> range_of(void* function) {
  struct Search {
    uintptr_t address, from = 0, to = 0;
  } search{reinterpret_cast<uintptr_t>(function)};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& h = info->dlpi_phdr[i];
          const uintptr_t from = info->dlpi_addr + h.p_vaddr, to = from + h.p_memsz;
          if (h.p_type != PT_LOAD || s.address < from || s.address >= to) continue;
          s.from = from;
          s.to = to;
          return 1;
        }
        return 0;
      },
      &search);
  return {search.from, search.to};
}

void finish_one(const Loaded& one) {
  one.finish();
  const auto range = range_of(reinterpret_cast<void*>(one.finish));
  constexpr size_t kUnknown = SIZE_MAX;
  const size_t dropped =
      guarded(kUnknown, [&] { return self->streams.drop_code(range.first, range.second); });
  if (dropped == kUnknown) return say("a tool's library stays loaded: out of memory");
  if (dropped != 0) {
    guarded(false, [&] {
      say((one.path + " was still subscribed after its finish; that was ended").c_str());
      return true;
    });
  }
  dlclose(one.library);
}

}  // namespace
}  // namespace uptier::tracing

extern "C" {

__attribute__((visibility("default"))) const uptier_trace_api* uptier_trace_dispatcher_init(
    const uptier_trace_dispatcher_options* options) {
  using namespace uptier::tracing;
  if (options->version != UPTIER_TRACE_VERSION || self != nullptr) return nullptr;
  auto* made = guarded<Dispatcher*>(nullptr, [] { return new Dispatcher; });
  if (made == nullptr) return nullptr;
  made->options = *options;
  self = made;
  return &kApi;
}

__attribute__((visibility("default"))) void uptier_trace_dispatcher_load(const char* subscribers) {
  using namespace uptier::tracing;
  const bool all = guarded(false, [&] {
    std::string rest = subscribers;
    while (!rest.empty()) {
      const size_t comma = rest.find(',');
      const std::string one = rest.substr(0, comma);
      rest = comma == rest.npos ? "" : rest.substr(comma + 1);
      if (!one.empty()) load_one(one);
    }
    return true;
  });
  if (!all) say("subscribers are not loaded: out of memory");
}

__attribute__((visibility("default"))) uint64_t uptier_trace_dispatcher_finish() {
  using namespace uptier::tracing;
  while (!self->loaded.empty()) {
    const Loaded one = std::move(self->loaded.back());
    self->loaded.pop_back();
    finish_one(one);
  }
  const uint64_t untold = self->streams.lost();
  if (untold != 0) {
    char line[64];
    std::snprintf(line, sizeof line, "%" PRIu64 " notifications were lost", untold);
    say(line);
  }
  return untold + self->lost_by_tools.load(std::memory_order_relaxed);
}
}
