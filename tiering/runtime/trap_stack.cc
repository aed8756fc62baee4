#include "tiering/runtime/trap_stack.h"

#include <optional>

#include "jit/code/code.h"
#include "jit/code/code_readers.h"
#include "sampler/context.h"
#include "tiering/runtime/engine.h"

namespace uptier::tiering {
namespace {

// Where a frame was: a body of its code, and the location in it.
struct Place {
  uint32_t body = 0;
  uint32_t location = 0;
};

// `pc` lies inside of the call, exit or trapping instruction.
std::optional<Place> place_at(const jit::Code& code, const void* pc) {
  const void* next = static_cast<const uint8_t*>(pc) + 1;
  if (const jit::CallRow* row = code.call_at(next)) return Place{row->body, row->loc};
  if (const jit::ExitRow* row = code.exit_at(next)) {
    return Place{code.tables().exit_frames[row->frames_at].body, row->loc};
  }
  if (const jit::TrapRow* row = code.trap_at(pc)) return Place{row->body, row->loc};
  return std::nullopt;
}

}  // namespace

size_t trap_stack(const Engine& engine, std::span<CallSite> sites) noexcept {
  if (engine.here() == nullptr || engine.space == nullptr) return 0;
  const sampler::ThreadContext& c = *sampler::current_context();
  const jit::CodeReading reading;  // code without frames may be freed meanwhile
  size_t count = 0;
  const auto add = [&](MethodId m, uint32_t location) {
    if (count < sites.size()) sites[count++] = {m, location};
  };
  for (uint32_t i = 0; i < c.trap_frame_count; ++i) {
    const auto* pc = reinterpret_cast<const void*>(c.trap_frames[i]);
    const jit::Code* code = engine.space->owner_of(pc);
    if (code == nullptr) continue;
    const std::optional<Place> place = place_at(*code, pc);
    if (!place) continue;
    add(code->method_of(place->body), place->location);
    for (uint32_t body = place->body; body != 0;) {
      const jit::InlineRow& row = code->tables().inlined[body - 1];
      body = row.parent;
      add(code->method_of(body), row.loc);
    }
  }
  return count;
}

}  // namespace uptier::tiering
