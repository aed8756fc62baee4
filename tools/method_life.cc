#include "tools/method_life.h"

#include <tuple>

namespace uptier::tools {
namespace {

bool watches(const MethodEvent& e) {
  return e.what == "flush" || (e.what == "decide" && e.action.starts_with("keep"));
}

bool repeats(const MethodEvent& e) {
  return e.what == "deopt" || e.what == "OSR in" || e.what == "OSR out";
}

class Builder {
 public:
  void add(const MethodEvent& e) {
    note(e);
    if (watches(e)) return watch(e);
    if (repeats(e)) return repeat(e);
    step(e);
  }

  MethodLife take() { return std::move(life_); }

 private:
  LifeStep& step(const MethodEvent& e) {
    LifeStep& s = life_.steps.emplace_back();
    s.event = e;
    s.first_ns = s.last_ns = e.ended_ns;
    return s;
  }

  // The last calls and the last reason are the ones to tell.
  void watch(const MethodEvent& e) {
    const bool follows = !life_.steps.empty() && life_.steps.back().watched;
    LifeStep& s = follows ? life_.steps.back() : step(e);
    s.times += follows ? 1 : 0;
    s.watched = true;
    s.last_ns = e.ended_ns;
    if (e.what == "flush") s.event.count = e.count;
    if (e.what != "decide") return;
    ++s.decisions;
    s.event.action = e.action;
    s.event.reason = e.reason;
  }

  void repeat(const MethodEvent& e) {
    const auto key = std::tuple(e.what, e.version, e.other_version, e.loop, e.reason, e.count);
    const auto [at, is_new] = repeated_.try_emplace(key, life_.steps.size());
    if (is_new) {
      step(e);
      return;
    }
    LifeStep& s = life_.steps[at->second];
    ++s.times;
    s.last_ns = e.ended_ns;
  }

  void note(const MethodEvent& e) {
    if (e.what == "deopt") ++life_.exits[e.reason];
    if (e.what == "remove") {
      life_.removed = true;
      life_.removed_ns = e.ended_ns;
    }
    if (e.version == 0) return;
    if (e.what == "compile") {
      ++life_.compilations;
      life_.compile_ns += e.ended_ns - e.begun_ns;
      LifeVersion& v = life_.versions[e.version];
      v = {e.version, e.tier, e.instrumented, e.loop, e.bytes, e.ended_ns - e.begun_ns};
    } else if (e.what == "install") {
      LifeVersion& v = life_.versions[e.version];
      if (v.number == 0) v = {e.version, e.tier, e.instrumented, e.loop, e.bytes};
      v.installed_ns = e.ended_ns;
      v.in_service = true;
    } else if (e.what == "retire" || e.what == "reclaim") {
      const auto v = life_.versions.find(e.version);
      if (v != life_.versions.end()) v->second.in_service = false;
    }
  }

  MethodLife life_;
  using Key = std::tuple<std::string, uint64_t, uint64_t, int64_t, std::string, uint64_t>;
  std::map<Key, size_t> repeated_;  // indices of steps
};

}  // namespace

MethodLife life_of(std::span<const MethodEvent> events) {
  Builder builder;
  for (const MethodEvent& e : events) builder.add(e);
  return builder.take();
}

}  // namespace uptier::tools
