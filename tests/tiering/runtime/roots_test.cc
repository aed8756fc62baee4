// Conservative stack scanning by a host's collector (uptier/host.h, "Collectors"): in registers and
// on the native stack it finds every object that compiled code still uses. Uses public headers
// only.
//
// Objects here are 256 bytes each. Compiled code calls `roots_look`, which overwrites and reuses
// every object that no word of the stack points into; so a pointer hidden elsewhere leads to a
// wrong sum. Random bodies hold objects across calls, in loops, as interior pointers, and as
// arguments.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "uptier/runtime.h"

namespace uptier::test::roots_test {
namespace {

constexpr size_t kObjects = 1 << 14, kWords = 32, kApart = 64;  // kApart: words from one object to
                                                                // the next

class Keeper {
 public:
  int64_t make(int64_t seed) {
    look();
    size_t n = 0;
    while (n < begun_ && used_[n]) ++n;
    begun_ = std::max(begun_, n + 1);
    if (begun_ == kObjects) std::abort();
    used_[n] = true;
    for (size_t k = 0; k < kWords; ++k) at(n)[k] = seed * 1000 + static_cast<int64_t>(k);
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(at(n)));
  }
  // Saves the callee-saved registers in this frame, so that the scan sees the callers' values.
  __attribute__((noinline)) void look() {
    __builtin_unwind_init();
    if (collects) look_below();
    asm volatile("");
  }

  bool collects = false;
  const void* stack_base = nullptr;
  uint64_t found_dead = 0;

 private:
  int64_t* at(size_t n) { return memory_ + n * kApart; }

  __attribute__((noinline, no_sanitize("address"))) void look_below() {
    bool seen[kObjects] = {};
    auto begin = reinterpret_cast<uintptr_t>(memory_);
    const auto* word = static_cast<const uintptr_t*>(__builtin_frame_address(0));
    for (; word < stack_base; ++word) {
      uintptr_t offset = *word - begin;
      bool inside = offset < sizeof memory_ && offset / 8 % kApart < kWords;
      if (inside) seen[offset / 8 / kApart] = true;
    }
    for (size_t n = 0; n < begun_; ++n) {
      if (!used_[n] || seen[n]) continue;
      used_[n] = false;
      ++found_dead;
      std::fill_n(at(n), kWords, -0x5eadbeef);
    }
    while (begun_ != 0 && !used_[begun_ - 1]) --begun_;
  }

  size_t begun_ = 0;  // objects used so far
  bool used_[kObjects] = {};
  int64_t memory_[kObjects * kApart];
};

Keeper keeper;
extern "C" int64_t roots_make(int64_t seed) { return keeper.make(seed); }
extern "C" void roots_look() { keeper.look(); }

// ---- Random bodies ----------------------------------------------------------------------------

// Methods take two objects and a number, and call the next method.
const Signature kSignature = {{Type::kI64, Type::kI64, Type::kI64}, Type::kI64};

class Body {
 public:
  Body(FunctionBuilder& b, uint64_t seed, MethodId next) : b_(b), random_(seed), next_(next) {}

  void describe() {
    sum_ = b_.declare(Type::kI64);
    b_.def(sum_, b_.param(2));
    for (unsigned k = 0; k < 6; ++k) {
      objects_.push_back(b_.declare(Type::kI64));
      b_.def(objects_.back(), k < 2 ? b_.param(k) : make());
    }
    for (int k = 0; k < 9; ++k) statement(0);
    b_.ret(b_.use(sum_));
  }

 private:
  size_t below(size_t n) { return random_() % n; }
  Variable object() { return objects_[below(objects_.size())]; }
  Value bin(Opcode op, Value x, Value y) { return b_.binary(op, x, y); }
  Value make() {
    static const HostFunction f = host_function("roots_make", roots_make);
    return b_.call_host(f, {b_.i64(static_cast<int64_t>(below(1000)))});
  }
  void look() {
    static const HostFunction f = host_function("roots_look", roots_look);
    b_.call_host(f, {});
  }
  void add(Value v) { b_.def(sum_, bin(Opcode::kAdd, b_.use(sum_), v)); }
  Value load(Value base, size_t words, Value index = Value::none()) {
    static constexpr uint8_t kFlags[] = {kMemNone, alias_class(1), kMemInvariant};
    auto offset = static_cast<uint32_t>(8 * words);
    return b_.load(Opcode::kLoad, Type::kI64, {base, index, offset, kFlags[below(3)]});
  }

