// USDT probes, for bpftrace, perf and SystemTap: each costs a no-op until a tracer attaches.
//
//   uptier:begin   stream, kind, name, event id, instance
//   uptier:end     the same
//   uptier:at      the same, instance 0
#include <sys/sdt.h>

#include "tracing/subscribers/tool.h"

namespace uptier::tracing {
namespace {

class Usdt final : public Tool {
 public:
  void tell(const uptier_trace_record& r) override {
    uptier_trace_payload p = {};
    p.size = sizeof p;
    if (r.event != nullptr) api().event_payload(r.event, &p);
    const char* stream = api().stream_name(r.stream, nullptr, nullptr);
    const char* kind = api().kind_name(r.type >> 1);
    const char* name = p.name != nullptr ? p.name : p.function;
    const uint64_t id = api().event_id(r.event);
    if (r.instance == 0) {
      DTRACE_PROBE5(uptier, at, stream, kind, name, id, r.instance);
    } else if ((r.type & 1) == 0) {
      DTRACE_PROBE5(uptier, begin, stream, kind, name, id, r.instance);
    } else {
      DTRACE_PROBE5(uptier, end, stream, kind, name, id, r.instance);
    }
  }
};

}  // namespace

std::unique_ptr<Tool> make_tool(const uptier_trace_api*, const char*) {
  return std::make_unique<Usdt>();
}

}  // namespace uptier::tracing
