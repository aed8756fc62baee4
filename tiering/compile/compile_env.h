// CompileEnv: the dependencies of compilations. All of it outlives them.
#pragma once

#include "uptier/options.h"
#include "uptier/policy.h"

namespace uptier::jit {
class CodeSpace;
class PollWords;
class Routines;
class StubTable;
class TallySource;
struct Helpers;
}  // namespace uptier::jit

namespace uptier::tiering {

class Events;
class ImageCode;
class KeptBodies;
class MethodTable;
class Observer;
class Places;
class SavedProfile;
class Stress;
class WaitedMutex;
struct ProbeChoice;

struct CompileEnv {
  const Options& options;
  const Options& live;          // the options with later changes,
  const PolicyOptions& policy;  // and the policy derived from them: read under the state mutex
  const ProbeChoice& probe_choice;
  bool samples_calls;        // some calls are sampled
  bool always_instrumented;  // all calls are
  bool lines;                // code has rows for its lines: a tool wants them
  Stress& stress;
  WaitedMutex& state_mutex;
  const MethodTable& methods;
  const Places& places;
  Observer& observer;
  SavedProfile& saved;
  KeptBodies& bodies;
  Events& events;
  jit::CodeSpace& space;
  jit::StubTable& stubs;
  jit::PollWords& poll_words;
  jit::TallySource& tallies;
  const jit::Routines& routines;
  const jit::Helpers& helpers;
  ImageCode& image;  // without a file it has no code
};

}  // namespace uptier::tiering
