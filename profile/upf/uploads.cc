#include "profile/upf/uploads.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

namespace uptier::profile {

std::vector<UploadFate> plan_uploads(std::span<const ProfileInfo* const> uploads) {
  std::vector<size_t> order(uploads.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater<>{},
                           [&](size_t i) { return uploads[i]->uploads.size(); });
  std::vector<UploadFate> fates(uploads.size());
  std::set<UploadId> summed;
  for (const size_t i : order) {
    const std::vector<UploadId>& ids = uploads[i]->uploads;
    const auto known = static_cast<size_t>(
        std::ranges::count_if(ids, [&](const UploadId& id) { return summed.contains(id); }));
    if (known == 0) {
      summed.insert(ids.begin(), ids.end());
    } else {
      fates[i] = known == ids.size() ? UploadFate::kKnown : UploadFate::kConflict;
    }
  }
  return fates;
}

std::vector<size_t> summed_segments(UpfReader& file) {
  std::vector<const ProfileInfo*> infos;
  for (const UpfReader::Segment& segment : file.segments()) infos.push_back(&segment.info);
  const std::vector<UploadFate> fates = plan_uploads(infos);
  std::vector<size_t> summed;
  for (size_t i = 0; i < fates.size(); ++i) {
    if (fates[i] == UploadFate::kSummed) summed.push_back(i);
    if (fates[i] != UploadFate::kConflict) continue;
    file.warn(file.segments()[i].offset,
              "a segment that shares some runs with others was left out");
  }
  return summed;
}

}  // namespace uptier::profile
