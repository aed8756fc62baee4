#include "profile/formats/pprof.h"

#include <algorithm>
#include <map>

#include "profile/base/numbers.h"
#include "profile/data/text.h"
#include "profile/formats/protobuf.h"

namespace uptier::profile {
namespace {

// Fields of Profile and of the messages in it.
enum : uint32_t { kSampleType = 1, kSample = 2, kLocation = 4, kFunction = 5, kStrings = 6 };
enum : uint32_t { kTimeNanos = 9, kComment = 13, kDefaultSampleType = 14 };
enum : uint32_t { kTypeType = 1, kTypeUnit = 2 };
enum : uint32_t { kSampleLocations = 1, kSampleValues = 2 };
enum : uint32_t { kId = 1, kLine = 4, kLineFunction = 1, kLineLine = 2 };
enum : uint32_t { kFunctionName = 2, kFunctionSystemName = 3, kFunctionFile = 4, kStartLine = 5 };

constexpr uint64_t kNanos = 1000000000;

uint64_t limited(uint64_t n) { return std::min<uint64_t>(n, INT64_MAX); }

// One line of a location.
struct PprofLine {
  uint64_t function = 0;
  uint64_t line = 0;

  friend auto operator<=>(const PprofLine&, const PprofLine&) = default;
};

class PprofWriter {
 public:
  explicit PprofWriter(const PprofSources* sources) : sources_(sources) {}

  std::string run(const Profile& profile, const ProfileInfo& info, const TimeProfile& time) {
    (void)string("");
    names_ = &profile;
    for (const auto& [key, m] : profile.methods) cycles_ = cycles_ || was_timed(m);
    add_type("executions", "count");
    add_type("calls", "count");
    add_type("samples", "count");
    if (cycles_) add_type("cycles", "count");
    inlined_at_ = types_;
    if (!profile.inlined.empty()) add_type("inlined", "count");
    operations_at_ = types_;
    if (sources_ != nullptr) add_type("operations", "count");
    time_at_ = types_;
    if (!time.empty()) {
      add_type("cpu", "nanoseconds");
      add_type("stacks", "count");
    }
    for (const auto& [key, m] : profile.methods) {
      if (m.check().ok()) add_method(m);
    }
    for (const auto& [key, body] : profile.inlined) {
      if (body.check(key).ok()) add_inlined(key, body);
    }
    std::vector<uint64_t> stack;
    for (const PathTime& outermost : time.root.callees) add_path(outermost, stack);
    ProtoWriter tail;
    tail.number(kTimeNanos, mul_saturating(info.time, kNanos) > INT64_MAX ? 0 : info.time * kNanos);
    for (const std::string* text : {&info.engine, &info.host, &info.schedule}) {
      if (!text->empty()) tail.number(kComment, string(*text));
    }
    tail.number(kDefaultSampleType, string(!time.empty() ? "cpu"
                                           : cycles_     ? "cycles"
                                                         : "executions"));
    ProtoWriter strings;
    for (const std::string& s : strings_) strings.bytes(kStrings, s);
    return out_.text() + tail.text() + strings.text();
  }

 private:
  static bool was_timed(const MethodProfile& m) {
    return m.check().ok() && std::ranges::any_of(m.schema.slots, [&](const Slot& slot) {
             return slot.kind == SlotKind::kLoop &&
                    m.counts[slot.word + slot_word::kLoopTimed] != 0;
           });
  }

  uint64_t string(const std::string& text) {
    const auto [at, fresh] = numbers_.emplace(text, strings_.size());
    if (fresh) strings_.push_back(text);
    return at->second;
  }

  void add_type(const char* type, const char* unit) {
    ++types_;
    ProtoWriter w;
    w.number(kTypeType, string(type));
    w.number(kTypeUnit, string(unit));
    out_.bytes(kSampleType, w.text());
  }

  uint64_t add_function(const std::string& name, uint64_t file, uint64_t start_line = 1) {
    ProtoWriter w;
    w.number(kId, ++functions_);
    w.number(kFunctionName, string(name));
    w.number(kFunctionSystemName, string(name));
    w.number(kFunctionFile, file);
    w.number(kStartLine, start_line);
    out_.bytes(kFunction, w.text());
    return functions_;
  }

  // Returns the function of a method; the method may have no profile.
  uint64_t function_of(const MethodKey& key, const std::string& name) {
    const auto [at, fresh] = methods_.try_emplace(key);
    if (!fresh) return at->second;
    if (const auto place = begin_of(key)) return at->second = line_of(*place).function;
    std::string known = name;
    if (known.empty()) known = "function " + std::to_string(key.function_index);
    return at->second = add_function(known, file_of(key));
  }
  uint64_t file_of(const MethodKey& key) {
    return string("uptier/" + hex(key.module_key).substr(2));
  }

