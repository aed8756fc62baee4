// The parts of the dispatcher: which tools get which events, on which paths, and until when.
#include "tracing/dispatcher/streams.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <map>
#include <set>
#include <thread>

#include "tracing/dispatcher/events.h"
#include "tracing/dispatcher/kinds.h"

namespace uptier::tracing::tracing_streams_test {
namespace {

uptier_trace_payload payload(const char* name, const char* file = nullptr, uint32_t line = 0,
                             uint32_t column = 0) {
  uptier_trace_payload p = {};
  p.size = sizeof p;
  p.name = name;
  p.file = file;
  p.line = line;
  p.column = column;
  return p;
}

struct Seen {
  std::vector<uptier_trace_record> records;
  static void tell(void* user, const uptier_trace_record* r) {
    static_cast<Seen*>(user)->records.push_back(*r);
  }
  uint64_t count(uptier_trace_type type) const {
    return static_cast<uint64_t>(std::ranges::count(records, type, &uptier_trace_record::type));
  }
};

constexpr uptier_trace_type kTaskBegin = UPTIER_TRACE_BEGIN(UPTIER_TRACE_TASK);
constexpr uptier_trace_type kTaskEnd = UPTIER_TRACE_END(UPTIER_TRACE_TASK);
constexpr uptier_trace_type kSignal = UPTIER_TRACE_BEGIN(UPTIER_TRACE_SIGNAL);

TEST(TracingStreams, unsubscribing_one_leaves_the_others_told) {
  auto owned = std::make_unique<Streams>();  // too large for a stack
  Streams& streams = *owned;
  Stream* s = streams.stream("s", 1, 0);
  Seen a, b;
  ASSERT_TRUE(streams.subscribe(*s, UPTIER_TRACE_SIGNAL, Seen::tell, &a));
  ASSERT_TRUE(streams.subscribe(*s, UPTIER_TRACE_SIGNAL, Seen::tell, &b));
  EXPECT_NE(s->enabled[kSignal], 0);
  ASSERT_TRUE(streams.unsubscribe(s, UPTIER_TRACE_SIGNAL, Seen::tell, &a));
  EXPECT_NE(s->enabled[kSignal], 0);
  streams.notify(*s, kSignal, nullptr, nullptr, nullptr);
  EXPECT_EQ(a.records.size(), 0u);
  EXPECT_EQ(b.records.size(), 1u);
  ASSERT_TRUE(streams.unsubscribe(s, UPTIER_TRACE_SIGNAL, Seen::tell, &b));
  EXPECT_EQ(s->enabled[kSignal], 0);
  EXPECT_FALSE(streams.unsubscribe(s, UPTIER_TRACE_SIGNAL, Seen::tell, &b));
}

TEST(TracingStreams, one_stream_a_name_and_late_listeners_hear_of_all) {
  auto owned = std::make_unique<Streams>();  // too large for a stack
  Streams& streams = *owned;
  Stream* a = streams.stream("a", 1, 2);
  EXPECT_EQ(streams.stream("a", 1, 2), a);
  std::vector<std::string> heard;
  const auto listener = [](void* user, uptier_trace_stream*, const char* name, uint32_t major,
                           uint32_t minor) {
    static_cast<std::vector<std::string>*>(user)->push_back(
        std::string(name) + " " + std::to_string(major) + "." + std::to_string(minor));
  };
  ASSERT_TRUE(streams.listen(listener, &heard));
  streams.stream("b", 3, 4);
  streams.stream("b", 3, 4);
  EXPECT_EQ(heard, (std::vector<std::string>{"a 1.2", "b 3.4"}));
  EXPECT_TRUE(streams.unlisten(listener, &heard));
  streams.stream("c", 1, 0);
  EXPECT_EQ(heard.size(), 2u);
}

TEST(TracingStreams, pairs_are_whole_whenever_a_tool_comes) {
  auto owned = std::make_unique<Streams>();  // too large for a stack
  Streams& streams = *owned;
  Stream* s = streams.stream("s", 1, 0);
  Seen early, late;
  ASSERT_TRUE(streams.subscribe(*s, UPTIER_TRACE_TASK, Seen::tell, &early));
  const uint64_t first = streams.begin(*s, UPTIER_TRACE_TASK, nullptr, nullptr, nullptr);
  ASSERT_TRUE(streams.subscribe(*s, UPTIER_TRACE_TASK, Seen::tell, &late));
  const uint64_t second = streams.begin(*s, UPTIER_TRACE_TASK, nullptr, nullptr, nullptr);
  streams.end(*s, UPTIER_TRACE_TASK, nullptr, nullptr, first, nullptr);
  streams.end(*s, UPTIER_TRACE_TASK, nullptr, nullptr, second, nullptr);
  streams.end(*s, UPTIER_TRACE_TASK, nullptr, nullptr, 0, nullptr);
  EXPECT_EQ(early.count(kTaskBegin), 2u);
  EXPECT_EQ(early.count(kTaskEnd), 2u);
  EXPECT_EQ(late.count(kTaskBegin), 1u);
  ASSERT_EQ(late.count(kTaskEnd), 1u);
  EXPECT_EQ(late.records.back().instance, second);
}

TEST(TracingStreams, what_is_told_later_has_its_own_time_and_thread) {
  auto owned = std::make_unique<Streams>();  // too large for a stack
  Streams& streams = *owned;
  Stream* s = streams.stream("s", 1, 0);
  Seen a;
  ASSERT_TRUE(streams.subscribe(*s, UPTIER_TRACE_TASK, Seen::tell, &a));
  ASSERT_TRUE(streams.subscribe(*s, UPTIER_TRACE_SIGNAL, Seen::tell, &a));
  const uint64_t i =
      streams.begin(*s, UPTIER_TRACE_TASK, nullptr, nullptr, nullptr, {.at_ns = 5, .thread = 7});
  streams.end(*s, UPTIER_TRACE_TASK, nullptr, nullptr, i, nullptr, {.at_ns = 6, .thread = 8});
  streams.notify(*s, kSignal, nullptr, nullptr, nullptr);
  ASSERT_EQ(a.records.size(), 3u);
  EXPECT_EQ(a.records[0].at_ns, 5u);
  EXPECT_EQ(a.records[0].thread, 7u);
  EXPECT_EQ(a.records[1].at_ns, 6u);
  EXPECT_EQ(a.records[1].thread, 8u);
  EXPECT_EQ(a.records[2].at_ns, 0u) << "now";
}

TEST(TracingStreams, a_graph_reaches_each_tool_once_the_late_ones_too) {
  auto owned = std::make_unique<Streams>();  // too large for a stack
  Streams& streams = *owned;
  Strings strings;
  Events events(strings);
  Stream* s = streams.stream("s", 1, 0);
  const uptier_trace_type graph = UPTIER_TRACE_BEGIN(UPTIER_TRACE_GRAPH);
  EXPECT_NE(s->enabled[graph], 0) << "the trace point of a graph never sleeps";
  uptier_trace_event* first = events.make(payload("first"));
  uptier_trace_event* second = events.make(payload("second"));
  Seen early, late;
  streams.subscribe(*s, UPTIER_TRACE_GRAPH, Seen::tell, &early);
  streams.notify(*s, graph, nullptr, first, nullptr);
  streams.subscribe(*s, UPTIER_TRACE_GRAPH, Seen::tell, &late);
  streams.notify(*s, graph, nullptr, second, nullptr);
  for (const Seen* seen : {&early, &late}) {
    ASSERT_EQ(seen->records.size(), 2u);
    EXPECT_EQ(seen->records[0].event, first);
    EXPECT_EQ(seen->records[1].event, second);
  }
}

TEST(TracingStreams, a_callback_may_unsubscribe_itself_and_notify) {
  struct Once {
    Streams* streams;
    Stream* s;
    int calls = 0, nested = 0;
    static void tell(void* user, const uptier_trace_record* r) {
      auto& o = *static_cast<Once*>(user);
      if (r->type != kSignal) {
        ++o.nested;
        return;
      }
      ++o.calls;
      EXPECT_TRUE(o.streams->unsubscribe(o.s, UPTIER_TRACE_SIGNAL, tell, user));
      o.streams->notify(*o.s, UPTIER_TRACE_BEGIN(UPTIER_TRACE_NODE), nullptr, nullptr, nullptr);
    }
  };
  auto owned = std::make_unique<Streams>();  // too large for a stack
  Streams& streams = *owned;
  Once once{&streams, streams.stream("s", 1, 0)};
  streams.subscribe(*once.s, UPTIER_TRACE_SIGNAL, Once::tell, &once);
  streams.subscribe(*once.s, UPTIER_TRACE_NODE, Once::tell, &once);
  streams.notify(*once.s, kSignal, nullptr, nullptr, nullptr);
  streams.notify(*once.s, kSignal, nullptr, nullptr, nullptr);
  EXPECT_EQ(once.calls, 1);
  EXPECT_EQ(once.nested, 1);
}

TEST(TracingStreams, notifying_within_itself_for_ever_is_cut_and_counted) {
  struct Loop {
    Streams* streams;
    Stream* s;
    int calls = 0;
    static void tell(void* user, const uptier_trace_record*) {
      auto& l = *static_cast<Loop*>(user);
      ++l.calls;
      l.streams->notify(*l.s, kSignal, nullptr, nullptr, nullptr);
    }
  };
  auto owned = std::make_unique<Streams>();  // too large for a stack
  Streams& streams = *owned;
  Loop loop{&streams, streams.stream("s", 1, 0)};
  streams.subscribe(*loop.s, UPTIER_TRACE_SIGNAL, Loop::tell, &loop);
  streams.notify(*loop.s, kSignal, nullptr, nullptr, nullptr);
  EXPECT_EQ(loop.calls, static_cast<int>(Slot::kDepth));
  EXPECT_EQ(streams.lost(), 1u);
}

TEST(TracingStreams, notifying_allocates_nothing) {
  auto owned = std::make_unique<Streams>();  // too large for a stack
  Streams& streams = *owned;
  Stream* s = streams.stream("s", 1, 0);
  uint64_t calls = 0;
  const auto count = [](void* user, const uptier_trace_record*) {
    ++*static_cast<uint64_t*>(user);
  };
  streams.subscribe(*s, UPTIER_TRACE_TASK, count, &calls);
  const auto both = [&] {
    const uint64_t i = streams.begin(*s, UPTIER_TRACE_TASK, nullptr, nullptr, nullptr);
    streams.end(*s, UPTIER_TRACE_TASK, nullptr, nullptr, i, nullptr);
  };
  both();  // the thread takes its slot
  const size_t before = mallinfo2().uordblks;
  for (int i = 0; i < 1000; ++i) both();
  EXPECT_EQ(mallinfo2().uordblks, before);
  EXPECT_EQ(calls, 2002u);
}

// No callback runs after unsubscribe has returned, whatever other threads do: the object that it
// would use is destroyed by then.
TEST(TracingStreams, none_is_called_after_it_was_unsubscribed) {
  auto owned = std::make_unique<Streams>();  // too large for a stack
  Streams& streams = *owned;
  Stream* s = streams.stream("s", 1, 0);
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> late = 0, calls = 0;
  struct Tool {
    std::atomic<uint64_t>* calls;
    std::atomic<uint64_t>* late;
    std::atomic<bool> gone = false;
    std::atomic<int64_t> open = 0;
    static void tell(void* user, const uptier_trace_record* r) {
      auto& t = *static_cast<Tool*>(user);
      if (t.gone.load()) t.late->fetch_add(1);
      t.calls->fetch_add(1, std::memory_order_relaxed);
      t.open.fetch_add((r->type & 1) == 0 ? 1 : -1, std::memory_order_relaxed);
    }
  };
  std::vector<std::thread> notifiers;
  for (int i = 0; i < 3; ++i) {
    notifiers.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed)) {
        const uint64_t n = streams.begin(*s, UPTIER_TRACE_TASK, nullptr, nullptr, nullptr);
        streams.end(*s, UPTIER_TRACE_TASK, nullptr, nullptr, n, nullptr);
      }
    });
  }
  std::vector<std::unique_ptr<Tool>> tools;
  for (int round = 0; round < 300; ++round) {
    auto tool = std::make_unique<Tool>(&calls, &late);
    ASSERT_TRUE(streams.subscribe(*s, UPTIER_TRACE_TASK, Tool::tell, tool.get()));
    const uint64_t from = calls.load();
    while (calls.load() < from + 20) std::this_thread::yield();
    ASSERT_TRUE(streams.unsubscribe(s, UPTIER_TRACE_TASK, Tool::tell, tool.get()));
    tool->gone.store(true);
    // An end without its begin would make this negative; a begin may lack an end that came too
    // late.
    EXPECT_GE(tool->open.load(), 0);
    EXPECT_LE(tool->open.load(), 3);
    tools.push_back(std::move(tool));
  }
  stop = true;
  for (std::thread& t : notifiers) t.join();
  EXPECT_EQ(late.load(), 0u);
}

