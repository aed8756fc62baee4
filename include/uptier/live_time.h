// live_time.h: where a running process spends its processor time, read from another process.
//
//   a runtime with Options::listen  --Unix socket-->  LiveView::read() -> LiveTime
//
// Rule: a view can only ask for the numbers. Nothing that it sends changes the process, and a view
// that does not read what it asked for delays nobody: neither code, nor the runtime's end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "uptier/ids.h"
#include "uptier/profile.h"
#include "uptier/profile_time.h"
#include "uptier/result.h"

namespace uptier {

// The state of a method's compilation. kReady: nothing is under way. kWaiting: better code was
// requested, or is being compiled. kGivenUp: it stays in its present code, because guards failed
// too often or its body was described differently each time. kFailed: its last compilation failed.
// kEvicted: its code was freed to make room. kRemoved: the host has removed it.
enum class CompileState : uint8_t { kReady, kWaiting, kGivenUp, kFailed, kEvicted, kRemoved };
inline constexpr uint32_t kCompileStates = 6;
// Returns "ready", "waiting", "given_up", "failed", "evicted" or "removed".
const char* compile_state_name(CompileState s);

// The time of one method in one kind of code, as in TimeRow, since sampling began.
struct LiveRow {
  TimePlace place = TimePlace::kMethod;
  MethodId method;  // of a method, as the next one
  MethodKey key;
  std::string name;         // printable: other bytes are '?'
  Tier tier = Tier::kHost;  // of the code where the time was spent; kHost for a stub and for places
  Copy copy = Copy::kPlain;
  bool osr = false;
  bool inlined = false;
  uint64_t samples = 0;
  uint64_t ns = 0;
  Tier serves = Tier::kHost;  // the tier of the code that calls run now
  CompileState state = CompileState::kReady;

  friend bool operator==(const LiveRow&, const LiveRow&) = default;
};

// All numbers are sums since sampling began, so the difference of two readings is what happened in
// between.
struct LiveTime {
  uint64_t process = 0;     // id
  uint64_t age_ns = 0;      // of the runtime
  uint64_t hz = 0;          // samples per second of processor time; 0: none are taken now
  uint64_t asked_ns = 0;    // processor time of the threads while they were sampled
  uint64_t sampled_ns = 0;  // of that, the time that samples stand for
  uint64_t squares = 0;     // sum of the squares of the samples' weights, in microseconds^2
  uint64_t samples = 0;
  uint64_t dropped = 0;       // samples that found no room
  uint64_t waiting = 0;       // compile requests that wait
  uint64_t code_bytes = 0;    // machine code in service
  std::vector<LiveRow> rows;  // most time first

  friend bool operator==(const LiveTime&, const LiveTime&) = default;
};

// A connection to the socket of a process.
//
//   Thread: one at a time.
class LiveView {
 public:
  // Connects to the process with this id, which listens "on" its usual socket. Errors:
  // kInvalidArgument (not a process id), kNotFound (no such process, or it has no socket), kIo (also
  // if it belongs to another user).
  static Result<std::unique_ptr<LiveView>> of_process(uint64_t process);
  // Connects to a socket by its path. Errors: the same.
  static Result<std::unique_ptr<LiveView>> of_socket(const std::string& path);
  ~LiveView();
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

  // Asks for the numbers of now and waits for them, at most 5 seconds for each part of the answer.
  // Errors: kNotFound (the process or its runtime has ended), kIo (no answer), kCorruptInput (not
  // an answer), kUnsupported (an answer in the form of another version).
  Result<LiveTime> read();

 private:
  explicit LiveView(int socket, std::string name) : socket_(socket), name_(std::move(name)) {}

  int socket_;
  std::string name_;  // for messages
};

}  // namespace uptier
