#include "profile/upf/idb.h"

#include <algorithm>

#include "profile/base/checksum.h"
#include "profile/base/corrupt.h"

namespace uptier::profile {
namespace {

constexpr size_t kViewBytes = 16;
constexpr size_t kStringHead = 8;
constexpr size_t kLeastSlots = 64;
constexpr size_t kMostDamage = 16;  // most damages that are listed for a table

// Keeps only the first damages: nothing here takes more memory than the table.
void tell(std::string what, IdbDamage& damage) {
  if (damage.size() < kMostDamage) damage.push_back(std::move(what));
}

}  // namespace

Result<IdbHeader> read_idb_header(ByteSpan bytes) {
  if (load<uint32_t>(bytes, 0) != kIdbMagic) return corrupt("the magic is not IIDB");
  return IdbHeader{load<uint16_t>(bytes, 4), load<uint16_t>(bytes, 6), load<uint64_t>(bytes, 8)};
}

void append_chunk_header(Bytes& out, uint16_t type, uint16_t version, uint64_t content) {
  ByteWriter writer(out);
  writer.u32(kIdbMagic);
  writer.u32(uint32_t{version} << 16 | type);
  writer.u64(content);
}

void append_chunk(Bytes& out, uint16_t type, uint16_t version, ByteSpan content) {
  append_chunk_header(out, type, version, content.size());
  out.insert(out.end(), content.begin(), content.end());
  out.resize((out.size() + 15) & ~size_t{15});
}

uint32_t StringTableBuilder::add(std::string_view text) {
  if (2 * ends_.size() >= slots_.size()) grow();
  uint32_t& slot = slots_[place_of(text)];
  if (slot != 0) return slot - 1;
  texts_ += text;
  ends_.push_back(texts_.size());
  texts_ += '\0';
  slot = static_cast<uint32_t>(ends_.size());
  return slot - 1;
}

std::string_view StringTableBuilder::text_of(uint32_t id) const {
  const uint64_t begin = id == 0 ? 0 : ends_[id - 1] + 1;
  return std::string_view(texts_).substr(begin, ends_[id] - begin);
}

// Returns the slot of a text, or the free slot for it.
size_t StringTableBuilder::place_of(std::string_view text) const {
  const size_t mask = slots_.size() - 1;
  size_t at = XXH3_64bits(text.data(), text.size()) & mask;
  while (slots_[at] != 0 && text_of(slots_[at] - 1) != text) at = (at + 1) & mask;
  return at;
}

void StringTableBuilder::grow() {
  slots_.assign(std::max(kLeastSlots, 2 * slots_.size()), 0);
  for (uint32_t id = 0; id < ends_.size(); ++id) slots_[place_of(text_of(id))] = id + 1;
}

size_t StringTableBuilder::content_size() const {
  return kStringHead + ends_.size() * kViewBytes + texts_.size();
}

void StringTableBuilder::append_content(Bytes& out) const {
  out.reserve(out.size() + content_size());
  ByteWriter writer(out);
  writer.u32(0);
  writer.u32(static_cast<uint32_t>(ends_.size()));
  for (uint64_t begin = 0; const uint64_t end : ends_) {
    writer.u64(begin);
    writer.u64(end - begin);
    begin = end + 1;
  }
  const ByteSpan texts = std::as_bytes(std::span(texts_));
  out.insert(out.end(), texts.begin(), texts.end());
}

Bytes StringTableBuilder::content() const {
  Bytes out;
  append_content(out);
  return out;
}

Result<StringTable> StringTable::read(ByteSpan content, IdbDamage& damage) {
  if (content.size() < kStringHead) return corrupt("a string table without head");
  const uint32_t count = load<uint32_t>(content, 4);
  if (load<uint32_t>(content, 0) != 0) return corrupt("a reserved field is not zero");
  if (count > (content.size() - kStringHead) / kViewBytes) {
    return corrupt(std::to_string(count) + " strings are more than the table has room for");
  }
  const size_t data_at = kStringHead + size_t{count} * kViewBytes;
  const ByteSpan data = content.subspan(data_at);
  StringTable table;
  table.views_.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t offset = load<uint64_t>(content, kStringHead + size_t{i} * kViewBytes);
    const uint64_t length = load<uint64_t>(content, kStringHead + size_t{i} * kViewBytes + 8);
    const bool inside = offset < data.size() && length < data.size() - offset;
    const char* rule = !inside                                 ? " reaches past the table"
                       : data[offset + length] != std::byte{0} ? " has no NUL after it"
                       : i == 0 && length != 0                 ? " is not empty"
                                                               : nullptr;
    if (rule != nullptr) {
      tell("string " + std::to_string(i) + rule, damage);
    } else {
      table.views_[i] = {reinterpret_cast<const char*>(data.data() + offset), length};
    }
  }
  return table;
}

