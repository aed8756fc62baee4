// uptier report: a profile as a page for a browser.
#include <cstdio>
#include <filesystem>

#include "profile/upf/file.h"
#include "tools/commands.h"
#include "tools/fail.h"
#include "tools/profile_commands.h"
#include "tools/report_lines.h"
#include "tools/report_page.h"
#include "tools/streams.h"

namespace uptier::tools {
namespace {

std::string file_name_of(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

}  // namespace

int report(const ReportCommand& command) {
  ReportCommand c = command;
  const bool named = c.file != kStream || !c.output.empty();
  if (!named) return fail(kUsage, "a profile from stdin has no name: use -o to name the page");
  if (Status s = check_stdin({c.file, c.against}); !s) return fail(kUsage, s.error().message);
  c.file = seekable(c.file);  // is read twice
  Result<ProfileFile> file = load_profile(c.file);
  if (!file) return fail(file.error());
  ReportSource source;
  source.name = file_name_of(command.file);
  source.file = std::move(*file);
  source.timeline = last_timeline(c.file, source.file.warnings);
  if (!c.against.empty()) {
    Result<ProfileFile> other = load_profile(c.against);
    if (!other) return fail(other.error());
    source.against_name = file_name_of(c.against);
    source.against = std::move(other->profile);
  }
  std::unique_ptr<ReportModule> module;
  if (!c.module.empty()) {
    auto opened = ReportModule::open(c.module, source.file.profile);
    if (!opened) return fail(opened.error());
    module = std::move(*opened);
    source.lines = report_lines(c.module, source.name, source.file, c.sources);
  }
  const std::string page = report_page(report_data(source, module.get(), c.listings));
  const std::string out = c.output.empty() ? c.file + ".html" : c.output;
  if (out == "-") {
    std::fwrite(page.data(), 1, page.size(), stdout);
    return kOk;
  }
  Status s = write_output(out, std::as_bytes(std::span(page)));
  if (!s) return fail(kFailed, s.error().message);
  std::printf("%s: %zu KiB\n", out.c_str(), (page.size() + 1023) / 1024);
  return kOk;
}

}  // namespace uptier::tools
