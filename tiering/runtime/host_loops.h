// HostLoops: what the runtime learns and records about loops of the host's interpreter.
//
//   Thread: any, without the state mutex.
#pragma once

#include <cstdint>

namespace uptier::jit {
struct SlotLaw;
}

namespace uptier::tiering {

struct Engine;
struct Method;
struct Version;

class HostLoops {
 public:
  // `engine` outlives this.
  explicit HostLoops(Engine& engine) : engine_(engine) {}

  // Finds out the loops of a method before its first compilation. Returns whether they are known.
  bool know_loops(Method& m);
  // Records that the interpreter named a loop that the description does not have.
  void report_unknown_loop(Method& m, uint32_t loop, uint32_t loops);
  // Records that enterable code assumes something about a slot that the interpreter's frame
  // violates. Once per version: a loop that stays interpreted comes here again and again.
  void refuse_frame(Method& m, const Version& v, const jit::SlotLaw& broken);

 private:
  Engine& engine_;
};

}  // namespace uptier::tiering
