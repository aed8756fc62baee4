// trace.h: the program's calls and collections, told to tracing tools as the stream `calc`.
//
//   call         a FUNCTION pair; its text is the name of the function
//   collection   an ARGUMENTS pair `collect`: the bytes in use before it, and the bytes found dead
//
// start() decides whether calls are told. If not, the interpreter has one branch for each call, and
// compiled code has nothing.
//
// A call need not end where it began: a guard hands the rest of a compiled call to the interpreter,
// compiled code takes over a loop of the interpreter, and an error drops all frames. So the calls
// that have begun are a stack here, and code that ends a call says how many stay open. To end a call
// twice does nothing.
//
//   Thread: the program's; the runtime's worker calls tells_calls, too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "uptier/tracing.h"

namespace calc {

struct Code;
struct Proto;

class Trace {
 public:
  // Asks which events tools want. Call it after uptier_trace_init, before the program runs.
  void start(const Code& code, const char* program);

  bool tells_calls() const { return tells_calls_; }
  void enter(const Proto& p);
  size_t open_calls() const { return open_.size(); }
  // Ends calls, the last one first, until so many are open.
  void leave_until(size_t open_calls);

  // Around a collection. begin_collection returns what end_collection takes.
  uint64_t begin_collection(size_t bytes_in_use) const;
  void end_collection(uint64_t instance, size_t bytes_in_use, size_t bytes_found_dead) const;

 private:
  struct Call {
    uptier_trace_event* function;
    uint64_t instance;
  };

  bool tells_calls_ = false;
  // Until start() it is the stream that nobody listens to.
  uptier_trace_stream* stream_ = uptier_trace->stream("calc", 1, 0);
  std::vector<uptier_trace_event*> functions_;  // by index of the function
  std::vector<Call> open_;
};

}  // namespace calc
