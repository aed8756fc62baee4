// owners.h: the objects that own a runtime's state, without the runtime, for tests of each.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/code_machine.h"
#include "tiering/compile/machine_rates.h"
#include "tiering/compile/requests.h"
#include "tiering/compile/system.h"
#include "tiering/control/wanted_frames.h"
#include "tiering/events/loss_counts.h"
#include "tiering/model/tally_words.h"
#include "tiering/observe/observer.h"
#include "tiering/serve/in_service.h"

namespace uptier::test {

// The owners of four methods; nothing has been described or compiled yet. One thread calls them, so
// no locks are taken.
class Owners : private tiering::Relay::Service {
 public:
  static constexpr uint32_t kMethods = 4;

  explicit Owners(const Options& o = {}) : options(alone(o)), live(options) {
    EXPECT_TRUE(methods.reserve(kMethods));
    for (uint32_t i = 0; i < kMethods; ++i) {
      methods.put(std::make_unique<tiering::Method>(MethodId(i), i + 1, host, MethodInfo()));
      EXPECT_TRUE(code.stubs->ensure(MethodId(i)).ok());
    }
    events.listen(loss_counts, tiering::LossCounts::kHears);
    relay = std::make_unique<tiering::Relay>(tiering::Relay::Parts{.options = options,
                                                                   .live = live,
                                                                   .state_mutex = mutex,
                                                                   .stress = stress,
                                                                   .methods = methods,
                                                                   .observer = observer,
                                                                   .reclaimer = reclaimer,
                                                                   .space = *code.space,
                                                                   .poll_words = poll_words,
                                                                   .service = *this,
                                                                   .in_service = in_service,
                                                                   .events = events});
  }

  static Options alone(Options o) {
    o.workers = 0;
    return o;
  }
  tiering::Method& method(uint32_t i = 0) { return methods.at(i); }
  // Puts another method into a slot, as if nothing referred to the former method any more.
  void replace(uint32_t i, Host& of, MethodInfo info) {
    methods.take_out(method(i));
    methods.put(std::make_unique<tiering::Method>(MethodId(i), kMethods + 1, of, std::move(info)));
  }
  // Gives a method the number of loops that its description would have.
  void describe_loops(uint32_t i, uint32_t loops) {
    method(i).shape.put(std::make_unique<tiering::MethodShape>(loops));
  }
  // Adds a version of a method, with poll words for its loops. It is not in service yet.
  tiering::Version& add(uint32_t i, Tier tier, Copy copy = Copy::kPlain) {
    tiering::Method& m = method(i);
    m.versions.push_back(std::make_unique<tiering::Version>());
    tiering::Version& v = *m.versions.back();
    v.method = m.id;
    v.tier = tier;
    v.copy = copy;
    v.serial = ++serials_;
    v.entry = &entries_[v.serial];
    if (uint32_t loops = m.shape->loop_count) v.polls = poll_words.take(loops);
    hosts.hold_locked(v);
    return v;
  }
  // Returns code with these methods inlined.
  std::unique_ptr<jit::Code> code_with(const std::vector<MethodId>& inlined) {
    jit::CodeTables tables;
    for (MethodId m : inlined) tables.inlined.push_back({.method = m});
    auto span = code.space->allocate(64);
    EXPECT_TRUE(span.ok());
    EXPECT_TRUE(code.space->publish(*span).ok());
    return std::make_unique<jit::Code>(std::move(*span), 0, std::move(tables));
  }
  // Returns the values of a version's poll words.
  static std::vector<uint32_t> words(const tiering::Version& v) {
    std::vector<uint32_t> words;
    for (const jit::PollWord& w : v.polls.words()) words.push_back(w.load());
    return words;
  }
  std::vector<std::string> logged() const {
    std::vector<std::string> actions;
    observer.decisions.kept().each([&](uint64_t number, const tiering::LoggedDecision& d) {
      actions.push_back(record_of(d, number).action);
    });
    return actions;
  }

  CodeMachine code;
  std::vector<uint8_t> poll_data = std::vector<uint8_t>(1024);
  jit::PollWords poll_words{poll_data};
  jit::Helpers helpers;
  Host host;
  Options options, live;
  PolicyOptions policy = PolicyOptions::from(options);
  tiering::Stress stress{*tiering::StressPlan::parse(options.stress)};
  tiering::WaitedMutex mutex;
  tiering::MethodTable methods;
  tiering::Places places{methods};
  tiering::Threads threads{16};
  sampler::Schedule schedule = sampler::Schedule::make(sampler::GapKind::kRandom, 16, 32);
  sampler::FastSampling fast{this, kMethods, schedule};
  tiering::Events events;
  tiering::LossCounts loss_counts;
  const LossReport& losses = loss_counts.counts();
  tiering::TallyWords tally_words{threads};
  tiering::Observer observer{options, live, schedule.ladder, nullptr, nullptr, events, tally_words};
  tiering::SavedProfile saved{options, live, methods, observer};
  tiering::Reclaimer reclaimer{events};
  tiering::GoneHosts hosts{mutex, methods, places, reclaimer};
  tiering::Requests requests{8, methods, events};
  tiering::MachineRates machine{options, live, methods};
  tiering::System system{live, requests, *code.space, machine};
  tiering::WantedFrames frames;
  std::unique_ptr<tiering::Relay> relay;
  tiering::InService in_service{{.options = options,
                                 .policy = policy,
                                 .always_instrumented = options.interval == 1,
                                 .stress = stress,
                                 .state_mutex = mutex,
                                 .methods = methods,
                                 .threads = threads,
                                 .saved = saved,
                                 .reclaimer = reclaimer,
                                 .hosts = hosts,
                                 .fast = fast,
                                 .stubs = *code.stubs,
                                 .tallied = observer.tallied,
                                 .relay = relay,
                                 .events = events}};

 private:
  void begin_look(tiering::Places::Look& look) override { places.begin_look(look); }
  void end_look(tiering::Places::Look& look) override { places.end_look(look); }
  void wake_worker() noexcept override {}

  std::array<char, 128> entries_{};
  uint64_t serials_ = 0;
};

}  // namespace uptier::test
