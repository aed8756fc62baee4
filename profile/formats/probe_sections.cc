#include "profile/formats/probe_sections.h"

#include <algorithm>
#include <tuple>

#include "profile/formats/md5.h"

namespace uptier::profile {
namespace {

constexpr uint8_t kSentinel = 2 << 4;
constexpr uint8_t kDistance = 0x80;
constexpr uint32_t kEntry = 1;  // the id of a function's first block

void put8(std::string& out, uint64_t v) {
  for (int bits = 0; bits < 64; bits += 8) out += static_cast<char>(v >> bits & 0xff);
}

void put_uleb(std::string& out, uint64_t v) {
  for (; v >= 0x80; v >>= 7) out += static_cast<char>(v | 0x80);
  out += static_cast<char>(v);
}

void put_sleb(std::string& out, int64_t v) {
  while (v < -64 || v > 63) {
    out += static_cast<char>((v & 0x7f) | 0x80);
    v >>= 7;
  }
  out += static_cast<char>(v & 0x7f);
}

// The bodies with probes in one part of a code, as a tree.
class PartTree {
 public:
  PartTree(const ProbedCode& code, const ProbedPart& part)
      : code_(code), own_(code.bodies.size()), inlined_(code.bodies.size()) {
    for (const PlacedProbe& p : code.probes) {
      if (part.holds(p.address)) own_[p.body].push_back(p);
    }
    for (auto& probes : own_) {
      std::ranges::sort(probes, {},
                        [](const PlacedProbe& p) { return std::tuple(p.address, p.id, p.kind); });
    }
    for (size_t b = code.bodies.size(); b-- > 1;) {
      const bool needed = !own_[b].empty() || !inlined_[b].empty();
      if (needed) inlined_[code.bodies[b].parent].push_back(static_cast<uint32_t>(b));
    }
    for (auto& bodies : inlined_) std::ranges::reverse(bodies);
  }

  const ProbedBody& body(uint32_t b) const { return code_.bodies[b]; }
  const std::vector<PlacedProbe>& probes(uint32_t b) const { return own_[b]; }
  const std::vector<uint32_t>& inlined(uint32_t b) const { return inlined_[b]; }
  bool empty() const { return own_[0].empty() && inlined_[0].empty(); }

 private:
  const ProbedCode& code_;
  std::vector<std::vector<PlacedProbe>> own_;
  std::vector<std::vector<uint32_t>> inlined_;
};

class ProbeWriter {
 public:
  explicit ProbeWriter(const ProbedFile& file) {
    for (const ProbedFunction& f : file.functions) guids_.push_back(llvm_guid(f.name));
  }

  void add(const ProbedCode& code) {
    for (const ProbedPart& part : code.parts) {
      const PartTree tree(code, part);
      if (tree.empty()) continue;
      const bool cold = &part != code.parts.data();
      absolute_ = true;
      begin(tree, 0, cold ? 1 : 0);
      if (cold) put_probe(kEntry, kSentinel, part.address);
      put_body(tree, 0);
    }
  }
  std::string take() { return std::move(out_); }

 private:
  void begin(const PartTree& tree, uint32_t body, size_t sentinels) {
    put8(out_, guids_[tree.body(body).function]);
    put_uleb(out_, tree.probes(body).size() + sentinels);
    put_uleb(out_, tree.inlined(body).size());
  }

  void put_body(const PartTree& tree, uint32_t body) {
    for (const PlacedProbe& p : tree.probes(body)) {
      put_probe(p.id, static_cast<uint8_t>(p.kind), p.address);
    }
    for (const uint32_t inlined : tree.inlined(body)) {
      put_uleb(out_, tree.body(inlined).call);
      begin(tree, inlined, 0);
      put_body(tree, inlined);
    }
  }

  void put_probe(uint32_t id, uint8_t kind, uint64_t address) {
    put_uleb(out_, id);
    out_ += static_cast<char>(absolute_ ? kind : kind | kDistance);
    absolute_ ? put8(out_, address) : put_sleb(out_, static_cast<int64_t>(address - last_));
    absolute_ = false;
    last_ = address;
  }

  std::vector<uint64_t> guids_;
  std::string out_;
  bool absolute_ = true;
  uint64_t last_ = 0;
};

}  // namespace

std::string probe_desc_section(const ProbedFile& file) {
  std::string out;
  for (const ProbedFunction& f : file.functions) {
    put8(out, llvm_guid(f.name));
    put8(out, f.hash);
    put_uleb(out, f.name.size());
    out += f.name;
  }
  return out;
}

std::string probe_section(const ProbedFile& file) {
  ProbeWriter writer(file);
  for (const ProbedCode& code : file.codes) writer.add(code);
  return writer.take();
}

}  // namespace uptier::profile
