// Runtime::walk and call_site: the list is the chain of calls, whatever code each of them is in.
#include <gtest/gtest.h>

#include <ucontext.h>

#include <algorithm>
#include <array>

#include "jit/code/code.h"
#include "tests/support/workshop.h"
#include "tiering/model/thread.h"

namespace uptier::test::stack_walk_test {
namespace {

using Sites = std::vector<CallSite>;

const Signature kTwo{{kLong, kLong}, kLong};

std::string text(std::span<const CallSite> sites) {
  std::string s;
  for (const CallSite& c : sites) {
    s += std::to_string(c.method.index()) + "@" + std::to_string(c.location) + " ";
  }
  return s;
}

// Four methods that call each other in turn down to 0, each in its own way: directly, in a loop,
// indirectly, through a host function. The last one walks the stack if it is told to.
class Ring {
 public:
  // With `calls_entries`, every other nested call calls an entry instead of invoke.
  Ring(const Options& o, bool calls_entries) : shop_(o), calls_entries_(calls_entries) {
    here_ = this;
    ids_.push_back(shop_.add("direct", kTwo, [this](FunctionBuilder& b) { direct(b); }));
    ids_.push_back(shop_.add("loop", kTwo, [this](FunctionBuilder& b) { loop(b); }));
    ids_.push_back(shop_.add("indirect", kTwo, [this](FunctionBuilder& b) { indirect(b); }));
    ids_.push_back(shop_.add("nested", kTwo, [this](FunctionBuilder& b) { nested(b); }));
  }
  ~Ring() { here_ = nullptr; }

  Runtime& runtime() { return *shop_.runtime; }

  // Calls method k with n, and computes the expected chain of calls.
  void run(uint32_t k, uint64_t n, bool look) {
    expected_.clear();
    for (uint64_t at = 0; at <= n; ++at) {
      uint32_t m = (k + at) % 4;
      expected_.insert(expected_.begin(), {ids_[m], 100 * m + (at == n ? 1 : 2)});
    }
    Outcome o = shop_.call(ids_[k], {n, look});
    ASSERT_TRUE(o.ok()) << trap_text(o.trap.code);
  }

  uint64_t looked = 0;
  std::string wrong;  // the first list that differs
  uint64_t sampled_wrong = 0, uncertain = 0;
  std::string wrong_sample;  // the first stack sample that differs

 private:
  void direct(FunctionBuilder& b) {
    begin(b, 0);
    Value args[] = {next_, b.param(1)};
    b.ret(b.call(ids_[1], kTwo, args));
  }

  void loop(FunctionBuilder& b) {
    begin(b, 1);
    Variable i = b.declare(kLong), sum = b.declare(kLong);
    b.def(i, b.i64(0));
    b.def(sum, b.i64(0));
    Block header = b.create_block(), done = b.create_block();
    b.jump(header);
    b.switch_to(header);
    b.loop_header();
    Value args[] = {next_, b.param(1)};
    b.def(sum, b.binary(Opcode::kAdd, b.use(sum), b.call(ids_[2], kTwo, args)));
    b.def(i, b.binary(Opcode::kAdd, b.use(i), b.i64(1)));
    b.branch(b.binary(Opcode::kLtS, b.use(i), b.i64(3)), header, done);
    b.seal(header);
    b.seal(done);
    b.switch_to(done);
    b.ret(b.use(sum));
  }

  void indirect(FunctionBuilder& b) {
    begin(b, 2);
    Value args[] = {next_, b.param(1)};
    b.ret(b.call_indirect(b.ref(shop_.runtime->entry_address(ids_[3])), kTwo, args, kCallMayTrap));
  }

  void nested(FunctionBuilder& b) {
    begin(b, 3);
    b.ret(b.call_host(host_function("nest", nest), {next_, b.param(1)}, kCallMayTrap));
  }

