// Counts the events of each kind, and sums the durations of those that have one. Writes a table at
// the end.
//
//   arguments   the output file; none: stderr
//
// Thread: one lock guards the table, so it slows down programs with many events on many threads.
#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <mutex>
#include <vector>

#include "tracing/subscribers/output.h"
#include "tracing/subscribers/tool.h"
#include "uptier/thread_safety.h"

namespace uptier::tracing {
namespace {

struct Count {
  uint64_t begun = 0, ended = 0, total_ns = 0, longest_ns = 0;
};

class Counts final : public Tool {
 public:
  explicit Counts(std::unique_ptr<Output> out) : out_(std::move(out)) {}
  void finish() override { print(); }

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
  static std::string milliseconds(uint64_t ns) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f", static_cast<double>(ns) / 1e6);
    return text;
  }
  // A row of the table: two columns of text and four of numbers.
  static std::string row(const std::array<std::string, 6>& cells) {
    static constexpr std::array<size_t, 6> kWidths = {16, 20, 12, 12, 14, 14};
    std::string line;
    for (size_t i = 0; i < cells.size(); ++i) {
      const size_t width = kWidths[i], n = cells[i].size();
      const std::string gap(n < width ? width - n : 0, ' ');
      line += (i == 0 ? "" : " ") + (i < 2 ? cells[i] + gap : gap + cells[i]);
    }
    return line + "\n";
  }

  void print() UPTIER_EXCLUDES(mutex_) {
    const Held lock(mutex_);
    out_->append(row({"stream", "kind", "events", "ended", "total ms", "longest ms"}), 0);
    for (const auto& [key, c] : counts_) {
      const char* stream = api().stream_name(key.first, nullptr, nullptr);
      out_->append(
          row({stream, std::string(kind_name(key.second)), std::to_string(c.begun),
               std::to_string(c.ended), milliseconds(c.total_ns), milliseconds(c.longest_ns)}),
          c.begun);
    }
    if (!open_.empty()) {
      out_->append(std::to_string(open_.size()) + " events have begun and not ended\n", 0);
    }
  }

  const std::unique_ptr<Output> out_;
  CheckedLock<std::mutex> mutex_;
  std::map<std::pair<const uptier_trace_stream*, uint32_t>, Count> counts_
      UPTIER_GUARDED_BY(mutex_);
  std::map<uint64_t, uint64_t> open_ UPTIER_GUARDED_BY(mutex_);  // instance -> begin time
};

}  // namespace

std::unique_ptr<Tool> make_tool(const uptier_trace_api* api, const char* arguments) {
  auto out = Output::open(api, arguments, "-");
  return out == nullptr ? nullptr : std::make_unique<Counts>(std::move(out));
}

}  // namespace uptier::tracing
