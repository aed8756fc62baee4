// Counters: gives threads counters for the methods they run, and handles their absence.
//
//   Thread: the guest's own, below guest frames. guest.h has the law.
#pragma once

namespace uptier::tiering {

class AttachedThread;
struct Method;
class Notes;

class Counters {
 public:
  // `notes` outlives this.
  explicit Counters(Notes& notes) : notes_(notes) {}

  // Returns whether the thread has counters for a method; allocates them if necessary.
  bool has_slab(Method& m, AttachedThread& t) noexcept;
  // Says whether the thread can enter the instrumented copy.
  bool ready_to_count(Method& m, AttachedThread& t) noexcept;
  // A sample was due and could not be taken: counts it, and requests the copy that it needs.
  void lose_sample(Method& m, AttachedThread& t) noexcept;

 private:
  Notes& notes_;
};

}  // namespace uptier::tiering