  // Returns 0 if n is 0, after a walk if m is not 0; otherwise goes on with n - 1.
  void begin(FunctionBuilder& b, uint32_t k) {
    Block last = b.create_block(), more = b.create_block();
    Block looks = b.create_block(), quiet = b.create_block();
    b.branch(b.unary(Opcode::kEqz, b.param(0)), last, more);
    b.seal(last);
    b.seal(more);
    b.switch_to(last);
    b.branch(b.unary(Opcode::kEqz, b.param(1)), quiet, looks);
    b.seal(looks);
    b.seal(quiet);
    b.switch_to(quiet);
    b.ret(b.i64(0));
    b.switch_to(looks);
    b.set_location(100 * k + 1);
    b.ret(b.call_host(host_function("look", look), {b.param(0)}));
    b.switch_to(more);
    b.set_location(100 * k + 2);
    next_ = b.binary(Opcode::kSub, b.param(0), b.i64(1));
  }

  static int64_t look(int64_t n) {
    here_->compare(__builtin_return_address(0));
    return n + 1;
  }

  // Calls through an invoke or through the entry, with some bytes on its stack.
  static int64_t nest(int64_t n, int64_t look) {
    volatile char taken[200];
    taken[n % 100] = 1;
    Ring& r = *here_;
    uint64_t args[] = {static_cast<uint64_t>(n), static_cast<uint64_t>(look)};
    if (r.calls_entries_ && ++r.nests_ % 2 != 0) {
      return r.runtime().entry<int64_t(int64_t, int64_t)>(r.ids_[0])(n, look) + taken[n % 100];
    }
    return static_cast<int64_t>(r.runtime().invoke(r.ids_[0], args).bits) + taken[n % 100];
  }

  void compare(const void* return_address) {
    ++looked;
    std::array<CallSite, 100> all;
    size_t count = runtime().walk(all);
    std::span<const CallSite> got(all.data(), count);
    std::optional<CallSite> caller = Runtime::call_site(return_address);
    std::array<CallSite, 2> two;
    bool right = std::ranges::equal(got, expected_) && caller == expected_[0] &&
                 runtime().walk(two) == std::min<size_t>(2, count) && two[0] == all[0] &&
                 runtime().walk({}) == 0;
    if (!right && wrong.empty()) wrong = "is " + text(got) + "\nnot " + text(expected_);
    compare_sample(got);
  }

  // A sampling signal here finds the same frames, without the unwinder.
  void compare_sample(std::span<const CallSite> walked) {
    ucontext_t machine;
    getcontext(&machine);
    auto& t = *static_cast<tiering::AttachedThread*>(sampler::current_context()->owner);
    sampler::StackRecord r;
    tiering::walk_sampled_thread(&t, &machine, r);
    Sites got;
    for (uint32_t i = 0; i < r.count; ++i) {
      uint64_t pc = sampler::StackRecord::pc_of(r.frames[i]);
      add_bodies(*t.sampled_code.space, pc, got);
    }
    // A frame that host code entered without an invoke cannot be told from one that has returned.
    if (r.gap == sampler::SampleGap::kUncertain) {
      ++uncertain;
      return;
    }
    bool right = std::ranges::equal(got, walked) && r.gap == sampler::SampleGap::kNone &&
                 r.leaf == sampler::SampleLeaf::kHost;
    if (right) return;
    ++sampled_wrong;
    if (!wrong_sample.empty()) return;
    wrong_sample = "is " + text(got) + sampler::sample_leaf_name(r.leaf) + " " +
                   sampler::sample_gap_name(r.gap) + "\nnot " + text(walked);
  }

  // All frames here are callers.
  static void add_bodies(const jit::CodeSpace& space, uint64_t pc, Sites& to) {
    const jit::Code* code = space.owner_of(reinterpret_cast<const void*>(pc));
    if (code == nullptr) return;
    const jit::CallRow* call = code->call_at(reinterpret_cast<const void*>(pc + 1));
    if (call == nullptr) return;
    uint32_t body = call->body, loc = call->loc;
    while (body != 0) {
      to.push_back({code->method_of(body), loc});
      const jit::InlineRow& row = code->tables().inlined[body - 1];
      body = row.parent;
      loc = row.loc;
    }
    to.push_back({code->method(), loc});
  }