std::optional<std::string_view> StringTable::find(uint32_t id) const {
  if (id == 0) return "";
  if (id >= views_.size() || views_[id].data() == nullptr) return std::nullopt;
  return views_[id];
}

Bytes instrument_definitions(const std::vector<Instrument>& instruments,
                             StringTableBuilder& strings) {
  Bytes out;
  ByteWriter writer(out);
  for (int i = 0; i < 3; ++i) writer.u32(0);
  writer.u32(static_cast<uint32_t>(instruments.size()));
  uint64_t offset = 0;
  for (const Instrument& i : instruments) {
    for (const std::string_view text : {i.type, i.stage, i.scope_hash, i.scope_key, i.metadata}) {
      writer.u32(strings.add(text));
    }
    writer.u32(0);
    writer.u64(offset);
    writer.u64(i.payload.size());
    offset += (i.payload.size() + kPayloadUnit - 1) & ~(kPayloadUnit - 1);
  }
  return out;
}

Bytes instrument_table(const std::vector<Instrument>& instruments, StringTableBuilder& strings) {
  Bytes out = instrument_definitions(instruments, strings);
  for (const Instrument& i : instruments) {
    out.insert(out.end(), i.payload.begin(), i.payload.end());
    out.resize((out.size() + kPayloadUnit - 1) & ~(kPayloadUnit - 1));
  }
  return out;
}

Result<uint32_t> read_instrument_head(ByteSpan head, uint64_t content) {
  if (head.size() < kInstrumentHead) return corrupt("an instrument table without head");
  const uint32_t count = load<uint32_t>(head, 12);
  const bool zeros = load<uint64_t>(head, 0) == 0 && load<uint32_t>(head, 8) == 0;
  if (!zeros) return corrupt("a reserved field is not zero");
  if (count > (content - kInstrumentHead) / kDefinitionBytes) {
    return corrupt(std::to_string(count) + " instruments are more than the table has room for");
  }
  return count;
}

const char* read_definition(ByteSpan definition, uint64_t data, const StringTable& strings,
                            Instrument& read, PayloadPlace& place) {
  std::string_view* texts[] = {&read.type, &read.stage, &read.scope_hash, &read.scope_key,
                               &read.metadata};
  for (size_t t = 0; t < std::size(texts); ++t) {
    const auto text = strings.find(load<uint32_t>(definition, 4 * t));
    if (!text) return " names a string that is none";
    *texts[t] = *text;
  }
  place = {load<uint64_t>(definition, 24), load<uint64_t>(definition, 32)};
  const bool inside = place.offset <= data && place.length <= data - place.offset;
  return inside ? nullptr : "'s payload reaches past the table";
}

Result<std::vector<Instrument>> read_instruments(ByteSpan content, const StringTable& strings,
                                                 IdbDamage& damage) {
  const Result<uint32_t> count = read_instrument_head(content, content.size());
  if (!count.ok()) return count.error();
  const ByteSpan data = content.subspan(kInstrumentHead + size_t{*count} * kDefinitionBytes);
  std::vector<Instrument> instruments;
  for (uint32_t i = 0; i < *count; ++i) {
    const ByteSpan definition = content.subspan(kInstrumentHead + size_t{i} * kDefinitionBytes);
    Instrument read;
    PayloadPlace place;
    if (const char* rule = read_definition(definition, data.size(), strings, read, place)) {
      tell("instrument " + std::to_string(i) + rule, damage);
    } else {
      read.payload = data.subspan(place.offset, place.length);
      instruments.push_back(read);
    }
  }
  return instruments;
}

}  // namespace uptier::profile
