// Passes: with any counts of a profile, each pass of the optimizing compiler leaves a function that
// the verifier accepts, and the final functions give the original answers, unless a speculation
// fails, which cannot be observed here.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "jit/analysis/known_counts.h"
#include "jit/frontend/attach_deopts.h"
#include "jit/ir/print.h"
#include "jit/opt/optimize.h"
#include "jit/opt/osr_entry.h"
#include "jit/opt/passes.h"
#include "jit/opt/specialize_memcpy.h"
#include "jit/opt/uncommon_traps.h"
#include "jit/opt/value_speculation.h"
#include "jit/probes/probe_law.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/compare.h"
#include "tests/support/random_profiles.h"

namespace uptier::fuzz {
namespace {

constexpr int kCalls = 4;  // of each function

// Profiles of bodies: none, all blocks equal, real counts, or random counts. Targets of indirect
// calls are always random.
class Profiles {
 public:
  Profiles(const jit::Module& module, const jit::Interpreter& ran, test::Random& random)
      : module_(module), ran_(ran), random_(random), kind_(random.below(4)) {}

  jit::BodyProfile of(MethodId m, const jit::Function& f) {
    jit::BodyProfile p;
    if (kind_ == 0) return p;
    p.targets = test::any_targets(f, module_, random_, [](MethodId to) {
      return reinterpret_cast<const void*>(jit::Interpreter::address_of(to));
    });
    auto seen = ran_.site_counts(m);
    for (uint32_t b = 0; b < f.block_sites; ++b) {
      uint64_t real = b < seen.size() ? seen[b] * 100 : 0;
      p.blocks.push_back(kind_ == 1   ? 1000
                         : kind_ == 2 ? real
                                      : random_.next() >> random_.below(64));
    }
    return p;
  }

 private:
  const jit::Module& module_;
  const jit::Interpreter& ran_;
  test::Random& random_;
  size_t kind_;
};

// Offers every function of a module for inlining.
class Bodies final : public jit::InlineeSource {
 public:
  Bodies(const jit::Module& module, Profiles& profiles, bool prune)
      : module_(module), profiles_(profiles), prune_(prune) {}

  const jit::Inlinee* find(MethodId m) override {
    auto& known = known_[m.index()];
    if (known == nullptr) {
      const jit::Function& f = module_.functions[m.index()];
      known =
          std::make_unique<jit::Inlinee>(jit::Inlinee{f, profiles_.of(m, f), false, prune_, {}});
    }
    return known.get();
  }

 private:
  const jit::Module& module_;
  Profiles& profiles_;
  bool prune_;
  std::map<uint32_t, std::unique_ptr<jit::Inlinee>> known_;
};

bool has_call_states(const jit::Function& f) {
  return std::ranges::any_of(f.layout, [&](Block b) {
    const auto& insts = f.block(b).insts;
    return std::ranges::any_of(insts, [&](jit::InstId i) { return is_call_state(f.inst(i)); });
  });
}

// Tests whether two lists share a part. Lists are changed in place, so a change to one would also
// change the other.
bool shares_lists(const jit::Function& f) {
  std::vector<jit::ValueList> all;
  for (Block b : f.layout) {
    all.push_back(f.block(b).params);
    for (jit::InstId i : f.block(b).insts) {
      all.push_back(f.inst(i).args);
      for (const jit::Edge& e : f.edges_of(f.inst(i))) all.push_back(e.args);
    }
  }
  std::erase_if(all, [](const jit::ValueList& l) { return l.size == 0; });
  std::ranges::sort(all, {}, &jit::ValueList::at);
  return std::ranges::adjacent_find(all, [](const jit::ValueList& a, const jit::ValueList& b) {
           return a.at + a.size > b.at;
         }) != all.end();
}

// Reports the pass that broke a rule, and its input.
class Verifier final : public jit::PassObserver {
 public:
  explicit Verifier(const jit::Function& f) : before_(jit::to_text(f)) {}