  static inline Ring* here_ = nullptr;
  Workshop shop_;
  const bool calls_entries_;
  std::vector<MethodId> ids_;
  Value next_;
  Sites expected_;
  uint64_t nests_ = 0;
};

struct Mode {
  const char* name;
  std::vector<std::pair<const char*, const char*>> options;
  const char* stress = nullptr;  // kind of stress that must happen
  bool inlines = false;          // inlining must happen
};

std::vector<Mode> modes() {
  std::pair<const char*, const char*> never{"policy", "never"}, always{"policy", "always"},
      none{"workers", "0"}, early{"flush_first", "1"};
  return {
      {"baseline", {{"tier", "baseline"}}},
      {"instrumented", {{"tier", "instrumented"}}},
      {"sampled_1", {never, {"interval", "1"}, none}},
      {"sampled_7", {never, {"interval", "7"}, none}},
      {"optimized", {{"tier", "optimized"}}},
      {"automatic", {}},
      {"always",
       {always, none, {"interval", "2"}, early, {"overhead_budget", "0"}, {"measure_rates", "off"}},
       nullptr,
       true},
      {"osr_everywhere", {never, none, {"stress", "osr=all"}}, "osr"},
      {"copies_to_and_fro", {never, none, {"stress", "copy=every:2"}}, "copy"},
      {"versions_to_and_fro", {always, none, early, {"stress", "flip=every:2"}}, "flip"},
      {"values_guessed", {always, none, early, {"stress", "values=all"}}},
      {"guards_fail", {always, none, early, {"stress", "values=all,guard=every:3"}}},
      {"cold_blocks",
       {always,
        none,
        {"interval", "2"},
        early,
        {"deopt_cold", "on"},
        {"cold_samples", "1"},
        {"overhead_budget", "0"},
        {"measure_rates", "off"}},
       nullptr,
       true},
      {"frames_move", {{"tier", "optimized"}, {"stress", "osr_out=all"}}, "osr_out"},
  };
}

class StackWalk : public testing::TestWithParam<Mode> {
 protected:
  void check(bool calls_entries) {
    Options o;
    for (auto [name, value] : GetParam().options) ASSERT_TRUE(o.set(name, value).ok()) << name;
    o.sample_hz = 1000;
    Ring ring(o, calls_entries);
    ThreadScope scope(ring.runtime());
    for (uint32_t round = 0; round < 600 && ring.wrong.empty(); ++round) {
      for (uint32_t k = 0; k < 4; ++k) {
        for (uint64_t n : {0, 1, 2, 3, 5, 9}) ring.run(k, n, false);
        // Only now and then, so that the block that walks is cold, and pruned where the mode says
        // so.
        if (round % 100 == 99) {
          for (uint64_t n : {0, 1, 2, 3, 5, 9}) ring.run(k, n, true);
        }
      }
    }
    EXPECT_EQ(ring.wrong, "");
    EXPECT_EQ(ring.sampled_wrong, 0u) << ring.wrong_sample;
    if (calls_entries) { EXPECT_GT(ring.uncertain, 0u); }
    if (!calls_entries) { EXPECT_LE(ring.uncertain, 6u); }
    EXPECT_EQ(ring.looked, 600u);  // the loops on the way run three rounds
    expect_happened(ring.runtime().report());
  }

 private:
  static void expect_happened(const Report& r) {
    uint32_t most = 0;
    for (const MethodReport& m : r.methods) {
      for (const VersionReport& v : m.versions) most = std::max(most, v.inlined);
    }
    if (GetParam().inlines) { EXPECT_GT(most, 0u); }
    EXPECT_EQ(r.losses.compiles_failed, 0u);
    if (GetParam().stress != nullptr) { EXPECT_GT(stress_count(r, GetParam().stress).forced, 0u); }
  }
};

TEST_P(StackWalk, is_the_chain_of_calls) { check(false); }

TEST_P(StackWalk, is_the_chain_of_calls_where_host_code_calls_entries) { check(true); }

INSTANTIATE_TEST_SUITE_P(Tiers, StackWalk, testing::ValuesIn(modes()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace uptier::test::stack_walk_test
