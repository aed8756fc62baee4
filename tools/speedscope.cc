#include "tools/speedscope.h"

#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "tools/line_frames.h"
#include "tools/profile_top.h"

namespace uptier::tools {
namespace {

using nlohmann::ordered_json;

class Speedscope {
 public:
  Speedscope(const ProfileFile& file, const LineProfile* lines) : file_(file), lines_(lines) {}

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
    stack_.push_back(number_of(frame_name(file_.profile, path.frame), "", 0));
    if (path.ns != 0 && !add_lines(path)) add_sample(stack_, path.ns);
    for (const PathTime& callee : path.callees) add(callee);
    stack_.pop_back();
  }

  void add_sample(const std::vector<size_t>& stack, uint64_t ns) {
    samples_.push_back(stack);
    weights_.push_back(ns);
    total_ += ns;
  }

  // Adds the time of a path's own method by lines. Returns false if these are not known.
  bool add_lines(const PathTime& path) {
    if (lines_ == nullptr || path.frame.place != TimePlace::kMethod) return false;
    const std::vector<LineTime> parts = line_times(*lines_, path.frame.method, path.ns);
    for (const LineTime& part : parts) {
      std::vector<size_t> stack(stack_.begin(), stack_.end() - 1);
      const std::vector<dwarf::SourceFrame>& frames = part.weight->frames;
      for (auto f = frames.rbegin(); f != frames.rend(); ++f) {
        stack.push_back(number_of(line_frame(*f), f->file, f->line));
      }
      add_sample(stack, part.ns);
    }
    return !parts.empty();
  }

  size_t number_of(const std::string& name, const std::string& file, uint32_t line) {
    const auto [at, fresh] = numbers_.emplace(std::pair(name, file), numbers_.size());
    if (fresh) {
      ordered_json frame = {{"name", name}};
      if (!file.empty()) frame["file"] = file;
      if (line != 0) frame["line"] = line;
      frames_.push_back(std::move(frame));
    }
    return at->second;
  }

  const ProfileFile& file_;
  const LineProfile* lines_;
  std::map<std::pair<std::string, std::string>, size_t> numbers_;  // in frames_, by name and file
  ordered_json frames_ = ordered_json::array();
  std::vector<size_t> stack_;
  ordered_json samples_ = ordered_json::array();
  ordered_json weights_ = ordered_json::array();
  uint64_t total_ = 0;
};

}  // namespace

std::string speedscope_json(const ProfileFile& file, const LineProfile* lines) {
  return Speedscope(file, lines)
             .run()
             .dump(-1, ' ', false, ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace uptier::tools