  void after(std::string_view pass, const jit::Function& f) override {
    if (has_call_states(f)) return;  // the verifier does not know these
    jit::Function left = f;
    // Code after an inlined body that never returns is removed by the next simplify_cfg.
    jit::remove_unreachable(left);
    Status s = jit::verify(left, jit::Stage::kTransformed);
    if (!s.ok()) {
      std::fprintf(stderr, "%sbroken by %s: %s\n", before_.c_str(), std::string(pass).c_str(),
                   s.error().message.c_str());
    }
    UPTIER_FUZZ_CHECK(s.ok());
    bool shares = shares_lists(left);
    if (shares) {
      std::fprintf(stderr, "%slists are shared after %s\n", before_.c_str(),
                   std::string(pass).c_str());
    }
    UPTIER_FUZZ_CHECK(!shares);
  }

 private:
  std::string before_;
};

// The minimum and maximum that probes saw, by method and site.
class Watcher final : public jit::InterpretObserver {
 public:
  void probe(MethodId m, const jit::Inst& i, uint64_t seen) override {
    auto v = static_cast<int64_t>(seen);
    auto [at, fresh] = ends_.try_emplace({m.index(), i.aux}, v, v);
    at->second = {std::min(at->second.first, v), std::max(at->second.second, v)};
  }
  std::optional<jit::SiteValues> of(MethodId m, SiteId site) const {
    auto at = ends_.find({m.index(), site});
    if (at == ends_.end()) return std::nullopt;
    return jit::SiteValues{site, at->second.first, at->second.second};
  }

 private:
  std::map<std::pair<uint32_t, SiteId>, std::pair<int64_t, int64_t>> ends_;
};

// Returns guesses that are right at every observed probe, or arbitrary ones.
std::vector<jit::SiteValues> guess(MethodId m, const jit::Function& f, const Watcher& seen,
                                   test::Random& random) {
  std::vector<jit::SiteValues> guesses;
  bool anything = random.chance(20);
  for (jit::InstId id : jit::value_probes(f)) {
    auto holds = seen.of(m, f.inst(id).aux);
    if (holds && !anything) {
      guesses.push_back(*holds);
      continue;
    }
    auto least = static_cast<int64_t>(random.below(random.chance(50) ? 5 : 40)) - 2;
    bool one = random.chance(50);
    guesses.push_back({f.inst(id).aux, least, one ? least : least + 200});
  }
  return guesses;
}

// Makes the guards of a function, and some that a profile suggests, exit to frames.
void speculate(jit::Function& f, const jit::DeoptContext& c, const jit::BodyProfile& profile,
               std::span<const jit::SiteValues> guesses, LoopId entered, test::Random& random,
               Verifier& verifier) {
  jit::attach_deopts(f, c, random.chance(20));
  if (random.chance(50)) jit::value_speculation(f, c, guesses, entered);
  verifier.after("value_speculation", f);
  // Code that can only be reached through a later entry has not been reached so far.
  if (random.chance(50)) jit::uncommon_traps(f, c, {profile.blocks, {}, entered});
  if (!entered.valid()) verifier.after("uncommon_traps", f);
}

// The locations of values in the frames of a function.
struct Frames {
  explicit Frames(const jit::Function& f)
      : live(jit::compute_liveness(f)),
        layout(jit::layout_frame(f, live)),
        context{live, layout, jit::count_guards(f)} {}
  jit::Liveness live;
  jit::FrameLayout layout;
  jit::DeoptContext context;
};

// Makes the version of a function that is entered at a loop, by a frame of baseline code or of the
// host. It is not run here.
void enter(const jit::Function& built, const jit::BodyProfile& profile, test::Random& random) {
  if (built.loop_count == 0) return;
  LoopId loop(static_cast<uint32_t>(random.below(built.loop_count)));
  Verifier verifier(built);
  Frames frames(built);
  jit::Function f = built;
  if (random.chance(60)) { speculate(f, frames.context, profile, {}, loop, random, verifier); }
  if (random.chance(50)) {
    auto entered = jit::enter_from_host(f, loop, frames.live, profile.blocks);
    if (!entered.ok()) return;
    f = std::move(*entered);
  } else {
    auto entered = jit::enter_at_loop(f, loop, frames.live, frames.layout, profile.blocks);
    UPTIER_FUZZ_CHECK(entered.ok());
    f = std::move(entered->function);
  }
  verifier.after("enter", f);
  jit::optimize(f, {.counts = profile.blocks}, &verifier);
}

jit::Module optimized(const jit::Module& built, Profiles& profiles, const Watcher& seen,
                      test::Random& random) {
  jit::Module module = built;
  bool inlines = random.chance(70), speculates = random.chance(40);
  Bodies bodies(built, profiles, speculates && random.chance(40));
  for (uint32_t m = 0; m < built.functions.size(); ++m) {
    jit::Function& f = module.functions[m];
    jit::BodyProfile profile = profiles.of(MethodId(m), f);
    Verifier verifier(built.functions[m]);
    Frames frames(built.functions[m]);
    auto guesses = guess(MethodId(m), f, seen, random);
    if (speculates) {
      speculate(f, frames.context, profile, guesses, LoopId::none(), random, verifier);
    }
    if (speculates && inlines) jit::attach_call_states(f, built.functions[m], frames.context);
    if (random.chance(50)) {
      jit::specialize_memcpy(f, guesses);
      verifier.after("specialize_memcpy", f);
    }
    jit::optimize(f,
                  {.self = MethodId(m),
                   .counts = profile.blocks,
                   .targets = profile.targets,
                   .source = inlines ? &bodies : nullptr,
                   .speculates = inlines && speculates},
                  &verifier);
  }
  return module;
}

// Keeps the function as the pass with a number left it, or the last pass.
class StateAfter final : public jit::PassObserver {
 public:
  explicit StateAfter(size_t pass) : left_(pass) {}
  void after(std::string_view pass, const jit::Function& f) override {
    if (done_) return;
    pass_ = pass;
    state = f;
    done_ = left_-- == 0;
  }
  const std::string& pass() const { return pass_; }
  jit::Function state;

