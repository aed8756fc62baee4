// Events in the C API: records as C structs, and subscriptions by number.
#include "uptier/events.h"

#include "profile/base/wall.h"
#include "tiering/c_api/c_api.h"

using namespace uptier;
using namespace uptier::tiering;

namespace {

static_assert(UPTIER_EVENT_KIND_COUNT == kEventKinds);
static_assert(UPTIER_EVENT_LOST == static_cast<int>(EventKind::kLost));
static_assert(UPTIER_EVENT_INSTALLED == static_cast<int>(EventKind::kInstalled));
static_assert(UPTIER_EVENT_LEFT == static_cast<int>(EventKind::kLeft));
static_assert(UPTIER_EVENT_EVICTED == static_cast<int>(EventKind::kEvicted));
static_assert(UPTIER_EVENT_DECIDED == static_cast<int>(EventKind::kDecided));
static_assert(UPTIER_EVENT_ENDED == static_cast<int>(EventKind::kEnded));

uptier_decision_record to_c_decision(const DecisionRecord& d) {
  uptier_decision_record r = {};
  r.size = sizeof r;
  r.sequence = d.sequence;
  r.method = to_c<uptier_method>(d.method);
  r.method_name = d.method_name.c_str();
  r.action = d.action.c_str();
  r.reason = d.reason.c_str();
  r.inputs = d.inputs.c_str();
  r.priority = d.priority;
  r.location = d.location;
  return r;
}

// The delivered text is that of a std::string (WaitingEvent), so a 0 follows it.
uptier_event to_c_event(const Event& e) {
  uptier_event c = {};
  c.size = sizeof c;
  c.kind = static_cast<uptier_event_kind>(e.kind);
  c.method = to_c<uptier_method>(e.method);
  c.sequence = e.sequence;
  c.thread_sequence = e.thread_sequence;
  c.at_ns = e.at_ns;
  c.duration_ns = e.duration_ns;
  c.version = e.version;
  c.other_version = e.other_version;
  c.bytes = e.bytes;
  c.count = e.count;
  c.thread = e.thread;
  c.native_thread = e.native_thread;
  c.tier = static_cast<uptier_tier>(e.tier);
  c.instrumented = e.copy == Copy::kInstrumented;
  c.loop = to_c<uptier_loop>(e.loop);
  c.body = to_c<uptier_method>(e.body);
  c.location = e.location;
  c.text = e.text.data() == nullptr ? "" : e.text.data();
  c.text_length = e.text.size();
  return c;
}

// The details of a record as C structs.
struct CDetails {
  std::vector<uptier_event_phase> phases;
  std::vector<uptier_method> inlined;

  // Without memory, the record is without details.
  void put(const EventDetails& from, uptier_event& to) noexcept {
    to.module_key = from.key.module_key;
    to.function_index = from.key.function_index;
    const bool fits = finishes([&] {
      for (const EventPhase& p : from.phases) phases.push_back({p.name, p.duration_ns});
      for (const MethodId m : from.inlined) inlined.push_back(to_c<uptier_method>(m));
    });
    if (!fits) return;
    to.phases = phases.data();
    to.phase_count = phases.size();
    to.inlined = inlined.data();
    to.inlined_count = inlined.size();
    to.inlined_methods = from.inlined_methods;
  }
};

// Passes each record to the function of its kind. The function may end its own subscription, which
// destroys this object, so nothing of it is used after the call.
class CSubscriber final : public EventSubscriber {
 public:
  CSubscriber(void* user, uptier_event_function all) : user_(user), of_{} {
    std::fill(std::begin(of_), std::end(of_), all);
  }
  void set(EventKind k, uptier_event_function f) { of_[static_cast<size_t>(k)] = f; }
  EventKinds kinds() const {
    EventKinds k = 0;
    for (size_t i = 1; i < kEventKinds; ++i) k |= of_[i] != nullptr ? EventKinds{1} << i : 0;
    return k;
  }
  void on_event(const Event& e) noexcept override {
    const uptier_event_function f = of_[static_cast<size_t>(e.kind)];
    if (f == nullptr) return;
    uptier_event c = to_c_event(e);
    uptier_decision_record d;
    if (e.decision != nullptr) {
      d = to_c_decision(*e.decision);
      c.decision = &d;
    }
    CDetails details;
    if (e.details != nullptr) details.put(*e.details, c);
    f(user_, &c);
  }

