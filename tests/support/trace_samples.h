// trace_samples.h: traces and profiles that the tests of profile/ share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "profile/trace/data.h"
#include "profile/trace/events.h"
#include "profile/trace/trace_file.h"
#include "uptier/profile.h"
#include "uptier/trace.h"

namespace uptier::test {

using profile::Bytes;
using profile::ByteSpan;

// The bytes that a MemorySink wrote; must outlive the writer.
struct SinkLog {
  Bytes bytes;
  size_t writes = 0;
  bool closed = false;
};

// Called before each write with the number of the write, from 0; returns how many bytes to accept,
// or a negative errno.
using WriteFault = std::function<int64_t(size_t call, size_t size)>;

class MemorySink final : public profile::ByteSink {
 public:
  explicit MemorySink(SinkLog* log, WriteFault fault = nullptr, int close_error = 0)
      : log_(log), fault_(std::move(fault)), close_error_(close_error) {}

  int64_t write(ByteSpan bytes) override {
    const auto size = static_cast<int64_t>(bytes.size());
    const int64_t taken = fault_ ? fault_(log_->writes, bytes.size()) : size;
    ++log_->writes;
    if (taken > 0) log_->bytes.insert(log_->bytes.end(), bytes.begin(), bytes.begin() + taken);
    return taken;
  }
  int close() override {
    log_->closed = true;
    return close_error_;
  }

