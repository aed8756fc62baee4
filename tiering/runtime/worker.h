// Worker: drains the rings, asks the policy, compiles and installs.
//
// It is one background thread. With workers = 0 there is no such thread, and the threads that
// deliver notes do its work (work_here).
//
//   Thread: the worker's own, except start() and work_here().
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

  // Begins the trace, and starts the thread if there is to be one. Errors: kResourceExhausted if
  // the system refuses the thread; lacks_thread() then.
  Status start();
  bool lacks_thread() const { return lacks_thread_; }
  // Without a worker thread: does all pending work on the calling thread, which does not hold the
  // state mutex.
  void work_here() noexcept;
  // Compiles the queued requests, then the known methods of a saved profile.
  void run_queue();

 private:
  // The thread's loop, until it is stopped.
  void run();
  // Says whether the program may soon wait for methods of a saved profile. Takes no lock: the file
  // was opened before there was a worker, and the program needs the state mutex right now.
  bool expects_known() const;
  // Measures the speed of compiling and running on this machine.
  void measure_machine();
  // Waits until there is work: a note, the next tick while threads run, or code to be moved.
  void await_work();

  Engine& engine_;
  Compilations& compilations_;
  FirstCalls& first_calls_;
  NoteIntake& note_intake_;
  bool lacks_thread_ = false;
};

}  // namespace uptier::tiering
