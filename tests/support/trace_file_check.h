// trace_file_check.h: checks a trace for ui.perfetto.dev (the JSON of tracing/subscribers/perfetto.cc)
// against the rules of its format.
//
//   events     each has a known phase, a name, a category, a process, a thread, a time
//   slices     "X" lasts; "B" has no end in the file. Two slices of a thread are apart, or one lies in
//              the other
//   pairs      "b" and "e": one of each for an id, with the same name and category, in this order
//   flows      "s" and "f": one of each for an id, with the same name and category, in this order; a
//              slice of its thread is under way at each
//   instances  belong to one slice or pair
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace uptier::test {

class TraceFileCheck {
 public:
  explicit TraceFileCheck(const nlohmann::json& file) {
    if (!file.is_object() || !file.contains("traceEvents")) {
      fault("no traceEvents", file);
      return;
    }
    for (const nlohmann::json& e : file["traceEvents"]) take(e);
    check_nesting();
    for (const auto& [id, ends] : pairs_) check_ends(ends, "pair");
    for (const auto& [id, ends] : flows_) check_flow(ends);
  }

  // At most 20: what is wrong, and the event.
  const std::vector<std::string>& faults() const { return faults_; }

  uint64_t slices() const { return slices_; }
  uint64_t open() const { return open_; }
  uint64_t pairs() const { return pairs_.size(); }
  uint64_t flows() const { return flows_.size(); }
  uint64_t marks() const { return marks_; }
  size_t threads() const { return by_thread_.size(); }

 private:
  using json = nlohmann::json;
  struct Slice {
    int64_t begin, end;
    const json* event;
  };
  struct Ends {
    std::vector<const json*> first, second;
  };

  void fault(const std::string& what, const json& e) {
    if (faults_.size() < 20) faults_.push_back(what + ": " + e.dump().substr(0, 300));
  }

  // In nanoseconds: times in the file are microseconds with three digits.
  static int64_t ns(const json& e, const char* key) {
    return std::llround(e[key].get<double>() * 1000);
  }

  void take(const json& e) {
    const std::string phase = e.value("ph", "");
    if (phase == "M") return;
    for (const char* key : {"name", "cat"}) {
      if (!e.contains(key) || !e[key].is_string() || e[key] == "") return fault("no name", e);
    }
    for (const char* key : {"ts", "pid", "tid"}) {
      if (!e.contains(key) || !e[key].is_number() || e[key] < 0) return fault("no place", e);
    }
    if (phase == "X" || phase == "B") return take_slice(e, phase == "B");
    if (phase == "i") return void(++marks_);
    const bool is_pair = phase == "b" || phase == "e", is_flow = phase == "s" || phase == "f";
    if (!is_pair && !is_flow) return fault("unknown phase", e);
    if (!e.contains("id")) return fault("no id", e);
    if (phase == "b") take_instance(e);
    Ends& ends = (is_pair ? pairs_ : flows_)[e["id"].dump()];
    (phase == "b" || phase == "s" ? ends.first : ends.second).push_back(&e);
  }

  void take_slice(const json& e, bool is_open) {
    ++slices_;
    open_ += is_open ? 1 : 0;
    take_instance(e);
    if (!is_open && (!e.contains("dur") || ns(e, "dur") <= 0)) return fault("no duration", e);
    const int64_t begin = ns(e, "ts");
    const int64_t end = is_open ? INT64_MAX : begin + ns(e, "dur");
    by_thread_[e["tid"].get<int64_t>()].push_back({begin, end, &e});
  }

  void take_instance(const json& e) {
    const json args = e.value("args", json::object());
    if (!args.contains("instance")) return fault("no instance", e);
    if (!instances_.insert(args["instance"]).second) fault("an instance twice", e);
  }

  void check_nesting() {
    for (auto& [thread, slices] : by_thread_) {
      std::ranges::sort(slices, [](const Slice& a, const Slice& b) {
        return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
      });
      std::vector<Slice> around;
      for (const Slice& s : slices) {
        while (!around.empty() && around.back().end <= s.begin) around.pop_back();
        if (!around.empty() && s.end > around.back().end) {
          fault("crosses " + around.back().event->dump().substr(0, 200) + "\n", *s.event);
        }
        around.push_back(s);
      }
    }
  }

  bool check_ends(const Ends& ends, const std::string& what) {
    const json& any = ends.first.empty() ? *ends.second[0] : *ends.first[0];
    if (ends.first.size() != 1 || ends.second.size() != 1)
      return fault("half a " + what, any), false;
    const json &a = *ends.first[0], &b = *ends.second[0];
    if (a["name"] != b["name"] || a["cat"] != b["cat"]) fault("a " + what + " of two names", b);
    if (ns(a, "ts") > ns(b, "ts")) fault("a " + what + " that ends before it begins", b);
    return true;
  }

  void check_flow(const Ends& ends) {
    if (!check_ends(ends, "flow")) return;
    if (ends.second[0]->value("bp", "") != "e") fault("a flow to the next slice", *ends.second[0]);
    for (const json* e : {ends.first[0], ends.second[0]}) {
      const int64_t at = ns(*e, "ts");
      const auto slices = by_thread_.find((*e)["tid"].get<int64_t>());
      const bool is_bound =
          slices != by_thread_.end() && std::ranges::any_of(slices->second, [&](const Slice& s) {
            return s.begin <= at && at < s.end;
          });
      if (!is_bound) fault("a flow outside of all slices", *e);
    }
  }

  std::vector<std::string> faults_;
  std::map<int64_t, std::vector<Slice>> by_thread_;
  std::map<std::string, Ends> pairs_, flows_;
  std::set<json> instances_;
  uint64_t slices_ = 0, open_ = 0, marks_ = 0;
};

}  // namespace uptier::test
