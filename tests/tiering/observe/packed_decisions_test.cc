#include "tiering/observe/packed_decisions.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <vector>

#include "sampler/gap.h"
#include "tiering/policy/replay.h"

namespace uptier::tiering::packed_decisions_test {
namespace {

// Draws records of all kinds.
class Drawn {
 public:
  explicit Drawn(uint64_t seed) : random_(seed) {}

  uint64_t below(uint64_t n) { return sampler::next_random(random_) % n; }
  uint64_t number() { return sampler::next_random(random_) >> below(64); }
  uint32_t small() { return static_cast<uint32_t>(number()); }
  double real() {
    if (below(3) == 0) return 0;
    return below(2) == 0 ? static_cast<double>(below(1000)) : static_cast<double>(number()) / 7e3;
  }

  MethodInputs method() {
    MethodInputs i;
    MethodSnapshot& m = i.method;
    m.tier = static_cast<Tier>(below(3));
    m.optimized_requested = below(4) == 0;
    m.failed = below(8) == 0;
    m.can_instrument = below(4) != 0;
    m.instructions = small();
    m.loops = small();
    if (below(2) == 0) m.at_loop = LoopId(small() >> 1);
    m.drift = real();
    m.calls = number();
    m.samples = number();
    m.iterations = number();
    m.sampled_work = number();
    m.sampled_share = 1.0 / static_cast<double>(1 + below(64));
    i.system = {small(), below(8) == 0, real(), real(), real()};
    return i;
  }

  DecisionInputs inputs() {
    switch (below(7)) {
      case 0: return method();
      case 1: return ExitSnapshot{number(), small(), below(2) == 0, below(2) == 0};
      case 2: return TrialSnapshot{number(), number(), number(), number(), -real(), below(2) == 0};
      case 3: {
        const uint64_t samples = number();
        return ValueSnapshot{samples, below(samples + 1),
                             3,       -static_cast<int64_t>(number() >> 1),
                             small(), real(),
                             real(),  real()};
      }
      case 4: {
        const uint64_t window = number();
        return GuardSnapshot{window, below(window + 1), small()};
      }
      case 5: {
        const auto least = -static_cast<int64_t>(number() >> 1);
        return SiteSnapshot{9, 3, least, least, static_cast<int64_t>(number() >> 1), small(), true};
      }
      default: return {};
    }
  }

 private:
  uint64_t random_;
};

struct Given {
  LoggedDecision logged;
  uint64_t sequence;
  DecisionRecord record;
};

void expect_same(const DecisionRecord& a, const DecisionRecord& b) {
  ASSERT_EQ(a.sequence, b.sequence);
  ASSERT_EQ(a.method, b.method);
  ASSERT_EQ(a.method_name, b.method_name);
  ASSERT_EQ(a.action, b.action);
  ASSERT_EQ(a.reason, b.reason);
  ASSERT_EQ(a.calls, b.calls);
  ASSERT_EQ(a.samples, b.samples);
  ASSERT_EQ(a.loop_iterations, b.loop_iterations);
  ASSERT_EQ(a.priority, b.priority);
  ASSERT_EQ(a.location, b.location);
  ASSERT_EQ(a.inputs, b.inputs);
}

TEST(PackedDecisions, records_come_back_to_the_last_bit) {
  Drawn draw(5);
  const std::vector<std::string> names{"", "f", "main", std::string(300, 'n')};
  const std::vector<std::string> words{"keep", "set", "osr_out"};
  std::vector<PolicyOptions> options(3);
  options[1].speedup = 1.75;
  options[2].min_samples = 7;
  PackedDecisions log;
  std::vector<Given> all;
  for (uint64_t i = 1; i <= 3'000; ++i) {
    LoggedDecision d;
    d.at_ns = draw.number();  // need not rise
    if (draw.below(5) != 0) d.method = MethodId(draw.small());
    d.method_name = names[draw.below(names.size())];
    if (draw.below(3) == 0) d.location = draw.small();
    d.inputs = draw.inputs();
    const bool rules = d.inputs.index() != 0 && draw.below(4) != 0;
    if (rules) {
      d.options = &options[draw.below(options.size())];
    } else {
      d.action = words[draw.below(words.size())];
      d.priority = draw.real();
    }
    if (!rules || d.inputs.index() > 1) d.reason = names[draw.below(names.size())];
    if (d.inputs.index() != 1) d.calls = draw.number(), d.samples = 3, d.iterations = draw.number();
    const uint64_t sequence = 2 * i - i % 2;  // with gaps, as when memory ran out
    log.append(d, sequence);
    all.push_back({d, sequence, record_of(d, sequence)});
  }
  ASSERT_EQ(log.size(), all.size());
  for (const uint64_t kept : {3000, 2999, 1500, 3, 0}) {
    log.keep(kept);
    const PackedDecisions copy = log;
    ASSERT_EQ(copy.size(), kept);
    size_t i = all.size() - kept;
    copy.each([&](uint64_t sequence, const LoggedDecision& d) {
      ASSERT_EQ(d.at_ns, all[i].logged.at_ns);
      expect_same(record_of(d, sequence), all[i].record);
      ++i;
    });
    EXPECT_EQ(i, all.size());
  }
  log.append(all[7].logged, 9'000);
  log.each([&](uint64_t sequence, const LoggedDecision&) { EXPECT_EQ(sequence, 9'000u); });
  EXPECT_EQ(log.size(), 1u);
}

// The figures of a program with many methods: each is decided about some times, with measured rates.
TEST(PackedDecisions, decision_takes_at_most_a_hundred_bytes_in_the_mean) {
  constexpr uint64_t kRecords = 32'768;
  Drawn draw(9);
  const PolicyOptions options;
  PackedDecisions log;
  for (uint64_t i = 1; i <= kRecords; ++i) {
    const std::string name = "some::name::of::a_method_" + std::to_string(draw.below(10'000));
    MethodInputs inputs;
    inputs.method.instructions = static_cast<uint32_t>(draw.below(500));
    inputs.method.loops = static_cast<uint32_t>(draw.below(4));
    inputs.method.calls = draw.below(1'000'000);
    inputs.method.samples = draw.below(4'000);
    inputs.method.iterations = draw.below(1u << 30);
    inputs.method.sampled_work = draw.below(uint64_t{1} << 40);
    inputs.system = {static_cast<uint32_t>(draw.below(20)), false,
                     static_cast<double>(draw.below(100'000)) / 7.0, 2.7182818284590451,
                     0.57721566490153287};
    LoggedDecision d;
    d.at_ns = i * 50'000;
    d.method = MethodId(static_cast<uint32_t>(draw.below(10'000)));
    d.method_name = name;
    d.inputs = inputs;
    d.options = &options;
    log.append(d, i);
  }
  const double each = static_cast<double>(log.bytes()) / kRecords;
  std::printf("bytes of a decision: %.1f\n", each);
  EXPECT_LT(each, 100);
}

}  // namespace
}  // namespace uptier::tiering::packed_decisions_test