  std::optional<PprofPlace> begin_of(const MethodKey& key) const {
    return sources_ == nullptr ? std::nullopt : sources_->begin(key);
  }
  // Returns what stands for the line of a site: the site, or 0 in a function that has real lines.
  uint64_t line_at(const MethodKey& key, SiteId site) const { return begin_of(key) ? 0 : site; }
  std::vector<PprofPart> parts_of(const MethodKey& key, SiteId block) const {
    return sources_ == nullptr ? std::vector<PprofPart>() : sources_->parts(key, block);
  }
  // Returns the line of a place in the sources, and its function there.
  PprofLine line_of(const PprofPlace& place) {
    const auto [at, fresh] = source_functions_.try_emplace({place.function, place.file});
    if (fresh) at->second = add_function(place.function, string(place.file), place.line);
    return {at->second, place.line};
  }
  std::vector<PprofLine> lines_of(const PprofPart& part) {
    std::vector<PprofLine> lines;
    for (const PprofPlace& place : part.places) lines.push_back(line_of(place));
    return lines;
  }

  // Lines are ordered from the innermost.
  uint64_t add_location(const std::vector<PprofLine>& lines) {
    const auto [at, fresh] = numbered_.try_emplace(lines, locations_ + 1);
    if (!fresh) return at->second;
    ProtoWriter w;
    w.number(kId, ++locations_);
    for (const PprofLine& line : lines) {
      ProtoWriter l;
      l.number(kLineFunction, line.function);
      l.number(kLineLine, line.line);
      w.bytes(kLine, l.text());
    }
    out_.bytes(kLocation, w.text());
    return locations_;
  }

  // `stack`: locations of the frames outside of this one, outermost first.
  void add_path(const PathTime& path, std::vector<uint64_t>& stack) {
    stack.push_back(location_of(path.frame));
    if (path.ns != 0) add_time(path, {stack.rbegin(), stack.rend()});
    for (const PathTime& callee : path.callees) add_path(callee, stack);
    stack.pop_back();
  }

  // `stack`: the innermost location first, which is that of the path's own method.
  void add_time(const PathTime& path, std::vector<uint64_t> stack) {
    std::vector<uint64_t> values(types_);
    const auto weights = line_weights_.find(path.frame.method);
    if (path.frame.place != TimePlace::kMethod || weights == line_weights_.end()) {
      values[time_at_] = path.ns;
      values[time_at_ + 1] = path.samples;
      return add_sample(stack, std::move(values));
    }
    double all = 0, before = 0;
    for (const auto& [location, weight] : weights->second) all += weight;
    uint64_t ns = 0, samples = 0;  // given to the lines before
    for (const auto& [location, weight] : weights->second) {
      before += weight;
      const double share = std::min(before / all, 1.0);
      const bool last = location == weights->second.rbegin()->first;
      const auto part = [&](uint64_t n) {
        return last ? n : std::min(n, static_cast<uint64_t>(share * static_cast<double>(n) + 0.5));
      };
      values[time_at_] = part(path.ns) - ns;
      values[time_at_ + 1] = part(path.samples) - samples;
      ns = part(path.ns);
      samples = part(path.samples);
      stack.front() = location;
      add_sample(stack, values);
    }
  }

  uint64_t location_of(const PathFrame& frame) {
    const auto [at, fresh] = frames_.try_emplace(frame);
    if (!fresh) return at->second;
    uint64_t function = 0, line = 1;
    if (frame.place == TimePlace::kMethod) {
      const MethodProfile* m = names_->find(frame.method);
      if (const auto place = begin_of(frame.method)) line = place->line;
      function = function_of(frame.method, m == nullptr ? "" : m->name);
    } else {
      function = add_function("[" + std::string(time_place_name(frame.place)) + "]", string(""));
    }
    return at->second = add_location({{function, line}});
  }

  void add_sample(uint64_t location, std::vector<uint64_t> values) {
    add_sample(std::vector<uint64_t>{location}, std::move(values));
  }
  // Locations are the innermost first.
  void add_sample(const std::vector<uint64_t>& locations, std::vector<uint64_t> values) {
    if (std::ranges::all_of(values, [](uint64_t v) { return v == 0; })) return;
    std::ranges::transform(values, values.begin(), limited);
    values.resize(types_);
    ProtoWriter w;
    w.numbers(kSampleLocations, locations);
    w.numbers(kSampleValues, values);
    out_.bytes(kSample, w.text());
  }

  void add_method(const MethodProfile& m) {
    const uint64_t function = function_of(m.key, m.name);
    uint64_t samples = m.sampled_calls;
    (void)add_saturating(samples, m.bursts);
    std::vector<uint64_t> of_calls = {0, m.calls, samples};
    for (const Slot& slot : m.schema.slots) {
      if (slot.kind != SlotKind::kBlock) continue;
      const std::vector<PprofPart> parts = parts_of(m.key, slot.site);
      const uint64_t location = parts.empty()
                                    ? add_location({{function, line_at(m.key, slot.site)}})
                                    : add_location(lines_of(parts.front()));
      of_calls[0] = m.estimates[slot.word];
      add_sample(location, of_calls);
      add_operations(m.key, parts, m.estimates[slot.word], {});
      of_calls = {0, 0, 0};
    }
    // Only edges, or nothing at all: there is no block for the calls.
    if (of_calls[1] != 0 || of_calls[2] != 0) {
      add_sample(add_location({{function, line_at(m.key, 1)}}), of_calls);
    }
    for (const Slot& slot : m.schema.slots) {
      if (slot.kind == SlotKind::kLoop) add_loop(m, slot, function);
    }
  }