  void statement(int depth) {
    switch (below(depth < 2 ? 9 : 6)) {
      case 0: return b_.def(object(), make());
      case 1: return look();
      case 2: return add(load(b_.use(object()), below(kWords)));
      case 3: {  // an interior pointer
        Value inside = bin(Opcode::kAdd, b_.use(object()), b_.i64(8 * below_signed(16)));
        look();
        add(load(inside, below(16)));
        return add(load(inside, below(16)));
      }
      case 4: return b_.def(object(), b_.use(object()));
      case 5:
        if (!next_.valid()) return look();
        return add(b_.call(next_, kSignature,
                           std::vector<Value>{b_.use(object()), b_.use(object()), b_.i64(3)}));
      case 6: return either(depth);
      default: return loop(depth);
    }
  }
  int64_t below_signed(size_t n) { return static_cast<int64_t>(below(n)); }

  void either(int depth) {
    Block yes = b_.create_block(), no = b_.create_block(), done = b_.create_block();
    b_.branch(b_.convert(Opcode::kWrap, Type::kI32, bin(Opcode::kAnd, b_.use(sum_), b_.i64(1))),
              yes, no);
    for (Block way : {yes, no}) {
      b_.switch_to(way);
      b_.seal(way);
      statement(depth + 1);
      b_.jump(done);
    }
    b_.switch_to(done);
    b_.seal(done);
  }

  // A loop over elements, in steps of 8 or 24 bytes, from the first or the second element on.
  void loop(int depth) {
    Variable i = b_.declare(Type::kI64), row = b_.declare(Type::kI64);
    int64_t first = below_signed(2), step = below(2) == 0 ? 8 : 24;
    b_.def(i, b_.i64(first));
    b_.def(row, b_.use(object()));
    Block head = b_.create_block(), done = b_.create_block();
    b_.jump(head);
    b_.switch_to(head);
    b_.loop_header();
    if (below(2) == 0) look();
    Value at = bin(Opcode::kMul, bin(Opcode::kSub, b_.use(i), b_.i64(first)), b_.i64(step));
    if (below(2) == 0) {
      add(load(bin(Opcode::kAdd, b_.use(row), at), below(8)));
    } else {
      add(load(b_.use(row), below(8), at));
    }
    if (below(2) == 0) look();
    if (below(3) == 0) statement(depth + 1);
    b_.def(i, bin(Opcode::kAdd, b_.use(i), b_.i64(1)));
    Value more = bin(Opcode::kLtS, b_.use(i), b_.i64(first + 2 + below_signed(6)));
    b_.branch(more, head, done);
    b_.seal(head);
    b_.switch_to(done);
    b_.seal(done);
  }

  FunctionBuilder& b_;
  std::mt19937_64 random_;
  MethodId next_;
  Variable sum_;
  std::vector<Variable> objects_;
};

// Method k calls method k + 1.
struct RandomHost : Host {
  uint64_t seed = 0;
  std::vector<MethodId> methods;

  Status build(MethodId m, FunctionBuilder& b) override {
    auto k = static_cast<size_t>(std::ranges::find(methods, m) - methods.begin());
    Body(b, seed * 8 + k, k + 1 < methods.size() ? methods[k + 1] : MethodId::none()).describe();
    return {};
  }
};

struct Mode {
  const char* name;
  std::vector<std::pair<const char*, const char*>> options;
};
const Mode kModes[] = {
    {"baseline", {{"tier", "baseline"}}},
    {"instrumented", {{"tier", "instrumented"}}},
    {"optimized", {{"tier", "optimized"}}},
    {"automatic", {{"policy", "always"}, {"flush_first", "2"}, {"workers", "0"}}},
    {"osr", {{"workers", "0"}, {"stress", "osr=all"}}},
    {"copies", {{"policy", "never"}, {"interval", "1"}, {"stress", "copy=every:3"}}},
    {"out",
     {{"policy", "always"}, {"flush_first", "2"}, {"workers", "0"}, {"stress", "osr_out=every:2"}}},
    {"guards",
     {{"policy", "always"}, {"flush_first", "2"}, {"workers", "0"}, {"stress", "guard=every:5"}}},
    {"values",
     {{"policy", "always"}, {"flush_first", "2"}, {"workers", "0"}, {"stress", "values=all"}}},
};

std::unique_ptr<Runtime> runtime_for(const Mode& mode) {
  Options o;
  for (auto [name, value] : mode.options) {
    Status set = o.set(name, value);
    EXPECT_TRUE(set.ok()) << set.error().message;
  }
  auto r = Runtime::create(o);
  EXPECT_TRUE(r.ok());
  return r.ok() ? std::move(*r) : nullptr;
}

MethodInfo info(uint32_t k, Signature s = kSignature) {
  MethodInfo i;
  i.key = {1, k};
  i.name = "m" + std::to_string(k);
  i.signature = std::move(s);
  return i;
}

// Calls the first of some random methods a few times and returns the results.
__attribute__((noinline)) std::vector<uint64_t> run(const Mode& mode, uint64_t seed) {
  keeper.stack_base = __builtin_frame_address(0);
  RandomHost host;
  host.seed = seed;
  auto runtime = runtime_for(mode);
  ThreadScope attached(*runtime);
  for (uint32_t k = 0; k < 3; ++k) host.methods.push_back(*runtime->add_method(host, info(k)));
  std::vector<uint64_t> results;
  for (uint64_t n = 0; n < 6; ++n) {
    uint64_t args[] = {0, 0, n};
    for (uint64_t& p : std::span(args, 2)) p = static_cast<uint64_t>(roots_make(77));
    Outcome o = runtime->invoke(host.methods[0], args);
    EXPECT_TRUE(o.ok()) << runtime->error_of(host.methods[0]);
    results.push_back(o.bits);
  }
  return results;
}

TEST(Roots, lie_in_registers_and_on_the_stack_in_every_tier) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    keeper.collects = false;
    std::vector<uint64_t> expected = run(kModes[0], seed);
    for (const Mode& mode : kModes) {
      keeper.collects = true;
      keeper.found_dead = 0;
      EXPECT_EQ(run(mode, seed), expected) << "seed " << seed << ", " << mode.name;
      EXPECT_GT(keeper.found_dead, 0u) << "seed " << seed << ", " << mode.name;
    }
    keeper.look();  // frees the objects that the first run left
  }
}

