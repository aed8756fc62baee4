// records.h: mutates inputs that are chains of records (profile files, traces) so that they get
// past the checksums.
//
// Law: after mend() every record's checksums are right, whatever its header claims. Impossible
// lengths, too short or too long, stay: no checksum reveals them, and readers must not believe
// them. A record that claims more than exists is sealed over the existing bytes.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "profile/base/checksum.h"
#include "profile/trace/trace_file.h"
#include "profile/upf/format.h"
#include "tests/support/random.h"

namespace uptier::fuzz {

struct Record {
  size_t at = 0;
  uint16_t type = 0;
  uint64_t claimed = 0;  // claimed size of the content

  bool ours() const { return (type >= 0x5500 && type <= 0x55ff) || (type == 0 && claimed >= 16); }
};

// Returns everything that begins with the magic: consecutive records, or records inside others that
// claim too much.
inline std::vector<Record> records_of(std::span<const std::byte> file) {
  std::vector<Record> records;
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  for (size_t at = text.find("IIDB"); at != text.npos; at = text.find("IIDB", at + 4)) {
    if (file.size() - at < profile::kIdbHeader) break;
    const profile::ByteSpan here = file.subspan(at);
    records.push_back({at, profile::load<uint16_t>(here, 4), profile::load<uint64_t>(here, 8)});
  }
  return records;
}

// From the last to the first: a record that claims too much covers the records after it.
inline void mend(std::span<std::byte> file) {
  using namespace profile;
  const std::vector<Record> records = records_of(file);
  for (size_t i = records.size(); i-- > 0;) {
    const Record& r = records[i];
    const size_t rest = file.size() - r.at;
    if (!r.ours() || rest < kRecordHeader) continue;
    const std::span<std::byte> here = file.subspan(r.at);
    const bool seal = r.type == static_cast<uint16_t>(UpfKind::kSeal) && i > 0;
    if (seal && rest >= kRecordHeader + 16) {
      const size_t before = records[i - 1].at;
      const ByteSpan chunk = file.subspan(before, r.at - before);
      store<uint64_t>(here, kRecordHeader, chunk.size());
      store<uint64_t>(here, kRecordHeader + 8, XXH3_64bits(chunk.data(), chunk.size()));
    }
    const uint64_t size = IdbHeader{r.type, 0, r.claimed}.size();
    seal_record(here.first(std::clamp<uint64_t>(size, kRecordHeader, rest)));
  }
}

// Changes a record: its claims, its content, or both.
inline void mutate_record(std::string& input, test::Random& random) {
  using namespace profile;
  const std::vector<Record> records = records_of(std::as_bytes(std::span(input)));
  if (records.empty()) return;
  const Record r = records[random.below(records.size())];
  const size_t rest = input.size() - r.at - kIdbHeader;  // rest of the file after the header
  const size_t there = static_cast<size_t>(std::min<uint64_t>(r.claimed, rest));
  const auto claim = [&](uint64_t content) {
    std::memcpy(input.data() + r.at + 8, &content, sizeof content);
  };
  const size_t inside = r.at + kIdbHeader + random.below(there + 1);
  const size_t some = random.below(2) == 0 ? 16 * (1 + random.below(4)) : 1 + random.below(40);
  switch (random.below(8)) {
    case 0: {
      const uint64_t lengths[] = {0,
                                  1,
                                  8,
                                  15,
                                  16,
                                  17,
                                  24,
                                  31,
                                  32,
                                  rest,
                                  rest + 1,
                                  rest + 16,
                                  rest - 16,
                                  there - 16,
                                  there + 16,
                                  kMaxContent,
                                  kMaxContent + 16,
                                  ~0ull,
                                  ~0ull - 15,
                                  ~0ull - 16,
                                  ~0ull - 31,
                                  1ull << 63,
                                  1ull << 32,
                                  1ull << 31};
      return claim(lengths[random.below(std::size(lengths))]);
    }
    case 1: input.erase(inside, some); return;           // less content than it claims
    case 2: input.insert(inside, some, '\x01'); return;  // more content than it claims
    case 3: {
      const size_t gone = std::min(some, r.at + kIdbHeader + there - inside);
      input.erase(inside, gone);
      return claim(r.claimed - gone);
    }
    case 4:
      input.insert(inside, some, static_cast<char>(random.below(256)));
      return claim(r.claimed + some);
    case 5: {
      const uint16_t types[] = {0x0000, 0x0001, 0x0010, 0xffff, 0x5500, 0x5502, 0x5504, 0x5505,
                                0x550f, 0x5540, 0x5541, 0x5542, 0x5544, 0x5548, 0x5549, 0x554a,
                                0x554b, 0x554c, 0x554d, 0x5545, 0x554f, 0x7777};
      const uint16_t type = types[random.below(std::size(types))];
      std::memcpy(input.data() + r.at + 4, &type, sizeof type);
      return;
    }
    case 6: input.insert(r.at, input.substr(r.at, kIdbHeader + there)); return;
    default: input.erase(r.at, kIdbHeader + there); return;
  }
}

}  // namespace uptier::fuzz
