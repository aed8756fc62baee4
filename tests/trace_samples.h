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

#include "profile/events.h"
#include "profile/trace_file.h"
#include "uptier/profile.h"
#include "uptier/trace.h"

namespace uptier::test {

using profile::Bytes;
using profile::ByteSpan;

// Where a MemorySink's bytes go; outlives the writer.
struct SinkLog {
  Bytes bytes;
  size_t writes = 0;
  bool closed = false;
};

// Asked before each write with its number from 0; returns how many bytes to take, or a negative
// errno.
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

// Returns a complete file of these events.
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
      FlushEvent{10, 32, 2, 1, 0, FlushReason::kCalls},
      data(10, {2, 1}),
      profile::make_desc(11, 1, two),
      FlushEvent{11, 32, 3, 2, 0, FlushReason::kCalls},
      data(11, {3, 3}),
      profile::make_desc(20, 2, three),
      FlushEvent{20, 1, 1, 1, 0, FlushReason::kLoops},
      data(20, {1, 1000, 0}),
      FlushEvent{10, 40, 4, 1, 1, FlushReason::kFinal},
      data(10, {4, 2}),
      FlushEvent{20, 1, 1, 1, 1, FlushReason::kDemand},
      data(20, {1, 18446744073709551615ull, 0}),
  };
}

// A seeded source of small random things with a taste for extremes.
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

  // Slots of the three kinds that have sums, with gaps between sites.
  Schema schema(uint64_t cfg_hash) {
    Schema result;
    result.cfg_hash = cfg_hash;
    for (const SlotKind kind : {SlotKind::kBlock, SlotKind::kEdge, SlotKind::kCounter}) {
      SiteId site = 0;
      for (uint64_t i = below(6); i > 0; --i) {
        site += 1 + static_cast<SiteId>(chance(3) ? below(1000) : 0);
        result.slots.push_back({kind, site, static_cast<uint32_t>(result.slots.size()), 1});
      }
    }
    return result;
  }

  MethodProfile method(MethodKey key, Schema schema) {
    MethodProfile result{key, name(), std::move(schema), {}, count(), count(), 1 + below(2)};
    result.counts.resize(result.schema.words());
    std::ranges::generate(result.counts, [this] { return count(); });
    return result;
  }

  // Methods from a small set of keys, and for each key one of two schemas, so that profiles meet in
  // every way: missing, equal, different.
  Profile profile() {
    Profile result;
    for (uint32_t function = 0; function < 6; ++function) {
      if (chance(3)) continue;
      const uint64_t version = chance(4) ? 1 : 0;
      Generator shape(function * 2 + version);
      const MethodKey key{function % 2, function};
      result.methods.emplace(key, method(key, shape.schema(0x100 + version)));
    }
    return result;
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace uptier::test