 private:
  size_t left_;
  bool done_ = false;
  std::string pass_;
};

// The law of block probes (jit/probes/probe_law.h) holds after a pass, in calls that end without a trap.
void check_weights(const jit::Module& built, Profiles& profiles, test::Random& random,
                   test::Scratch& scratch) {
  const size_t pass = random.below(50);
  jit::Module changed = built;
  jit::BlockSet unknown = jit::no_blocks(built);
  Bodies bodies(built, profiles, false);
  std::string name;
  for (uint32_t m = 0; m < built.functions.size(); ++m) {
    jit::Function f = built.functions[m];
    jit::BodyProfile profile = profiles.of(MethodId(m), f);
    StateAfter then(pass);
    jit::optimize(f,
                  {.self = MethodId(m),
                   .counts = profile.blocks,
                   .targets = profile.targets,
                   .source = random.chance(80) ? &bodies : nullptr},
                  &then);
    changed.functions[m] = std::move(then.state);
    jit::add_unknown_blocks(changed.functions[m], MethodId(m), unknown);
    name = then.pass();
  }
  for (uint32_t m = 0; m < built.functions.size(); ++m) {
    std::vector<uint64_t> args = random_arguments(built.functions[m].signature(), scratch, random);
    jit::Interpreter before(built, interpret_options(scratch));
    jit::Interpreter after(changed, interpret_options(scratch));
    if (test::expected_of(before, MethodId(m), args, scratch).answer.trap != TrapCode::kNone)
      continue;
    (void)test::expected_of(after, MethodId(m), args, scratch);
    const jit::ProbeLaw law = jit::check_probe_law(jit::block_executions(before, built),
                                                   jit::block_executions(after, built), unknown);
    if (!law.holds) {
      std::fprintf(stderr, "%safter %s, %s: %s\n", jit::to_text(built).c_str(), name.c_str(),
                   built.functions[law.method.index()].name.c_str(), law.text().c_str());
    }
    UPTIER_FUZZ_CHECK(law.holds);
  }
}

// Notes random counts, about which the interpreter knows nothing.
void know_counts(jit::Module& module, test::Random& random) {
  for (jit::Function& f : module.functions) {
    std::vector<jit::KnownCount> known;
    for (SiteId site : jit::asked_counts(f)) {
      known.push_back({site, random.next() >> random.below(64)});
    }
    jit::note_counts(f, known);
  }
}

// Calls every function; returns the effects.
std::vector<test::Expected> answers(const jit::Module& module, jit::Interpreter& interpreter,
                                    uint64_t seed, test::Scratch& scratch) {
  test::Random random(seed);
  std::vector<test::Expected> all;
  for (uint32_t m = 0; m < module.functions.size(); ++m) {
    const Signature& s = module.functions[m].signature();
    for (int n = 0; n < kCalls; ++n) {
      std::vector<uint64_t> args = random_arguments(s, scratch, random);
      all.push_back(test::expected_of(interpreter, MethodId(m), args, scratch));
    }
  }
  return all;
}

bool same(Type result, const test::Expected& want, const test::Expected& got) {
  bool trapped = want.answer.trap != TrapCode::kNone;
  return want.answer.trap == got.answer.trap && want.bytes == got.bytes &&
         want.notes == got.notes &&
         (trapped || test::same_value(result, want.answer.bits, got.answer.bits));
}

void check(const jit::Module& built, const std::vector<test::Expected>& want,
           const std::vector<test::Expected>& got) {
  for (size_t n = 0; n < want.size(); ++n) {
    const jit::Function& f = built.functions[n / kCalls];
    if (got[n].answer.trap == TrapCode::kGuardFailed) continue;
    bool ok = same(f.signature().result, want[n], got[n]);
    if (!ok) {
      Type result = f.signature().result;
      std::fprintf(stderr, "%s%s: %s, not %s\n", jit::to_text(built).c_str(), f.name.c_str(),
                   test::answer_text(result, got[n].answer).c_str(),
                   test::answer_text(result, want[n].answer).c_str());
    }
    UPTIER_FUZZ_CHECK(ok);
  }
}

}  // namespace

std::vector<std::string> seeds() { return {"a program is a number"}; }

void feed(const std::string& input) {
  uint64_t seed = 0xcbf29ce484222325;
  for (char c : input) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  test::Random random(seed);
  test::RandomOptions options{.functions = 1 + static_cast<int>(random.below(4)),
                              .statements = 5 + static_cast<int>(random.below(60)),
                              .variables = 2 + static_cast<int>(random.below(20)),
                              .depth = 1 + static_cast<int>(random.below(4)),
                              .traps = random.chance(60),
                              .hosts = random.chance(60),
                              .guards = random.chance(40),
                              .odd = random.chance(75),
                              .counts = random.chance(40),
                              .wide = random.chance(70)};
  jit::Module built = test::random_module(random.next(), options);
  if (Status s = jit::verify(built); !s.ok()) {
    std::fprintf(stderr, "%sthe program is none: %s\n", jit::to_text(built).c_str(),
                 s.error().message.c_str());
    UPTIER_FUZZ_CHECK(s.ok());
  }
  know_counts(built, random);
  static test::Scratch scratch;
  uint64_t arguments = random.next();
  Watcher seen;
  jit::InterpretOptions watched = interpret_options(scratch);
  watched.observer = &seen;
  jit::Interpreter oracle(built, watched);
  std::vector<test::Expected> want = answers(built, oracle, arguments, scratch);
  if (options.wide && random.chance(50)) {
    for (jit::Function& f : built.functions) test::note_any_turns(f, random);
  }
  Profiles profiles(built, oracle, random);
  jit::Module module = optimized(built, profiles, seen, random);
  for (uint32_t m = 0; m < built.functions.size(); ++m) {
    enter(built.functions[m], profiles.of(MethodId(m), built.functions[m]), random);
  }
  // Known counts decide branches, and the interpreter does not know them.
  if (!options.counts && random.chance(30)) check_weights(built, profiles, random, scratch);
  jit::Interpreter again(module, interpret_options(scratch));
  check(built, want, answers(module, again, arguments, scratch));
}

}  // namespace uptier::fuzz
