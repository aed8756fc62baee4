#include "profile/upf/gathered.h"

#include <algorithm>
#include <utility>

#include "profile/base/checksum.h"
#include "profile/base/corrupt.h"
#include "profile/upf/foreign.h"
#include "profile/upf/format.h"
#include "profile/upf/piece_reader.h"
#include "uptier/profile_query.h"

namespace uptier::profile {
namespace {

// Texts and payloads of instruments may overlap. More than so many times the bytes of the source
// are refused: readers would leave texts out, and hashing payloads must take linear time.
constexpr uint64_t kMostTimes = 16;

std::string at_byte(uint64_t at, const std::string& rule) {
  return "byte " + std::to_string(at) + ": " + rule;
}

// Reads the chunks of one source.
class ChunkChecker {
 public:
  explicit ChunkChecker(std::span<const Piece> pieces) : in_(pieces) {}

  Status run() {
    for (uint64_t at = 0; at < in_.size();) {
      const Result<uint64_t> next = check_chunk(at);
      if (!next.ok()) return corrupt(at_byte(at, next.error().message));
      at = *next;
    }
    return {};
  }
  void move_into(GatheredSum& sum) {
    for (const ForeignInstrument& i : numbers_) sum.numbers.add(i);
    sum.others.merge(others_);
  }

 private:
  Result<uint64_t> check_chunk(uint64_t at);
  Status check_strings(uint64_t at, uint64_t content);
  Status check_instruments(uint64_t at, uint64_t content);
  Status check_definition(uint32_t index, ByteSpan definition, uint64_t data_at, uint64_t data);
  Status check_user_data(uint64_t at, uint64_t content);
  Status spend(uint64_t& spent, uint64_t bytes, const char* what) const;

