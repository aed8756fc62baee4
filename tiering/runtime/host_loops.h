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

  // Learns which loops a method has before its first compilation. Returns whether they are known.
  bool know_loops(Method& m);
  // Records that the interpreter named a loop that the description does not have.
  void report_unknown_loop(Method& m, uint32_t loop, uint32_t loops);
  // Records that code that could be entered assumes a slot to hold what the interpreter's frame does
  // not hold in it. Once a version: a loop that stays interpreted comes here again and again.
  void refuse_frame(Method& m, const Version& v, const jit::SlotLaw& broken);

 private:
  Engine& engine_;
};

}  // namespace uptier::tiering
