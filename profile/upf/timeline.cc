#include "profile/upf/timeline.h"

#include <algorithm>
#include <bit>

#include "profile/upf/format.h"

namespace uptier::profile {
namespace {

// Together, and with the names of methods, these fit a record (kMaxContent).
constexpr size_t kMaxBytes = 4 << 20;  // of decisions
constexpr size_t kMaxVersions = 1 << 17;
constexpr size_t kMaxLoops = 1 << 17;
constexpr size_t kDecisionHead = 40;

size_t bytes_of(const Timeline::Decision& d) {
  return kDecisionHead + 2 * 15 + d.verb.size() + d.reason.size();
}

size_t bytes_of(const std::vector<Timeline::Decision>& list) {
  size_t sum = 0;
  for (const Timeline::Decision& d : list) sum += bytes_of(d);
  return sum;
}

void write(ByteWriter& out, const Timeline::Figure& f) {
  out.text(f.name);
  out.u64(std::bit_cast<uint64_t>(f.value));
}

void write(ByteWriter& out, const Timeline::Method& m) {
  out.u64(m.key.module_key);
  out.u32(m.key.function_index);
  out.u32(m.loops);
  out.text(m.name);
}

void write(ByteWriter& out, const Timeline::Loop& l) {
  for (uint32_t word : {l.method, l.site, l.parent, l.location}) out.u32(word);
}

void write(ByteWriter& out, const Timeline::Version& v) {
  out.u32(v.method);
  out.u32(static_cast<uint32_t>(v.tier) | static_cast<uint32_t>(v.copy) << 8);
  for (uint64_t word : {v.loop, v.from_ns, v.to_ns, v.code_bytes, v.compile_ns, v.inlined}) {
    out.u64(word);
  }
}

void write(ByteWriter& out, const Timeline::Decision& d) {
  out.u64(d.at_ns);
  out.u32(d.method);
  out.u32(0);
  for (uint64_t word : {d.calls, d.samples, d.iterations}) out.u64(word);
  out.text(d.verb);
  out.text(d.reason);
}

void read(ByteReader& in, Timeline::Figure& f) {
  f.name = in.text();
  f.value = std::bit_cast<double>(in.u64());
}

void read(ByteReader& in, Timeline::Method& m) {
  m.key.module_key = in.u64();
  m.key.function_index = in.u32();
  m.loops = in.u32();
  m.name = in.text();
}

void read(ByteReader& in, Timeline::Loop& l) {
  for (uint32_t* word : {&l.method, &l.site, &l.parent, &l.location}) *word = in.u32();
}

void read(ByteReader& in, Timeline::Version& v) {
  v.method = in.u32();
  const uint32_t what = in.u32();
  v.tier = static_cast<Tier>(what & 0xff);
  v.copy = static_cast<Copy>(what >> 8 & 0xff);
  for (uint64_t* word : {&v.loop, &v.from_ns, &v.to_ns, &v.code_bytes, &v.compile_ns, &v.inlined}) {
    *word = in.u64();
  }
}

void read(ByteReader& in, Timeline::Decision& d) {
  d.at_ns = in.u64();
  d.method = in.u32();
  in.u32();
  for (uint64_t* word : {&d.calls, &d.samples, &d.iterations}) *word = in.u64();
  d.verb = in.text();
  d.reason = in.text();
}

// Reads a list whose items take at least `least` bytes each, so that no count is trusted.
template <typename Item>
bool read_list(ByteReader& in, uint64_t count, size_t least, std::vector<Item>& list) {
  if (!in.ok() || count > in.rest() / least) return false;
  list.resize(count);
  for (Item& item : list) read(in, item);
  return in.ok();
}

bool names_a_method(const Timeline& t) {
  const auto known = [&t](const auto& item) { return item.method < t.methods.size(); };
  return std::ranges::all_of(t.loops, known) && std::ranges::all_of(t.versions, known) &&
         std::ranges::all_of(t.decisions, known);
}

bool has_a_tier(const Timeline::Version& v) {
  return v.tier <= Tier::kOptimized && v.copy <= Copy::kInstrumented;
}

template <typename Item>
uint64_t cut(std::vector<Item>& list, size_t most) {
  const size_t size = list.size();
  if (size <= most) return 0;
  list.resize(most);
  return size - most;
}

}  // namespace

std::vector<RunRecord> latest_runs(std::vector<RunRecord> runs) {
  std::ranges::stable_sort(runs, {}, &RunRecord::time);
  size_t count = 0, bytes = 0;
  while (count < std::min(runs.size(), kPastRuns)) {
    const RunRecord& run = runs[runs.size() - count - 1];
    bytes += run.log.size() + run.timeline.size();
    if (bytes > kPastBytes) break;
    ++count;
  }
  runs.erase(runs.begin(), runs.end() - static_cast<ptrdiff_t>(count));
  return runs;
}

void fit(Timeline& t) {
  t.left_out += cut(t.versions, kMaxVersions) + cut(t.loops, kMaxLoops);
  const size_t before = t.decisions.size();
  if (bytes_of(t.decisions) > kMaxBytes) {
    std::erase_if(t.decisions, [](const auto& d) { return d.verb == "keep"; });
  }
  size_t sum = 0, fitting = 0;
  for (; fitting < t.decisions.size(); ++fitting) {
    sum += bytes_of(t.decisions[fitting]);
    if (sum > kMaxBytes) break;
  }
  t.decisions.resize(fitting);
  t.left_out += before - fitting;
}

Bytes timeline_bytes(const Timeline& t) {
  Bytes bytes;
  ByteWriter out(bytes);
  for (uint64_t word :
       {t.length_ns, t.left_out, uint64_t{t.figures.size()}, uint64_t{t.methods.size()},
        uint64_t{t.loops.size()}, uint64_t{t.versions.size()}, uint64_t{t.decisions.size()}}) {
    out.u64(word);
  }
  for (const auto& item : t.figures) write(out, item);
  for (const auto& item : t.methods) write(out, item);
  for (const auto& item : t.loops) write(out, item);
  for (const auto& item : t.versions) write(out, item);
  for (const auto& item : t.decisions) write(out, item);
  return bytes;
}

Result<Timeline> read_timeline(ByteSpan bytes) {
  const auto broken = [](const char* rule) {
    return Error{ErrorCode::kCorruptInput, std::string("timeline: ") + rule};
  };
  ByteReader in(bytes);
  Timeline t;
  t.length_ns = in.u64();
  t.left_out = in.u64();
  uint64_t counts[5];
  for (uint64_t& count : counts) count = in.u64();
  const bool fits =
      read_list(in, counts[0], 16, t.figures) && read_list(in, counts[1], 24, t.methods) &&
      read_list(in, counts[2], 16, t.loops) && read_list(in, counts[3], 56, t.versions) &&
      read_list(in, counts[4], kDecisionHead + 16, t.decisions);
  if (!fits) return broken("a list does not fit");
  if (in.rest() != 0) return broken("bytes are left over");
  if (!names_a_method(t)) return broken("a method that is not in its list");
  if (!std::ranges::all_of(t.versions, has_a_tier)) return broken("an unknown tier or copy");
  return t;
}

}  // namespace uptier::profile
