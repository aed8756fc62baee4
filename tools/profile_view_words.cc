#include "tools/profile_view_words.h"

#include "tools/changes_words.h"
#include "tools/not_negative.h"

namespace uptier::tools {

void ProfileViewWords::add_show(CLI::App& profile, int& code) {
  CLI::App* show =
      profile.add_subcommand("show", "shows the origin of a profile, and its hot methods");
  ProfileShowCommand& s = show_;
  show->add_option("FILE", s.file, "a profile; - is stdin, here and for every profile")->required();
  show->add_flag("--json", s.json, "as JSON: every method and site, or all of the chosen part");
  CLI::Option_group* what = show->add_option_group("what", "one of these in place of the summary");
  what->require_option(0, 1);
  what->add_flag(
      "--log", s.log,
      "the decisions of the last runs, without their inputs (use run --report=json for these)");
  what->add_flag("--calls", s.calls, "the calls between methods, the most frequent first");
  what->add_flag("--order", s.order, "the methods in the order of their first calls");
  what->add_flag("--timeline", s.timeline, "when each code came into service, in the last runs");
  what->add_flag("--data", s.data, "data of hosts and other tools: type, size, where it belongs");
  what->add_flag("--time", s.time, "the tree of call paths, with their share of processor time");
  CLI::Option* lines = what->add_flag(
      "--lines", s.lines, "the source lines that took most time or ran most; needs --module");
  CLI::Option* module =
      show->add_option("--module", s.module, "prog.wasm built with -g, whose lines --lines shows");
  lines->needs(module);
  module->needs(lines);
  what->add_option("--method", s.method, "every site of the methods with this name");
  show->add_option("--cutoffs", s.cutoffs,
                   "percentages, e.g. 50,90,99: how many blocks make up this share of executions")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 100.0));
  show->add_option("--least", s.least, "percent of the time: --time leaves out paths with less")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  show->add_option("--top", s.top, "number of methods or lines to list")
      ->check(CLI::Range(0, 1000000000))
      ->capture_default_str();
  show->callback([this, &code] { code = profile_show(show_); });
}

void ProfileViewWords::add_merge(CLI::App& profile, int& code) {
  CLI::App* merge = profile.add_subcommand("merge", "adds up files; each run is counted once");
  ProfileMergeCommand& m = merge_;
  merge->add_option("FILES", m.files, "PATH, or FACTOR@PATH to weigh it")->required();
  merge->add_option("-o,--output", m.out, "the output; %H stands for the hash of the file's bytes")
      ->required();
  merge->add_option("--methods", m.methods, "only methods whose names match this glob");
  merge->add_option("--module", m.modules,
                    "only methods of the module with this key; may be repeated");
  merge
      ->add_option("--half-life", m.half_life,
                   "half-life in days: a run that is this much older counts half")
      ->check(CLI::Range(0.0, 1e6));
  merge->add_option("--trim", m.trim, "entries kept in each table; the others become `other`")
      ->check(not_negative());
  merge->add_flag("--sparse", m.sparse, "leaves out methods without any counts");
  merge->add_flag("--force", m.force, "adds up files even if they share runs");
  merge->add_option("--cap-per-host", m.cap, "counts at most this many runs of a host; 0: all")
      ->check(not_negative());
  merge
      ->add_option("--quorum", m.quorum,
                   "keeps only methods and table entries that this many hosts have seen")
      ->check(not_negative());
  merge->add_flag("--by-file", m.by_file, "applies cap and quorum to files, not hosts");
  merge->add_option("--threads", m.threads, "number of threads; 0: as many as help")
      ->check(CLI::Range(0, 64));
  merge->add_flag("--json", m.json, "the result and all messages as JSON, on stdout");
  merge->callback([this, &code] { code = profile_merge(merge_); });
}

void ProfileViewWords::add_diff(CLI::App& profile, int& code) {
  CLI::App* diff = profile.add_subcommand("diff", "shows how shares moved from A to B");
  add_changes_words(*diff, diff_.sides);
  diff->add_option("--top", diff_.top, "number of methods to list")
      ->check(CLI::Range(0, 1000000000))
      ->capture_default_str();
  diff->add_option("-o,--output", diff_.out, "writes the profile B minus A to this file");
  diff->callback([this, &code] { code = profile_diff(diff_); });
}

void ProfileViewWords::add_top(CLI::App& profile, int& code) {
  CLI::App* top = profile.add_subcommand("top", "shows the methods with most executions");
  top->add_option("FILE", file_)->required();
  top->add_option("-n", top_, "number of methods")
      ->check(CLI::Range(0, 1000000000))
      ->capture_default_str();
  top->add_option("-o,--output", output_, "writes a file with these methods only");
  top->add_flag("--json", json_, "as JSON");
  top->callback([this, &code] { code = profile_top(file_, top_, output_, json_); });
}

void ProfileViewWords::add_check(CLI::App& profile, int& code) {
  CLI::App* check =
      profile.add_subcommand("check", "checks whether files are complete; exit code 3 if not");
  check->add_option("FILES", files_)->required();
  check->add_flag("--json", json_, "as JSON");
  check->callback([this, &code] { code = profile_check(files_, json_); });
}

void ProfileViewWords::add_log(CLI::App& profile, int& code) {
  CLI::App* log =
      profile.add_subcommand("log", "shows the lines of text that compiled code has logged");
  log->add_option("FILE", file_)->required();
  CLI::Option* json = log->add_flag("--json", json_, "as JSON: an object in each line");
  log->add_flag("--csv", csv_, "as CSV, with a line of names in front")->excludes(json);
  log->callback([this, &code] {
    code = profile_log(file_, json_ ? LogForm::kJson : csv_ ? LogForm::kCsv : LogForm::kText);
  });
}

void ProfileViewWords::add_match(CLI::App& profile, int& code) {
  CLI::App* match = profile.add_subcommand(
      "match", "shows which part of a profile fits a module that was edited since");
  match->add_option("FILE", file_)->required();
  match->add_option("MODULE", other_file_, "the module: WebAssembly, or IR text")->required();
  match->add_option("-o,--output", output_, "writes the profile for that module to this file");
  match->add_flag("--json", json_, "as JSON: each method that changed, and totals");
  match->callback([this, &code] { code = profile_match(file_, other_file_, output_, json_); });
}

void ProfileViewWords::add_to(CLI::App& profile, int& code) {
  add_show(profile, code);
  add_merge(profile, code);
  add_diff(profile, code);
  add_top(profile, code);
  add_check(profile, code);
  add_log(profile, code);
  add_match(profile, code);
}

}  // namespace uptier::tools