// ---- Parameters that are speculated on --------------------------------------------------------

// The caller makes an object and passes it on without keeping it. Each object has the address of
// the last one, and the callee compares it in a loop, so it gets a version specialized on that
// address.
struct PassingHost : Host {
  MethodId callee;

  Status build(MethodId m, FunctionBuilder& b) override {
    static const HostFunction make = host_function("roots_make", roots_make);
    static const HostFunction look = host_function("roots_look", roots_look);
    if (m != callee) {
      Value args[] = {b.call_host(make, {b.param(0)})};
      b.ret(b.call(callee, {{Type::kI64}, Type::kI64}, args));
      return {};
    }
    Variable i = b.declare(Type::kI64), sum = b.declare(Type::kI64);
    b.def(i, b.i64(0));
    b.def(sum, b.i64(0));
    Block head = b.create_block(), done = b.create_block();
    b.jump(head);
    b.switch_to(head);
    b.loop_header();
    b.call_host(look, {});
    Value high = b.binary(Opcode::kGtU, b.param(0), b.binary(Opcode::kMul, b.use(i), b.i64(99)));
    Value v = b.load(Opcode::kLoad, Type::kI64, {b.param(0), Value::none(), 16});
    Value sum_now = b.binary(Opcode::kAdd, b.use(sum), v);
    b.def(sum, b.select(high, sum_now, b.use(sum)));
    b.def(i, b.binary(Opcode::kAdd, b.use(i), b.i64(1)));
    b.branch(b.binary(Opcode::kLtS, b.use(i), b.i64(20)), head, done);
    b.seal(head);
    b.switch_to(done);
    b.seal(done);
    b.ret(b.use(sum));
    return {};
  }
};

__attribute__((noinline)) void pass_objects() {
  keeper.stack_base = __builtin_frame_address(0);
  PassingHost host;
  auto runtime =
      runtime_for({"", {{"workers", "0"}, {"measure_rates", "off"}, {"value_samples", "16"}}});
  ThreadScope attached(*runtime);
  Signature s = {{Type::kI64}, Type::kI64};
  host.callee = *runtime->add_method(host, info(1, s));
  MethodId caller = *runtime->add_method(host, info(2, s));
  for (uint64_t n = 0; n < 20000; ++n) {
    Outcome o = runtime->invoke(caller, std::vector<uint64_t>{n});
    ASSERT_EQ(o.bits, 20 * (n * 1000 + 2)) << "call " << n;
  }
  bool made = false;
  for (const DecisionRecord& d : runtime->report().decisions) {
    made |= d.reason.find("parameter 1 is") != std::string::npos;
  }
  EXPECT_TRUE(made) << runtime->report().text();
}

TEST(Roots, include_parameters_that_code_takes_to_be_known) {
  keeper.collects = true;
  pass_objects();
}

}  // namespace
}  // namespace uptier::test::roots_test
