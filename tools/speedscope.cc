#include "tools/speedscope.h"

#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "tools/profile_top.h"

namespace uptier::tools {
namespace {

using nlohmann::ordered_json;

class Speedscope {
 public:
  explicit Speedscope(const ProfileFile& file) : file_(file) {}

  ordered_json run() {
    for (const PathTime& outermost : file_.calls.time.root.callees) add(outermost);
    const ordered_json profile = {{"type", "sampled"},     {"name", "processor time"},
                                  {"unit", "nanoseconds"}, {"startValue", 0},
                                  {"endValue", total_},    {"samples", samples_},
                                  {"weights", weights_}};
    return {{"$schema", "https://www.speedscope.app/file-format-schema.json"},
            {"exporter", "uptier"},
            {"shared", {{"frames", frames_}}},
            {"profiles", {profile}}};
  }

 private:
  void add(const PathTime& path) {
    stack_.push_back(number_of(path.frame));
    if (path.ns != 0) {
      samples_.push_back(stack_);
      weights_.push_back(path.ns);
      total_ += path.ns;
    }
    for (const PathTime& callee : path.callees) add(callee);
    stack_.pop_back();
  }

  size_t number_of(const PathFrame& f) {
    const auto [at, fresh] = numbers_.emplace(f, numbers_.size());
    if (fresh) frames_.push_back({{"name", frame_name(file_.profile, f)}});
    return at->second;
  }

  const ProfileFile& file_;
  std::map<PathFrame, size_t> numbers_;  // in frames_
  ordered_json frames_ = ordered_json::array();
  std::vector<size_t> stack_;
  ordered_json samples_ = ordered_json::array();
  ordered_json weights_ = ordered_json::array();
  uint64_t total_ = 0;
};

}  // namespace

std::string speedscope_json(const ProfileFile& file) {
  return Speedscope(file).run().dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace uptier::tools