TEST(TracingEvents, same_place_same_construct_and_other_places_never) {
  Strings strings;
  Events events(strings);
  std::set<uint64_t> ids;
  for (uint32_t line = 1; line <= 300; ++line) {
    for (uint32_t column = 1; column <= 10; ++column) {
      ids.insert(events.make(payload("n", "f.c", line, column))->id);
    }
  }
  EXPECT_EQ(ids.size(), 3000u);
  uptier_trace_event* e = events.make(payload("n", "f.c", 7, 3));
  EXPECT_TRUE(ids.contains(e->id));
  EXPECT_EQ(e->instances.load(), 2u);
  EXPECT_EQ(events.find(e->id), e);
  EXPECT_EQ(events.find(0), nullptr);
  EXPECT_EQ(events.find(999999), nullptr);
  EXPECT_NE(events.make(payload("n"))->id, events.make(payload("n"))->id);
  uptier_trace_payload out = {};
  out.size = sizeof out;
  events.payload(*e, out);
  EXPECT_STREQ(out.file, "f.c");
  EXPECT_EQ(out.line, 7u);
}

TEST(TracingEvents, metadata_keeps_the_last_value_of_a_key) {
  Strings strings;
  Events events(strings);
  uptier_trace_event* e = events.make(payload("n"));
  uptier_trace_value v = {};
  v.kind = UPTIER_TRACE_INT;
  for (int64_t i = 1; i <= 3; ++i) {
    v.as.integer = i;
    Events::set_metadata(*e, strings.intern("size"), v);
  }
  Events::set_metadata(*e, strings.intern("tier"), v);
  std::map<std::string, int64_t> all;
  struct Visit {
    Strings* strings;
    std::map<std::string, int64_t>* all;
  } visit{&strings, &all};
  Events::each_metadata(
      *e,
      [](void* user, uptier_trace_string key, const uptier_trace_value* value) {
        auto& to = *static_cast<Visit*>(user);
        (*to.all)[to.strings->text(key)] = value->as.integer;
        return 1;
      },
      &visit);
  EXPECT_EQ(all, (std::map<std::string, int64_t>{{"size", 3}, {"tier", 3}}));
}

