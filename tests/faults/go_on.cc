// A host recovers when memory comes back. Each allocation in a runtime's life is refused: once,
// permanently from there on, and every second time. Then memory is available again, and everything
// must work as if nothing had happened.
//
// While memory is refused, a call returns the right result or a trap that says there is no code;
// other functions succeed or return kResourceExhausted. The program exits with 1 at the first
// violation.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "uptier/runtime.h"
#include "uptier/uptier.h"

extern "C" long fail_allocations_from(long n, char mode);

using namespace uptier;

namespace {

[[noreturn]] void die(const char* what, long n, char mode) {
  fail_allocations_from(0, 'o');
  std::fprintf(stderr, "%s, with allocation %ld refused (%c)\n", what, n, mode);
  std::exit(1);
}

struct Failing {
  long n;
  char mode;
  void check(bool right, const char* what) const {
    if (!right) die(what, n, mode);
  }
  // Returns whether the status is an error; only the lack of memory is allowed.
  bool refused(const Status& s, const char* what) const {
    check(s.ok() || s.error().code == ErrorCode::kResourceExhausted, what);
    return !s.ok();
  }
};

constexpr uint64_t kRounds = 40;
uint64_t expected(uint64_t n) { return n * (n + 1) / 2; }

// sum(n) = 1 + 2 + ... + n; twice(n) = 2 * sum(n), by a call of sum; the third method is like the
// first.
class Methods : public Host {
 public:
  Status build(MethodId m, FunctionBuilder& b) override {
    if (m == twice) {
      Value half = b.call(sum, {{Type::kI64}, Type::kI64}, std::vector<Value>{b.param(0)});
      b.ret(b.binary(Opcode::kAdd, half, half));
      return {};
    }
    Variable i = b.declare(Type::kI64), total = b.declare(Type::kI64);
    b.def(i, b.i64(0));
    b.def(total, b.i64(0));
    Block loop = b.create_block(), done = b.create_block();
    b.jump(loop);
    b.switch_to(loop);
    b.loop_header();
    b.def(i, b.binary(Opcode::kAdd, b.use(i), b.i64(1)));
    b.def(total, b.binary(Opcode::kAdd, b.use(total), b.use(i)));
    b.branch(b.binary(Opcode::kLtU, b.use(i), b.param(0)), loop, done);
    b.seal(loop);
    b.seal(done);
    b.switch_to(done);
    b.ret(b.use(total));
    return {};
  }

  bool add(Runtime& r, uint32_t number, MethodId& id, const Failing& f) {
    Result<MethodId> added = [&]() -> Result<MethodId> {
      try {
        MethodInfo info{{1, number}, number == 1 ? "twice" : "sum", {{Type::kI64}, Type::kI64}};
        return r.add_method(*this, std::move(info));
      } catch (const std::bad_alloc&) { return Error{ErrorCode::kResourceExhausted, ""}; }
    }();
    f.check(added.ok() || added.error().code == ErrorCode::kResourceExhausted, "add_method");
    if (added) id = *added;
    return added.ok();
  }

  MethodId sum, twice, third;
};

void call(Runtime& r, MethodId m, uint64_t factor, bool must, const Failing& f) {
  for (uint64_t n = 1; n <= kRounds && m.valid(); ++n) {
    uint64_t args[] = {n * 10};
    Outcome o = r.invoke(m, args);
    if (o.ok()) {
      f.check(o.bits == factor * expected(n * 10), "a wrong result");
    } else {
      if (must) {
        std::fprintf(stderr, "trap: %s; error: %s\n", trap_text(o.trap.code),
                     r.error_of(m).c_str());
        die("a call does not run although there is memory", f.n, f.mode);
      }
      f.check(o.trap.code == TrapCode::kNoCode || o.trap.code == TrapCode::kNoThread, "a trap");
    }
  }
}

// The work of a host, as far as memory permits. `must`: memory is available.
void live(Runtime& r, Methods& h, bool must, const Failing& f) {
  Status attached = r.attach();
  f.check(!must || attached.ok(), "attach");
  (void)f.refused(attached, "attach");
  if (!h.sum.valid()) f.check(h.add(r, 0, h.sum, f) || !must, "add sum");
  if (!h.twice.valid() && h.sum.valid()) f.check(h.add(r, 1, h.twice, f) || !must, "add twice");
  f.check(h.add(r, 2, h.third, f) || !must, "add third");
  call(r, h.third, 1, must, f);
  call(r, h.sum, 1, must, f);
  call(r, h.twice, 2, must, f);
  r.flush();
  (void)f.refused(r.set("speedup", "2"), "set");
  MethodId gone[] = {std::exchange(h.third, MethodId::none())};
  f.n % 2 == 0 ? r.remove_methods(gone) : r.retire_methods(gone);
  f.check(!gone[0].valid() || r.entry_address(gone[0]) == nullptr, "a removed method has an entry");
  call(r, h.twice, 2, must, f);
  (void)r.report().text();
  (void)r.loops();
  (void)r.read_log();
  if (attached.ok()) r.detach();
}

// Returns the number of allocations while memory could be refused.
long one_life(const Options& options, const Failing& f) {
  Methods host;
  fail_allocations_from(f.n, f.mode);
  Result<std::unique_ptr<Runtime>> r = Runtime::create(options);
  if (!r) {
    long count = fail_allocations_from(0, 'o');
    f.check(r.error().code == ErrorCode::kResourceExhausted, "create");
    return count;
  }
  live(**r, host, false, f);
  long count = fail_allocations_from(0, 'o');
  live(**r, host, true, f);
  live(**r, host, true, f);
  if (f.n % 3 != 0) return count;
  // Destroying the runtime must work without memory, too.
  fail_allocations_from(1, 'a');
  r->reset();
  fail_allocations_from(0, 'o');
  return count;
}

Options options_of(const char* workers, const char* tier) {
  const std::pair<const char*, const char*> all[] = {
      {"workers", workers},       {"tier", tier},      {"interval", "2"},     {"flush_first", "4"},
      {"loop_flush_first", "64"}, {"compile_ns", "0"}, {"max_methods", "64"}, {"removed_kept", "2"},
      {"measure_rates", "off"}};
  Options o;
  for (const auto& [name, value] : all) {
    if (Status s = o.set(name, value); !s) die(s.error().message.c_str(), 0, 'o');
  }
  return o;
}

}  // namespace

int main(int argc, char** argv) {
  const long most = argc > 1 ? std::atol(argv[1]) : 300;  // lives for each mode and each set of
                                                          // options
  for (const char* tier : {"auto", "instrumented", "optimized"}) {
    for (const char* workers : {"0", "1"}) {
      const Options options = options_of(workers, tier);
      const long count = one_life(options, {0, 'o'});
      std::printf("tier=%s workers=%s: %ld allocations\n", tier, workers, count);
      std::fflush(stdout);
      const long step = std::max(count / most, 1L);
      for (char mode : {'o', 'a', 's'}) {
        for (long n = 1; n <= count; n += step) one_life(options, {n, mode});
      }
    }
  }
  std::puts("all went on");
  return 0;
}
