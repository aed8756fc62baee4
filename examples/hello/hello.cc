// The smallest embedding: one method, described by a builder, called until it is optimized.
#include <cstdio>
#include <new>

#include "uptier/runtime.h"

using namespace uptier;

// Describes `sum(n) = 1 + 2 + ... + n`. Variables stand for what the body assigns; the builder
// finds out where values meet.
class SumHost : public Host {
 public:
  Status build(MethodId, FunctionBuilder& b) override {
    Variable i = b.declare(Type::kI64);
    Variable total = b.declare(Type::kI64);
    b.def(i, b.i64(0));
    b.def(total, b.i64(0));
    Block loop = b.create_block();
    Block done = b.create_block();
    b.jump(loop);

    b.switch_to(loop);
    b.loop_header();  // the runtime may change copies and tiers here
    b.def(i, b.binary(Opcode::kAdd, b.use(i), b.i64(1)));
    b.def(total, b.binary(Opcode::kAdd, b.use(total), b.use(i)));
    b.branch(b.binary(Opcode::kLtU, b.use(i), b.param(0)), loop, done);
    b.seal(loop);
    b.seal(done);

    b.switch_to(done);
    b.ret(b.use(total));
    return {};
  }
};

int main() try {
  Result<std::unique_ptr<Runtime>> runtime = Runtime::create(Options());
  if (!runtime) {
    std::fprintf(stderr, "%s\n", runtime.error().message.c_str());
    return 1;
  }
  SumHost host;
  MethodInfo info{{/*module_key=*/1, /*function_index=*/0}, "sum", {{Type::kI64}, Type::kI64}};
  Result<MethodId> sum = (*runtime)->add_method(host, info);
  if (!sum) return 1;

  ThreadScope attached(**runtime);
  uint64_t last = 0;
  for (uint64_t n = 1; n <= 2000; ++n) {
    uint64_t args[] = {n * 100};
    Outcome o = (*runtime)->invoke(*sum, args);
    if (!o.ok()) {
      std::fprintf(stderr, "%s\n", trap_text(o.trap.code));
      return 1;
    }
    last = o.bits;
  }
  std::printf("sum(200000) = %llu\n", static_cast<unsigned long long>(last));

  (*runtime)->flush();
  std::fputs((*runtime)->report().text().c_str(), stderr);
  return last == 20000100000 ? 0 : 1;
} catch (const std::bad_alloc&) {  // of this program's own: the library lets none out
  std::fputs("memory is refused\n", stderr);
  return 1;
}
