// The smallest embedding: one method, described to a builder and called until it is optimized.
#include <cstdio>

#include "uptier/runtime.h"

using namespace uptier;

class SumHost : public Host {  // sum(n) = 1 + 2 + ... + n
  Status build(MethodId, FunctionBuilder& b) override {
    Variable i = b.declare(Type::kI64), total = b.declare(Type::kI64);  // both are 0 at first
    Block loop = b.create_block(), done = b.create_block();
    b.jump(loop);

    b.switch_to(loop);
    b.loop_header();  // a running call may move to better code here
    b.def(i, b.binary(Opcode::kAdd, b.use(i), b.i64(1)));
    b.def(total, b.binary(Opcode::kAdd, b.use(total), b.use(i)));
    b.branch(b.binary(Opcode::kLtU, b.use(i), b.param(0)), loop, done);

    b.switch_to(done);
    b.ret(b.use(total));
    return {};
  }
};

int main() try {
  SumHost host;
  Result<std::unique_ptr<Runtime>> runtime = Runtime::create(Options());
  if (!runtime) return 1;
  // Key: module 1, function 0. Signature: takes an i64, returns an i64.
  Result<MethodId> sum = (*runtime)->add_method(host, {{1, 0}, "sum", {{Type::kI64}, Type::kI64}});
  if (!sum) return 1;

  ThreadScope attached(**runtime);
  Outcome last;
  for (uint64_t n = 100; n <= 200000 && last.ok(); n += 100)
    last = (*runtime)->invoke(*sum, {&n, 1});
  if (!last.ok()) return 1;
  std::printf("sum(200000) = %lu\n", last.bits);
  (*runtime)->flush();  // so that the report has the latest counts
  std::fputs((*runtime)->report().text().c_str(), stderr);
  return last.bits == 20000100000 ? 0 : 1;
} catch (...) {  // from the vectors of this program; no function of Runtime throws
  return 1;
}
