#include "tools/profile_words.h"

#include "tools/not_negative.h"

namespace uptier::tools {
namespace {

std::string formats() {
  std::string text;
  for (const char* f : kExportFormats) text += (text.empty() ? "" : " | ") + std::string(f);
  return text;
}

}  // namespace

void ProfileWords::add_overlap(CLI::App& profile, int& code) {
  CLI::App* overlap = profile.add_subcommand("overlap", "how alike two profiles are");
  overlap->add_option("A", overlap_.a)->required();
  overlap->add_option("B", overlap_.b)->required();
  overlap->add_option("--dot", overlap_.dot,
                      "a directory for pictures of the methods that differ most (graphviz)");
  overlap->add_option("--module", overlap_.module, "prog.wasm, which says what connects blocks");
  overlap->add_option("--top", overlap_.top, "pictures at most")
      ->check(not_negative())
      ->capture_default_str();
  overlap->add_flag("--json", overlap_.json, "for programs: all kinds and methods");
  overlap->callback([this, &code] { code = profile_overlap(overlap_); });
}

void ProfileWords::add_export(CLI::App& profile, int& code) {
  CLI::App* exports = profile.add_subcommand("export", "in the form of another tool");
  ProfileExportCommand& c = export_;
  exports->add_option("FILE", c.file)->required();
  exports->add_option("--format", c.format, formats())
      ->check(CLI::IsMember(
          std::vector<std::string>(std::begin(kExportFormats), std::end(kExportFormats))))
      ->required();
  exports->add_option("-o,--output", c.out, "instead of stdout");
  exports->add_option("--module", c.module,
                      "wasm-hints: the module, a copy of which with hints is written to -o");
  exports->add_option("--min-share", c.share, "wasm-hints: of a branch's likelier way")
      ->check(CLI::Range(0.5, 1.0))
      ->capture_default_str();
  exports->add_option("--min-executions", c.executions, "wasm-hints: of a branch")
      ->check(not_negative())
      ->capture_default_str();
  exports->callback([this, &code] { code = profile_export(export_); });
}

void ProfileWords::add_import(CLI::App& profile, int& code) {
  CLI::App* import = profile.add_subcommand(
      "import", "makes a file of rows (export --format=tsv, of a database, too) or of llvm-text");
  import->add_option("FILES", import_.files, "- is stdin")->required();
  import->add_option("-o,--output", import_.out)->required();
  import->add_option("--module", import_.module,
                     "llvm-text: prog.wasm, which says which methods the names are");
  import->callback([this, &code] { code = profile_import(import_);
});
}  // namespace uptier::tools

void ProfileWords::add_dot(CLI::App& profile, int& code) {
  CLI::App* dot = profile.add_subcommand(
      "dot", "for graphviz: who calls whom, or the blocks of a method, by heat");
  dot->add_option("FILE", dot_.file)->required();
  dot->add_option("--method", dot_.method, "its blocks");
  dot->add_option("--module", dot_.module,
                  "prog.wasm, which says what connects blocks and where direct calls are");
  dot->add_option("--top", dot_.top, "callers drawn")->check(not_negative())->capture_default_str();
  dot->add_option("-o,--output", dot_.out, "instead of stdout");
  dot->callback([this, &code] { code = profile_dot(dot_); });
}

void ProfileWords::add_promote(CLI::App& profile, int& code) {
  CLI::App* promote = profile.add_subcommand(
      "promote", "replaces the profile in use by a candidate that passes the gates");
  ProfilePromoteCommand& c = promote_;
  promote->footer("Exit codes: 0 promoted, 1 a gate failed, 3 damaged.");
  promote->add_option("CANDIDATE", c.candidate);
  promote->add_option("--to", c.to, "the profile in use")->required();
  promote->add_option("--min-overlap", c.min_overlap, "with the profile in use")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  promote->add_option("--min-runs", c.min_runs, "that it sums up")
      ->check(not_negative())
      ->capture_default_str();
  promote->add_option("--min-samples", c.min_samples, "sampled calls and bursts")
      ->check(not_negative())
      ->capture_default_str();
  promote->add_option("--keep", c.keep, "generations: TO.1, TO.2, ...")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  promote->add_flag("--roll-back", c.roll_back, "TO.1 becomes TO again");
  promote->add_flag("--dry-run", c.dry_run, "asks the gates and changes nothing");
  promote->add_flag("--json", c.json, "for programs");
  promote->callback([this, &code] { code = profile_promote(promote_); });
}

void ProfileWords::add_to(CLI::App& profile, int& code) {
  add_overlap(profile, code);
  add_export(profile, code);
  add_import(profile, code);
  add_dot(profile, code);
  add_promote(profile, code);
}

}  // namespace uptier::tools
