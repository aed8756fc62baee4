// Finds the chunks of other tools, which have no checksums.
//
// So behind damage reading goes on at what has the magic, at a multiple of 16 bytes behind it, a type
// and a version that are known, a head that is possible, and another such chunk or the end behind it.
// Inside of a file of ours none of this is asked: there seals say what is whole.
#include <algorithm>
#include <string_view>

#include "profile/base/checksum.h"
#include "profile/upf/read.h"

namespace uptier::profile {
namespace {

constexpr size_t kUnit = 16;  // that sizes of chunks are multiples of
constexpr std::string_view kMagic = "IIDB";

bool is_known(const IdbHeader& h) {
  const bool type = h.type == kIdbFileHeader || h.type == kIdbStringTable ||
                    h.type == kIdbInstrumentTable || h.type == kIdbUserData;
  return type && h.version == 0;
}

// Whether the zeros and the count at the front of a chunk's content are possible.
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

// Whether a chunk of another tool begins here, by all that can be told.
bool UpfReader::is_foreign(uint64_t at) const {
  const ByteSpan here = file_.subspan(at);
  if (!has_magic(here)) return false;
  const Result<IdbHeader> header = read_idb_header(here);
  const bool possible = is_known(*header) && !is_ours(at, *header) && header->fits(here.size());
  if (!possible || !has_head(*header, here.subspan(kIdbHeader, header->content))) return false;
  const ByteSpan behind = here.subspan(header->size());
  return behind.empty() || has_magic(behind);
}

// Returns where the next chunk begins inside of what began at `at`; `end` if none does.
uint64_t UpfReader::next_chunk(uint64_t at, uint64_t end) const {
  if (is_open()) return next_record(at + 1, end);
  const std::string_view all(reinterpret_cast<const char*>(file_.data()), file_.size());
  size_t found = all.find(kMagic, at + kUnit);
  while (found < end && ((found - at) % kUnit != 0 || !is_foreign(found))) {
    found = all.find(kMagic, found + 1);
  }
  // One of ours may come before.
  return next_record(at + 1, std::min<uint64_t>(found, end));
}

// Nothing can be made of what is here. Returns where to go on.
uint64_t UpfReader::skip_damage(uint64_t at) {
  const uint64_t next = next_chunk(at, file_.size());
  note_gap(at, next);
  return next;
}

// Bytes of another tool's database are passed over: it goes on behind them. If they were its strings,
// those before are not the ones that what follows names.
void UpfReader::note_gap(uint64_t at, uint64_t next) {
  const bool theirs = !segments_.empty() && !segments_.back().ours;
  if (!theirs || is_open()) return;
  gap_end_ = next;
  const ByteSpan gap = file_.subspan(at, next - at);
  IdbDamage damage;
  const bool headed = gap.size() > kIdbHeader;
  const Result<StringTable> strings =
      StringTable::read(gap.subspan(headed ? kIdbHeader : 0), damage);
  const bool were_strings = headed && strings.ok() && damage.empty() && strings->size() != 0;
  if (were_strings) segments_.back().strings = {};
}

uint64_t UpfReader::scan_foreign(uint64_t at, const IdbHeader& header) {
  if (!header.fits(file_.size() - at)) {
    warn(at, "a chunk of " + std::to_string(header.content) + " bytes reaches past the file");
    return skip_damage(at);
  }
  if (!is_known(header)) ++unknown_;
  foreign_ = {at,
              header.type,
              is_known(header),
              false,
              file_.subspan(at, header.size()),
              file_.subspan(at + kIdbHeader, header.content)};
  return at + header.size();
}

// Takes the chunk in IREE's layout that waits, by what follows it: into our segment if that goes on
// (its seal may be damaged), or else into one of the other tools'. A seal decides by itself. One
// that ends our segment, and no other tool's chunk follows, is ours without its seal.
void UpfReader::settle_foreign(uint64_t at) {
  if (foreign_.chunk.empty()) return;
  const bool any = file_.size() - at >= kIdbHeader;
  const Result<IdbHeader> header =
      any ? read_idb_header(file_.subspan(at)) : Result<IdbHeader>(IdbHeader{});
  const bool record = any && header.ok() && is_record(at) && header->type >= kFirstUpfType;
  const bool goes_on = is_open() && record && load<uint32_t>(file_, at + 20) >= next_sequence_;
  if (goes_on && static_cast<UpfKind>(header->type) == UpfKind::kSeal) return;
  const bool others = any && header.ok() && !is_trace(*header) && !is_ours(at, *header);
  const bool cut = is_open() && !goes_on && !others;
  if (cut) {
    foreign_ = {};
    return;
  }
  take_foreign(goes_on ? segments_.back() : foreign_segment());
}

// Returns the segment of the chunk that waits: chunks that stand one behind the other are one, up
// to the next file header.
UpfReader::Segment& UpfReader::foreign_segment() {
  const auto ends_here = [&](const Segment& s) {
    return s.offset + s.bytes.size() == foreign_.offset || gap_end_ == foreign_.offset;
  };
  const bool goes_on = !segments_.empty() && !segments_.back().ours &&
                       foreign_.type != kIdbFileHeader && ends_here(segments_.back());
  Segment& segment = goes_on ? segments_.back() : new_segment(foreign_.offset, false);
  last_foreign_ = foreign_.offset;
  segment.bytes =
      file_.subspan(segment.offset, foreign_.offset + foreign_.chunk.size() - segment.offset);
  return segment;
}

}  // namespace uptier::profile