  // `around`: the lines of the methods that the block is inlined into, the innermost first.
  void add_operations(const MethodKey& key, const std::vector<PprofPart>& parts,
                      uint64_t executions, std::span<const PprofLine> around) {
    if (executions == 0) return;
    for (const PprofPart& part : parts) {
      std::vector<PprofLine> lines = lines_of(part);
      const uint64_t operations = mul_saturating(part.operations, executions);
      if (around.empty()) {
        line_weights_[key][add_location(lines)] += static_cast<double>(operations);
      }
      lines.insert(lines.end(), around.begin(), around.end());
      std::vector<uint64_t> values(types_);
      values[operations_at_] = operations;
      add_sample(add_location(lines), std::move(values));
    }
  }

  // Appends the lines of a call.
  void add_call(const MethodKey& caller, SiteId site, std::vector<PprofLine>& to) {
    std::vector<PprofPlace> places;
    if (sources_ != nullptr) places = sources_->call(caller, site);
    for (const PprofPlace& place : places) to.push_back(line_of(place));
    if (places.empty()) to.push_back({function_of(caller, ""), line_at(caller, site)});
  }

  void add_inlined(const InlinedKey& key, const InlinedBody& body) {
    std::vector<PprofLine> around;
    for (size_t i = key.path.size(); i-- > 0;) {
      const MethodKey& caller = i == 0 ? key.root : key.path[i - 1].callee;
      add_call(caller, key.path[i].site, around);
    }
    const MethodKey& callee = key.path.back().callee;
    for (const auto& [site, block] : body.blocks) {
      const std::vector<PprofPart> parts = parts_of(callee, site);
      std::vector<PprofLine> at;
      if (parts.empty()) {
        at.push_back({function_of(callee, ""), line_at(callee, site)});
      } else {
        at = lines_of(parts.front());
      }
      at.insert(at.end(), around.begin(), around.end());
      std::vector<uint64_t> values(types_);
      values.front() = values[inlined_at_] = block.estimate;
      add_sample(add_location(at), std::move(values));
      add_operations(callee, parts, block.estimate, around);
    }
  }

  void add_loop(const MethodProfile& m, const Slot& slot, uint64_t function) {
    const uint64_t* words = &m.estimates[slot.word];
    const std::optional<Estimate> all = m.loop_cycles(slot.site);
    const uint64_t timed = words[slot_word::kLoopCycles];
    if (!all || timed == 0) return;
    // Cycles of inner loops belong to those loops.
    const double share =
        static_cast<double>(words[slot_word::kLoopExclusiveCycles]) / static_cast<double>(timed);
    const auto cycles = static_cast<uint64_t>(std::clamp(all->total * share, 0.0, 0x1p62));
    std::string name = m.name;
    if (name.empty()) name = "function " + std::to_string(m.key.function_index);
    const uint64_t inner =
        add_function(name + " loop " + std::to_string(slot.site), file_of(m.key));
    const uint64_t line = line_at(m.key, slot.site);
    add_sample(add_location({{inner, line}, {function, line}}), {0, 0, 0, cycles});
  }

  ProtoWriter out_;
  std::vector<std::string> strings_;
  std::map<std::string, uint64_t> numbers_;
  std::map<MethodKey, uint64_t> methods_;  // the function of each
  std::map<PathFrame, uint64_t> frames_;   // the location of each in call paths
  std::map<std::pair<std::string, std::string>, uint64_t> source_functions_;  // by name and file
  std::map<std::vector<PprofLine>, uint64_t> numbered_;  // the location of each list of lines
  // Executed operations of each method's lines, by location.
  std::map<MethodKey, std::map<uint64_t, double>> line_weights_;
  const PprofSources* sources_;
  const Profile* names_ = nullptr;
  size_t operations_at_ = 0;  // index among the values of a sample
  size_t inlined_at_ = 0;     // likewise
  size_t time_at_ = 0;        // index of time among the values of a sample
  size_t types_ = 0;          // number of values of a sample
  uint64_t functions_ = 0;
  uint64_t locations_ = 0;
  bool cycles_ = false;
};

}  // namespace

std::string to_pprof(const Profile& profile, const ProfileInfo& info, const TimeProfile& time,
                     const PprofSources* sources) {
  return PprofWriter(sources).run(profile, info, time);
}

}  // namespace uptier::profile
