// report_data.h: a profile as the HTML report's page wants it: JSON, numbers where the page counts
// with them.
//
//   page    what every panel needs at once, methods by column
//   parts   the observations of kPartRows methods each; the page reads a part when the user opens
//           one of its methods
//
// Rows are methods: those of the profile by key, then those that only the timeline has. The page's
// script (report/model.js) is the one reader; the arrays' orders stand there and here:
//
//   loops     [row, site, parent's site or 0, location, cycles, low, high, entries, iterations,
//              timed]; parents are the next ones outwards that have cycles
//   calls     [caller's row, site of the innermost loop with cycles or 0, callee's row, count]
//   versions  [row, tier, copy, loop + 1 or 0, from ns, to ns or 0, bytes, compile ns, inlined]
//   decisions [row, at ns, verb's number, calls, samples, iterations, reason]
//   sites     block, edge, counter [kind, site, count, estimate, low, high];
//             call_target [kind, site, estimate, other, [[row or name, estimate]..]];
//             value [kind, site, estimate, other, min, max, mean, [[value, estimate]..]];
//             range [kind, site, estimate, min, max, mean]; gauge [kind, site, value];
//             log [kind, site, events, lost]; loop [kind, site, entries, iterations, timed, cycles,
//             low, high], cycles null where none was timed
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "profile/upf/timeline.h"
#include "tools/report_module.h"
#include "uptier/profile_file.h"

namespace uptier::tools {

inline constexpr size_t kPartRows = 256;

struct ReportSource {
  std::string name;  // of the file
  ProfileFile file;
  profile::Timeline timeline;    // of the run that wrote it last
  nlohmann::ordered_json lines;  // report_lines.h; null without a module
  std::string against_name;
  Profile against;  // what it is compared with; of no meaning without a name
};

struct ReportData {
  nlohmann::ordered_json page;
  std::vector<nlohmann::ordered_json> parts;
};

// `module` (may be null) is the program's; the `listings` methods with most executions get the text
// of their code.
ReportData report_data(const ReportSource& source, ReportModule* module, size_t listings);

// The rows of a report.
class ReportRows {
 public:
  ReportRows(const Profile& profile, const profile::Timeline& timeline);

  // Returns the row of a method, or -1.
  int64_t find(const MethodKey& key) const;
  size_t size() const { return keys_.size(); }
  const MethodKey& key(size_t row) const { return keys_[row]; }
  const std::string& name(size_t row) const { return names_[row]; }
  // Returns what the profile has of a row, or null.
  const MethodProfile* profile(size_t row) const { return profiles_[row]; }

 private:
  std::vector<MethodKey> keys_;
  std::vector<std::string> names_;
  std::vector<const MethodProfile*> profiles_;
  std::map<MethodKey, size_t> rows_;
};

// What was seen at the sites of a method (report_sites.cc).
nlohmann::ordered_json sites_json(const MethodProfile& method, const ReportRows& rows);

}  // namespace uptier::tools
