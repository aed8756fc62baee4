#include "tiering/runtime/site_lookup.h"

#include <algorithm>
#include <mutex>

#include "jit/code/code.h"
#include "jit/code/code_readers.h"
#include "jit/code/stubs.h"
#include "tiering/base/state_lock.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/model/version.h"
#include "tiering/runtime/engine.h"

namespace uptier::tiering {
namespace {

// Innermost first.
std::vector<PlaceFrame> frames_at(const jit::Code& code, const void* pc) {
  const jit::ProbeRow* row = code.probe_at(pc);
  uint32_t body = row == nullptr ? 0 : row->body;
  std::vector<PlaceFrame> frames{{code.method_of(body), row == nullptr ? 0 : row->site, 0}};
  // A frame that calls has the address after the call.
  const jit::CallRow* call = code.call_at(static_cast<const uint8_t*>(pc) + 1);
  if (call != nullptr && call->body == body) frames.back().location = call->loc;
  const jit::LineRow* line = code.line_at(pc);
  if (line != nullptr && line->body == body) frames.back().location = line->loc;
  for (; body != 0; body = code.tables().inlined[body - 1].parent) {
    const jit::InlineRow& inlined = code.tables().inlined[body - 1];
    frames.push_back({code.method_of(inlined.parent), inlined.site, inlined.loc});
  }
  return frames;
}

}  // namespace

std::optional<CodePlace> find_site(const Engine& engine, const void* pc) {
  HeldState lock(engine.state_mutex);
  if (engine.space == nullptr || !engine.space->contains(pc)) return std::nullopt;
  CodePlace place;
  if (MethodId m = engine.stubs->method_of(pc); m.valid()) {
    place.stub = true;
    place.frames.push_back({engine.methods.latest(m.index()), 0, 0});
    return place;
  }
  const jit::CodeReading reading;  // the address may be one of code that is being freed
  const jit::Code* code = engine.space->owner_of(pc);
  const Method* m = code == nullptr ? nullptr : engine.methods.known(code->method());
  if (m == nullptr) return std::nullopt;
  auto version =
      std::ranges::find_if(m->versions, [&](const auto& v) { return v->code.get() == code; });
  if (version == m->versions.end()) return std::nullopt;
  place.version = (*version)->serial;
  place.tier = (*version)->tier;
  place.copy = (*version)->copy;
  place.loop = (*version)->osr_loop;
  place.frames = frames_at(*code, pc);
  return place;
}

}  // namespace uptier::tiering
