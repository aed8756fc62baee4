// FirstCalls: makes the first code of a method, on its first call or ahead of it.
//
//   Thread: any, without the state mutex. The thread counts as blocked while it compiles, so code that it
//   does not run can be freed to make room.
#pragma once

#include <vector>

#include "tiering/base/state_lock.h"
#include "uptier/plan.h"
#include "uptier/result.h"

namespace uptier::tiering {

class Compilations;
struct Engine;
class Installer;
struct Method;
class WarmStart;

class FirstCalls {
 public:
  // All outlive this.
  FirstCalls(Engine& engine, Installer& installer, Compilations& compilations,
             WarmStart& warm_start)
      : engine_(engine),
        installer_(installer),
        compilations_(compilations),
        warm_start_(warm_start) {}

  // A method without code in service was called. Returns whether it has code now.
  bool first_call(Method& m) noexcept;
  // Makes the first code of one method known from a saved profile, as its first call would. Returns
  // whether there was one. Called by the worker.
  bool compile_known();

 private:
  // Returns true.
  bool note_first_call(Method& m);
  bool make_first(Method& m);
  // Says whether a method without code is compiled when it is called. If the host has an
  // interpreter, that is so only if the interpreter must not be used, or if a saved profile is
  // sufficient. The caller has the turn.
  bool compiles_first(Method& m);
  // Sends calls to the host's interpreter. Returns false if there is no room for its thunk.
  bool interpret(Method& m);
  bool is_banned(const Method& m) const;
  std::vector<Plan> first_plans(const Method& m) const;
  Status compile_first(Method& m);

  Engine& engine_;
  Installer& installer_;
  Compilations& compilations_;
  WarmStart& warm_start_;
};

}  // namespace uptier::tiering
