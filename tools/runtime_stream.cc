#include "tools/runtime_stream.h"

#include <cstdlib>
#include <exception>

#include "uptier/report.h"

namespace uptier::tools {
namespace {

uptier_trace_when moment_of(const Event& e, uint64_t ns) {
  return {sizeof(uptier_trace_when), ns, e.native_thread};
}

// Returns the name of a record that is a task; null for others.
const char* task_name(const Event& e) {
  switch (e.kind) {
    case EventKind::kAdded: return "add";
    case EventKind::kRemoved: return "remove";
    case EventKind::kForgotten: return "forget";
    case EventKind::kDropped: return "compile dropped";
    case EventKind::kDescribed: return "describe";
    case EventKind::kCompiled: return "compile";
    case EventKind::kFailed: return "compile failed";
    case EventKind::kRefused: return "compile refused";
    case EventKind::kInstalled: return "install";
    case EventKind::kFirstCall: return "first call";
    case EventKind::kEntered: return e.other_version == 0 ? "OSR in" : "OSR out";
    case EventKind::kLeft: return "deopt";
    case EventKind::kRetired: return "retire";
    case EventKind::kFreed: return "reclaim";
    case EventKind::kMoved: return "move";
    case EventKind::kEvicted: return "evict";
    case EventKind::kFlushed: return "flush";
    case EventKind::kDecided: return "decide";
    case EventKind::kSaved: return "save";
    case EventKind::kLost: return "events lost";
    default: return nullptr;
  }
}

// Returns the length of a task. The duration of an install is the compilation before it, so it is 0.
uint64_t task_length(const Event& e) { return e.kind == EventKind::kInstalled ? 0 : e.duration_ns; }

// Returns a name for the count in a record; null for records that count nothing.
const char* count_name(EventKind k) {
  switch (k) {
    case EventKind::kLost: return "lost";
    case EventKind::kCompiled: return "inlined";
    case EventKind::kFirstCall: return "number";
    case EventKind::kLeft: return "exit";
    case EventKind::kFlushed: return "calls";
    default: return nullptr;
  }
}

// Says whether a decision requests a compilation: "recompile", "specialize osr:2".
bool requests(const DecisionRecord& d) {
  return d.action.starts_with("recompile") || d.action.starts_with("specialize");
}

// Returns the loop of a decision's action; none if it is about the whole method.
LoopId loop_of(const DecisionRecord& d) {
  const size_t at = d.action.find(" osr:");
  if (at == d.action.npos) return LoopId::none();
  return LoopId(static_cast<uint32_t>(std::strtoul(d.action.c_str() + at + 5, nullptr, 10)));
}

}  // namespace

RuntimeStream::RuntimeStream(Runtime& runtime)
    : runtime_(runtime), stream_(uptier_trace->stream("uptier", 1, 0)) {
  if (!UPTIER_TRACE_ON(stream_, UPTIER_TRACE_BEGIN(UPTIER_TRACE_TASK))) return;
  graph_ = make("tiering");
  pause_ = make("pause");
  UPTIER_TRACE_NOTIFY(stream_, UPTIER_TRACE_GRAPH, nullptr, graph_, nullptr);
  subscribed_ = runtime_.subscribe(*this).ok();
}

RuntimeStream::~RuntimeStream() {
  if (subscribed_) (void)runtime_.unsubscribe(*this);
  if (pausing_ == 0) return;
  const uptier_trace_when now = {sizeof now, 0, pausing_thread_};
  uptier_trace->end_at(stream_, UPTIER_TRACE_TASK, graph_, pause_, pausing_, nullptr, &now);
}

// A tool that has no memory for an event does without it.
void RuntimeStream::on_event(const Event& e) noexcept {
  try {
    tell(e);
  } catch (const std::exception&) {}
}

void RuntimeStream::tell(const Event& e) {
  if (e.kind == EventKind::kAdded) names_[e.method] = e.text;
  if (e.kind == EventKind::kCompiled) tell_node(e);
  const uptier_trace_when when = moment_of(e, e.at_ns);
  if (e.kind == EventKind::kWorkerPaused) {
    pausing_ = uptier_trace->begin_at(stream_, UPTIER_TRACE_TASK, graph_, pause_, nullptr, &when);
    pausing_thread_ = when.thread;
  } else if (e.kind == EventKind::kWorkerResumed && pausing_ != 0) {
    uptier_trace->end_at(stream_, UPTIER_TRACE_TASK, graph_, pause_, pausing_, nullptr, &when);
    pausing_ = 0;
  } else if (const char* what = task_name(e)) {
    tell_task(e, what);
  }
}

void RuntimeStream::tell_node(const Event& e) {
  std::string name = name_of(e.method) + " [" + tier_name(e.tier);
  if (e.copy == Copy::kInstrumented) name += std::string(" ") + copy_name(e.copy);
  if (e.loop.valid()) name += " osr " + std::to_string(e.loop.index());
  uptier_trace_event* node = nodes_[e.version] =
      make(name + " v" + std::to_string(e.version) + "]");
  describe(node, e);
  const uptier_trace_when when = moment_of(e, e.at_ns);
  uptier_trace->notify_at(stream_, UPTIER_TRACE_BEGIN(UPTIER_TRACE_NODE), graph_, node, nullptr,
                          &when);
}

void RuntimeStream::tell_task(const Event& e, const char* what) {
  uptier_trace_event* task = construct_of(e, what);
  describe(task, e);
  auto node = nodes_.find(e.version);
  uptier_trace_event* parent = node == nodes_.end() ? graph_ : node->second;
  const uptier_trace_when from = moment_of(e, e.at_ns - task_length(e)), to = moment_of(e, e.at_ns);
  uint64_t instance =
      uptier_trace->begin_at(stream_, UPTIER_TRACE_TASK, parent, task, nullptr, &from);
  uptier_trace->end_at(stream_, UPTIER_TRACE_TASK, parent, task, instance, nullptr, &to);
  // An arrow leads to the innermost slice that has begun: the task, not its first part.
  tell_edges(e, task, from.at_ns);
  tell_phases(e, parent, from.at_ns);
}

// Phases have one construct for each name, since there are many; the parent tells the version.
void RuntimeStream::tell_phases(const Event& e, uptier_trace_event* parent, uint64_t begun_ns) {
  if (e.details == nullptr) return;
  for (const EventPhase& p : e.details->phases) {
    if (p.duration_ns == 0) continue;
    uptier_trace_event*& phase = constructs_[{p.name, MethodId::none(), 0}];
    if (phase == nullptr) phase = make(p.name);
    const uptier_trace_when from = moment_of(e, begun_ns),
                            to = moment_of(e, begun_ns += p.duration_ns);
    const uint64_t instance =
        uptier_trace->begin_at(stream_, UPTIER_TRACE_TASK, parent, phase, nullptr, &from);
    uptier_trace->end_at(stream_, UPTIER_TRACE_TASK, parent, phase, instance, nullptr, &to);
  }
}

void RuntimeStream::tell_edges(const Event& e, uptier_trace_event* task, uint64_t begun_ns) {
  if (e.kind == EventKind::kDecided && e.decision != nullptr && requests(*e.decision)) {
    requests_[{e.method, loop_of(*e.decision)}] = {task, e.at_ns};
  } else if (e.kind == EventKind::kDescribed) {
    descriptions_.try_emplace(e.method, Ended{task, e.at_ns});
  } else if (e.kind == EventKind::kCompiled) {
    compilations_[e.version] = task;
    if (e.details != nullptr) {
      for (const MethodId m : e.details->inlined) {
        auto body = descriptions_.find(m);
        if (body == descriptions_.end() || body->second.at_ns > begun_ns) continue;
        tell_edge("inlined into", body->second.task, task, e);
      }
    }
    auto request = requests_.find({e.method, e.loop});
    const bool asked_for = request != requests_.end() && e.tier == Tier::kOptimized &&
                           e.copy == Copy::kPlain && request->second.at_ns <= begun_ns;
    if (!asked_for) return;
    tell_edge("requested", request->second.task, task, e);
    requests_.erase(request);
  } else if (e.kind == EventKind::kInstalled) {
    auto compilation = compilations_.find(e.version);
    if (compilation == compilations_.end()) return;
    tell_edge("made", compilation->second, task, e);
    compilations_.erase(compilation);
    installs_[e.version] = {task, e.at_ns};
  } else if (e.kind == EventKind::kEntered) {
    // Frames may enter the code a moment before the record of its install is made.
    auto install = installs_.find(e.version);
    if (install == installs_.end() || install->second.at_ns > begun_ns) return;
    tell_edge("waits for", install->second.task, task, e);
  } else if (e.kind == EventKind::kFreed) {
    installs_.erase(e.version);
  }
}

void RuntimeStream::tell_edge(const char* name, uptier_trace_event* source,
                              uptier_trace_event* target, const Event& e) {
  const uptier_trace_when when = moment_of(e, e.at_ns);
  uptier_trace->notify_at(stream_, UPTIER_TRACE_BEGIN(UPTIER_TRACE_EDGE), source, target, name,
                          &when);
}

uptier_trace_event* RuntimeStream::make(const std::string& name) const {
  uptier_trace_payload payload = {};
  payload.size = sizeof payload;
  payload.name = name.c_str();
  return uptier_trace->event(&payload);
}

// One for each activity, method and version, and one for each decision that requests a compilation and
// each first description, since an edge leads from exactly this one. So no run makes more of them than
// there are methods, versions and requests.
uptier_trace_event* RuntimeStream::construct_of(const Event& e, const char* what) {
  if (e.decision != nullptr && requests(*e.decision)) return make(what + (" " + name_of(e.method)));
  const bool first = e.kind == EventKind::kDescribed && !descriptions_.contains(e.method);
  if (first) return make(what + (" " + name_of(e.method)));
  uptier_trace_event*& c = constructs_[{what, e.method, e.version}];
  if (c == nullptr) c = make(e.method.valid() ? what + (" " + name_of(e.method)) : what);
  return c;
}

void RuntimeStream::set(uptier_trace_event* of, const char* key, const std::string& value) const {
  uptier_trace_value v = {};
  v.kind = UPTIER_TRACE_STRING;
  v.as.string = uptier_trace->string(value.c_str());
  (void)UPTIER_TRACE_SET(of, uptier_trace->string(key), &v);
}

void RuntimeStream::set(uptier_trace_event* of, const char* key, uint64_t value) const {
  uptier_trace_value v = {};
  v.kind = UPTIER_TRACE_INT;
  v.as.integer = static_cast<int64_t>(value);
  (void)UPTIER_TRACE_SET(of, uptier_trace->string(key), &v);
}

void RuntimeStream::describe(uptier_trace_event* task, const Event& e) {
  set(task, "sequence", e.sequence);
  if (e.method.valid()) set(task, "method", e.method.number());
  if (e.version != 0) {
    set(task, "version", e.version);
    set(task, "tier", std::string(tier_name(e.tier)));
    if (e.copy != Copy::kPlain) set(task, "copy", std::string(copy_name(e.copy)));
  }
  if (e.kind == EventKind::kInstalled && e.other_version != 0)
    set(task, "replaces", e.other_version);
  if (e.kind == EventKind::kEntered && e.other_version != 0) set(task, "from", e.other_version);
  if (e.kind == EventKind::kLeft) set(task, "to", e.other_version);  // 0: the host's
  if (e.bytes != 0) set(task, "bytes", e.bytes);
  if (e.loop.valid()) set(task, "loop", e.loop.index());
  if (const char* counted = count_name(e.kind)) set(task, counted, e.count);
  if (e.body.valid() && e.body != e.method) set(task, "of inlined", name_of(e.body));
  set_source(task, e.body.valid() ? e.body : e.method, e.location);
  if (e.kind == EventKind::kAdded) {
    set(task, "name", std::string(e.text));
    if (e.details == nullptr) return;
    set(task, "module_key", e.details->key.module_key);
    return set(task, "function_index", e.details->key.function_index);
  }
  // The construct of a save is told again: its last error must not stay.
  if (!e.text.empty() || e.kind == EventKind::kSaved) set(task, "reason", std::string(e.text));
  if (e.details != nullptr && !e.details->inlined.empty()) {
    set(task, "inlined methods", inlined_text(*e.details));
  }
  if (e.decision == nullptr) return;
  set(task, "action", e.decision->action);
  set(task, "reason", e.decision->reason);
  set_source(task, e.method, e.decision->location);
}

// Sets the position of a location if the host knows it.
void RuntimeStream::set_source(uptier_trace_event* of, MethodId m, uint32_t location) {
  if (location == 0 || !m.valid()) return;
  auto [at, is_new] = sources_.try_emplace({m, location});
  if (is_new) {
    const SourcePositions found = runtime_.positions(m, location);
    if (!found.empty()) at->second = position_text(found[0]);
  }
  if (!at->second.empty()) set(of, "source", at->second);
}

// "add #3, mul #7 and 2 more"
std::string RuntimeStream::inlined_text(const EventDetails& d) const {
  std::string text;
  for (const MethodId m : d.inlined) {
    text += (text.empty() ? "" : ", ") + name_of(m) + " #" + std::to_string(m.number());
  }
  const size_t more = d.inlined_methods - d.inlined.size();
  return more == 0 ? text : text + " and " + std::to_string(more) + " more";
}

std::string RuntimeStream::name_of(MethodId m) const {
  auto at = names_.find(m);
  return at == names_.end() ? "#" + std::to_string(m.number()) : at->second;
}

}  // namespace uptier::tools
