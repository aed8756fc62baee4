#include "profile/upf/write.h"

#include <set>

#include "profile/base/checksum.h"
#include "profile/data/text.h"
#include "profile/upf/segment_writer.h"

namespace uptier::profile {

std::string group_key(const MethodProfile& method) {
  std::set<uint64_t> others;
  for (const auto& [site, table] : method.tables) {
    if (site.first != SlotKind::kCallTarget) continue;
    for (const auto& [key, entry] : table) others.insert(key.module_key);
  }
  others.erase(method.key.module_key);
  std::string key = hex(method.key.module_key).substr(2) + ";";
  for (const uint64_t other : others) key += hex(other).substr(2) + ";";
  return key;
}

UploadId make_upload_id(const Profile& profile, uint64_t time, uint64_t nonce) {
  uint64_t hash = nonce;
  for (const auto& [key, method] : profile.methods) {
    const uint64_t head[] = {key.module_key, key.function_index, method.schema.cfg_hash,
                             method.calls,   method.iterations,  method.counts.size()};
    hash = XXH3_64bits_withSeed(head, sizeof head, hash);
    hash = XXH3_64bits_withSeed(method.counts.data(), method.counts.size() * 8, hash);
  }
  return {time, hash};
}

Bytes profile_to_file(const Profile& profile, const ProfileInfo& info, std::string_view log,
                      const Timeline& timeline, const CallProfile* calls, uint64_t* dropped,
                      std::span<const RunRecord> past, const ForeignTables* foreign) {
  // If no method has a time, all come from this run, and readers take the run's time for them. If
  // some have one, a method without a time comes from another time, which is unknown.
  const auto dated = [](const auto& item) { return item.second.time != 0; };
  const bool any =
      std::ranges::any_of(profile.methods, dated) || std::ranges::any_of(profile.other_code, dated);
  SegmentWriter writer(any ? info.time : 0);
  auto other = profile.other_code.begin();
  for (const auto& [key, method] : profile.methods) {
    method.key == key ? writer.add(method) : writer.drop();
    for (; other != profile.other_code.end() && other->first.first <= key; ++other) {
      other->first.first == key && other->second.key == key ? writer.add(other->second)
                                                            : writer.drop();
    }
  }
  writer.add(profile.inlined);
  if (foreign != nullptr) writer.add(*foreign);
  return writer.finish(info, log, timeline, calls, past, dropped).joined();
}

}  // namespace uptier::profile

namespace uptier {

std::vector<std::byte> profile_to_file(const Profile& profile, const ProfileInfo& info,
                                       std::string_view log, uint64_t* dropped,
                                       const CallProfile* calls) {
  return profile::profile_to_file(profile, info, log, {}, calls, dropped);
}

std::vector<std::byte> profile_to_file(const ProfileFile& file) {
  return profile::profile_to_file(file.profile, file.info, {}, {}, &file.calls, nullptr, {},
                                  &file.foreign);
}

}  // namespace uptier
