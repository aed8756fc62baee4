// uptier profile show --lines: the hottest source lines.
#include <cstdio>

#include "tools/commands.h"
#include "tools/fail.h"
#include "tools/line_profile.h"
#include "tools/profile_commands.h"

namespace uptier::tools {

int profile_show_lines(const ProfileShowCommand& c) {
  ProfileFile file;
  if (int code = open_profile(c.file, file); code != kOk) return code;
  Result<std::unique_ptr<ModuleLines>> module = ModuleLines::open(c.module);
  if (!module) return fail(module.error());
  Result<LineProfile> lines = LineProfile::of(c.file, file, **module);
  if (!lines) return fail(lines.error());
  if (c.json) {
    std::fputs(lines_json(*lines).c_str(), stdout);
  } else {
    print_lines(*lines, c.top);
  }
  return kOk;
}

}  // namespace uptier::tools
