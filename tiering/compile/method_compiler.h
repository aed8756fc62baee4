// MethodCompiler: turns a Plan into a Version: describe, verify, compile.
//
// The law: a failure here never fails a running method. Nothing is installed, and the method
// changes only by the data learnt about it: its shape by the first description, its probes when
// code that counts is first made.
//
//   Thread: any, one per method: the caller has the method's turn (compile_turns.h), has a
//   LookingAround, and does not hold the state mutex, which is taken to read the data of other methods.
//   Exceptions: polls_refused(): any; functions with _locked: with the state mutex.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "jit/analysis/static_shape.h"
#include "jit/code/recorded_code.h"
#include "jit/opt/inlinee.h"
#include "tiering/base/state_lock.h"
#include "tiering/compile/compile_env.h"
#include "tiering/compile/describer.h"
#include "tiering/model/method.h"
#include "uptier/options.h"
#include "uptier/plan.h"

namespace uptier::tiering {

class EventTimes;

class MethodCompiler {
 public:
  using Parts = CompileEnv;
  explicit MethodCompiler(const CompileEnv& env) : env_(env), describer_(env_) {}
  MethodCompiler(const MethodCompiler&) = delete;
  MethodCompiler& operator=(const MethodCompiler&) = delete;

  Describer& describer() { return describer_; }
  const Describer& describer() const { return describer_; }

  // Makes the version for `plan`, by the host's compiler or ours.
  Result<std::unique_ptr<Version>> make(Method& m, const Plan& plan);
  // Makes baseline code for frames that leave optimized code.
  Result<std::unique_ptr<Version>> make_enterable(Method& m);
  // A body for an image, and what it says about the method besides its shape.
  struct Recorded {
    jit::RecordedCode code;
    jit::StaticShape shape;
  };
  // Describes and compiles the plain baseline copy, for an image. Nothing is made of it here.
  // Errors: also kUnsupported, what no image can have.
  Result<Recorded> record(Method& m);
  // Makes a thunk that calls the host's function and checks for a trap when it returns. The caller
  // holds the state mutex, and needs no turn.
  Result<std::unique_ptr<Version>> make_host_thunk_locked(const Method& m);

  // Returns the number of versions without poll words, so that their frames cannot be called back.
  uint64_t polls_refused() const { return polls_refused_.load(std::memory_order_relaxed); }

 private:
  // Returns the serial number of a version that is begun now.
  uint64_t next_serial() { return serials_.fetch_add(1, std::memory_order_relaxed) + 1; }
  Options live_options() const;
  Status check_size(const Method& m) const;
  Status make_own(Method& m, const Plan& plan, Version& v, EventTimes& times);
  Status make_ours(Method& m, const Plan& plan, Version& v, EventTimes& times);
  Status make_baseline(Method& m, const Plan& plan, Version& v, EventTimes& times);
  Result<bool> take_from_image(Method& m, const Plan& plan, Version& v);
  bool checks_loops() const;
  Status make_optimized(Method& m, const Plan& plan, Version& v, EventTimes& times);
  void emit_compiled(const Version& v, uint64_t at_ns, EventTimes& times) const;
  void take_poll_words(Version& v, uint32_t loops);
  jit::BodyProfile known_profile(Method& m, const Plan& plan, Version& v);
  void note_origin_locked(const Method& m, const jit::BodyProfile& p, Version& v) const
      UPTIER_REQUIRES(state_lock);

  const CompileEnv env_;
  Describer describer_;
  std::atomic<uint64_t> serials_{0};  // number of versions begun
  std::atomic<uint64_t> polls_refused_{0};
};

}  // namespace uptier::tiering
