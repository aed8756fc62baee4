// Installer: puts a new version of a method in service, by the role that it plays.
//
// Order of publication: code bytes and tables (the compiler writes them), then the version, then the
// method's cell. A thread that reaches the code through the cell, or through a pointer that is stored
// here, finds everything that the code leads to.
//
//   Thread: any; the caller holds the state mutex.
#pragma once

#include <cstdint>
#include <memory>

namespace uptier::tiering {

struct Engine;
struct Method;
struct Version;

class Installer {
 public:
  // `engine` outlives this.
  explicit Installer(Engine& engine) : engine_(engine) {}

  // Takes over `version`, which belongs to `m`, and puts it in service.
  void install(Method& m, std::unique_ptr<Version> version);

 private:
  // What a version is for, which says how it comes into service.
  enum class Role : uint8_t {
    kEnterable,     // baseline code for frames that leave optimized code
    kLoopCode,      // optimized code that is entered at a loop
    kLoopCopy,      // its instrumented copy
    kOptimized,     // optimized code that calls reach
    kObserving,     // its instrumented copy
    kForValues,     // optimized code for some values of the parameters
    kPlain,         // baseline code
    kInstrumented,  // its instrumented copy
  };

  static Role role_of(const Version& v);
  void note_optimized(Method& m, const Version& v);
  void serve(Method& m, Version& v);
  void serve_optimized(Method& m, const Version& v);
  void serve_instrumented(Method& m, const Version& v);
  void serve_plain(Method& m, const Version& v);

  Engine& engine_;
};

}  // namespace uptier::tiering