TEST(TracingTables, ids_are_of_contents_and_kinds_of_tools) {
  Strings strings;
  EXPECT_EQ(strings.intern("a"), strings.intern("a"));
  EXPECT_NE(strings.intern("a"), strings.intern("b"));
  EXPECT_EQ(strings.intern(nullptr), 0u);
  EXPECT_EQ(strings.text(0), nullptr);
  Objects objects;
  const uptier_trace_object o = objects.intern({"\0x", 2}, 7);
  EXPECT_EQ(objects.intern({"\0x", 2}, 7), o);
  EXPECT_NE(objects.intern({"\0x", 2}, 8), o);
  size_t size = 0;
  ASSERT_TRUE(objects.find(o, nullptr, &size, nullptr));
  EXPECT_EQ(size, 2u);
  Kinds kinds;
  const uint32_t kind = kinds.user("tool", "alloc");
  EXPECT_GE(kind, static_cast<uint32_t>(UPTIER_TRACE_FIRST_USER_KIND));
  EXPECT_EQ(kinds.user("tool", "alloc"), kind);
  EXPECT_NE(kinds.user("other", "alloc"), kind);
  EXPECT_STREQ(kinds.name(kind), "tool.alloc");
  EXPECT_STREQ(kinds.name(UPTIER_TRACE_TASK), "task");
  for (int i = 0; i < 300; ++i) (void)kinds.user("many", std::to_string(i).c_str());
  EXPECT_EQ(kinds.user("one", "more"), 0u);
}

}  // namespace
}  // namespace uptier::tracing::tracing_streams_test
