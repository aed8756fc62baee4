#include "tools/profile_view_words.h"

#include "tools/not_negative.h"

namespace uptier::tools {

void ProfileViewWords::add_show(CLI::App& profile, int& code) {
  CLI::App* show = profile.add_subcommand("show", "where it comes from, and what is hot");
  ProfileShowCommand& s = show_;
  show->add_option("FILE", s.file, "- is stdin, here and wherever a profile is read")->required();
  show->add_flag("--json", s.json, "for programs: every method and site, or all of what is chosen");
  CLI::Option_group* what = show->add_option_group("what", "instead of a summary, one of");
  what->require_option(0, 1);
  what->add_flag("--log", s.log,
                 "the decisions of the last runs, without their inputs, which run --report=json "
                 "has");
  what->add_flag("--calls", s.calls, "the calls between methods, the most frequent first");
  what->add_flag("--order", s.order, "the methods in the order of their first calls");
  what->add_flag("--timeline", s.timeline, "which code came into service when, in the last runs");
  what->add_option("--method", s.method, "every site of the methods of this name");
  show->add_option("--cutoffs", s.cutoffs, "percent, e.g. 50,90,99: how many blocks make them up")
      ->delimiter(',')
      ->check(CLI::Range(0.0, 100.0));
  show->add_option("--top", s.top, "methods listed")
      ->check(CLI::Range(0, 1000000000))
      ->capture_default_str();
  show->callback([this, &code] { code = profile_show(show_); });
}

void ProfileViewWords::add_merge(CLI::App& profile, int& code) {
  CLI::App* merge = profile.add_subcommand("merge", "sums files; each run is counted once");
  ProfileMergeCommand& m = merge_;
  merge->add_option("FILES", m.files, "PATH, or FACTOR@PATH to weigh it")->required();
  merge->add_option("-o,--output", m.out, "%H in it stands for the hash of the file's bytes")
      ->required();
  merge->add_option("--methods", m.methods, "only methods whose names are like this glob");
  merge->add_option("--module", m.modules, "only methods of the module with this key; repeated");
  merge->add_option("--half-life", m.half_life, "days by which a run older counts half")
      ->check(CLI::Range(0.0, 1e6));
  merge->add_option("--trim", m.trim, "entries kept of each table; the others become `other`")
      ->check(not_negative());
  merge->add_flag("--sparse", m.sparse, "leaves out methods of which nothing was seen");
  merge->add_flag("--force", m.force, "sums files even if they share runs");
  merge->add_option("--cap-per-host", m.cap, "runs that a host counts for at most; 0: all")
      ->check(not_negative());
  merge
      ->add_option("--quorum", m.quorum,
                   "hosts that must have seen a method, or a table's entry, for it to be told")
      ->check(not_negative());
  merge->add_flag("--by-file", m.by_file, "cap and quorum are of files, not of hosts");
  merge->add_option("--threads", m.threads, "0: as many as help")->check(CLI::Range(0, 64));
  merge->callback([this, &code] { code = profile_merge(merge_); });
}

void ProfileViewWords::add_diff(CLI::App& profile, int& code) {
  CLI::App* diff = profile.add_subcommand("diff", "how shares moved from A to B");
  diff->add_option("A", file_)->required();
  diff->add_option("B", other_file_)->required();
  diff->add_option("--top", top_, "methods listed")
      ->check(CLI::Range(0, 1000000000))
      ->capture_default_str();
  diff->add_option("-o,--output", output_, "a file for B less A");
  diff->add_flag("--json", json_, "for programs: all methods");
  diff->callback([this, &code] { code = profile_diff(file_, other_file_, top_, output_, json_); });
}

void ProfileViewWords::add_top(CLI::App& profile, int& code) {
  CLI::App* top = profile.add_subcommand("top", "the methods with most executions");
  top->add_option("FILE", file_)->required();
  top->add_option("-n", top_, "how many")->check(CLI::Range(0, 1000000000))->capture_default_str();
  top->add_option("-o,--output", output_, "a file for them alone");
  top->add_flag("--json", json_, "for programs");
  top->callback([this, &code] { code = profile_top(file_, top_, output_, json_); });
}

void ProfileViewWords::add_check(CLI::App& profile, int& code) {
  CLI::App* check = profile.add_subcommand("check", "whether files are whole; exit code 3 if not");
  check->add_option("FILES", files_)->required();
  check->add_flag("--json", json_, "for programs");
  check->callback([this, &code] { code = profile_check(files_, json_); });
}

void ProfileViewWords::add_match(CLI::App& profile, int& code) {
  CLI::App* match = profile.add_subcommand(
      "match", "what of a profile is of use for a module that was edited since");
  match->add_option("FILE", file_)->required();
  match->add_option("MODULE", other_file_, "WebAssembly, or IR text")->required();
  match->add_option("-o,--output", output_, "a file for the profile of that module");
  match->add_flag("--json", json_, "for programs: each method that changed, and how many of each");
  match->callback([this, &code] { code = profile_match(file_, other_file_, output_, json_); });
}

void ProfileViewWords::add_to(CLI::App& profile, int& code) {
  add_show(profile, code);
  add_merge(profile, code);
  add_diff(profile, code);
  add_top(profile, code);
  add_check(profile, code);
  add_match(profile, code);
}

}  // namespace uptier::tools
