#include "profile/formats/probe_samples.h"

#include <cinttypes>
#include <cstdio>
#include <map>
#include <utility>

namespace uptier::profile {
namespace {

std::string hex_of(uint64_t v) {
  char text[17];
  std::snprintf(text, sizeof text, "%" PRIx64, v);
  return text;
}

using Counts = std::map<std::pair<uint64_t, uint64_t>, uint64_t>;

void put(std::string& out, const Counts& counts, const char* between) {
  out += std::to_string(counts.size()) + "\n";
  for (const auto& [ends, count] : counts) {
    out += hex_of(ends.first) + between + hex_of(ends.second) + ":" + std::to_string(count) + "\n";
  }
}

class ScriptWriter {
 public:
  void add(const SampledBlock& block, const ProbeSample& s) {
    const bool call_first = block.first == FirstInstruction::kCall && !block.calls.empty();
    if (call_first) {
      call(block.calls[0], s, block.start == 0 ? "" : range_to(block.start));
    } else if (block.start != 0 && block.first != FirstInstruction::kReturn) {
      head(s.count);
      callers(s);
      out_ += branch(block.start, block.start) + range_to(block.start) + "\n\n";
    } else if (block.start != 0 && !s.callers.empty()) {
      // A return: to the reader the thread is in the caller.
      head(s.count);
      callers(s, 1);
      out_ += branch(block.start, s.callers[0]) + range_to(block.start) + "\n\n";
    }
    for (size_t i = call_first ? 1 : 0; i < block.calls.size(); ++i) call(block.calls[i], s, "");
  }
  std::string take() { return std::move(out_); }

 private:
  static std::string branch(uint64_t from, uint64_t to) {
    return " 0x" + hex_of(from) + "/0x" + hex_of(to) + "/P/-/-/0";
  }
  // The branch before: it came from outside.
  static std::string range_to(uint64_t start) { return branch(0, start); }

  void head(uint64_t count) { out_ += std::to_string(count) + "\n\t0\n"; }
  void callers(const ProbeSample& s, size_t from = 0) {
    for (size_t i = from; i < s.callers.size(); ++i) out_ += "\t" + hex_of(s.callers[i]) + "\n";
  }
  // To the reader the thread is in the callee.
  void call(const SampledCall& c, const ProbeSample& s, const std::string& before) {
    head(s.count);
    out_ += "\t" + hex_of(c.returns) + "\n";
    callers(s);
    out_ += branch(c.address, c.target == 0 ? c.address : c.target) + before + "\n\n";
  }

  std::string out_;
};

}  // namespace

std::string to_unsymbolized(const ProbeSamples& samples) {
  Counts ranges, branches;
  for (const ProbeSample& s : samples.samples) {
    for (const uint32_t b : s.blocks) {
      const SampledBlock& block = samples.blocks[b];
      if (block.start != 0) ranges[{block.start, block.start}] += s.count;
      for (const SampledCall& c : block.calls) {
        if (c.address != block.start) ranges[{c.address, c.address}] += s.count;
        if (c.target != 0) branches[{c.address, c.target}] += s.count;
      }
    }
  }
  std::string out;
  put(out, ranges, "-");
  put(out, branches, "->");
  return out;
}

std::string to_perfscript(const ProbeSamples& samples) {
  ScriptWriter writer;
  for (const ProbeSample& s : samples.samples) {
    for (const uint32_t b : s.blocks) writer.add(samples.blocks[b], s);
  }
  return writer.take();
}

}  // namespace uptier::profile
