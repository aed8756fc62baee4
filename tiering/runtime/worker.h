// Worker: drains the rings, asks the policy, compiles and installs.
//
// It is one thread in the background. With workers = 0 there is no such thread, and the threads that
// hand over notes do its work (work_here).
//
//   Thread: the worker's own, but start() and work_here().
#pragma once

#include "uptier/result.h"

namespace uptier::tiering {

class Compilations;
struct Engine;
class FirstCalls;
class NoteIntake;

class Worker {
 public:
  // All outlive this.
  Worker(Engine& engine, Compilations& compilations, FirstCalls& first_calls,
         NoteIntake& note_intake)
      : engine_(engine),
        compilations_(compilations),
        first_calls_(first_calls),
        note_intake_(note_intake) {}

  // Begins the trace, and starts the thread if there is to be one. Errors: kResourceExhausted where
  // that is refused; lacks_thread() then.
  Status start();
  bool lacks_thread() const { return lacks_thread_; }
  // Without a thread of its own: does what there is to do, on the calling one, which does not hold the
  // state mutex.
  void work_here() noexcept;
  // Compiles what is queued, and then what a saved profile knows.
  void run_queue();

 private:
  // The thread's loop, until it is to stop.
  void run();
  // Whether the program may soon wait for what a saved profile knows. Takes no lock: the file was
  // opened before there was a worker, and the program wants the state mutex just now.
  bool expects_known() const;
  // Measures what compiling and running take on this machine.
  void measure_machine();
  // Waits until there is something to do: a note, the next tick while threads run, or code to be moved.
  void await_work();

  Engine& engine_;
  Compilations& compilations_;
  FirstCalls& first_calls_;
  NoteIntake& note_intake_;
  bool lacks_thread_ = false;
};

}  // namespace uptier::tiering
