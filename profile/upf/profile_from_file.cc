#include <algorithm>

#include "profile/base/wall.h"
#include "profile/upf/profile_sum.h"
#include "profile/upf/uploads.h"

namespace uptier {

bool looks_like_profile(std::span<const std::byte> file) {
  if (file.size() < profile::kIdbHeader) return file.empty();
  const Result<profile::IdbHeader> header = profile::read_idb_header(file);
  if (!header.ok()) return false;
  const uint16_t type = header->type;
  return (type >= profile::kFirstUpfType && type <= profile::kLastUpfType) ||
         type == profile::kIdbFileHeader || type == profile::kIdbStringTable ||
         type == profile::kIdbInstrumentTable || type == profile::kIdbUserData;
}

Result<ProfileFile> profile_from_file(std::span<const std::byte> file) try {
  ProfileFile result;
  if (file.empty()) return result;
  profile::UpfReader reader(file);
  const auto& segments = reader.segments();
  const bool known = !reader.traces().empty() || std::ranges::any_of(segments, [](const auto& s) {
    return s.headed || !s.groups.empty() || (!s.ours && s.has_info);
  });
  if (!known) {
    const std::string why = reader.warnings().empty() ? "it ends" : reader.warnings().front();
    return Error{ErrorCode::kCorruptInput, "no profile file: " + why};
  }
  profile::ProfileSum sum;
  for (const size_t i : profile::summed_segments(reader)) sum.add(reader, segments[i]);
  sum.add_traces(reader);
  result.info = sum.info();
  result.calls = sum.calls();
  result.foreign = sum.foreign();
  result.report = sum.report();
  result.profile = sum.take();
  result.truncated = reader.truncated();
  result.warnings = reader.warnings();
  result.skipped = reader.skipped();
  result.unknown = reader.unknown();
  return result;
} catch (const std::exception&) { return out_of_memory("profile"); }

}  // namespace uptier