  PieceReader in_;
  Bytes strings_bytes_;  // strings_ points into it
  StringTable strings_;
  uint64_t texts_ = 0, payloads_ = 0;  // bytes of these so far
  std::vector<ForeignInstrument> numbers_;
  std::set<GatheredSum::Other> others_;
};

Result<uint64_t> ChunkChecker::check_chunk(uint64_t at) {
  if (in_.size() - at < kIdbHeader) {
    return corrupt("the last " + std::to_string(in_.size() - at) +
                   " bytes are no chunk; append whole chunks, padded to 16 bytes");
  }
  const Result<IdbHeader> header = read_idb_header(in_.read(at, kIdbHeader));
  if (!header.ok()) {
    return corrupt(
        "no chunk begins here (the magic is not IIDB); append whole chunks, padded to 16 "
        "bytes");
  }
  if (!header->fits(in_.size() - at)) {
    return corrupt("a chunk of " + std::to_string(header->content) + " bytes, of which only " +
                   std::to_string(in_.size() - at - kIdbHeader) +
                   " follow (with padding to 16); append all its pieces");
  }
  if (header->version != 0) {
    return corrupt("version " + std::to_string(header->version) +
                   " of a chunk; profile files keep version 0 only");
  }
  const uint64_t content_at = at + kIdbHeader;
  Status read;
  switch (header->type) {
    case kIdbStringTable: read = check_strings(content_at, header->content); break;
    case kIdbInstrumentTable: read = check_instruments(content_at, header->content); break;
    case kIdbUserData: read = check_user_data(content_at, header->content); break;
    case kIdbFileHeader: return corrupt("a file header; leave it out, the runtime writes one");
    default:
      return corrupt("a chunk of type " + std::to_string(header->type) +
                     "; profile files keep string tables (1), instrument tables (16) and user "
                     "data (65535)");
  }
  if (!read.ok()) return read.error();
  return at + header->size();
}

Status ChunkChecker::check_strings(uint64_t at, uint64_t content) {
  strings_bytes_ = in_.read(at, content);
  IdbDamage damage;
  Result<StringTable> read = StringTable::read(strings_bytes_, damage);
  if (!read.ok()) return corrupt("string table: " + read.error().message);
  if (!damage.empty()) return corrupt("string table: " + damage.front());
  strings_ = std::move(*read);
  return {};
}

Status ChunkChecker::spend(uint64_t& spent, uint64_t bytes, const char* what) const {
  const bool over = bytes > kMostTimes * in_.size() || spent > kMostTimes * in_.size() - bytes;
  if (over) {
    return corrupt(std::string(what) + " come to more than " + std::to_string(kMostTimes) +
                   " times the " + std::to_string(in_.size()) + " bytes of the source");
  }
  spent += bytes;
  return {};
}

Status ChunkChecker::check_instruments(uint64_t at, uint64_t content) {
  const Bytes head = in_.read(at, std::min<uint64_t>(content, kInstrumentHead));
  const Result<uint32_t> count = read_instrument_head(head, content);
  if (!count.ok()) return corrupt("instruments: " + count.error().message);
  const uint64_t definitions = uint64_t{*count} * kDefinitionBytes;
  const Bytes all = in_.read(at + kInstrumentHead, definitions);
  const uint64_t data_at = at + kInstrumentHead + definitions;
  for (uint32_t i = 0; i < *count; ++i) {
    const ByteSpan one = ByteSpan(all).subspan(size_t{i} * kDefinitionBytes, kDefinitionBytes);
    const Status s = check_definition(i, one, data_at, content - kInstrumentHead - definitions);
    if (!s.ok()) return s;
  }
  return {};
}

Status ChunkChecker::check_definition(uint32_t index, ByteSpan definition, uint64_t data_at,
                                      uint64_t data) {
  Instrument i;
  PayloadPlace place;
  const std::string name = "instrument " + std::to_string(index);
  if (const char* rule = read_definition(definition, data, strings_, i, place)) {
    return corrupt(name + rule);
  }
  if (i.stage == kQueryStage) {
    return corrupt(name + " has the stage uptier, which is the runtime's own; choose another name");
  }
  const uint64_t texts =
      i.type.size() + i.stage.size() + i.scope_hash.size() + i.scope_key.size() + i.metadata.size();
  if (Status s = spend(texts_, texts, "texts of instruments"); !s.ok()) return s;
  if (Status s = spend(payloads_, place.length, "payloads of instruments"); !s.ok()) return s;
  const uint64_t at = data_at + place.offset;
  std::vector<std::string> names;
  for (const std::string_view text : {i.type, i.stage, i.scope_hash, i.scope_key, i.metadata}) {
    names.emplace_back(text);
  }
  if (is_summed(i.type, place.length)) {
    numbers_.push_back({std::move(names[0]), std::move(names[1]), std::move(names[2]),
                        std::move(names[3]), std::move(names[4]), in_.read(at, place.length)});
  } else {
    others_.insert({std::move(names), place.length, in_.hash(at, place.length)});
  }
  return {};
}

Status ChunkChecker::check_user_data(uint64_t at, uint64_t content) {
  if (content < kIdbUserDataHead) return corrupt("user data: shorter than its head");
  const Bytes head = in_.read(at, kIdbUserDataHead);
  if (load<uint64_t>(head, 8) != 0) return corrupt("user data: a reserved field is not zero");
  const auto type = strings_.find(load<uint32_t>(head, 0));
  const auto metadata = strings_.find(load<uint32_t>(head, 4));
  if (!type || !metadata) return corrupt("user data: it names a string that is none");
  if (Status s = spend(texts_, type->size() + metadata->size(), "texts of user data"); !s.ok()) {
    return s;
  }
  const uint64_t bytes = content - kIdbUserDataHead;
  others_.insert({{std::string(*type), std::string(*metadata)},
                  bytes,
                  in_.hash(at + kIdbUserDataHead, bytes)});
  return {};
}

// Removes the items of `list` that `others` has. `texts_of` and `bytes_of` tell of an item.
void erase_others(const std::set<GatheredSum::Other>& others, auto& list, auto texts_of,
                  auto bytes_of) {
  std::erase_if(list, [&](const auto& item) {
    const Bytes& bytes = bytes_of(item);
    GatheredSum::Other key{texts_of(item), bytes.size(), {}};
    const auto at = others.lower_bound(key);  // hashes are compared last
    if (at == others.end() || at->texts != key.texts || at->bytes != key.bytes) return false;
    key.hash = hash_of(bytes);
    return others.contains(key);
  });
}

}  // namespace

Status add_pieces(std::span<const Piece> pieces, GatheredSum& sum) {
  ChunkChecker checker(pieces);
  if (Status s = checker.run(); !s.ok()) return s;
  checker.move_into(sum);
  return {};
}

Bytes gathered_header(uint64_t random) {
  Bytes content;
  ByteWriter writer(content);
  writer.u64(random);
  writer.u64(0);
  Bytes out;
  append_chunk(out, kIdbFileHeader, 0, content);
  return out;
}

uint64_t segment_hash(std::span<const Piece> pieces) {
  const PieceReader in(pieces);
  return in.hash64();
}

void leave_out(const GatheredSum& sum, ForeignTables& from) {
  for (const ForeignInstrument& i : sum.numbers.instruments) from.subtract(i);
  erase_others(
      sum.others, from.instruments,
      [](const ForeignInstrument& i) {
        return std::vector{i.type, i.stage, i.scope_hash, i.scope_key, i.metadata};
      },
      [](const ForeignInstrument& i) -> const Bytes& { return i.payload; });
  erase_others(
      sum.others, from.data,
      [](const ForeignData& d) {
        return std::vector{d.type, d.metadata};
      },
      [](const ForeignData& d) -> const Bytes& { return d.data; });
}

}  // namespace uptier::profile
