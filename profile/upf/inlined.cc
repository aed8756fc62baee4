#include "profile/upf/inlined.h"

#include "profile/upf/part.h"

namespace uptier::profile {
namespace {

using uptier::InlinedBlock;
using uptier::InlinedBody;
using uptier::InlinedKey;

// What things take at least, in bytes.
constexpr size_t kLeastCall = 3 + sizeof(uint64_t);  // with its hash
constexpr size_t kLeastBlock = 4;
constexpr size_t kLeastBody = 3 + sizeof(uint64_t) + kLeastCall + 1 + kLeastBlock;
constexpr size_t kMostNumber = 10;

// Returns what a body takes at most.
size_t most_bytes(const InlinedKey& key, const InlinedBody& body) {
  return kMostNumber * (8 + 5 * key.path.size() + 4 * body.blocks.size());
}

void write_body(const InlinedKey& key, const InlinedBody& body, PartWriter& out) {
  out.method(key.root);
  out.number(key.path.size());
  for (const auto& [site, callee] : key.path) {
    out.number(site);
    out.method(callee);
  }
  for (const uint64_t hash : body.code) out.fixed(hash);
  out.number(body.blocks.size());
  for (const auto& [site, block] : body.blocks) {
    for (const uint64_t n : {uint64_t{site}, block.count, block.estimate, block.samples}) {
      out.number(n);
    }
  }
}

Bytes part_of(std::span<const InlinedBodies::const_iterator> bodies) {
  PartWriter out;
  for (const auto& at : bodies) {
    out.know(at->first.root);
    for (const auto& [site, callee] : at->first.path) out.know(callee);
  }
  out.head();
  out.number(bodies.size());
  for (const auto& at : bodies) write_body(at->first, at->second, out);
  return out.take();
}

void read_body(PartReader& in, InlinedBodies& into) {
  InlinedKey key{in.method(), {}};
  InlinedBody body;
  for (uint64_t n = in.count(kLeastCall); n > 0; --n) {
    const SiteId site = in.site();
    key.path.push_back({site, in.method()});
  }
  for (size_t i = 0; i <= key.path.size(); ++i) body.code.push_back(in.fixed());
  for (uint64_t n = in.count(kLeastBlock); n > 0 && in.ok(); --n) {
    const SiteId site = in.site();
    const uint64_t count = in.number(), estimate = in.number();
    in.require(body.blocks.emplace(site, InlinedBlock{count, estimate, in.number()}).second);
  }
  in.require(in.ok() && body.check(key).ok());
  if (in.ok()) in.require(into.emplace(std::move(key), std::move(body)).second);
}

}  // namespace

std::vector<Bytes> inlined_parts(const InlinedBodies& bodies, uint64_t& dropped) {
  std::vector<Bytes> parts;
  std::vector<InlinedBodies::const_iterator> open;
  size_t bytes = 0;
  const auto close = [&] {
    if (!open.empty()) parts.push_back(part_of(open));
    open.clear();
    bytes = 0;
  };
  for (auto at = bodies.begin(); at != bodies.end(); ++at) {
    const size_t more = most_bytes(at->first, at->second);
    if (!at->second.check(at->first).ok() || more > kMaxContent / 2) {
      ++dropped;
      continue;
    }
    if (bytes + more > kGroupBytes) close();
    bytes += more;
    open.push_back(at);
  }
  close();
  return parts;
}

Result<InlinedBodies> read_inlined_part(ByteSpan part) {
  PartReader in(part);
  InlinedBodies bodies;
  for (uint64_t n = in.count(kLeastBody); n > 0 && in.ok(); --n) read_body(in, bodies);
  if (in.done()) return bodies;
  return Error{ErrorCode::kCorruptInput, "numbers or lists that are not possible"};
}

}  // namespace uptier::profile
