#include "tools/profile_words.h"

#include "tools/changes_words.h"
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
  CLI::App* overlap = profile.add_subcommand("overlap", "compares two profiles");
  add_changes_words(*overlap, overlap_.sides);
  overlap->add_option(
      "--dot", overlap_.dot,
      "writes pictures of the methods that differ most to this directory (graphviz)");
  overlap->add_option("--module", overlap_.module, "prog.wasm, for the edges between blocks");
  overlap->add_option("--top", overlap_.top, "largest number of pictures, and of --markdown's rows")
      ->check(not_negative())
      ->capture_default_str();
  overlap->callback([this, &code] { code = profile_overlap(overlap_); });
}

void ProfileWords::add_export(CLI::App& profile, int& code) {
  CLI::App* exports =
      profile.add_subcommand("export", "converts a profile to the format of another tool");
  ProfileExportCommand& c = export_;
  exports->add_option("FILE", c.file)->required();
  exports->add_option("--format", c.format, formats())
      ->check(CLI::IsMember(
          std::vector<std::string>(std::begin(kExportFormats), std::end(kExportFormats))))
      ->required();
  exports->add_option("-o,--output", c.out, "writes to this file, not to stdout");
  exports->add_flag("--contexts", c.contexts,
                    "csspgo: inlined bodies as records of their own, named by their call path");
  exports
      ->add_option("--by", c.by,
                   "folded: time | executions; time if the profile has it, else executions")
      ->check(CLI::IsMember({"time", "executions"}));
  CLI::Option* module = exports->add_option(
      "--module", c.module,
      "wasm-hints: the module; a copy with hints is written to -o. --lines, autofdo: the module "
      "with -g");
  exports
      ->add_flag("--lines", c.lines,
                 "pprof, folded, speedscope: frames are source lines, read from --module")
      ->needs(module);
  exports->add_option("--min-share", c.share, "wasm-hints: least share of a branch's likelier way")
      ->check(CLI::Range(0.5, 1.0))
      ->capture_default_str();
  exports
      ->add_option("--min-executions", c.executions,
                   "wasm-hints: least number of executions of a branch")
      ->check(not_negative())
      ->capture_default_str();
  exports->callback([this, &code] { code = profile_export(export_); });
}

void ProfileWords::add_import(CLI::App& profile, int& code) {
  CLI::App* importer = profile.add_subcommand("import",
                                              "makes a profile file from rows (of export "
                                              "--format=tsv, or of a database) or from llvm-text");
  importer->add_option("FILES", import_.files, "- is stdin")->required();
  importer->add_option("-o,--output", import_.out)->required();
  importer->add_option("--module", import_.module,
                       "llvm-text: prog.wasm, to find the methods by name");
  importer->callback([this, &code] { code = profile_import(import_); });
}

void ProfileWords::add_dot(CLI::App& profile, int& code) {
  CLI::App* dot = profile.add_subcommand(
      "dot", "draws with graphviz: the calls between methods, or the blocks of a method, by heat");
  dot->add_option("FILE", dot_.file)->required();
  dot->add_option("--method", dot_.method, "draws the blocks of this method");
  dot->add_option("--module", dot_.module,
                  "prog.wasm, for the edges between blocks and the direct calls");
  dot->add_option("--top", dot_.top, "draws this many callers")
      ->check(not_negative())
      ->capture_default_str();
  dot->add_option("-o,--output", dot_.out, "writes to this file, not to stdout");
  dot->callback([this, &code] { code = profile_dot(dot_); });
}

void ProfileWords::add_promote(CLI::App& profile, int& code) {
  CLI::App* promote = profile.add_subcommand(
      "promote", "replaces the profile in use by a candidate that passes all gates");
  ProfilePromoteCommand& c = promote_;
  promote->footer("Exit codes: 0 promoted, 1 a gate failed, 3 damaged.");
  promote->add_option("CANDIDATE", c.candidate);
  promote->add_option("--to", c.to, "the profile in use")->required();
  promote->add_option("--min-overlap", c.min_overlap, "least overlap with the profile in use")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  promote->add_option("--min-runs", c.min_runs, "least number of runs that the candidate sums up")
      ->check(not_negative())
      ->capture_default_str();
  promote
      ->add_option("--min-samples", c.min_samples,
                   "least number of samples (sampled calls and bursts)")
      ->check(not_negative())
      ->capture_default_str();
  promote->add_option("--keep", c.keep, "keeps this many former profiles: TO.1, TO.2, ...")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  promote->add_flag("--roll-back", c.roll_back,
                    "restores the former profile: TO.1 becomes TO again");
  promote->add_flag("--dry-run", c.dry_run, "tests the gates and changes nothing");
  promote->add_flag("--json", c.json, "as JSON");
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
