#include "tiering/runtime/registry.h"

#include <cassert>
#include <mutex>
#include <utility>

#include "jit/code/stubs.h"
#include "jit/ir/print.h"
#include "profile/base/wall.h"
#include "tiering/base/state_lock.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/control/finding.h"
#include "tiering/control/rate_control.h"
#include "tiering/model/event_of.h"
#include "tiering/model/still_here.h"
#include "tiering/observe/observer.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/place_taking.h"
#include "tiering/runtime/unattached_calls.h"
#include "tiering/serve/in_service.h"

namespace uptier::tiering {
namespace {

bool is_type(Type t) { return t <= Type::kRef; }

Status check_signature(const MethodInfo& info) {
  const Signature& s = info.signature;
  auto wrong = [&](const std::string& what) {
    return Error{ErrorCode::kInvalidArgument, info.name + ": " + what};
  };
  if (!is_type(s.result)) return wrong("the result is of no known type");
  if (s.params.size() > kMaxParams) {
    return wrong(std::to_string(s.params.size()) + " parameters; " + std::to_string(kMaxParams) +
                 " at most");
  }
  for (size_t i = 0; i < s.params.size(); ++i) {
    if (is_type(s.params[i]) && s.params[i] != Type::kNone) continue;
    return wrong("parameter " + std::to_string(i) + " is of no type that a value can have");
  }
  return {};
}

Status check_own_schema(const MethodInfo& info) {
  if (!info.own_code || info.own_schema.slots.empty()) return {};
  Status s = info.own_schema.check();
  return s ? s
           : Error{ErrorCode::kInvalidArgument, info.name + ": own_schema: " + s.error().message};
}

}  // namespace

Result<MethodId> Registry::add_method(Host& host, MethodInfo info) try {
  if (engine_.forked()) return engine_.forked_error();
  if (Status s = check_signature(info); !s) return s.error();
  if (Status s = check_own_schema(info); !s) return s.error();
  StillHere still(engine_.here());
  HeldState lock(engine_.state_mutex);
  Result<PlaceTaking::Place> place = place_taking_.take_place_locked(info.name);
  if (!place) return place.error();
  uint32_t index = place->id.index();
  const bool made_key = info.key == MethodKey{};
  Result<MethodId> added = walled("add_method", [&]() -> Result<MethodId> {
    state_lock.known_held();
    if (made_key) info.key = engine_.observer->directory.keys().make(info.name);
    auto made = std::make_unique<Method>(place->id, engine_.places.methods_seen() + 1, host,
                                         std::move(info));
    Method& m = *made;
    m.key_made = made_key;
    if (engine_.options.gap == GapMode::kExact) m.exact = std::make_unique<ExactCalls>();
    if (!m.info.host_may_trap) m.host_code = m.info.host_entry;
    engine_.methods.make_room();
    engine_.finding->begin(m);
    engine_.rates->add(index, place->again);
    unattached_calls_.begin(index);
    engine_.observer->directory.know(m);
    engine_.places.note_added();
    engine_.stubs->set_target(m.id, engine_.in_service->first_target_locked(m));
    assert(m.ordinal == engine_.places.methods_seen());
    engine_.methods.put(std::move(made));
    assert(engine_.is_method(m.id));
    Event is_added = event_of(EventKind::kAdded, m, m.info.name);
    const EventDetails details{.key = m.info.key};
    is_added.details = &details;
    engine_.events.emit(is_added);
    return m.id;
  });
  if (!added && place->again) engine_.places.return_place(index);
  return added;
} catch (const std::exception&) { return out_of_memory("add_method"); }

std::string Registry::error_of(MethodId m) const try {
  if (engine_.forked()) return {};
  HeldState lock(engine_.state_mutex);
  return engine_.is_method(m) ? *engine_.method(m.index()).last_error : std::string();
} catch (const std::exception&) { return {}; }

const void* Registry::entry_address(MethodId m) const {
  return engine_.is_method(m) ? engine_.stubs->stub(m) : nullptr;
}

const void* Registry::entry_address(MethodId m, const Signature& expected) const {
  if (!engine_.is_method(m)) return nullptr;
  const MethodInfo& info = engine_.method(m.index()).info;
  if (info.signature == expected) return engine_.stubs->stub(m);
  engine_.log.say(LogLevel::kError, "entry of " + info.name + ": asked for as " +
                                        jit::to_text(expected) + ", the method is " +
                                        jit::to_text(info.signature) + ": there is none");
  return nullptr;
}

}  // namespace uptier::tiering
