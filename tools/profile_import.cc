// uptier profile import: rows (export --format=tsv, or what a database made of them) and the text
// form of llvm-profdata become a profile file. A run is counted once, as by merge.
#include <cstdio>

#include "profile/formats/llvm_text.h"
#include "profile/formats/tsv.h"
#include "profile/upf/file.h"
#include "profile/upf/profile_sum.h"
#include "profile/upf/uploads.h"
#include "tools/body_graph.h"
#include "tools/commands.h"
#include "tools/fail.h"
#include "tools/merge_messages.h"
#include "tools/profile_commands.h"
#include "tools/streams.h"

namespace uptier::tools {
namespace {

// Methods of a module by key, with their names and hashes and nothing else.
Result<Profile> methods_of(const std::string& module) {
  Result<std::vector<BodyGraph>> bodies = read_body_graphs(module);
  if (!bodies) return bodies.error();
  Profile p;
  for (const BodyGraph& body : *bodies) {
    if (!body.key) return Error{ErrorCode::kInvalidArgument, module + ": no WebAssembly module"};
    MethodProfile& m = p.methods[*body.key];
    m.key = *body.key;
    m.name = body.name;
    m.schema.cfg_hash = body.cfg_hash;
  }
  return p;
}

Result<ProfileFile> parse(const std::string& text, const Profile* like) {
  const bool known = profile::looks_like_llvm_text(text) || profile::looks_like_tsv(text);
  if (!known && looks_like_profile(std::as_bytes(std::span(text)))) {
    return Error{ErrorCode::kCorruptInput,
                 text.empty() ? "it is empty" : "it is a profile file already: use merge"};
  }
  if (!profile::looks_like_llvm_text(text)) return profile::profile_from_tsv(text);
  Result<Profile> p = profile::profile_from_llvm_text(text, like);
  if (!p) return p.error();
  ProfileFile file;
  file.profile = std::move(*p);
  return file;
}

int read(const std::string& path, const Profile* like, ProfileFile& file) {
  std::vector<uint8_t> bytes;
  const std::string from = path == "-" ? "/dev/stdin" : path;
  if (!read_file(from, bytes)) return kFailed;
  Result<ProfileFile> parsed =
      parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, like);
  if (!parsed) return fail(kCorrupt, path + ": " + parsed.error().message);
  file = std::move(*parsed);
  return kOk;
}

// Rows do not say whether a run was fed twice, but they have its name only once.
void tell_of_runs(const ProfileInfo& info) {
  const uint64_t named = info.uploads.size() + info.forgotten;
  if (info.uploads.empty() || info.runs <= named) return;
  fail(kOk, std::to_string(info.runs) + " runs, but only " + std::to_string(named) +
                " names of runs: some were imported twice, or have no name");
}

}  // namespace

int profile_import(const ProfileImportCommand& c) {
  if (Status s = check_stdin(c.files); !s) return fail(kUsage, s.error().message);
  Profile like;
  if (!c.module.empty()) {
    Result<Profile> methods = methods_of(c.module);
    if (!methods) return fail(methods.error());
    like = std::move(*methods);
  }
  std::vector<ProfileFile> files(c.files.size());
  std::vector<const ProfileInfo*> infos;
  for (size_t i = 0; i < files.size(); ++i) {
    if (int code = read(c.files[i], &like, files[i]); code != kOk) return code;
    infos.push_back(&files[i].info);
  }
  const std::vector<profile::UploadFate> fates = profile::plan_uploads(infos);
  ProfileFile sum;
  for (size_t i = 0; i < files.size(); ++i) {
    if (fates[i] == profile::UploadFate::kKnown) {
      fail(kOk, c.files[i] + ": its runs were already in other files");
      continue;
    }
    if (fates[i] == profile::UploadFate::kConflict) {
      return fail(kFailed, c.files[i] + ": shares some runs with the other files, but not all");
    }
    sum.report += files[i].report;
    sum.report += merge(sum.profile, files[i].profile);
    sum.info += files[i].info;
    sum.calls += files[i].calls;
  }
  tell_of_runs(sum.info);
  for (const std::string& what : merge_messages(sum.report)) fail(kOk, what);
  Status s = write_output(c.out, profile_to_file(sum));
  return s ? int{kOk} : fail(kFailed, s.error().message);
}

}  // namespace uptier::tools
