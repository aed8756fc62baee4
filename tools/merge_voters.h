// MergeVoters: what hosts have a say in a merge of files, and how much; profile/algebra/quorum.h has the
// laws.
//
// A voter is a host, or a file that names no host (with by_file: each file). All uploads are
// registered before the first is summed, so that the weight of each is known. At the end the quorum is
// applied: all uploads are read again, voter by voter.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "profile/algebra/quorum.h"
#include "uptier/profile_file.h"

namespace uptier::tools {

class MergeVoters {
 public:
  // A cap or a quorum of 0 is none.
  MergeVoters(uint64_t cap, uint64_t quorum, bool by_file)
      : cap_(cap), quorum_(quorum), by_file_(by_file) {}

  bool asked() const { return cap_ != 0 || quorum_ != 0; }

  // Registers a segment of a profile file, or a trace; traces have numbers after the segments.
  void add(const std::string& path, size_t part, const ProfileInfo& info);
  // All have been added.
  void settle();
  // A file of another kind: one run of its own.
  void add_other(const std::string& path) { others_.push_back(path); }

  // Returns what the cap leaves of such a part; all of one that it was not told of. Thread: any, once
  // settled.
  profile::Fraction share(const std::string& path, size_t part) const;

  // Leaves of the sum what enough voters have seen, and says so on stderr.
  void finish(Profile& sum, CallProfile& calls) const;

 private:
  struct Upload {
    std::string path;
    size_t part = 0;
    profile::Contribution contribution;
  };

  uint64_t cap_, quorum_;
  bool by_file_;
  std::vector<Upload> uploads_;
  std::map<std::pair<std::string, size_t>, profile::Fraction> shares_;  // by path and part
  std::vector<std::string> others_;
};

}  // namespace uptier::tools
