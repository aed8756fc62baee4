#include "jit/code/place_code.h"

#include <cstring>
#include <utility>

namespace uptier::jit {
namespace {

Error corrupt(const char* rule) { return {ErrorCode::kCorruptInput, rule}; }

bool fits(uint32_t offset, uint32_t bytes, const BodyToPlace& body) {
  const size_t size = body.bytes.size();
  if (offset > size || bytes > size - offset) return false;
  return offset >= body.hot_size || bytes <= body.hot_size - offset;
}

Status check(const BodyToPlace& body, const CodeTables& tables) {
  const bool parts = !body.bytes.empty() && body.bytes.size() <= INT32_MAX &&
                     body.hot_size <= body.bytes.size() && body.entry_offset < body.bytes.size();
  if (!parts) return corrupt("the parts of the body are larger than the body");
  for (const FilledRef& r : body.refs) {
    if (!fits(r.offset, size_of(r.kind), body)) return corrupt("a field lies outside of the body");
  }
  for (const PlaceField& f : tables.place_fields) {
    if (!fits(f.offset, 4, body)) return corrupt("a distance lies outside of the body");
  }
  return {};
}

void put32(uint8_t* at, uint32_t value) { std::memcpy(at, &value, sizeof value); }

void add32(uint8_t* at, int64_t change) {
  uint32_t value;
  std::memcpy(&value, at, sizeof value);
  put32(at, value + static_cast<uint32_t>(change));
}

}  // namespace

Result<std::unique_ptr<Code>> place_code(CodeSpace& space, const BodyToPlace& body,
                                         CodeTables tables, MethodId method) {
  if (Status s = check(body, tables); !s) return s.error();
  const uint32_t hot = body.hot_size, cold = static_cast<uint32_t>(body.bytes.size()) - hot;
  Result<CodeSpan> span = space.allocate(hot, false, cold);
  if (!span) return span.error();
  uint8_t* to = span->writable();
  std::memcpy(to, body.bytes.data(), body.bytes.size());
  // How much further apart the parts lie than in the record.
  const int64_t apart = span->cold_data() - (span->data() + hot);
  for (const PlaceField& f : tables.place_fields) {
    if (f.what() != PlaceField::To::kOtherPart) continue;
    add32(to + f.offset, f.offset < hot ? apart : -apart);
  }
  for (const FilledRef& r : body.refs) {
    if (r.kind == CodeRef::Kind::kAddress) {
      std::memcpy(to + r.offset, &r.value, sizeof r.value);
    } else if (r.kind == CodeRef::Kind::kDistance) {
      const uint8_t* part = r.offset < hot ? span->data() : span->cold_data() - hot;
      const auto end = static_cast<int64_t>(reinterpret_cast<uintptr_t>(part + r.offset + 4));
      const int64_t distance = static_cast<int64_t>(r.value) - end;
      if (distance != static_cast<int32_t>(distance)) return corrupt("a target is out of reach");
      put32(to + r.offset, static_cast<uint32_t>(distance));
    } else {
      put32(to + r.offset, static_cast<uint32_t>(r.value));
    }
  }
  if (Status s = space.publish(*span); !s) return s.error();
  if (!space.moves()) tables.place_fields.clear();
  return std::make_unique<Code>(std::move(*span), body.entry_offset, std::move(tables), method);
}

}  // namespace uptier::jit