 private:
  void* user_;
  uptier_event_function of_[kEventKinds];
};

uptier_status subscribe(uptier_runtime& r, std::unique_ptr<CSubscriber> s, EventKinds kinds,
                        uptier_subscription* out, uint64_t* last, uptier_error* error) {
  CSubscriber& who = *s;
  uptier_subscription id;
  {
    const Held lock(r.subscribers_mutex);
    id.id = ++r.last_subscription;
    r.subscribers.push_back({id.id, std::move(s)});
  }
  const uptier_subscription before = out != nullptr ? *out : id;
  if (out != nullptr) *out = id;  // the first record may come before subscribe() returns
  Result<uint64_t> from = r.runtime->subscribe(who, kinds);
  if (from) {
    if (last != nullptr) *last = *from;
    return UPTIER_OK;
  }
  if (out != nullptr) *out = before;
  const Held lock(r.subscribers_mutex);
  std::erase_if(r.subscribers, [&](const auto& one) { return one.id == id.id; });
  return fail(error, from.error());
}

}  // namespace

extern "C" {

const char* uptier_event_kind_name(uptier_event_kind kind) noexcept {
  return kind < UPTIER_EVENT_KIND_COUNT ? event_kind_name(static_cast<EventKind>(kind)) : "?";
}

uptier_status uptier_runtime_subscribe(uptier_runtime* runtime, const uptier_subscriber* to,
                                       uptier_subscription* out, uint64_t* last,
                                       uptier_error* error) noexcept try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (to == nullptr) return bad_argument(error, "the subscriber is NULL");
  uptier_subscriber s;
  if (const char* why = read_struct(to, UPTIER_C_END(uptier_subscriber, kinds), s)) {
    return wrong_struct("uptier_subscriber", why, error);
  }
  if (s.receive == nullptr) return bad_argument(error, "the subscriber has no receive");
  if ((s.kinds & ~uptier_event_kinds{kAllEvents}) != 0) {
    return fail(error, UPTIER_UNSUPPORTED,
                "uptier_subscriber: this library does not know one of the kinds");
  }
  if (forked(*runtime)) return fail_forked(error);
  const EventKinds kinds = s.kinds == 0 ? kAllEvents : static_cast<EventKinds>(s.kinds);
  return subscribe(*runtime, std::make_unique<CSubscriber>(s.user, s.receive), kinds, out, last,
                   error);
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_runtime_subscribe_code(uptier_runtime* runtime, const uptier_code_events* to,
                                            uptier_subscription* out, uint64_t* last,
                                            uptier_error* error) noexcept try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (to == nullptr) return bad_argument(error, "the subscriber is NULL");
  uptier_code_events c;
  if (const char* why = read_struct(to, UPTIER_C_END(uptier_code_events, lost), c)) {
    return wrong_struct("uptier_code_events", why, error);
  }
  auto s = std::make_unique<CSubscriber>(c.user, nullptr);
  s->set(EventKind::kCompiled, c.compiled);
  s->set(EventKind::kInstalled, c.installed);
  s->set(EventKind::kLeft, c.left);
  s->set(EventKind::kEvicted, c.evicted);
  s->set(EventKind::kLost, c.lost);
  const EventKinds kinds = s->kinds();
  if (kinds == 0) return bad_argument(error, "uptier_code_events: all functions are NULL");
  if (forked(*runtime)) return fail_forked(error);
  return subscribe(*runtime, std::move(s), kinds, out, last, error);
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_runtime_unsubscribe(uptier_runtime* runtime, uptier_subscription subscription,
                                         uptier_error* error) noexcept try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (forked(*runtime)) return fail_forked(error);
  std::unique_ptr<EventSubscriber> gone;
  {
    const Held lock(runtime->subscribers_mutex);
    auto at = std::ranges::find(runtime->subscribers, subscription.id, &CSubscription::id);
    if (at != runtime->subscribers.end()) {
      gone = std::move(at->subscriber);
      runtime->subscribers.erase(at);
    }
  }
  if (gone == nullptr) return fail(error, UPTIER_NOT_FOUND, "there is no such subscription");
  Status s = runtime->runtime->unsubscribe(*gone);
  return s ? UPTIER_OK : fail(error, s.error());
} catch (const std::exception&) { return ran_out(error); }

}  // extern "C"
