#include "tools/merge_voters.h"

#include <cstdio>

#include "profile/trace/read_trace.h"
#include "profile/upf/read.h"
#include "tiering/saved/mapped_file.h"
#include "tools/profile_commands.h"

namespace uptier::tools {
namespace {

void see_trace(std::span<const std::byte> trace, uint32_t voter, profile::Quorum& quorum) {
  Result<profile::TraceRead> read = profile::read_trace(trace);
  if (!read) return;
  for (const auto& [key, m] : read->trace.profile.methods) quorum.see(voter, m);
  quorum.see(voter, read->trace.profile.inlined);
}

void see_part(const std::string& path, size_t index, uint32_t voter, profile::Quorum& quorum) {
  Result<tiering::MappedFile> file = tiering::MappedFile::open(path);
  if (!file) return;  // merging has said so
  profile::UpfReader reader(file->bytes());
  const size_t segments = reader.segments().size();
  if (index >= segments + reader.traces().size()) return;
  if (index >= segments) return see_trace(reader.traces()[index - segments], voter, quorum);
  const profile::UpfReader::Segment& segment = reader.segments()[index];
  const auto see = [&](const profile::MethodView& view, std::string_view name) {
    if (Result<MethodProfile> m = method_of(view, name); m.ok()) quorum.see(voter, *m);
  };
  for (const profile::UpfReader::Group& group : segment.groups) reader.read(segment, group, see);
  quorum.see(voter, reader.inlined(segment));
  quorum.see(voter, reader.calls(segment));
}

}  // namespace

void MergeVoters::add(const std::string& path, size_t part, const ProfileInfo& info) {
  bool host = !by_file_ && !info.host.empty();
  uploads_.push_back({path, part, {host ? "host " + info.host : "file " + path, info.runs}});
}

void MergeVoters::settle() {
  std::vector<profile::Contribution> all;
  for (const Upload& u : uploads_) all.push_back(u.contribution);
  const std::vector<profile::Fraction> factors = profile::cap_factors(all, cap_);
  for (size_t i = 0; i < uploads_.size(); ++i) {
    shares_[{uploads_[i].path, uploads_[i].part}] = factors[i];
  }
}

profile::Fraction MergeVoters::share(const std::string& path, size_t part) const {
  if (cap_ == 0) return {};
  const auto at = shares_.find({path, part});
  return at != shares_.end() ? at->second : profile::Fraction{};
}

void MergeVoters::finish(Profile& sum, CallProfile& calls) const {
  if (quorum_ == 0) return;
  std::map<std::string, std::vector<const Upload*>> voters;
  for (const Upload& u : uploads_) voters[u.contribution.voter].push_back(&u);
  profile::Quorum quorum;
  uint32_t number = 0;
  for (const auto& [name, uploads] : voters) {
    for (const Upload* u : uploads) see_part(u->path, u->part, number, quorum);
    ++number;
  }
  for (const std::string& path : others_) {
    if (Result<ProfileFile> other = load_profile(path)) {
      for (const auto& [key, m] : other->profile.methods) quorum.see(number, m);
      quorum.see(number, other->profile.inlined);
      quorum.see(number, other->calls);
    }
    ++number;
  }
  profile::Quorum::Report r = quorum.finish(sum, quorum_);
  r.calls = quorum.finish(calls, sum, quorum_);
  std::fprintf(stderr,
               "uptier: quorum of %llu, %u voted: %llu methods left out, %llu entries of tables "
               "became `other`, %llu calls left out, %llu inlined bodies left out\n",
               static_cast<unsigned long long>(quorum_), number,
               static_cast<unsigned long long>(r.methods),
               static_cast<unsigned long long>(r.entries), static_cast<unsigned long long>(r.calls),
               static_cast<unsigned long long>(r.inlined));
}

}  // namespace uptier::tools
