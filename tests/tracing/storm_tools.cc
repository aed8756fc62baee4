// Two threads notify, one subscribes and unsubscribes, and one loads and unloads a tool, all at once.
// Exit code 1: a pair is not whole, an event is missing, or a tool was called after its end.
//
//   storm_tools EVENTS LIBRARY   each of the two reports so many events. The environment turns tracing on
#include <dlfcn.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "tests/tracing/storm.h"

namespace uptier::test::storm {
namespace {

void notify(uint64_t events) {
  static TracePoint outer("outer"), inner("inner");
  for (uint64_t i = 0; i < events / 2; ++i) {
    TraceScope a(stream, UPTIER_TRACE_FUNCTION, outer);
    UPTIER_TRACE_NOTIFY(stream, UPTIER_TRACE_SIGNAL, nullptr, nullptr, nullptr);
    TraceScope b(stream, UPTIER_TRACE_FUNCTION, inner);
    if (i % 4096 == 0) uptier_trace->stream(("extra " + std::to_string(i / 4096)).c_str(), 1, 0);
  }
  if (!Nested::open().empty()) fault("a pair is open at the end of its thread");
}

// A tool that must not be called after it was unsubscribed.
struct Visitor {
  std::atomic<uint64_t> calls{0};
  std::atomic<bool> gone{false};
  static void tell(void* user, const uptier_trace_record*) {
    auto& v = *static_cast<Visitor*>(user);
    if (v.gone.load()) fault("called after it was unsubscribed");
    v.calls.fetch_add(1);
  }
};

uint64_t visit(const std::atomic<bool>& stop) {
  uint64_t rounds = 0;
  for (; !stop.load(); ++rounds) {
    auto v = std::make_unique<Visitor>();
    if (uptier_trace->subscribe(stream, UPTIER_TRACE_FUNCTION, Visitor::tell, v.get()) == 0) {
      fault("not subscribed");
    }
    while (v->calls.load() < 20 && !stop.load()) std::this_thread::yield();
    if (uptier_trace->unsubscribe(stream, UPTIER_TRACE_FUNCTION, Visitor::tell, v.get()) == 0) {
      fault("not unsubscribed");
    }
    v->gone.store(true);
  }
  return rounds;
}

uint64_t load(const char* library, const std::atomic<bool>& stop) {
  uint64_t rounds = 0;
  for (; !stop.load(); ++rounds) {
    void* tool = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (tool == nullptr) {
      fault(::dlerror());
      return rounds;
    }
    const auto init = reinterpret_cast<uptier_trace_subscriber_init_fn>(
        ::dlsym(tool, UPTIER_TRACE_SUBSCRIBER_INIT));
    const auto finish = reinterpret_cast<uptier_trace_subscriber_finish_fn>(
        ::dlsym(tool, UPTIER_TRACE_SUBSCRIBER_FINISH));
    if (init(uptier_trace, "") == 0) fault("a tool did not start");
    std::this_thread::yield();
    finish();
    ::dlclose(tool);
  }
  return rounds;
}

}  // namespace
}  // namespace uptier::test::storm

int main(int argc, char** argv) {
  using namespace uptier::test::storm;
  if (argc != 3 || uptier_trace_init(nullptr) == 0) return 2;
  const uint64_t events = std::strtoull(argv[1], nullptr, 10);
  Nested nested;
  begin(nested);
  std::atomic<bool> stop{false};
  uint64_t visits = 0, loads = 0;
  std::thread visitor([&] { visits = visit(stop); });
  std::thread loader([&] { loads = load(argv[2], stop); });
  std::thread one([&] { notify(events); }), two([&] { notify(events); });
  one.join();
  two.join();
  stop.store(true);
  visitor.join();
  loader.join();
  std::printf("%llu visits, %llu loads\n", static_cast<unsigned long long>(visits),
              static_cast<unsigned long long>(loads));
  if (visits < 10 || loads < 10) fault("too few tools came and went");
  return end(nested, 2 * events, events);
}
