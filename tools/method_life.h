// method_life.h: what happened to one method, from its events.
//
// Steps are in the order of time. Repetitions are one step: observations and decisions to keep the
// method, if they follow each other; frames that enter or leave one version in the same way, always.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tools/event_file.h"

namespace uptier::tools {

struct LifeStep {
  MethodEvent event;       // the first of the step; of observations, the last
  uint64_t times = 1;      // events in the step
  uint64_t first_ns = 0;   // when the first of them ended
  uint64_t last_ns = 0;    // and the last
  bool watched = false;    // observations, and decisions to keep the method as it is
  uint64_t decisions = 0;  // of these: the number of decisions
};

// One compiled version. Times are 0 if the file does not have the event.
struct LifeVersion {
  uint64_t number = 0;
  std::string tier;
  bool instrumented = false;
  int64_t loop = -1;
  uint64_t bytes = 0;
  uint64_t compile_ns = 0;
  uint64_t installed_ns = 0;
  bool in_service = false;
};

struct MethodLife {
  std::vector<LifeStep> steps;
  std::map<uint64_t, LifeVersion> versions;  // by serial number
  uint64_t compilations = 0;
  uint64_t compile_ns = 0;                // of all compilations
  std::map<std::string, uint64_t> exits;  // frames that left optimized code, by reason
  bool removed = false;
  uint64_t removed_ns = 0;
};

// `events` are of one method, by time.
MethodLife life_of(std::span<const MethodEvent> events);

}  // namespace uptier::tools
