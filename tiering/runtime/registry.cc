// Methods come and go.

#include <algorithm>
#include <iterator>

#include "jit/ir/print.h"
#include "profile/base/wall.h"
#include "tiering/model/event_of.h"
#include "tiering/model/still_here.h"
#include "tiering/runtime/runtime_impl.h"

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

Result<MethodId> RuntimeImpl::add_method(Host& host, MethodInfo info) try {
  if (forked()) return forked_error();
  if (Status s = events_.check_change("add_method"); !s) return s.error();
  const Delivery delivery(*this);
  if (Status s = check_signature(info); !s) return s.error();
  if (Status s = check_own_schema(info); !s) return s.error();
  __builtin_unwind_init();  // what callers keep in registers is on the stack, too
  StillHere still(here());
  std::lock_guard lock(state_mutex_);
  Result<Place> place = take_place_locked(info.name);
  if (!place) return place.error();
  uint32_t index = place->id.index();
  const bool made_key = info.key == MethodKey{};
  Result<MethodId> added = walled("add_method", [&]() -> Result<MethodId> {
    if (made_key) info.key = observer_.directory.keys().make(info.name);
    auto made =
        std::make_unique<Method>(place->id, places_.methods_seen() + 1, host, std::move(info));
    Method& m = *made;
    m.key_made = made_key;
    if (options_.gap == GapMode::kExact) m.exact = std::make_unique<ExactCalls>();
    if (!m.info.host_may_trap) m.host_code = m.info.host_entry;
    methods_.make_room();
    rates_.add(index, place->again);
    begin_unattached(index);
    observer_.directory.know(m);
    places_.note_added();
    stubs_->set_target(m.id, in_service_->first_target_locked(m));
    methods_.put(std::move(made));
    events_.emit(event_of(EventKind::kAdded, m, m.info.name));
    return m.id;
  });
  if (!added && place->again) places_.return_place(index);
  return added;
} catch (const std::exception&) { return out_of_memory("add_method"); }

std::string RuntimeImpl::error_of(MethodId m) const try {
  if (forked()) return {};
  std::lock_guard lock(state_mutex_);
  return is_method(m) ? *method(m.index()).last_error : std::string();
} catch (const std::exception&) { return {}; }

// In `build` the wait for compilations could be one for the caller. Hosts die when this returns, so
// what cannot be done whole is not begun.
bool RuntimeImpl::is_in_build(const char* call) const {
  if (is_in_subscriber(call)) return true;
  if (!turns_.any_here()) return false;
  log_.say(LogLevel::kError, std::string(call) + ": `build` must not call it: nothing is done");
  return true;
}

void RuntimeImpl::remove_methods(std::span<const MethodId> methods) {
  if (forked() || is_in_build("remove_methods")) return;
  const Delivery delivery(*this);
  take_out(methods, HostUse::kOver);
  hosts_.tell();
  hosts_.await_tellers(methods);
}

void RuntimeImpl::retire_methods(std::span<const MethodId> methods) {
  if (forked() || is_in_build("retire_methods")) return;
  const Delivery delivery(*this);
  take_out(methods, HostUse::kUntilGone);
  hosts_.tell();
}

// No step leaves an address of a Method in this frame: the stack is searched for such. Hosts may die
// when it returns, so it may not be refused: what it needs memory for can be left out.
void RuntimeImpl::take_out(std::span<const MethodId> all, HostUse after) {
  __builtin_unwind_init();  // as in add_method
  StillHere still(here());
  LookingAround looking(*this);  // nobody forgets them meanwhile
  MethodId room[64];
  do {  // once with none, too: what has ended since is reclaimed
    auto some = all.first(std::min(all.size(), std::size(room)));
    all = all.subspan(some.size());
    std::span<const MethodId> ids = refuse_calls(some, after, room);
    await_compilations(ids);
    retire_code(ids, after);
  } while (!all.empty());
}

