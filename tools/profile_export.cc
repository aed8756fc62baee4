// uptier profile export: a profile in the form of another tool.
#include <cstdio>
#include <filesystem>

#include "profile/algebra/fold_inlined.h"
#include "profile/formats/csspgo.h"
#include "profile/formats/export.h"
#include "profile/formats/pprof.h"
#include "profile/formats/tsv.h"
#include "profile/upf/file.h"
#include "tools/autofdo.h"
#include "tools/commands.h"
#include "tools/fail.h"
#include "tools/line_frames.h"
#include "tools/profile_commands.h"
#include "tools/profile_json.h"
#include "tools/speedscope.h"
#include "tools/streams.h"
#include "tools/wasm_hints.h"

namespace uptier::tools {
namespace {

int write_out(const std::string& out, const std::string& text) {
  Status s = write_output(out.empty() ? kStream : out, std::as_bytes(std::span(text)));
  return s ? int{kOk} : fail(kFailed, s.error().message);
}

unsigned long long wide(uint64_t n) { return n; }

// Bodies that are inlined count in their methods, whose blocks have to be known.
void tell_left_out(const std::string& format, const Profile& p) {
  if (format != "lcov" && format != "llvm-text") return;
  const uint64_t left_out = profile::fold_inlined(p).left_out;
  if (left_out == 0) return;
  std::fprintf(
      stderr,
      "uptier: %llu of %zu inlined bodies are left out: no method of the profile has their "
      "code\n",
      wide(left_out), p.inlined.size());
}

int export_hints(const ProfileExportCommand& c, const ProfileFile& file) {
  if (c.module.empty() || c.out.empty()) {
    return fail(kUsage, "wasm-hints needs --module prog.wasm, and -o for the module with hints");
  }
  std::vector<uint8_t> bytes;
  if (!read_file(c.module, bytes)) return kFailed;
  HintReport r;
  Result<std::vector<uint8_t>> hinted =
      add_hints(bytes, file, {c.share, c.executions, c.module}, &r);
  if (!hinted) return fail(hinted.error());
  std::fprintf(stderr,
               "uptier: %llu functions known, %llu not; branches: %llu likely, %llu unlikely, "
               "%llu without a hint; %llu frequencies; %llu indirect calls with targets; "
               "%llu priorities\n",
               wide(r.functions), wide(r.unknown), wide(r.likely), wide(r.unlikely),
               wide(r.unclear), wide(r.frequencies), wide(r.targeted), wide(r.prioritized));
  return write_out(c.out, {reinterpret_cast<const char*>(hinted->data()), hinted->size()});
}

// If there is an output file, a folder beside it receives listings in place of sources.
int export_lcov(const ProfileExportCommand& c, const Profile& p) {
  if (c.out.empty() || c.out == kStream) return write_out(c.out, profile::to_lcov(p));
  const std::string folder = std::filesystem::absolute(c.out + ".src").string();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return fail(kFailed, folder + ": " + error.message());
  std::vector<profile::LcovListing> listings;
  const std::string coverage = profile::to_lcov(p, folder, &listings);
  for (const profile::LcovListing& l : listings) {
    if (int code = write_out(folder + "/" + l.name, l.text); code != kOk) return code;
  }
  return write_out(c.out, coverage);
}

int export_autofdo(const ProfileExportCommand& c, const ProfileFile& file) {
  if (c.module.empty()) {
    return fail(kUsage, "autofdo needs --module prog.wasm, whose debug sections have the lines");
  }
  Result<std::unique_ptr<ModuleLines>> module = ModuleLines::open(c.module);
  if (!module) return fail(module.error());
  AutofdoLosses losses;
  const std::string text = to_autofdo(file.profile, **module, losses);
  if (losses.functions != 0 || losses.lines != 0) {
    std::fprintf(
        stderr,
        "uptier: autofdo: %llu functions that ran have no place in the debug sections, and "
        "%llu lines are too far from their functions: they are left out\n",
        wide(losses.functions), wide(losses.lines));
  }
  if (text.empty()) {
    return fail(kFailed, c.file + ": no function of " + c.module +
                             " has executions and a place; build the module with -g "
                             "-fdebug-info-for-profiling, and profile a run of the same code");
  }
  return write_out(c.out, text);
}

int export_lines(const ProfileExportCommand& c, const ProfileFile& file) {
  if (c.format != "pprof" && c.format != "folded" && c.format != "speedscope") {
    return fail(kUsage, "--lines: " + c.format + " has no lines; use pprof, folded or speedscope");
  }
  Result<std::unique_ptr<ModuleLines>> module = ModuleLines::open(c.module);
  if (!module) return fail(module.error());
  Result<LineProfile> lines = LineProfile::of(c.file, file, **module);
  if (!lines) return fail(lines.error());
  if (c.format == "pprof") {
    const PprofLines sources(**module);
    return write_out(c.out, profile::to_pprof(file.profile, file.info, file.calls.time, &sources));
  }
  if (c.format == "speedscope") return write_out(c.out, speedscope_json(file, &*lines));
  const bool by_time = !file.calls.time.empty() && c.by != "executions";
  return write_out(c.out, folded_lines(file, *lines, by_time));
}

}  // namespace

int profile_export(const ProfileExportCommand& c) {
  ProfileFile file;
  if (int code = open_profile(c.file, file); code != kOk) return code;
  const Profile& p = file.profile;
  if (c.format == "wasm-hints") return export_hints(c, file);
  if (c.format == "autofdo") return export_autofdo(c, file);
  const bool timed = !file.calls.time.empty();
  if (!timed && (c.format == "speedscope" || c.by == "time")) {
    return fail(
        kFailed,
        c.file + ": has no time: its runs did not sample stacks (run --sample, or --profile)");
  }
  if (c.lines) return export_lines(c, file);
  tell_left_out(c.format, p);
  const auto contexts = c.contexts ? profile::Contexts::kApart : profile::Contexts::kNested;
  if (c.format == "lcov") return export_lcov(c, p);
  return write_out(c.out, c.format == "json"     ? profile_json(file)
                          : c.format == "csv"    ? profile::to_csv(p, file.calls)
                          : c.format == "tsv"    ? profile::to_tsv(p, file.info, file.calls)
                          : c.format == "folded" ? (timed && c.by != "executions"
                                                        ? profile::to_folded(file.calls.time, p)
                                                        : profile::to_folded(p))
                          : c.format == "pprof"  ? profile::to_pprof(p, file.info, file.calls.time)
                          : c.format == "csspgo" ? profile::to_csspgo(p, file.calls, contexts)
                          : c.format == "speedscope" ? speedscope_json(file)
                          : c.format == "text"       ? to_text(p)
                                                     : profile::to_llvm_text(p));
}

}  // namespace uptier::tools
