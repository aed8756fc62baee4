// EnterableCode: makes the baseline code in which frames of optimized code continue after
// deoptimization.
//
// It is made when the first frame needs it, on that frame's thread (docs/notes/0013). It is kept as
// long as the method has any code, and is never refused for lack of room.
//
//   Thread: any, without the state mutex.
#pragma once

namespace uptier::tiering {

class Compilations;
struct Engine;
class Installer;
struct Method;

class EnterableCode {
 public:
  // All outlive this.
  EnterableCode(Engine& engine, Installer& installer, Compilations& compilations)
      : engine_(engine), installer_(installer), compilations_(compilations) {}

  // Returns whether the method has such code now; false if the host no longer describes the method,
  // or if memory runs out twice.
  bool make_enterable(Method& m) noexcept;

 private:
  bool make_enterable_version(Method& m);

  Engine& engine_;
  Installer& installer_;
  Compilations& compilations_;
};

}  // namespace uptier::tiering