// Returns those that were in service; and if the hosts may die now, those that were retired. In
// `room`, which is as long.
__attribute__((noinline)) std::span<const MethodId> RuntimeImpl::refuse_calls(
    std::span<const MethodId> all, HostUse after, std::span<MethodId> room) {
  size_t count = 0;
  std::lock_guard lock(state_mutex_);
  drain_locked();
  for (MethodId id : all) {
    Method* m = known(id);
    if (m == nullptr) continue;
    if (is_method(id)) {
      room[count++] = id;
      finishes([&] { flush_removed_locked(*m, after); });
      take_out_locked(*m, after);
    } else if (after == HostUse::kOver && m->host_use == HostUse::kUntilGone) {
      room[count++] = id;
      m->host_use = HostUse::kTold;
    }
  }
  return room.first(count);
}

// A host that is not to be asked any more may die soon. What is compiled of others is compiled still.
__attribute__((noinline)) void RuntimeImpl::await_compilations(std::span<const MethodId> ids) {
  for (MethodId id : ids) CompileTurn wait(turns_, method(id.index()));
}

__attribute__((noinline)) void RuntimeImpl::retire_code(std::span<const MethodId> ids,
                                                        HostUse after) {
  std::lock_guard lock(state_mutex_);
  for (MethodId id : ids) {
    Method& m = method(id.index());
    bodies_.forget_locked(m);
    finishes([&] { in_service_->withdraw_locked(m); });
    for (auto& v : m.versions) {
      if (!v->retired) reclaimer_.retire(*v);
      if (after == HostUse::kOver) v->give_back();  // nothing runs it, and its host may go
    }
    if (m.host_use == HostUse::kTold) hosts_.tell_later_locked(m);
  }
  in_service_->reclaim_locked();
}

// Nothing leads to the method any more but what refers to it; see code/places.h.
void RuntimeImpl::take_out_locked(Method& m, HostUse after) {
  m.removed = true;
  m.retired = after == HostUse::kUntilGone;
  m.host_use = after;
  methods_.take_out(m);
  events_.emit(event_of(EventKind::kRemoved, m, m.retired ? "retired" : "removed"));
  if (m.key_made) observer_.directory.keys().give_back(m.info.key);
  m.looked_at = true;
  ++m.holds;
  fast_->set_entry(m.id.index(), nullptr);
  stubs_->set_target(m.id, stubs_->tail(m.id));
  requests_.remove(m.id);
  known_.forget(m);
  frames_.forget(m);
  reclaimer_.leave(m);
  places_.note_removed(m);
}

// The flush of one method that is taken out, for all threads: none of them runs it any more. Where
// they may, for the calling thread only; the others hand over what they count when they flush.
void RuntimeImpl::flush_removed_locked(Method& m, HostUse after) {
  bool over = after == HostUse::kOver;
  auto kind = over ? sampler::NoteKind::kFlushFinal : sampler::NoteKind::kFlushDemand;
  for (auto& t : threads_) {
    if (!over && t.get() != here()) continue;
    sampler::MethodState& s = t->state(m.id);
    if (s.call_gap == 0 && s.loop_gap == 0 && s.slab == nullptr) continue;
    std::span<const uint64_t> counts = counters(m, s);
    sampler::Note n = make_note(m, *t, kind);
    observer_.streams.take(m, t->number(), n, counts);
    flush_optimized_locked(m, *t);
  }
}

const void* RuntimeImpl::entry_address(MethodId m) const {
  return is_method(m) ? stubs_->stub(m) : nullptr;
}

const void* RuntimeImpl::entry_address(MethodId m, const Signature& expected) const {
  if (!is_method(m)) return nullptr;
  const MethodInfo& info = method(m.index()).info;
  if (info.signature == expected) return stubs_->stub(m);
  log_.say(LogLevel::kError, "entry of " + info.name + ": asked for as " + jit::to_text(expected) +
                                 ", the method is " + jit::to_text(info.signature) +
                                 ": there is none");
  return nullptr;
}

}  // namespace uptier::tiering
