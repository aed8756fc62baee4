// upf/write.h: turns a profile into a segment of a file.
#pragma once

#include <span>
#include <string_view>

#include "profile/upf/packed.h"
#include "profile/upf/timeline.h"
#include "uptier/profile_file.h"

namespace uptier::profile {

// Returns the key of the group that a method belongs to.
std::string group_key(const MethodProfile& method);

// Like profile_to_file, with the timeline of the run (none if it is empty), the records of earlier
// runs, and the data of other tools (null: none).
Bytes profile_to_file(const Profile& profile, const ProfileInfo& info, std::string_view log,
                      const Timeline& timeline, const CallProfile* calls = nullptr,
                      uint64_t* dropped = nullptr, std::span<const RunRecord> past = {},
                      const ForeignTables* foreign = nullptr);

// Names a run by its time and a hash of its observations; `nonce` distinguishes runs with the same
// observations within one second.
UploadId make_upload_id(const Profile& profile, uint64_t time, uint64_t nonce);

}  // namespace uptier::profile
