#include "profile/upf/idb.h"

namespace uptier::profile {
namespace {

constexpr size_t kViewBytes = 16;
constexpr size_t kDefinitionBytes = 40;  // five ids, four bytes of padding, offset and length
constexpr size_t kInstrumentHead = 16;
constexpr size_t kStringHead = 8;

Error corrupt(std::string rule) { return Error{ErrorCode::kCorruptInput, std::move(rule)}; }

}  // namespace

Result<IdbHeader> read_idb_header(ByteSpan bytes) {
  if (load<uint32_t>(bytes, 0) != kIdbMagic) return corrupt("the magic is not IIDB");
  return IdbHeader{load<uint16_t>(bytes, 4), load<uint16_t>(bytes, 6), load<uint64_t>(bytes, 8)};
}

void append_chunk(Bytes& out, uint16_t type, uint16_t version, ByteSpan content) {
  ByteWriter writer(out);
  writer.u32(kIdbMagic);
  writer.u32(uint32_t{version} << 16 | type);
  writer.u64(content.size());
  out.insert(out.end(), content.begin(), content.end());
  out.resize((out.size() + 15) & ~size_t{15});
}

uint32_t StringTableBuilder::add(std::string_view text) {
  const auto at = ids_.find(text);
  if (at != ids_.end()) return at->second;
  const auto id = static_cast<uint32_t>(strings_.size());
  strings_.push_back(&ids_.emplace(text, id).first->first);
  return id;
}

Bytes StringTableBuilder::content() const {
  Bytes out;
  ByteWriter writer(out);
  writer.u32(0);
  writer.u32(static_cast<uint32_t>(strings_.size()));
  uint64_t offset = 0;
  for (const std::string* text : strings_) {
    writer.u64(offset);
    writer.u64(text->size());
    offset += text->size() + 1;
  }
  for (const std::string* text : strings_) {
    const ByteSpan chars = std::as_bytes(std::span(*text));
    out.insert(out.end(), chars.begin(), chars.end());
    out.push_back(std::byte{0});
  }
  return out;
}

Result<StringTable> StringTable::read(ByteSpan content) {
  if (content.size() < kStringHead) return corrupt("a string table without head");
  const uint32_t count = load<uint32_t>(content, 4);
  if (load<uint32_t>(content, 0) != 0) return corrupt("a reserved field is not zero");
  if (count > (content.size() - kStringHead) / kViewBytes) {
    return corrupt(std::to_string(count) + " strings are more than the table has room for");
  }
  const size_t data_at = kStringHead + size_t{count} * kViewBytes;
  const ByteSpan data = content.subspan(data_at);
  StringTable table;
  table.views_.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t offset = load<uint64_t>(content, kStringHead + size_t{i} * kViewBytes);
    const uint64_t length = load<uint64_t>(content, kStringHead + size_t{i} * kViewBytes + 8);
    const bool inside = offset < data.size() && length < data.size() - offset;
    if (!inside) return corrupt("string " + std::to_string(i) + " reaches past the table");
    if (data[offset + length] != std::byte{0}) {
      return corrupt("string " + std::to_string(i) + " has no NUL behind it");
    }
    table.views_.emplace_back(reinterpret_cast<const char*>(data.data() + offset), length);
  }
  const bool empty_first = table.views_.empty() || table.views_[0].empty();
  if (!empty_first) return corrupt("string 0 is not empty");
  return table;
}

std::optional<std::string_view> StringTable::find(uint32_t id) const {
  if (id == 0) return "";
  if (id >= views_.size()) return std::nullopt;
  return views_[id];
}

Bytes instrument_table(const std::vector<Instrument>& instruments, StringTableBuilder& strings) {
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
    offset += (i.payload.size() + 7) & ~size_t{7};
  }
  for (const Instrument& i : instruments) {
    out.insert(out.end(), i.payload.begin(), i.payload.end());
    out.resize((out.size() + 7) & ~size_t{7});
  }
  return out;
}

Result<std::vector<Instrument>> read_instruments(ByteSpan content, const StringTable& strings) {
  if (content.size() < kInstrumentHead) return corrupt("an instrument table without head");
  const uint32_t count = load<uint32_t>(content, 12);
  const bool zeros = load<uint64_t>(content, 0) == 0 && load<uint32_t>(content, 8) == 0;
  if (!zeros) return corrupt("a reserved field is not zero");
  if (count > (content.size() - kInstrumentHead) / kDefinitionBytes) {
    return corrupt(std::to_string(count) + " instruments are more than the table has room for");
  }
  const ByteSpan data = content.subspan(kInstrumentHead + size_t{count} * kDefinitionBytes);
  std::vector<Instrument> instruments;
  for (uint32_t i = 0; i < count; ++i) {
    const ByteSpan definition = content.subspan(kInstrumentHead + size_t{i} * kDefinitionBytes);
    Instrument read;
    std::string_view* texts[] = {&read.type, &read.stage, &read.scope_hash, &read.scope_key,
                                 &read.metadata};
    for (size_t t = 0; t < std::size(texts); ++t) {
      const auto text = strings.find(load<uint32_t>(definition, 4 * t));
      if (!text) return corrupt("instrument " + std::to_string(i) + " names a string that is none");
      *texts[t] = *text;
    }
    const uint64_t offset = load<uint64_t>(definition, 24), length = load<uint64_t>(definition, 32);
    const bool inside = offset <= data.size() && length <= data.size() - offset;
    if (!inside) {
      return corrupt("the payload of instrument " + std::to_string(i) + " reaches past the table");
    }
    read.payload = data.subspan(offset, length);
    instruments.push_back(read);
  }
  return instruments;
}

}  // namespace uptier::profile
