// Installer: installs a new version of a method, according to its role.
//
// Order of publication: code bytes and tables (the compiler writes them), then the version, then
// the method's cell. So a thread that reaches the code through the cell, or through a pointer that
// is stored here, finds everything that the code refers to.
//
//   Thread: any; the caller holds the state mutex.
#pragma once

#include <cstdint>
#include <memory>

#include "tiering/base/state_lock.h"

namespace uptier::tiering {

struct Engine;
struct Method;
struct Version;

class Installer {
 public:
  // `engine` outlives this.
  explicit Installer(Engine& engine) : engine_(engine) {}

  // Takes ownership of `version`, which belongs to `m`, and installs it.
  void install(Method& m, std::unique_ptr<Version> version) UPTIER_REQUIRES(state_lock);

 private:
  // The role of a version; it decides how the version is installed.
  enum class Role : uint8_t {
    kEnterable,     // baseline code for frames that exit optimized code
    kLoopCode,      // optimized code that is entered at a loop
    kLoopCopy,      // its instrumented copy
    kOptimized,     // optimized code for calls
    kObserving,     // its instrumented copy
    kForValues,     // optimized code for some values of the parameters
    kPlain,         // baseline code
    kInstrumented,  // its instrumented copy
  };

  static Role role_of(const Version& v);
  const Version* version_before(const Method& m, const Version& v) const
      UPTIER_REQUIRES(state_lock);
  void note_optimized(Method& m, const Version& v) UPTIER_REQUIRES(state_lock);
  void serve(Method& m, Version& v) UPTIER_REQUIRES(state_lock);
  void serve_optimized(Method& m, const Version& v) UPTIER_REQUIRES(state_lock);
  void serve_instrumented(Method& m, const Version& v) UPTIER_REQUIRES(state_lock);
  void serve_plain(Method& m, const Version& v) UPTIER_REQUIRES(state_lock);

  Engine& engine_;
};

}  // namespace uptier::tiering
