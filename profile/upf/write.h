// upf/write.h: a profile becomes a segment of a file.
#pragma once

#include <span>
#include <string_view>

#include "profile/upf/format.h"
#include "profile/upf/timeline.h"
#include "uptier/profile_file.h"

namespace uptier::profile {

// What packing may leave at most to be worth unpacking, in eighths; see upf/format.h.
inline constexpr size_t kHotShare = 2;
inline constexpr size_t kColdShare = 7;

// Appends "stored, raw, bytes": with zstd where the bytes are many and shrink enough.
void append_packed(ByteSpan raw, size_t share, Bytes& out);

// Appends a record of ours: header, payload, padding, both checksums.
void append_record(UpfKind kind, uint32_t sequence, ByteSpan payload, Bytes& out,
                   uint16_t version = 0);

// Returns the key of the group that a method belongs to.
std::string group_key(const MethodProfile& method);

// As profile_to_file, with the timeline of the run (none where it is empty), what runs before it
// have left, and what other tools have (null: nothing).
Bytes profile_to_file(const Profile& profile, const ProfileInfo& info, std::string_view log,
                      const Timeline& timeline, const CallProfile* calls = nullptr,
                      uint64_t* dropped = nullptr, std::span<const RunRecord> past = {},
                      const ForeignTables* foreign = nullptr);

// Names a run by its time and a hash of what it has seen; `nonce` tells runs apart that have seen
// the same within one second.
UploadId make_upload_id(const Profile& profile, uint64_t time, uint64_t nonce);

}  // namespace uptier::profile
