#include "tools/pseudo_probe.h"

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <span>

#include "profile/formats/probe_elf.h"
#include "profile/formats/probed_run.h"
#include "profile/upf/file.h"
#include "tools/fail.h"

namespace uptier::tools {
namespace {

void tell(uint64_t count, const char* what) {
  if (count != 0) std::fprintf(stderr, "uptier: pseudo-probes: %" PRIu64 " %s\n", count, what);
}

void tell_losses(const CodeImages& images, const profile::ProbedRun& run) {
  tell(images.lost_codes, "freed versions of code are missing: there was no room to keep them");
  tell(images.lost_samples, "samples are missing: their code or stack was not kept");
  tell(images.cut_stacks, "samples lack their outermost callers");
  tell(run.left_out, "rows are missing: LLVM has no ids above 65535");
  tell(run.partial,
       "rows are of blocks whose counts are too low: some of their copies have no row");
  tell(run.displaced, "freed versions have other addresses than in the run: newer code lay there");
  if (images.codes.empty()) {
    std::fputs(
        "uptier: pseudo-probes: no code was kept: nothing was compiled, or the option "
        "keep_code is off\n",
        stderr);
  } else if (images.stacks.empty()) {
    std::fputs(
        "uptier: pseudo-probes: no sample was in compiled code, so the profile is empty; "
        "run longer, or sample more often (--sample=HZ)\n",
        stderr);
  }
}

Status write(const std::string& path, const std::string& bytes) {
  return profile::replace_file(path, std::as_bytes(std::span(bytes)), profile::Sync::kNo);
}

}  // namespace

int make_probe_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return fail(kFailed,
                folder + ": the directory for --pseudo-probe cannot be made: " + error.message());
  }
  return kOk;
}

int write_pseudo_probes(Runtime& runtime, const std::string& folder) {
  const CodeImages images = runtime.code_images();
  const profile::ProbedRun run = profile::probed_run(images);
  const std::pair<const char*, std::string> files[] = {
      {"code.elf", profile::to_probe_elf(run.file)},
      {"samples.unsymbolized.txt", profile::to_unsymbolized(run.samples)},
      {"samples.perfscript.txt", profile::to_perfscript(run.samples)},
  };
  for (const auto& [name, bytes] : files) {
    if (Status s = write(folder + "/" + name, bytes); !s) return fail(s.error());
  }
  tell_losses(images, run);
  return kOk;
}

}  // namespace uptier::tools
