#include <exception>

#include "profile/base/room.h"
#include "profile/upf/idb.h"
#include "uptier/gather.h"

namespace uptier {
namespace {

constexpr std::byte kZeros[16] = {};
constexpr const char* kNoMemory = "memory ran out";

// Returns the zeros that follow so many bytes, up to a multiple of `unit`.
std::span<const std::byte> padding(uint64_t bytes, size_t unit) {
  return std::span(kZeros).first((unit - bytes % unit) % unit);
}

}  // namespace

void GatherList::append(std::vector<std::byte> bytes) {
  if (bytes.empty()) return;
  make_room(pieces_, 1);
  const std::vector<std::byte>& kept = copies_.emplace_back(std::move(bytes));
  pieces_.push_back({kept.data(), kept.size()});
}

void GatherList::fail(const char* problem) noexcept {
  if (problem_ == nullptr) problem_ = problem;
}

void GatherList::borrow(std::span<const std::byte> bytes) noexcept try {
  if (!bytes.empty()) pieces_.push_back({bytes.data(), bytes.size()});
} catch (const std::exception&) { fail(kNoMemory); }

std::span<const std::byte> GatherList::keep(std::span<const std::byte> bytes) noexcept try {
  return copies_.emplace_back(bytes.begin(), bytes.end());
} catch (const std::exception&) {
  fail(kNoMemory);
  return {};
}

void GatherList::copy(std::span<const std::byte> bytes) noexcept try {
  append({bytes.begin(), bytes.end()});
} catch (const std::exception&) { fail(kNoMemory); }

void GatherList::user_data(std::string_view type, std::string_view metadata,
                           std::span<const std::byte> data) noexcept try {
  using namespace profile;
  StringTableBuilder strings;
  const uint32_t type_id = strings.add(type), metadata_id = strings.add(metadata);
  Bytes front;
  append_chunk(front, kIdbStringTable, 0, strings.content());
  append_chunk_header(front, kIdbUserData, 0, kIdbUserDataHead + data.size());
  ByteWriter writer(front);
  writer.u32(type_id);
  writer.u32(metadata_id);
  writer.u64(0);
  append(std::move(front));
  borrow(data);
  borrow(padding(data.size(), sizeof kZeros));
} catch (const std::exception&) { fail(kNoMemory); }

void GatherList::instruments(std::span<const GatheredInstrument> instruments) noexcept try {
  using namespace profile;
  std::vector<Instrument> list;
  uint64_t payloads = 0;
  for (const GatheredInstrument& i : instruments) {
    list.push_back({i.type, i.stage, i.scope_hash, i.scope_key, i.metadata, i.payload});
    payloads += i.payload.size() + padding(i.payload.size(), kPayloadUnit).size();
  }
  StringTableBuilder strings;
  const Bytes definitions = instrument_definitions(list, strings);
  Bytes front;
  append_chunk(front, kIdbStringTable, 0, strings.content());
  append_chunk_header(front, kIdbInstrumentTable, 0, definitions.size() + payloads);
  front.insert(front.end(), definitions.begin(), definitions.end());
  const uint64_t content = definitions.size() + payloads;
  append(std::move(front));
  for (const GatheredInstrument& i : instruments) {
    borrow(i.payload);
    borrow(padding(i.payload.size(), kPayloadUnit));
  }
  borrow(padding(content, sizeof kZeros));
} catch (const std::exception&) { fail(kNoMemory); }

void GatherList::counters(std::string_view stage, std::string_view scope_hash,
                          std::span<const std::string_view> keys,
                          std::span<const uint64_t> words) noexcept try {
  if (keys.size() != words.size()) {
    return fail("counters: there are more keys than words, or fewer; pass one key for each word");
  }
  std::vector<std::byte> seen(words.size_bytes());
  std::vector<GatheredInstrument> list;
  for (size_t i = 0; i < words.size(); ++i) {
    const uint64_t word = __atomic_load_n(&words[i], __ATOMIC_RELAXED);
    profile::store(seen, i * sizeof word, word);
    list.push_back({"iree.instrument.counter",
                    stage,
                    scope_hash,
                    keys[i],
                    {},
                    std::span(seen).subspan(i * sizeof word, sizeof word)});
  }
  copies_.push_back(std::move(seen));
  instruments(list);
} catch (const std::exception&) { fail(kNoMemory); }

void GatherList::source_id(std::string_view stage, std::string_view scope_hash,
                           std::string_view key, std::string_view parent_hash) noexcept {
  if (parent_hash.empty()) return fail("source_id: the hash of the parent is empty");
  const std::span<const std::byte> parent = keep(std::as_bytes(std::span(parent_hash)));
  const GatheredInstrument one{kSourceIdType, stage, scope_hash, key, {}, parent};
  instruments({&one, 1});
}

}  // namespace uptier
