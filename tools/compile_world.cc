#include "tools/compile_world.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "embed/wasm/build_function.h"
#include "embed/wasm/memory.h"
#include "embed/wasm/read_module.h"
#include "embed/wasm/sections.h"
#include "jit/analysis/param_uses.h"
#include "jit/frontend/branch_probes.h"
#include "jit/frontend/builder_access.h"
#include "jit/frontend/parse.h"
#include "jit/frontend/verify.h"
#include "jit/frontend/verify_built.h"
#include "tiering/observe/known_counts.h"
#include "tiering/observe/select_turns.h"
#include "tools/nearest.h"

namespace uptier::tools {
namespace {

constexpr uint8_t kWasmMagic[4] = {0, 'a', 's', 'm'};

const void* no_slow_path(uint32_t, void*) { return nullptr; }

jit::Leave no_leaving(jit::LeaveState*, void*) { return jit::Leave::kTrap; }

// Addresses that loop checks call in code that is never run; told apart in listings.
const void* loop_slow_plain() { return reinterpret_cast<const void*>(&no_slow_path); }
const void* loop_slow_instrumented() { return reinterpret_cast<const void*>(&loop_slow_plain); }

// Measures from one call to the next.
class Stopwatch {
 public:
  double lap() {
    auto now = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(now - std::exchange(last_, now)).count();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

Result<Functions> read_wasm(const std::vector<uint8_t>& bytes) {
  Stopwatch watch;
  Result<wasm::ModuleInfo> info = wasm::read_module(bytes);
  if (!info) return info.error();
  double read_seconds = watch.lap();
  wasm::VmLayout layout(*info);
  struct Numbered final : wasm::FunctionMethods {
    explicit Numbered(uint32_t imported) : imported(imported) {}
    Result<MethodId> method_of(uint32_t f) override { return MethodId(f - imported); }
    uint32_t imported;
  } methods(info->imported_functions);
  std::vector<uint32_t> type_ids;
  for (uint32_t i = 0; i < info->types.size(); ++i) type_ids.push_back(i + 1);
  auto bounds = wasm::Bounds::kGuarded;
  if (info->memory) bounds = wasm::bounds_of(*info->memory, wasm::kMaxPages, bounds);
  wasm::BuildContext context{*info, layout, bounds, methods, type_ids};
  Functions made;
  context.inverted = &made.inverted;
  made.first = info->imported_functions;
  uint64_t key = wasm::module_key(info->bytes);
  for (uint32_t f = info->imported_functions; f < info->functions.size(); ++f) {
    bool too_much = false;
    auto describe = [&](FunctionBuilder b) -> Result<jit::Function> {
      if (Status s = wasm::build_function(context, f, b); !s) return s.error();
      too_much = BuilderAccess::too_much(b);
      if (Status s = b.status(); !s) return s.error();
      return BuilderAccess::finish(b);
    };
    Signature signature = wasm::compiled_signature(info->type_of(f));
    Result<jit::Function> built = describe(FunctionBuilder(signature, info->name_of(f)));
    if (too_much) built = describe(BuilderAccess::begin_plain(signature, info->name_of(f)));
    if (!built) return built.error();
    made.module.functions.push_back(std::move(*built));
    made.keys.push_back({key, f});
    made.bytes.push_back(info->functions[f].body_end - info->functions[f].body_begin);
    made.begins.push_back(info->functions[f].body_begin);
  }
  made.read_seconds = read_seconds;
  made.describe_seconds = watch.lap();
  return made;
}

Result<Functions> read_text(const std::string& file, const std::vector<uint8_t>& bytes) {
  Stopwatch watch;
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  Result<jit::Module> m = jit::parse_module(text, {.file = file});
  if (!m) return m.error();
  Functions made;
  made.module = std::move(*m);
  made.read_seconds = watch.lap();
  return made;
}

// Verifies functions that a host described, or that were read as text.
Status verify(const jit::Module& m, bool described) {
  if (!described) return jit::verify(m);
  for (const jit::Function& f : m.functions) {
    if (Status s = jit::verify_built(f); !s) return s;
  }
  return jit::verify_calls(m);
}

}  // namespace

Result<Functions> read_functions(const std::string& file, const std::vector<uint8_t>& bytes) {
  bool is_wasm = bytes.size() >= 4 && std::memcmp(bytes.data(), kWasmMagic, 4) == 0;
  // The text form's reader names the file itself, and the line.
  const std::string name = is_wasm ? file + ": " : "";
  Result<Functions> f = is_wasm ? read_wasm(bytes) : read_text(file, bytes);
  if (!f) return Error{ErrorCode::kCorruptInput, name + f.error().message};
  Stopwatch watch;
  if (Status s = verify(f->module, is_wasm); !s) {
    return Error{ErrorCode::kCorruptInput, file + ": " + s.error().message};
  }
  f->verify_seconds = watch.lap();
  return f;
}

MethodId find_function(const Functions& f, const std::string& name) {
  if (MethodId m = f.module.find(name); m.valid()) return m;
  uint32_t number = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  bool whole = error == std::errc() && end == name.data() + name.size();
  bool known = number >= f.first && number - f.first < f.module.functions.size();
  return whole && known ? MethodId(number - f.first) : MethodId::none();
}

std::string no_function(const Functions& f, const std::string& name) {
  std::vector<std::string> names;
  for (const jit::Function& function : f.module.functions) names.push_back(function.name);
  const std::string meant = did_you_mean(name, names);
  return "no function \"" + name + "\"" +
         (meant.empty() ? "; --list names the functions of the file" : meant);
}

namespace {

uint64_t to_count(double d) { return static_cast<uint64_t>(std::clamp(d, 0.0, 0x1p63)); }

// Returns what a profile says of a function, or null.
const MethodProfile* find_profile(const Profile& p, const Functions& fs, MethodId m) {
  for (const auto& [key, method] : p.methods) {
    bool same = fs.keys.empty() ? method.name == fs.module.functions[m.index()].name
                                : key == fs.keys[m.index()];
    if (same) return &method;
  }
  return nullptr;
}

// Keys of callees are (module key, function index in `value`).
std::optional<MethodId> callee_of(const Functions& fs, const TableKey& key) {
  for (uint32_t i = 0; i < fs.keys.size(); ++i) {
    bool same = fs.keys[i].module_key == key.module_key && fs.keys[i].function_index == key.value;
    if (same) return MethodId(i);
  }
  return std::nullopt;
}

jit::SiteTargets targets_at(const Functions& fs, const MethodProfile& p, SiteId site) {
  jit::SiteTargets seen{site, 0, {}};
  if (auto e = p.estimate(SlotKind::kCallTarget, site)) seen.total = to_count(e->total);
  const Table* table = p.table(SlotKind::kCallTarget, site);
  if (table == nullptr) return seen;
  for (const auto& [key, entry] : *table) {
    auto m = callee_of(fs, key);
    if (!m) continue;
    const jit::Function& f = fs.module.functions[m->index()];
    seen.targets.push_back({*m, entry.estimate, nullptr, f.signature(), f.name});
  }
  std::sort(seen.targets.begin(), seen.targets.end(),
            [](const auto& a, const auto& b) { return a.count > b.count; });
  return seen;
}

}  // namespace

void note_own_probes(Functions& fs, const Profile& profile, double runs) {
  for (uint32_t n = 0; n < fs.module.functions.size(); ++n) {
    jit::Function& f = fs.module.functions[n];
    jit::LoopForest forest = jit::find_loop_forest(f);
    jit::place_param_probes(f, forest);
    jit::place_select_probes(f, forest);
    jit::place_branch_probes(f, forest);
    const MethodProfile* p = find_profile(profile, fs, MethodId(n));
    if (p == nullptr || p->schema.cfg_hash != f.cfg_hash) continue;
    std::vector<jit::SelectTurns> seen;
    for (SiteId site : jit::turn_sites(f)) seen.push_back(tiering::turns_at(*p, site));
    jit::note_turns(f, seen);
    jit::note_counts(f, tiering::counts_in(*p, f, runs));
  }
}

Result<jit::BodyProfile> body_profile(const Functions& fs, MethodId m, const Profile& profile) {
  jit::BodyProfile body;
  const MethodProfile* p = find_profile(profile, fs, m);
  if (p == nullptr) return body;
  const jit::Function& f = fs.module.functions[m.index()];
  if (p->schema.cfg_hash != f.cfg_hash) {
    return Error{ErrorCode::kInvalidInput, "the profile of " + f.name + " belongs to other code"};
  }
  double estimates = 0, counts = 0;
  for (SiteId s = 1; s <= f.block_sites; ++s) {
    auto e = p->estimate(SlotKind::kBlock, s);
    body.blocks.push_back(e ? to_count(e->total) : 0);
    estimates += static_cast<double>(body.blocks.back());
    counts += static_cast<double>(p->count(SlotKind::kBlock, s).value_or(0));
  }
  if (estimates > 0 && counts > 0) body.sample = estimates / counts;
  for (const Slot& slot : p->schema.slots) {
    if (slot.kind == SlotKind::kCallTarget) body.targets.push_back(targets_at(fs, *p, slot.site));
  }
  return body;
}

Result<std::unique_ptr<CompileWorld>> CompileWorld::create(const Functions& functions,
                                                           const Profile* profile,
                                                           uint64_t code_budget, bool packed) {
  std::unique_ptr<CompileWorld> w(new CompileWorld(functions, profile));
  auto count = static_cast<uint32_t>(functions.module.functions.size());
  uint32_t data = jit::StubTable::data_bytes(count);
  auto space =
      jit::CodeSpace::create({.code_budget = code_budget, .data_bytes = data, .packed = packed});
  if (!space) return space.error();
  w->space_ = std::move(*space);
  auto routines = jit::Routines::create(*w->space_, &no_slow_path, nullptr, nullptr, nullptr, {},
                                        {&no_leaving, &no_leaving});
  if (!routines) return routines.error();
  w->routines_ = std::move(*routines);
  auto stubs =
      jit::StubTable::create(*w->space_, w->space_->data(), count, w->routines_->entry_slow(),
                             jit::StubTable::Countdown::kPerThread);
  if (!stubs) return stubs.error();
  w->stubs_ = std::move(*stubs);
  for (uint32_t i = 0; i < count; ++i) {
    if (Status s = w->stubs_->ensure(MethodId(i)); !s) return s.error();
  }
  w->helpers_.trap_exit = w->routines_->trap_exit();
  w->helpers_.leave = w->routines_->leave();
  w->helpers_.ask_to_leave = w->routines_->ask_to_leave();
  w->helpers_.loop_slow_plain = loop_slow_plain();
  w->helpers_.loop_slow_instrumented = loop_slow_instrumented();
  w->helpers_.scalable_count64 = w->routines_->scalable_count64();
  w->helpers_.scalable_count32 = w->routines_->scalable_count32();
  for (uint32_t i = 0; i < jit::kProbeRoutines; ++i) {
    w->helpers_.probes[i] = w->routines_->probe(static_cast<jit::ProbeRoutine>(i));
  }
  return w;
}

jit::CallTarget CompileWorld::target(MethodId callee) {
  return {jit::CallTarget::Kind::kStub, stubs_->stub(callee)};
}

jit::CompileInput CompileWorld::input(MethodId m) {
  return {module_.functions[m.index()], m, helpers_, *this, *space_, lines};
}

Result<std::unique_ptr<jit::Code>> CompileWorld::baseline(MethodId m,
                                                          const jit::BaselineRequest& r) {
  return jit::compile_baseline(input(m), r);
}

Result<std::unique_ptr<jit::Code>> CompileWorld::optimized(MethodId m, jit::OptimizeRequest r,
                                                           bool inlining) {
  std::vector<jit::SiteTargets> targets(r.targets.begin(), r.targets.end());
  give_addresses(targets);
  r.targets = targets;
  if (inlining) r.inlinees = this;
  return jit::compile_optimized(input(m), r);
}

void CompileWorld::give_addresses(std::vector<jit::SiteTargets>& sites) const {
  for (jit::SiteTargets& site : sites) {
    for (jit::TargetShare& t : site.targets) t.entry = stubs_->stub(t.method);
  }
}

const jit::Inlinee* CompileWorld::find(MethodId m) {
  auto [at, fresh] = inlinees_.try_emplace(m.index());
  if (!fresh) return &at->second;
  at->second.function = module_.functions[m.index()];
  if (profile_ == nullptr) return &at->second;
  // A profile of other code is ignored.
  if (auto p = body_profile(functions_, m, *profile_); p.ok()) at->second.profile = std::move(*p);
  give_addresses(at->second.profile.targets);
  return &at->second;
}

std::string CompileWorld::name_of(const void* address) const {
  if (MethodId m = stubs_->method_of(address); m.valid()) { return name(m); }
  if (address == helpers_.trap_exit) return "trap_exit";
  if (address == helpers_.leave) return "leave";
  if (address == helpers_.loop_slow_plain) return "loop_slow_plain";
  if (address == helpers_.loop_slow_instrumented) return "loop_slow_instrumented";
  if (address == helpers_.scalable_count64 || address == helpers_.scalable_count32) {
    return "scalable_count";
  }
  static constexpr const char* kProbeNames[jit::kProbeRoutines] = {
      "probe_target", "probe_value", "probe_log", "loop_enter", "loop_leave", "loop_arrive"};
  for (uint32_t i = 0; i < jit::kProbeRoutines; ++i) {
    if (address == helpers_.probes[i]) return kProbeNames[i];
  }
  return "";
}

}  // namespace uptier::tools
