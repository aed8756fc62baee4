// EnterableCode: makes the baseline code that frames of optimized code leave for (deoptimization).
//
// It is made when the first frame needs it, on that frame's thread (docs/notes/0013). It is kept as long
// as the method has code at all, and it is not refused for want of room.
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

  // Returns whether the method has such code now; false when the host does not describe the method
  // any more, or memory is refused twice.
  bool make_enterable(Method& m) noexcept;

 private:
  bool make_enterable_version(Method& m);

  Engine& engine_;
  Installer& installer_;
  Compilations& compilations_;
};

}  // namespace uptier::tiering
