// Counters: whether a thread can count what it runs of a method, and what happens where it cannot.
//
//   Thread: the guest's own, below guest frames. The law is in guest.h.
#pragma once

namespace uptier::tiering {

class AttachedThread;
struct Engine;
struct Method;
class Notes;

class Counters {
 public:
  // All outlive this.
  Counters(Engine& engine, Notes& notes) : engine_(engine), notes_(notes) {}

  // Returns whether the thread has counters for a method; takes them if it has not.
  bool has_slab(Method& m, AttachedThread& t) noexcept;
  // Returns whether the thread can enter the instrumented copy.
  bool ready_to_count(Method& m, AttachedThread& t) noexcept;
  // A sample was due and could not be taken: counts that, and asks for the copy that it needs.
  void lose_sample(Method& m, AttachedThread& t) noexcept;

 private:
  Engine& engine_;
  Notes& notes_;
};

}  // namespace uptier::tiering
