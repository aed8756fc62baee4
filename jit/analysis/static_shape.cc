#include "jit/analysis/static_shape.h"

#include "jit/analysis/control_flow.h"
#include "jit/analysis/frequencies.h"
#include "jit/analysis/loops.h"

namespace uptier::jit {

StaticShape static_shape(const Function& f) {
  const ControlFlow flow = analyze_control_flow(f);
  const LoopNest loops = find_loops(f, flow);
  const Frequencies often = estimate_frequencies(f, flow, loops, {});
  StaticShape shape;
  shape.per_call.reserve(f.layout.size());
  for (Block b : f.layout) {
    shape.per_call.push_back(often.at(b));
    shape.in_loop.push_back(loops.depth(b) != 0);
    if (loops.is_header(b)) shape.headers_per_call += often.at(b);
  }
  return shape;
}

}  // namespace uptier::jit
