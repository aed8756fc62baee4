// line_frames.h: source lines as the frames of stacks.
//
// A frame is "function:line". The frames of inlined calls come after those that they were inlined into.
#pragma once

#include <string>
#include <vector>

#include "profile/formats/pprof.h"
#include "tools/line_profile.h"
#include "uptier/profile_file.h"

namespace uptier::tools {

// Returns "function:line", or "file:line" if the function is not known.
std::string line_frame(const dwarf::SourceFrame& frame);

// The part of some time that went to a line.
struct LineTime {
  const LineWeight* weight = nullptr;
  uint64_t ns = 0;
};

// Divides time of a method among its lines in proportion to their operations; parts of 0 are left out, and
// the sum is `ns`. Empty if the method has no lines, or none of them ran.
std::vector<LineTime> line_times(const LineProfile& lines, const MethodKey& method, uint64_t ns);

// Returns folded stacks whose innermost frames are lines: of processor time in microseconds if `by_time`,
// else of executed operations. Methods without lines are left as they are.
std::string folded_lines(const ProfileFile& file, const LineProfile& lines, bool by_time);

// The lines of blocks, for to_pprof. Borrows the module.
class PprofLines final : public profile::PprofSources {
 public:
  explicit PprofLines(const ModuleLines& module) : module_(module) {}
  std::vector<profile::PprofPart> parts(const MethodKey& method, SiteId block) const override;
  std::vector<profile::PprofPlace> call(const MethodKey& method, SiteId site) const override;
  std::optional<profile::PprofPlace> begin(const MethodKey& method) const override;

 private:
  const ModuleLines& module_;
};

}  // namespace uptier::tools
