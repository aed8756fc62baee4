#include "tracing/dispatcher/streams.h"

#include <algorithm>

namespace uptier::tracing {
namespace {

constexpr uptier_trace_type begin_of(uint32_t kind) { return UPTIER_TRACE_BEGIN(kind); }

// A graph is kept for tools that subscribe later, so its trace point is always on.
bool always_on(uint32_t kind) { return kind == UPTIER_TRACE_GRAPH; }

void set_enabled(Stream& s, uint32_t kind, bool on) {
  const uint8_t value = on || always_on(kind) ? 1 : 0;
  __atomic_store_n(&s.enabled[UPTIER_TRACE_BEGIN(kind)], value, __ATOMIC_RELAXED);
  __atomic_store_n(&s.enabled[UPTIER_TRACE_END(kind)], value, __ATOMIC_RELAXED);
}

}  // namespace

Streams::~Streams() {
  for (const auto& s : streams_) {
    for (const auto& slot : s->lists) {
      const List* list = slot.load();
      if (list == nullptr) continue;
      for (Subscription* one : *list) delete one;
      delete list;
    }
  }
}

Stream* Streams::stream(const char* name, uint32_t major, uint32_t minor) {
  if (name == nullptr) name = "";
  const Held telling(telling_);
  const std::vector<Listener> all = listeners_;  // a copy: a listener may listen or unlisten while
                                                 // it is told
  Stream* made = nullptr;
  {
    const Held lock(mutex_);
    for (const auto& s : streams_) {
      if (s->name == name) return s.get();
    }
    auto owned = std::make_unique<Stream>();
    owned->name = name;
    owned->major = major;
    owned->minor = minor;
    set_enabled(*owned, UPTIER_TRACE_GRAPH, true);
    made = owned.get();
    streams_.push_back(std::move(owned));
  }
  for (const Listener& l : all) l.tell(l.user, made, made->name.c_str(), major, minor);
  return made;
}

Streams::Visit::Visit(Streams& streams) noexcept
    : streams_(streams), slot_(streams.threads_.mine()) {
  if (slot_ == nullptr || slot_->depth == Slot::kDepth) {
    streams.lost_.fetch_add(1, std::memory_order_relaxed);
    slot_ = nullptr;
    return;
  }
  if (slot_->depth++ != 0) return;
  slot_->visit.store(slot_->visit.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  streams.threads_.light_barrier();
}

Streams::Visit::~Visit() {
  if (slot_ == nullptr || --slot_->depth != 0) return;
  // Pairs with has_gone_on: the thread's reads are over.
  slot_->visit.store(slot_->visit.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

void Streams::Visit::call(const Subscription& s, const uptier_trace_record& record) const noexcept {
  if (record.instance != 0 && record.instance <= s.born) return;
  std::atomic<const Subscription*>& active = slot_->active[slot_->depth - 1];
  active.store(&s, std::memory_order_relaxed);
  streams_.threads_.light_barrier();
  if (s.alive.load(std::memory_order_relaxed)) s.callback(s.user, &record);
  // Pairs with the load of wait_for: the callback's effects are visible before its library is
  // unloaded.
  active.store(nullptr, std::memory_order_release);
}

void Streams::Visit::call(const List* list, const uptier_trace_record& record) const noexcept {
  if (list == nullptr) return;
  for (const Subscription* one : *list) call(*one, record);
}

void Streams::deliver(const Stream& s, const uptier_trace_record& record) noexcept {
  const Visit visit(*this);
  if (!visit.ok()) return;
  visit.call(s.lists[record.type >> 1].load(std::memory_order_acquire), record);
}

void Streams::deliver_graph(Stream& s, uptier_trace_event* parent, uptier_trace_event* event,
                            const void* data, When when) noexcept {
  const Visit visit(*this);
  if (!visit.ok()) return;
  const List* told = nullptr;
  try {
    const Held lock(mutex_);
    s.graphs.emplace_back(parent, event);
    told = s.lists[UPTIER_TRACE_GRAPH].load(std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {
    lost_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  visit.call(told, {sizeof(uptier_trace_record), begin_of(UPTIER_TRACE_GRAPH), &s, parent, event, 0,
                    data, when.at_ns, when.thread});
}

void Streams::notify(Stream& s, uptier_trace_type type, uptier_trace_event* parent,
                     uptier_trace_event* event, const void* data, When when) noexcept {
  if (type >= UPTIER_TRACE_TYPES) return;
  if (type == begin_of(UPTIER_TRACE_GRAPH)) {
    deliver_graph(s, parent, event, data, when);
    return;
  }
  deliver(s,
          {sizeof(uptier_trace_record), type, &s, parent, event, 0, data, when.at_ns, when.thread});
}

uint64_t Streams::begin(Stream& s, uint32_t kind, uptier_trace_event* parent,
                        uptier_trace_event* event, const void* data, When when) noexcept {
  if (kind >= UPTIER_TRACE_KINDS) return 0;
  // Acquire: pairs with the jump of subscribe, so a later number finds the list.
  const uint64_t instance = instances_.fetch_add(1, std::memory_order_acq_rel) + 1;
  deliver(s, {sizeof(uptier_trace_record), begin_of(kind), &s, parent, event, instance, data,
              when.at_ns, when.thread});
  return instance;
}

void Streams::end(Stream& s, uint32_t kind, uptier_trace_event* parent, uptier_trace_event* event,
                  uint64_t instance, const void* data, When when) noexcept {
  if (kind >= UPTIER_TRACE_KINDS || instance == 0) return;
  deliver(s, {sizeof(uptier_trace_record), UPTIER_TRACE_END(kind), &s, parent, event, instance,
              data, when.at_ns, when.thread});
}

void Streams::publish(Stream& s, uint32_t kind, std::unique_ptr<const List> list,
                      std::unique_ptr<Subscription> gone) {
  auto retired = std::make_unique<Retired>();
  retired->moment.reserve(Threads::kSlots);
  retired_.reserve(retired_.size() + 1);
  set_enabled(s, kind, !list->empty());
  const List* old = s.lists[kind].exchange(list.release(), std::memory_order_acq_rel);
  retired->list.reset(old);
  retired->subscription = std::move(gone);
  retired->moment = threads_.now();
  retired_.push_back(std::move(retired));
  reclaim();
}

void Streams::reclaim() {
  std::erase_if(retired_, [&](const auto& r) { return threads_.has_gone_on(r->moment); });
}

bool Streams::subscribe(Stream& s, uint32_t kind, uptier_trace_callback callback, void* user) {
  if (kind == 0 || kind >= UPTIER_TRACE_KINDS || callback == nullptr) return false;
  const Visit visit(*this);  // another thread may end the subscription before its graphs are
                             // delivered
  std::vector<std::pair<uptier_trace_event*, uptier_trace_event*>> graphs;
  const Subscription* added = nullptr;
  {
    const Held lock(mutex_);
    const List* old = s.lists[kind].load(std::memory_order_relaxed);
    auto list = std::make_unique<List>(old == nullptr ? List{} : *old);
    const bool is_there = std::ranges::any_of(
        *list, [&](const Subscription* o) { return o->callback == callback && o->user == user; });
    if (is_there) return false;
    const uint64_t born = instances_.load(std::memory_order_relaxed) + kAhead;
    // Not make_unique, which clang 14 cannot instantiate for an aggregate.
    std::unique_ptr<Subscription> owned(new Subscription{callback, user, born});
    list->push_back(owned.get());
    if (kind == UPTIER_TRACE_GRAPH) graphs = s.graphs;
    publish(s, kind, std::move(list), nullptr);
    added = owned.release();
    uint64_t last = instances_.load(std::memory_order_relaxed);
    while (last < born && !instances_.compare_exchange_weak(last, born)) {}
  }
  if (!visit.ok()) return true;
  for (const auto& [parent, event] : graphs) {
    visit.call(*added,
               {sizeof(uptier_trace_record), begin_of(kind), &s, parent, event, 0, nullptr, 0, 0});
  }
  return true;
}

template <typename Wanted>
std::vector<Streams::Found> Streams::find(Wanted wanted) {
  std::vector<Found> found;
  const Held lock(mutex_);
  for (const auto& s : streams_) {
    for (uint32_t kind = 0; kind < UPTIER_TRACE_KINDS; ++kind) {
      const List* list = s->lists[kind].load(std::memory_order_relaxed);
      if (list == nullptr) continue;
      for (const Subscription* one : *list) {
        const Found f = {s.get(), kind, one->callback, one->user};
        if (wanted(f)) found.push_back(f);
      }
    }
  }
  return found;
}

bool Streams::end_one(const Found& f) {
  Subscription* dead = nullptr;
  {
    const Held lock(mutex_);
    const List* old = f.stream->lists[f.kind].load(std::memory_order_relaxed);
    if (old == nullptr) return false;
    auto list = std::make_unique<List>(*old);
    const auto at = std::ranges::find_if(*list, [&](const Subscription* o) {
      return o->callback == f.callback && o->user == f.user;
    });
    if (at == list->end()) return false;
    dead = *at;
    list->erase(at);
    dead->alive.store(false, std::memory_order_relaxed);
    publish(*f.stream, f.kind, std::move(list), std::unique_ptr<Subscription>(dead));
  }
  threads_.wait_for(dead);
  return true;
}

bool Streams::unsubscribe(Stream* s, uint32_t kind, uptier_trace_callback callback, void* user) {
  bool any = false;
  const auto wanted = [&](const Found& f) {
    return f.callback == callback && f.user == user && (s == nullptr || f.stream == s) &&
           (kind == 0 || f.kind == kind);
  };
  for (const Found& f : find(wanted)) any = end_one(f) || any;
  return any;
}

bool Streams::listen(uptier_trace_listener listener, void* user) {
  if (listener == nullptr) return false;
  const Held telling(telling_);
  listeners_.push_back({listener, user});
  std::vector<Stream*> all;
  {
    const Held lock(mutex_);
    for (const auto& s : streams_) all.push_back(s.get());
  }
  for (Stream* s : all) listener(user, s, s->name.c_str(), s->major, s->minor);
  return true;
}

bool Streams::unlisten(uptier_trace_listener listener, void* user) {
  const Held telling(telling_);
  return std::erase_if(listeners_, [&](const Listener& l) {
           return l.tell == listener && l.user == user;
         }) != 0;
}

size_t Streams::drop_code(uintptr_t from, uintptr_t to) {
  const auto inside = [&](auto f) {
    const auto at = reinterpret_cast<uintptr_t>(f);
    return at >= from && at < to;
  };
  size_t dropped = 0;
  for (const Found& f : find([&](const Found& one) { return inside(one.callback); })) {
    dropped += end_one(f) ? 1 : 0;
  }
  const Held telling(telling_);
  return dropped + std::erase_if(listeners_, [&](const Listener& l) { return inside(l.tell); });
}

}  // namespace uptier::tracing
