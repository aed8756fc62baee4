#include "profile/upf/chunk_finder.h"

#include <algorithm>
#include <string_view>

#include "profile/base/checksum.h"

namespace uptier::profile {
namespace {

constexpr size_t kUnit = 16;  // sizes of chunks are multiples of it
constexpr std::string_view kMagic = "IIDB";

// Returns whether the zeros and the count at the front of a chunk's content are possible.
bool has_head(const IdbHeader& h, ByteSpan content) {
  constexpr size_t kView = 16, kDefinition = 40, kStrings = 8, kInstruments = 16;
  switch (h.type) {
    case kIdbStringTable:
      return content.size() >= kStrings && load<uint32_t>(content, 0) == 0 &&
             load<uint32_t>(content, 4) <= (content.size() - kStrings) / kView;
    case kIdbInstrumentTable:
      return content.size() >= kInstruments && load<uint64_t>(content, 0) == 0 &&
             load<uint32_t>(content, 8) == 0 &&
             load<uint32_t>(content, 12) <= (content.size() - kInstruments) / kDefinition;
    case kIdbUserData: return content.size() >= kIdbUserDataHead && load<uint64_t>(content, 8) == 0;
    default: return true;
  }
}

bool has_magic(ByteSpan bytes) {
  return bytes.size() >= kIdbHeader && load<uint32_t>(bytes, 0) == kIdbMagic;
}

}  // namespace

bool is_possible_content(uint64_t content) {
  return content % 16 == 0 && content >= kRecordHeader - kIdbHeader && content <= kMaxContent;
}

bool is_known_foreign(const IdbHeader& h) {
  const bool type = h.type == kIdbFileHeader || h.type == kIdbStringTable ||
                    h.type == kIdbInstrumentTable || h.type == kIdbUserData;
  return type && h.version == 0;
}

bool ChunkFinder::is_record(uint64_t at) const {
  if (at > file_.size() || file_.size() - at < kRecordHeader) return false;
  const ByteSpan here = file_.subspan(at);
  const bool magic = load<uint32_t>(here, 0) == kIdbMagic;
  return magic && load<uint32_t>(here, 16) == header_checksum(here);
}

ByteSpan ChunkFinder::record_at(uint64_t at) const {
  if (!is_record(at)) return {};
  const Result<IdbHeader> header = read_idb_header(file_.subspan(at));
  const bool whole = is_possible_content(header->content) && header->fits(file_.size() - at);
  return whole ? file_.subspan(at, header->size()) : ByteSpan();
}

bool ChunkFinder::is_ours(uint64_t at, const IdbHeader& h) const {
  if (h.type != kIdbFileHeader) return h.type >= kFirstUpfType && h.type <= kLastUpfType;
  if (h.content == 0) return false;
  const bool room = file_.size() - at >= kRecordHeader + sizeof kUpfName;
  return is_record(at) || (room && load<uint64_t>(file_, at + kRecordHeader) == kUpfName);
}

uint64_t ChunkFinder::next_record(uint64_t from, uint64_t end) const {
  end = std::min<uint64_t>(end, file_.size());
  const std::string_view all(reinterpret_cast<const char*>(file_.data()), file_.size());
  const std::string_view text = all.substr(0, std::min<uint64_t>(end + 3, file_.size()));
  for (size_t at = text.find("IIDB", from); at < end; at = text.find("IIDB", at + 1)) {
    if (is_record(at)) return at;
  }
  return end;
}

bool ChunkFinder::is_foreign(uint64_t at) const {
  const ByteSpan here = file_.subspan(at);
  if (!has_magic(here)) return false;
  const Result<IdbHeader> header = read_idb_header(here);
  const bool possible =
      is_known_foreign(*header) && !is_ours(at, *header) && header->fits(here.size());
  if (!possible || !has_head(*header, here.subspan(kIdbHeader, header->content))) return false;
  const ByteSpan behind = here.subspan(header->size());
  return behind.empty() || has_magic(behind);
}

uint64_t ChunkFinder::next_chunk(uint64_t at, uint64_t end, bool in_ours) const {
  if (in_ours) return next_record(at + 1, end);
  const std::string_view all(reinterpret_cast<const char*>(file_.data()), file_.size());
  size_t found = all.find(kMagic, at + kUnit);
  while (found < end && ((found - at) % kUnit != 0 || !is_foreign(found))) {
    found = all.find(kMagic, found + 1);
  }
  // One of our records may come earlier.
  return next_record(at + 1, std::min<uint64_t>(found, end));
}

}  // namespace uptier::profile
