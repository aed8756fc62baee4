#include "jit/code/leave.h"

#include <algorithm>

namespace uptier::jit {
namespace {

// The caller's rbp and the return address, which lie in a frame above its rbp-relative slots.
constexpr uint64_t kCallBytes = 16;

uint64_t word_at(uint64_t rbp, int64_t displacement) {
  return *reinterpret_cast<const uint64_t*>(rbp + static_cast<uint64_t>(displacement));
}

}  // namespace

uint64_t value_at_exit(const LeaveState& s, const ExitValue& v) {
  using From = ExitValue::From;
  switch (v.from) {
    case From::kGp: return s.gp[v.what];
    case From::kXmm: return s.xmm[v.what];
    case From::kFrame: return word_at(s.rbp(), static_cast<int64_t>(v.what));
    case From::kConstant: return v.what;
  }
  return 0;
}

void enter_baseline(LeaveState& s, const Code& from, const ExitRow& row,
                    std::span<const Code* const> to, uint32_t skipped) {
  s.from = &from;
  s.row = &row;
  s.skipped = skipped;
  s.at_loop = 0;
  s.frame_bytes = 0;
  s.buffer_bytes = sizeof(Arrival);
  for (uint32_t n = skipped; n < row.frames; ++n) {
    s.to[n] = to[n];
    s.frame_bytes += to[n]->tables().frame_size + (n == skipped ? 0 : kCallBytes);
    s.buffer_bytes += 8 * uint64_t{from.tables().exit_frames[row.frames_at + n].values};
  }
}

void enter_loop(LeaveState& s, const Code& from, const ExitRow& row, const Code& osr,
                uint64_t frame_bytes) {
  s.from = &from;
  s.row = &row;
  s.skipped = 0;
  s.at_loop = 1;
  s.to[0] = &osr;
  s.frame_bytes = frame_bytes;
  s.buffer_bytes = sizeof(Arrival) + 8 * uint64_t{from.tables().exit_frames[row.frames_at].values};
}

void restore_saved(LeaveState& s, const Code& from) {
  int64_t at = from.tables().saved_at;
  for (uint8_t reg : from.tables().saved) {
    s.gp[reg] = word_at(s.rbp(), at);
    at -= 8;
  }
}

namespace {

const void* goes_on(const Code& code, const ExitFrame& frame) {
  return code.at(code.tables().entries[frame.point]);
}

// Writes frames from the outermost to `last`, each below the one before. Returns the rbp of `last`.
// `values` holds the values of the frames from `last` on, frame after frame.
uint64_t write_frames(uint64_t rbp, std::span<const ExitFrame> frames, uint32_t last,
                      const Code* const* to, const ExitValue* rows, const uint64_t* values) {
  const uint64_t* end = values;
  for (uint32_t n = last; n < frames.size(); ++n) end += frames[n].values;
  auto put = [](uint64_t address, uint64_t word) { *reinterpret_cast<uint64_t*>(address) = word; };
  for (auto n = static_cast<uint32_t>(frames.size()) - 1;; --n) {
    const ExitFrame& frame = frames[n];
    end -= frame.values;
    for (uint32_t v = 0; v < frame.values; ++v) {
      put(rbp + static_cast<uint64_t>(int64_t{rows[frame.values_at + v].to}), end[v]);
    }
    if (n == last) return rbp;
    uint64_t rsp = rbp - to[n]->tables().frame_size;
    put(rsp - 8, reinterpret_cast<uintptr_t>(goes_on(*to[n], frame)));
    put(rsp - kCallBytes, rbp);
    rbp = rsp - kCallBytes;
  }
}

}  // namespace

// Reads everything, then writes everything: the state itself may lie where the new frames will be.
extern "C" void uptier_write_frames(LeaveState* state, uint64_t* buffer) noexcept {
  auto* arrival = reinterpret_cast<Arrival*>(buffer);
  uint64_t* values = buffer + sizeof(Arrival) / 8;
  const CodeTables& t = state->from->tables();
  std::span<const ExitFrame> frames(t.exit_frames.data() + state->row->frames_at,
                                    state->row->frames);
  auto last = static_cast<uint32_t>(state->skipped);
  uint64_t* next = values;
  for (const ExitFrame& frame : frames.subspan(last)) {
    const ExitValue* row = t.exit_values.data() + frame.values_at;
    for (uint32_t n = 0; n < frame.values; ++n) *next++ = value_at_exit(*state, row[n]);
  }
  restore_saved(*state, *state->from);
  for (size_t n = 0; n < std::size(machine::kSavedByLeave); ++n) {
    arrival->saved[n] = state->gp[machine::kSavedByLeave[n]];
  }
  arrival->result = state->result;
  const Code* to[kMostExitFrames];
  std::copy(std::begin(state->to), std::end(state->to), to);
  // The writes below may overwrite the state itself.
  bool at_loop = state->at_loop != 0;
  uint64_t bytes = at_loop ? state->frame_bytes : to[last]->tables().frame_size;
  arrival->target = at_loop ? to[last]->entry() : goes_on(*to[last], frames[last]);
  arrival->rbp = write_frames(state->rbp(), frames, last, to, t.exit_values.data(), values);
  arrival->rsp = arrival->rbp - bytes;
}

}  // namespace uptier::jit
