#include "profile/upf/inlined.h"

#include "profile/upf/part.h"

namespace uptier::profile {
namespace {

using uptier::InlinedBlock;
using uptier::InlinedBody;
using uptier::InlinedKey;
using uptier::InlinedSite;

// The least sizes of items, in bytes.
constexpr size_t kLeastCall = 3 + sizeof(uint64_t);  // with its hash
constexpr size_t kLeastBlock = 4;
constexpr size_t kLeastBody = 3 + sizeof(uint64_t) + kLeastCall + 1 + kLeastBlock;
constexpr size_t kMostNumber = 10;

constexpr size_t kLeastSite = 4;
constexpr size_t kLeastEntry = sizeof(uint64_t) + 3;

// Malformed bodies are written, and counted as dropped, with the blocks.
bool wants_blocks(const InlinedKey& key, const InlinedBody& body) {
  return !body.blocks.empty() || !body.check(key).ok();
}
bool wants_sites(const InlinedKey& key, const InlinedBody& body) {
  return !body.sites.empty() && body.check(key).ok();
}

// Returns the greatest size of a body, in a chunk of blocks or of sites.
size_t most_blocks(const InlinedKey& key, const InlinedBody& body) {
  return kMostNumber * (8 + 5 * key.path.size() + 4 * body.blocks.size());
}

size_t most_sites(const InlinedKey& key, const InlinedBody& body) {
  size_t numbers = 8 + 5 * key.path.size();
  for (const auto& [at, site] : body.sites) {
    numbers += 4 + 2 * site.counts.size() + 4 * site.table.size();
  }
  return kMostNumber * numbers;
}

void write_place(const InlinedKey& key, const InlinedBody& body, PartWriter& out) {
  out.method(key.root);
  out.number(key.path.size());
  for (const auto& [site, callee] : key.path) {
    out.number(site);
    out.method(callee);
  }
  for (const uint64_t hash : body.code) out.fixed(hash);
}

void write_blocks(const InlinedKey& key, const InlinedBody& body, PartWriter& out) {
  write_place(key, body, out);
  out.number(body.blocks.size());
  for (const auto& [site, block] : body.blocks) {
    for (const uint64_t n : {uint64_t{site}, block.count, block.estimate, block.samples}) {
      out.number(n);
    }
  }
}

void write_sites(const InlinedKey& key, const InlinedBody& body, PartWriter& out) {
  write_place(key, body, out);
  out.number(body.sites.size());
  for (const auto& [at, site] : body.sites) {
    for (const uint64_t n : {static_cast<uint64_t>(at.first), uint64_t{at.second}, site.samples}) {
      out.number(n);
    }
    for (const uint64_t n : site.counts) out.number(n);
    for (const uint64_t n : site.estimates) out.number(n);
    out.number(site.table.size());
    for (const auto& [entry, seen] : site.table) {
      out.fixed(entry.module_key);
      for (const uint64_t n : {entry.value, seen.count, seen.estimate}) out.number(n);
    }
  }
}

using WriteBody = void (*)(const InlinedKey&, const InlinedBody&, PartWriter&);

Bytes part_of(std::span<const InlinedBodies::const_iterator> bodies, WriteBody write) {
  PartWriter out;
  for (const auto& at : bodies) {
    out.know(at->first.root);
    for (const auto& [site, callee] : at->first.path) out.know(callee);
  }
  out.head();
  out.number(bodies.size());
  for (const auto& at : bodies) write(at->first, at->second, out);
  return out.take();
}

void read_place(PartReader& in, InlinedKey& key, InlinedBody& body) {
  key.root = in.method();
  for (uint64_t n = in.count(kLeastCall); n > 0; --n) {
    const SiteId site = in.site();
    key.path.push_back({site, in.method()});
  }
  for (size_t i = 0; i <= key.path.size(); ++i) body.code.push_back(in.fixed());
}

void take_body(PartReader& in, InlinedKey key, InlinedBody body, InlinedBodies& into) {
  in.require(in.ok() && body.check(key).ok());
  if (in.ok()) in.require(into.emplace(std::move(key), std::move(body)).second);
}

void read_blocks(PartReader& in, InlinedBodies& into) {
  InlinedKey key;
  InlinedBody body;
  read_place(in, key, body);
  for (uint64_t n = in.count(kLeastBlock); n > 0 && in.ok(); --n) {
    const SiteId site = in.site();
    const uint64_t count = in.number(), estimate = in.number();
    in.require(body.blocks.emplace(site, InlinedBlock{count, estimate, in.number()}).second);
  }
  take_body(in, std::move(key), std::move(body), into);
}

void read_site(PartReader& in, InlinedBody& body) {
  const uint64_t kind = in.number();
  in.require(kind <= UINT8_MAX);
  const std::pair at{static_cast<SlotKind>(kind), in.site()};
  InlinedSite site;
  site.samples = in.number();
  const uint32_t words = slot_words(at.first);
  for (uint32_t i = 0; i < words && in.ok(); ++i) site.counts.push_back(in.number());
  for (uint32_t i = 0; i < words && in.ok(); ++i) site.estimates.push_back(in.number());
  for (uint64_t n = in.count(kLeastEntry); n > 0 && in.ok(); --n) {
    const uint64_t module = in.fixed(), value = in.number(), count = in.number();
    in.require(
        site.table.emplace(uptier::TableKey{module, value}, uptier::TableEntry{count, in.number()})
            .second);
  }
  in.require(body.sites.emplace(at, std::move(site)).second);
}

void read_sites(PartReader& in, InlinedBodies& into) {
  InlinedKey key;
  InlinedBody body;
  read_place(in, key, body);
  for (uint64_t n = in.count(kLeastSite); n > 0 && in.ok(); --n) read_site(in, body);
  take_body(in, std::move(key), std::move(body), into);
}

std::vector<Bytes> parts_of(const InlinedBodies& bodies,
                            bool (*wanted)(const InlinedKey&, const InlinedBody&),
                            size_t (*most)(const InlinedKey&, const InlinedBody&), WriteBody write,
                            uint64_t& dropped) {
  std::vector<Bytes> parts;
  std::vector<InlinedBodies::const_iterator> open;
  size_t bytes = 0;
  const auto close = [&] {
    if (!open.empty()) parts.push_back(part_of(open, write));
    open.clear();
    bytes = 0;
  };
  for (auto at = bodies.begin(); at != bodies.end(); ++at) {
    if (!wanted(at->first, at->second)) continue;
    const size_t more = most(at->first, at->second);
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

Result<InlinedBodies> read_part(ByteSpan part, size_t least,
                                void (*read)(PartReader&, InlinedBodies&)) {
  PartReader in(part);
  InlinedBodies bodies;
  for (uint64_t n = in.count(least); n > 0 && in.ok(); --n) read(in, bodies);
  if (in.done()) return bodies;
  return Error{ErrorCode::kCorruptInput, "numbers or lists that are not possible"};
}

}  // namespace

std::vector<Bytes> inlined_parts(const InlinedBodies& bodies, uint64_t& dropped) {
  return parts_of(bodies, wants_blocks, most_blocks, write_blocks, dropped);
}

std::vector<Bytes> inlined_site_parts(const InlinedBodies& bodies, uint64_t& dropped) {
  return parts_of(bodies, wants_sites, most_sites, write_sites, dropped);
}

Result<InlinedBodies> read_inlined_part(ByteSpan part) {
  return read_part(part, kLeastBody, read_blocks);
}

Result<InlinedBodies> read_inlined_site_part(ByteSpan part) {
  return read_part(part, kLeastBody, read_sites);
}

}  // namespace uptier::profile