 private:
  SinkLog* log_;
  WriteFault fault_;
  int close_error_;
};

// Returns a complete trace file of these events.
inline Bytes write_trace(const std::vector<TraceEvent>& events, uint64_t dropped = 0) {
  SinkLog log;
  profile::TraceWriter writer(std::make_unique<MemorySink>(&log));
  for (const TraceEvent& event : events) (void)writer.on_event(event);
  (void)writer.finish(dropped);
  return log.bytes;
}

inline std::vector<TraceEvent> read_trace(ByteSpan file) {
  profile::TraceReader reader(file);
  std::vector<TraceEvent> events;
  while (reader.next()) events.push_back(reader.event());
  return events;
}

// Two methods, a type, and two threads that run the first method; five flushes.
inline std::vector<TraceEvent> sample_events() {
  const Schema two = Schema::block_schema(2, 0xaaaa), three = Schema::block_schema(3, 0xbbbb);
  const auto data = [](uint64_t id, std::vector<uint64_t> counts) {
    return profile::make_data(id, counts);
  };
  return {
      Provenance{"uptier 0.1.0", 16, "random", "interval=16 flush=32"},
      BulkType{1, "object"},
      MethodDetails{1, 0x1234, 0, "main"},
      MethodDetails{2, 0x1234, 7, "f\"\xc3\xa9\n"},
      profile::make_desc(10, 1, two),
      FlushEvent{10, 32, 2, 1, 0, FlushReason::kCalls, 16, 0, 0},
      data(10, {2, 1}),
      profile::make_desc(11, 1, two),
      FlushEvent{11, 32, 3, 2, 0, FlushReason::kCalls, 16, 100, 5},
      data(11, {3, 3}),
      profile::make_desc(20, 2, three),
      FlushEvent{20, 1, 1, 1, 0, FlushReason::kLoops, 1, 4096, 1000},
      data(20, {1, 1000, 0}),
      FlushEvent{10, 40, 4, 1, 1, FlushReason::kFinal, 4, 0, 0},
      data(10, {4, 2}),
      FlushEvent{20, 1, 1, 1, 1, FlushReason::kDemand, 1, 8192, 2000},
      data(20, {1, 18446744073709551615ull, 0}),
  };
}

// A schema with one site of every kind except block; its words and tables exercise everything they
// can hold.
inline Schema kinds_schema() {
  Schema schema;
  schema.cfg_hash = 0xcccc;
  schema.add(SlotKind::kBlock, 1);
  schema.add(SlotKind::kEdge, 1);
  schema.add(SlotKind::kCallTarget, 2, 2);
  schema.add(SlotKind::kValue, 3, 3);
  schema.add(SlotKind::kLoop, 1);
  schema.add(SlotKind::kLog, 4);
  schema.add(SlotKind::kCounter, 5);
  schema.add(SlotKind::kRange, 6);
  schema.add(SlotKind::kGauge, 7);
  return schema;
}

// Two flushes of one id under that schema, at intervals 1 and 4. The methods are those of
// sample_events().
inline std::vector<TraceEvent> kinds_events() {
  const auto data = [](std::vector<uint64_t> words) { return profile::make_data(30, words); };
  const auto minus = [](uint64_t value) { return -value; };
  return {
      MethodDetails{1, 0x1234, 0, "main"},
      MethodDetails{2, 0x1234, 7, "f\"\xc3\xa9\n"},
      profile::make_desc(30, 1, kinds_schema()),
      FlushEvent{30, 8, 8, 1, 0, FlushReason::kCalls, 1, 90, 9},
      data(
          {8,        3,                                        // block, edge
           2,                                                  // call target: other
           5,        minus(11), UINT64_MAX, minus(9), 4,   1,  // value: count, sum, min, max, other
           4,        40,        2,          20,       500, 300, 130000, 0,  // loop
           6,        1,                                                     // log
           12,                                                              // counter
           2,        30,        0,          10,       20,                   // range
           77,                                                              // gauge
           2,        5,         1,          1,                              // callees
           minus(9), 1,         1,          3,        0,   0}),             // values
      FlushEvent{30, 40, 16, 1, 1, FlushReason::kFinal, 4, 180, 18},
      data({16, 6,                                                         //
            4,                                                             //
            9,  minus(9), UINT64_MAX, minus(9), 4,        1,               //
            8,  80,       2,          20,       500,      300, 130000, 0,  //
            9,  2,                                                         //
            14,                                                            //
            3,  35,       0,          5,        20,                        //
            70,                                                            //
            2,  9,        1,          3,                                   //
            1,  5,        0,          2,        minus(9), 1}),
  };
}

// Both, one after the other: a valid trace with every kind of content.
inline std::vector<TraceEvent> all_events() {
  std::vector<TraceEvent> events = sample_events();
  for (TraceEvent& event : kinds_events()) events.push_back(std::move(event));
  return events;
}

// Marks every loop execution as timed, with squares that do not overflow: only then do all
// estimates follow from the counts.
inline void time_every_loop(MethodProfile& method) {
  for (const Slot& slot : method.schema.slots) {
    if (slot.kind != SlotKind::kLoop) continue;
    uint64_t* words = &method.counts[slot.word];
    words[slot_word::kLoopTimed] = words[slot_word::kLoopEntries];
    words[slot_word::kLoopSquaresHigh] &= INT64_MAX;
    bool none = words[slot_word::kLoopTimed] == 0;
    for (uint32_t i = 3; none && i < slot.words; ++i) words[i] = 0;
  }
}

// A seeded source of small random values, often extreme ones.
class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  uint64_t below(uint64_t bound) { return random_() % bound; }
  bool chance(uint64_t one_in) { return below(one_in) == 0; }

  uint64_t count() {
    switch (below(5)) {
      case 0: return 0;
      case 1: return UINT64_MAX - below(3);
      case 2: return random_() >> below(64);
      default: return below(1000);
    }
  }

  std::string name() {
    std::string out;
    for (uint64_t i = below(12); i > 0; --i) out += static_cast<char>(below(256));
    return out;
  }

  // Slots of all kinds, with gaps between sites.
  Schema schema(uint64_t cfg_hash) {
    Schema result;
    result.cfg_hash = cfg_hash;
    for (auto kind = SlotKind::kBlock; kind <= SlotKind::kGauge;
         kind = static_cast<SlotKind>(static_cast<int>(kind) + 1)) {
      SiteId site = 0;
      const bool sums = kind == SlotKind::kBlock || kind == SlotKind::kEdge;
      for (uint64_t i = below(sums ? 6 : 3); i > 0; --i) {
        site += 1 + static_cast<SiteId>(chance(3) ? below(1000) : 0);
        result.add(kind, site, 1 + static_cast<uint32_t>(below(4)));
      }
    }
    return result;
  }

