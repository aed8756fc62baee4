// event_file.h: reads a file of `uptier run --events FILE.jsonl` back.
//
// Every line of the file is one JSON object (tracing/subscribers/jsonl.cc). The tasks of the stream
// `uptier` (runtime_stream.h) are the events of methods; other lines are only checked.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "uptier/result.h"

namespace uptier::tools {

// One event of a method. Members that its kind does not have are 0 or empty.
struct MethodEvent {
  std::string what;  // the activity: "compile", "OSR in"; see runtime_stream.h
  uint32_t method = 0;
  uint64_t begun_ns = 0;  // since the first event of the file; likewise the end
  uint64_t ended_ns = 0;
  uint64_t thread = 0;         // the kernel's number
  uint64_t sequence = 0;       // number of the change
  uint64_t version = 0;        // serial number; 0: none
  uint64_t other_version = 0;  // where a frame came from or went to; what an install replaced
  std::string tier;            // "baseline" or "optimized"
  bool instrumented = false;
  int64_t loop = -1;    // where the version is entered; -1: at its start
  uint64_t bytes = 0;   // of code
  uint64_t count = 0;   // calls, exit, inlined bodies or number of the first call, by kind
  std::string source;   // "sort.c:12": of the method, the loop, or the exit
  std::string body;     // the inlined method whose exit was taken; empty: the method itself
  std::string inlined;  // "add #3, mul #7"
  std::string action;   // of a decision
  std::string reason;   // why, in words
};

struct EventFile {
  std::map<uint32_t, std::string> names;  // of all methods
  std::vector<MethodEvent> events;        // of the methods that were asked for, by time
  std::set<uint64_t> workers;             // threads that compile in the background
  uint64_t ended_ns = 0;                  // time of the last event of the file
  uint64_t lost = 0;                      // events that the runtime could not keep
  bool cut_short = false;                 // the last line is incomplete
};

// Reads the contents of `file` (a name for messages), with the events of the methods that `wanted`
// names: a name or "#" and a number. A last line that is incomplete is left out. Fails
// (kCorruptInput) if another line is not an event, or if there are no events of a runtime.
Result<EventFile> read_events(const std::string& file, std::span<const uint8_t> bytes,
                              const std::string& wanted);

// Returns the number of "#34"; -1 if the text is not of this form.
int64_t method_number(const std::string& text);

}  // namespace uptier::tools
