// MethodCompiler: from a Plan to a Version: describe, verify, compile.
//
// The law: what fails here never fails a running method. Nothing is put in service, and of a method
// nothing changes but what is learnt about it: its shape from its first description, what is to be
// observed when code that counts is first made.
//
//   Thread: any, one a method: the caller has the method's turn (compile_turns.h), looks around
//   (LookingAround), and does not hold the state mutex, which is taken for what is read of others; but
//   polls_refused(), and what ends in _locked.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "jit/opt/inlinee.h"
#include "tiering/compile/compile_env.h"
#include "tiering/compile/describer.h"
#include "tiering/model/method.h"
#include "uptier/options.h"
#include "uptier/plan.h"

namespace uptier::tiering {

class MethodCompiler {
 public:
  using Parts = CompileEnv;
  explicit MethodCompiler(const CompileEnv& env) : env_(env), describer_(env_) {}
  MethodCompiler(const MethodCompiler&) = delete;
  MethodCompiler& operator=(const MethodCompiler&) = delete;

  Describer& describer() { return describer_; }
  const Describer& describer() const { return describer_; }

  // Makes what `plan` asks for, by the host's compiler or ours.
  Result<std::unique_ptr<Version>> make(Method& m, const Plan& plan);
  // Makes baseline code for frames that leave better code.
  Result<std::unique_ptr<Version>> make_enterable(Method& m);
  // Makes a call of the host's function that looks for a trap when it returns. The caller holds the
  // state mutex, and need not have the turn.
  Result<std::unique_ptr<Version>> make_host_thunk_locked(const Method& m);

  // Returns how many versions had to do without words to call their frames back by.
  uint64_t polls_refused() const { return polls_refused_.load(std::memory_order_relaxed); }

 private:
  // Returns the serial number of a version that begins now.
  uint64_t next_serial() { return serials_.fetch_add(1, std::memory_order_relaxed) + 1; }
  Options live_options() const;
  Status check_size(const Method& m) const;
  Status make_own(Method& m, const Plan& plan, Version& v);
  Status make_ours(Method& m, const Plan& plan, Version& v);
  Status make_baseline(Method& m, const Plan& plan, Version& v);
  Status make_optimized(Method& m, const Plan& plan, Version& v);
  void take_poll_words(Version& v, uint32_t loops);
  jit::BodyProfile known_profile(Method& m, const Plan& plan, Version& v);
  void note_origin_locked(const Method& m, const jit::BodyProfile& p, Version& v) const;

  const CompileEnv env_;
  Describer describer_;
  std::atomic<uint64_t> serials_{0};  // versions that were begun
  std::atomic<uint64_t> polls_refused_{0};
};

}  // namespace uptier::tiering