  // Up to `entries` entries with keys from a small set, so that merged tables overlap.
  Table table(SlotKind kind, uint64_t entries) {
    Table result;
    for (uint64_t i = below(entries + 1); i > 0; --i) {
      const bool callee = kind == SlotKind::kCallTarget;
      const TableKey key = callee ? TableKey{below(2), below(4)} : TableKey{0, below(6) - 3};
      result[key] = {count() | 1, count()};
    }
    return result;
  }

  // Random counts; estimates and tables satisfy check().
  MethodProfile method(MethodKey key, Schema schema) {
    MethodProfile result;
    result.key = key;
    result.name = name();
    result.schema = std::move(schema);
    result.counts.resize(result.schema.words());
    std::ranges::generate(result.counts, [this] { return count(); });
    for (const Slot& slot : result.schema.slots) {
      if (slot.top == 0) continue;
      Table entries = table(slot.kind, 6);
      if (!entries.empty()) result.tables.emplace(std::pair(slot.kind, slot.site), entries);
    }
    result.weigh(1 + below(20));
    if (chance(2)) estimate_freely(result);
    for (uint64_t* field : {&result.calls, &result.sampled_calls, &result.iterations,
                            &result.bursts, &result.weight_squares, &result.guessed_calls}) {
      *field = count();
    }
    result.interval = 1 + below(2);
    return result;
  }

  // Methods from a small set of keys; each key has one of two code versions and one of two slot
  // sets. So merged profiles meet in every way: missing, equal, other sites, other code.
  Profile profile() {
    Profile result;
    for (uint32_t function = 0; function < 6; ++function) {
      if (chance(3)) continue;
      const uint64_t version = chance(4) ? 1 : 0;
      // One of two sets of observation options.
      Generator shape(function * 2 + version + (chance(3) ? 100 : 0));
      const MethodKey key{function % 2, function};
      MethodProfile m = method(key, shape.schema(0x100 + version));
      m.time = 1 + below(4);
      m.behind = version != 0;
      result.methods.emplace(key, std::move(m));
    }
    result.inlined = inlined(result);
    return result;
  }

  // Bodies inlined into the methods of a profile, at few call sites; each body has one of two code
  // versions.
  InlinedBodies inlined(const Profile& into) {
    InlinedBodies result;
    for (const auto& [root, method] : into.methods) {
      InlinedKey key{root, {}};
      InlinedBody body{{method.schema.cfg_hash}, {}};
      for (uint64_t i = 1 + below(2); i > 0; --i) {
        const MethodKey callee{below(2), static_cast<uint32_t>(below(2))};
        key.path.push_back({static_cast<SiteId>(1 + below(2)), callee});
        body.code.push_back(chance(4) ? 2 : 1);
      }
      for (SiteId site = 1; site < 4; ++site) {
        if (!chance(2)) body.blocks[site] = {count(), count(), count() | 1};
      }
      if (chance(2)) add_sites(body);
      if (body.blocks.empty() && body.sites.empty()) continue;
      result.emplace(std::move(key), std::move(body));
    }
    return result;
  }

  // Sites of every kind that a body may have; they satisfy check().
  void add_sites(InlinedBody& body) {
    for (auto kind = SlotKind::kCallTarget; kind <= SlotKind::kGauge;
         kind = static_cast<SlotKind>(static_cast<int>(kind) + 1)) {
      if (kind == SlotKind::kLoop || chance(2)) continue;
      Schema one;
      one.add(kind, 4 + static_cast<SiteId>(below(2)));
      MethodProfile m = method({}, one);
      const bool extremes = kind == SlotKind::kValue || kind == SlotKind::kRange;
      if (extremes && m.counts[0] == 0) m.counts[slot_word::kMin] = m.counts[slot_word::kMax] = 0;
      const Table* table = m.table(kind, one.slots[0].site);
      body.sites[{kind, one.slots[0].site}] = {m.counts, m.estimates,
                                               table == nullptr ? Table{} : *table, count() | 1};
    }
  }

 private:
  // Overwrites some estimates with arbitrary numbers.
  void estimate_freely(MethodProfile& method) {
    for (uint64_t& estimate : method.estimates) {
      if (estimate != 0 && chance(2)) estimate = count();
    }
    for (auto& [site, table] : method.tables) {
      for (auto& [key, entry] : table) entry.estimate = count();
    }
  }

  std::mt19937_64 random_;
};

}  // namespace uptier::test
