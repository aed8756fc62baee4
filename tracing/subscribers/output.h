// output.h: the file that a tool writes. Lost events are counted.
//
// Text is written in pieces of 4 KiB, so that little is missing if the process is killed. If a piece
// cannot be written, its events and all later ones are lost.
// Thread: the owner calls append() on one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "uptier/tracing.h"

namespace uptier::tracing {

class Output {
 public:
  // Opens the file `name`, or `fallback` if that is empty; "-" is stderr. If it cannot be opened,
  // returns null and writes a line in the log.
  static std::unique_ptr<Output> open(const uptier_trace_api* api, const char* name,
                                      const char* fallback);
  // Writes the rest. If any events are lost, it says so in the log and tells the dispatcher.
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Appends a text that holds `events` events. Allocates nothing.
  void append(std::string_view text, uint64_t events);

 private:
  Output(const uptier_trace_api* api, std::string name, int fd);
  void write_piece(std::string_view text);
  void flush();

  const uptier_trace_api* api_;
  const std::string name_;
  const int fd_;
  std::string piece_;
  uint64_t in_piece_ = 0;  // events in it
  uint64_t events_ = 0;
  uint64_t lost_ = 0;
  int error_ = 0;  // errno of the first write that failed
};

}  // namespace uptier::tracing
