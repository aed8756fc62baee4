// The frames of the two copies of a body, whose sizes may differ.
#include <gtest/gtest.h>

#include <cstring>

#include "jit/analysis/frame_layout.h"
#include "jit/analysis/liveness.h"
#include "jit/analysis/param_uses.h"
#include "jit/compile/compile.h"
#include "jit/frontend/branch_probes.h"
#include "jit/frontend/select_probes.h"
#include "tests/support/code_machine.h"
#include "tests/support/random_ir.h"
#include "tiering/model/probe_set.h"

namespace uptier::copy_frames_test {
namespace {

class CopyFrames : public ::testing::Test, jit::CallResolver {
 protected:
  std::unique_ptr<jit::Code> compile(const jit::Function& f, const jit::ProbePlan& plan,
                                     Copy copy) {
    jit::Helpers helpers;
    helpers.trap_exit = machine_.routines->trap_exit();
    for (uint32_t i = 0; i < jit::kProbeRoutines; ++i) {
      helpers.probes[i] = machine_.routines->probe(static_cast<jit::ProbeRoutine>(i));
    }
    auto code = jit::compile_baseline({f, MethodId(0), helpers, *this, *machine_.space},
                                      {.copy = copy, .loop_checks = true, .probes = &plan});
    return test::CodeMachine::take(std::move(code));
  }

 private:
  jit::CallTarget target(MethodId) override {
    return {jit::CallTarget::Kind::kStub, machine_.routines->trap_exit()};
  }

  test::CodeMachine machine_;
};

// Tests whether a frame that arrives from the other copy executes `lea rsp, [rbp - frame_size]`
// near the start, after the few instructions that load values which the other copy does not keep.
bool takes_its_frame(const jit::Code& code, uint32_t arrive) {
  constexpr uint32_t kAtMost = 32;
  uint8_t lea[7] = {0x48, 0x8d, 0xa5};
  auto distance = -static_cast<int32_t>(code.tables().frame_size);
  std::memcpy(lea + 3, &distance, sizeof distance);
  const uint8_t* at = static_cast<const uint8_t*>(code.at(arrive));
  for (uint32_t n = 0; n < kAtMost; ++n) {
    if (std::memcmp(at + n, lea, sizeof lea) == 0) return true;
  }
  return false;
}

TEST_F(CopyFrames, are_taken_by_whichever_copy_is_arrived_at) {
  int plain_larger = 0, instrumented_larger = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    jit::Module module =
        test::random_module(seed, {.functions = 1, .statements = 60, .variables = 33, .depth = 3});
    jit::Function& f = module.functions[0];
    jit::LoopForest forest = jit::find_loop_forest(f);
    jit::place_param_probes(f, forest);
    jit::place_select_probes(f, forest);
    jit::place_branch_probes(f, forest);
    tiering::ProbeSet probes(f, tiering::ProbeChoice::from(Options{}));
    if (!probes.plan().has_sites()) continue;
    auto plain = compile(f, probes.plan(), Copy::kPlain);
    auto instrumented = compile(f, probes.plan(), Copy::kInstrumented);
    plain_larger += plain->tables().frame_size > instrumented->tables().frame_size;
    instrumented_larger += plain->tables().frame_size < instrumented->tables().frame_size;
    for (const jit::Code* code : {plain.get(), instrumented.get()}) {
      for (const jit::LoopEntry& loop : code->tables().loops) {
        EXPECT_TRUE(takes_its_frame(*code, loop.arrive_offset)) << "seed " << seed;
      }
    }
  }
  EXPECT_GT(plain_larger, 0);
  EXPECT_GT(instrumented_larger, 0);
}

// Compiles a plain copy first without probes, as before the method is observed, and later with
// them: the frames are the same.
TEST_F(CopyFrames, are_the_same_with_and_without_probes_of_parameters_and_branches) {
  int probed = 0, turning = 0;
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    jit::Module module = test::random_module(
        seed, {.functions = 1, .statements = 60, .variables = 33, .guards = seed % 2 == 0});
    jit::Function& f = module.functions[0];
    jit::FrameLayout before = jit::layout_frame(f, jit::compute_liveness(f));
    auto plain = compile(f, {}, Copy::kPlain);
    jit::LoopForest forest = jit::find_loop_forest(f);
    jit::place_param_probes(f, forest);
    jit::place_branch_probes(f, forest);
    probed += !jit::param_sites(f).empty();
    turning += !jit::turn_sites(f).empty();
    jit::FrameLayout after = jit::layout_frame(f, jit::compute_liveness(f));
    EXPECT_EQ(before.slot, after.slot) << "seed " << seed;
    auto again = compile(f, {}, Copy::kPlain);
    ASSERT_EQ(plain->size(), again->size()) << "seed " << seed;
    EXPECT_EQ(plain->tables().frame_size, again->tables().frame_size) << "seed " << seed;
    EXPECT_EQ(plain->tables().loops, again->tables().loops) << "seed " << seed;
  }
  EXPECT_GT(probed, 100);
  EXPECT_GT(turning, 50);
}

}  // namespace
}  // namespace uptier::copy_frames_test
