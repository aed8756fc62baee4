// How often each kind of event came, and how long those lasted that last: a table, at the end.
//
//   arguments   the file that receives it; none: stderr
//
// Thread: one lock guards the table: for programs with many events on many threads, it is in the way.
#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "tracing/subscribers/tool.h"
#include "uptier/thread_safety.h"

namespace uptier::tracing {
namespace {

struct Count {
  uint64_t begun = 0, ended = 0, total_ns = 0, longest_ns = 0;
};

class Counts final : public Tool {
 public:
  explicit Counts(std::FILE* out) : out_(out) {}
  ~Counts() override {
    print();
    close_output(&api(), out_);
  }

  void tell(const uptier_trace_record& r) override {
    const uint64_t now = r.instance != 0 ? time_of(r) : 0;
    const Held lock(mutex_);
    Count& c = counts_[{r.stream, r.type >> 1}];
    if ((r.type & 1) == 0) {
      ++c.begun;
      if (r.instance != 0) open_[r.instance] = now;
      return;
    }
    const auto at = open_.find(r.instance);
    if (at == open_.end()) return;
    const uint64_t took = now - at->second;
    open_.erase(at);
    ++c.ended;
    c.total_ns += took;
    c.longest_ns = std::max(c.longest_ns, took);
  }

 private:
  void print() UPTIER_EXCLUDES(mutex_) {
    const Held lock(mutex_);
    std::fprintf(out_, "%-16s %-20s %12s %12s %14s %14s\n", "stream", "kind", "events", "ended",
                 "total ms", "longest ms");
    for (const auto& [key, c] : counts_) {
      std::fprintf(out_, "%-16s %-20s %12llu %12llu %14.3f %14.3f\n",
                   api().stream_name(key.first, nullptr, nullptr),
                   std::string(kind_name(key.second)).c_str(),
                   static_cast<unsigned long long>(c.begun),
                   static_cast<unsigned long long>(c.ended), static_cast<double>(c.total_ns) / 1e6,
                   static_cast<double>(c.longest_ns) / 1e6);
    }
    if (!open_.empty()) {
      std::fprintf(out_, "%zu events have begun and not ended\n", open_.size());
    }
  }

  std::FILE* out_;
  CheckedLock<std::mutex> mutex_;
  std::map<std::pair<const uptier_trace_stream*, uint32_t>, Count> counts_
      UPTIER_GUARDED_BY(mutex_);
  std::map<uint64_t, uint64_t> open_ UPTIER_GUARDED_BY(mutex_);  // instance -> when it began
};

}  // namespace

std::unique_ptr<Tool> make_tool(const uptier_trace_api* api, const char* arguments) {
  std::FILE* out = open_output(api, arguments, "-");
  return out == nullptr ? nullptr : std::make_unique<Counts>(out);
}

}  // namespace uptier::tracing
