// Quiescence: the points at which a thread declares that it runs no compiled code, or waits outside
// of it.
//
// Retired code is freed when no thread can run it any more (serve/reclaimer.h).
//
//   Thread: the attached thread itself.
#pragma once

namespace uptier::tiering {

class AttachedThread;
struct Engine;

class Quiescence {
 public:
  // `engine` outlives this.
  explicit Quiescence(Engine& engine) : engine_(engine) {}

  // The thread has no frame of compiled code.
  void pass_quiescent(AttachedThread& t) noexcept;
  // The calling thread waits outside compiled code from here on, if it is attached.
  void begin_blocked() noexcept;
  // The calling thread no longer waits.
  void end_blocked() noexcept;
  // The outermost invoke has returned: frees the code that only this thread kept alive. Cost:
  // nothing, unless code waits to be freed; then a scan of the thread's stack.
  void back_in_host(AttachedThread& t) noexcept;

 private:
  Engine& engine_;
};

}  // namespace uptier::tiering
