// uptier: the command line. Parses words, then calls commands.h.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <new>
#include <span>
#include <string_view>

#include "tools/commands.h"
#include "tools/environment.h"
#include "tools/fail.h"
#include "tools/leave.h"
#include "tools/not_negative.h"
#include "tools/profile_commands.h"
#include "tools/profile_words.h"

namespace {

using namespace uptier;
using namespace uptier::tools;

// Options of the runtime as the commands take them, set over the environment's. They are set in the
// order of the command line, whatever they are called there: the last one said wins.
struct RuntimeWords {
  std::vector<std::pair<std::string, std::string>> given;

  void add_to(CLI::App& app) {
    named(app, "--tier", "tier", "auto | baseline | instrumented (every call) | optimized");
    named(app, "--policy", "policy", "auto | always | never");
    named(app, "--interval", "interval", "mean gap between sampled calls; 1 samples every call");
    named(app, "--gap", "gap", "random | fixed | prime | exact");
    named(app, "--opt-range", "opt_range", "optimize only methods whose hash lies in low..high");
    named(app, "--profile", "profile",
          "a .upf file: read at the start, so that what was hot is optimized at once, and written "
          "at the end");
    named(app, "--stress", "stress", "force transitions, e.g. osr=all,copy=every:3");
    app.add_option_function<std::vector<std::string>>(
           "-O,--option",
           [this](const std::vector<std::string>& words) {
             for (const std::string& w : words) {
               size_t eq = w.find('=');
               if (eq == std::string::npos) throw CLI::ValidationError(w, "want NAME=VALUE");
               given.emplace_back(w.substr(0, eq), w.substr(eq + 1));
             }
           },
           "any option by NAME=VALUE; `uptier options` lists them; of two for one the later wins")
        ->trigger_on_parse()
        ->allow_extra_args(false)
        ->type_name("NAME=VALUE");
  }

  // What a table of loops takes: every call observed, in code that stays.
  void imply_loops() {
    given.insert(given.begin(), {{"loops", "on"}, {"interval", "1"}, {"policy", "never"}});
  }

  Result<Options> options() const {
    for (const std::string& line : doubtful_variables()) fail(kOk, line);
    Result<Options> o = Options::from_env();
    if (!o) return o.error();
    for (const auto& [name, value] : given) {
      if (Status s = o->set(name, value); !s) return s.error();
    }
    return o;
  }

 private:
  void named(CLI::App& app, const char* flag, const char* field, const char* help) {
    app.add_option_function<std::string>(
           flag, [this, field](const std::string& v) { given.emplace_back(field, v); }, help)
        ->trigger_on_parse();
  }
};

// What is shown after a run, and where.
void add_shown(CLI::App& app, Shown& s) {
  app.add_flag("--report{text}", s.report,
               "what the tiers did, to stderr: --report or --report=json")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_option("--report-to", s.report_to,
                 "writes the report to FILE, and nothing else; - is stdout; implies --report")
      ->type_name("FILE");
  app.add_flag("--loops{text}", s.loops,
               "times every loop, a table to stderr: --loops, --loops=json or --loops=csv; "
               "implies -O loops=on --interval=1 --policy=never unless given")
      ->check(CLI::IsMember({"text", "json", "csv"}));
  app.add_option("--loops-to", s.loops_to, "the same of the table of loops; implies --loops")
      ->type_name("FILE");
  app.add_flag("--log", s.log, "the records of log probes, to stderr");
  app.add_option("--log-to", s.log_to, "the same of these records; implies --log")
      ->type_name("FILE");
}

// A file to write asks for what goes there; one file cannot take two things.
void settle(Shown& s, const std::string& trace = "") {
  if (!s.report_to.empty() && s.report.empty()) s.report = "text";
  if (!s.loops_to.empty() && s.loops.empty()) s.loops = "text";
  s.log |= !s.log_to.empty();
  const std::pair<const char*, const std::string*> files[] = {{"--report-to", &s.report_to},
                                                              {"--loops-to", &s.loops_to},
                                                              {"--log-to", &s.log_to},
                                                              {"--trace", &trace}};
  for (const auto& a : files) {
    for (const auto* b = &a + 1; b != std::end(files); ++b) {
      if (a.second->empty() || *a.second != *b->second) continue;
      throw CLI::ValidationError(std::string(a.first) + " and " + b->first + " both write to " +
                                 *a.second);
    }
  }
}

int usage_error(const std::string& message) { return fail(kUsage, message); }

// Fills the options of a command, then calls it.
template <typename Command>
int with_options(RuntimeWords& words, Command& c, int (*call)(const Command&)) {
  if (!c.shown.loops.empty()) words.imply_loops();
  Result<Options> o = words.options();
  if (!o) return usage_error(o.error().message);
  c.options = *o;
  return call(c);
}

struct Commands {
  CLI::App app{"Uptier: runs WebAssembly through sampling tiers, and shows what they did"};
  std::span<char*> given;  // the words of the command line
  int code = kOk;
  RuntimeWords words;
  RunCommand run_command;
  IrCommand ir_command;
  CompileCommand compile_command;
  ReportCommand report_command;
  ReplayCommand replay_command;
  std::string file;
  std::string other_file;
  std::vector<std::string> files;
  std::string output;
  uint64_t top = 10;
  ProfileShowCommand show_command;
  ProfileMergeCommand merge_command;
  ProfileWords profile_words;
  bool json = false;

  // Adds a command, which the help names. Returns null if its name is not among the words: nobody
  // calls it then, and making the options of all commands takes longer than parsing those of one.
  CLI::App* add(const char* name, const char* purpose) {
    CLI::App* command = app.add_subcommand(name, purpose);
    const bool called = std::ranges::find(given, std::string_view(name)) != given.end();
    return called ? command : nullptr;
  }

  void add_run() {
    CLI::App* run = add("run", "runs prog.wasm under WASI");
    if (run == nullptr) return;
    run->footer(
        "Arguments: prog.wasm, and behind it what the program is given.\n"
        "Exit codes: the program's own; 134 after a trap, 125 for a refused module, or where "
        "memory\n"
        "was refused, 1 where a file could not be written and the program's own was 0.");
    run->prefix_command();
    words.add_to(*run);
    RunCommand& c = run_command;
    add_shown(*run, c.shown);
    run->add_option("--report-methods", c.shown.report_methods,
                    "rows of the text report, 0 for all")
        ->check(not_negative());
    run->add_option("--trace", c.trace, "writes the trace of all flushes to FILE");
    run->add_option("--dir", c.dirs, "opens a directory to the program: HOST or HOST::GUEST")
        ->allow_extra_args(false);
    run->add_option("--env", c.env, "NAME=VALUE, or NAME to pass it on")->allow_extra_args(false);
    run->add_option("--invoke", c.invoke, "calls this export with ARGS instead of _start");
    run->add_flag("--lazy-validation", c.lazy_validation,
                  "validates a function when it is first called; one that is invalid traps then");
    run->add_flag("--explicit-bounds", c.explicit_bounds,
                  "checks memory bounds in code instead of reserving address space");
    run->add_flag("--trap-unknown-imports", c.trap_unknown,
                  "runs programs that import more functions than WASI's: a call of one traps");
    run->callback([this, run] {
      std::vector<std::string> rest = run->remaining();
      if (rest.empty()) throw CLI::RequiredError("prog.wasm");
      if (rest.front().starts_with("-")) throw CLI::ValidationError("no option " + rest.front());
      run_command.module = rest.front();
      run_command.args.assign(rest.begin() + 1, rest.end());
      settle(run_command.shown, run_command.trace);
      code = with_options(words, run_command, run_fn);
    });
  }

  void add_trace() {
    CLI::App* trace = add("trace", "reads trace files; - is stdin");
    if (trace == nullptr) return;
    trace->require_subcommand(1);
    CLI::App* dump = trace->add_subcommand("dump", "prints a trace as text");
    dump->add_option("FILE", file)->required();
    dump->callback([this] { code = trace_dump(file); });
    CLI::App* validate = trace->add_subcommand("validate", "checks a trace against its rules");
    validate->add_option("FILE", file)->required();
    validate->callback([this] { code = trace_validate(file); });
    CLI::App* profile = trace->add_subcommand("profile", "prints the merged profile of a trace");
    profile->add_option("FILE", file)->required();
    profile->add_flag("--json", json, "for programs: every kind, raw and estimated");
    profile->callback([this] { code = trace_profile(file, json); });
    CLI::App* overlap = trace->add_subcommand("overlap", "compares the profiles of two traces");
    overlap->add_option("A", file)->required();
    overlap->add_option("B", other_file)->required();
    overlap->callback([this] { code = trace_overlap(file, other_file); });
  }

  void add_profile() {
    CLI::App* profile =
        add("profile", "works with profile files (.upf); reads traces and profiles as text, too");
    if (profile == nullptr) return;
    profile->require_subcommand(1);
    CLI::App* show = profile->add_subcommand("show", "where it comes from, and what is hot");
    ProfileShowCommand& s = show_command;
    show->add_option("FILE", s.file, "- is stdin, here and wherever a profile is read")->required();
    show->add_flag("--json", s.json, "for programs: every method and site");
    CLI::Option_group* what = show->add_option_group("what", "instead of a summary, one of");
    what->require_option(0, 1);
    what->add_flag(
        "--log", s.log,
        "the decisions of the last runs, without their inputs, which run --report=json has");
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
    show->callback([this] { code = profile_show(show_command); });
    CLI::App* merge = profile->add_subcommand("merge", "sums files; each run is counted once");
    ProfileMergeCommand& m = merge_command;
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
    merge->callback([this] { code = profile_merge(merge_command); });
    CLI::App* diff = profile->add_subcommand("diff", "how shares moved from A to B");
    diff->add_option("A", file)->required();
    diff->add_option("B", other_file)->required();
    diff->add_option("--top", top, "methods listed")
        ->check(CLI::Range(0, 1000000000))
        ->capture_default_str();
    diff->add_option("-o,--output", output, "a file for B less A");
    diff->callback([this] { code = profile_diff(file, other_file, top, output); });
    add_profile_parts(*profile);
  }

  void add_profile_parts(CLI::App& profile) {
    CLI::App* top_app = profile.add_subcommand("top", "the methods with most executions");
    top_app->add_option("FILE", file)->required();
    top_app->add_option("-n", top, "how many")
        ->check(CLI::Range(0, 1000000000))
        ->capture_default_str();
    top_app->add_option("-o,--output", output, "a file for them alone");
    top_app->callback([this] { code = profile_top(file, top, output); });
    CLI::App* check =
        profile.add_subcommand("check", "whether files are whole; exit code 3 if not");
    check->add_option("FILES", files)->required();
    check->callback([this] { code = profile_check(files); });
    CLI::App* match = profile.add_subcommand(
        "match", "what of a profile is of use for a module that was edited since");
    match->add_option("FILE", file)->required();
    match->add_option("MODULE", other_file, "WebAssembly, or IR text")->required();
    match->add_option("-o,--output", output, "a file for the profile of that module");
    match->callback([this] { code = profile_match(file, other_file, output); });
    profile_words.add_to(profile, code);
  }

  void add_ir() {
    CLI::App* ir = add("ir", "works on IR in its text form");
    if (ir == nullptr) return;
    ir->require_subcommand(1);
    IrCommand& c = ir_command;
    CLI::App* print = ir->add_subcommand("print", "parses and prints");
    print->add_option("FILE", c.file)->required();
    print->callback([this] { code = ir_print(ir_command); });
    CLI::App* verify = ir->add_subcommand("verify", "parses and verifies");
    verify->add_option("FILE", c.file)->required();
    verify->callback([this] { code = ir_verify(ir_command); });
    CLI::App* run = ir->add_subcommand("run", "runs a function");
    run->add_option("FILE", c.file)->required();
    run->add_option("ARGS", c.args, "one number a parameter");
    run->add_option("--function", c.function, "which function; the last of the file by default");
    run->add_flag("--interpret", c.interpret, "in the reference interpreter");
    add_shown(*run, c.shown);
    words.add_to(*run);
    run->callback([this] {
      settle(ir_command.shown);
      code = with_options(words, ir_command, ir_run);
    });
  }

  void add_compile() {
    CLI::App* compile =
        add("compile", "compiles a function of prog.wasm or prog.uir and shows how; runs nothing");
    if (compile == nullptr) return;
    CompileCommand& c = compile_command;
    compile->add_option("FILE", c.file)->required();
    compile->add_option("--function,-f", c.function, "its name, or its number in the file");
    compile->add_option("--dump", c.dump, "of ir, passes, listing, probes, frames")
        ->delimiter(',')
        ->check(CLI::IsMember({"ir", "passes", "listing", "probes", "frames"}))
        ->capture_default_str();
    compile->add_option("--profile", c.profile, "a profile file, a trace, or a profile as text");
    compile->add_flag("--baseline", c.baseline, "by the baseline compiler");
    compile->add_flag("--instrumented", c.instrumented, "the instrumented copy");
    compile->add_flag("!--no-inlining", c.inlining, "calls stay calls");
    compile->add_flag("--cold-exits", c.cold_exits, "blocks that never ran become exits");
    compile->add_option("--osr", c.osr_loop, "entered at this loop (a number); optimized code only")
        ->check(not_negative());
    compile
        ->add_flag("--speed{text}", c.speed,
                   "times both compilers on all functions instead: --speed or --speed=json")
        ->check(CLI::IsMember({"text", "json"}));
    compile->callback([this] {
      if (compile_command.speed.empty() && compile_command.function.empty()) {
        throw CLI::RequiredError("--function");
      }
      if (compile_command.baseline && compile_command.osr_loop >= 0) {
        throw CLI::ValidationError("--osr",
                                   "baseline code has no version that is entered at a loop");
      }
      code = uptier::tools::compile(compile_command);
    });
  }

  void add_report() {
    CLI::App* report = add("report", "a profile as a page for a browser");
    if (report == nullptr) return;
    ReportCommand& c = report_command;
    report->add_option("FILE", c.file, "a .upf file, a trace, or a profile as text")->required();
    report->add_option("-o,--output", c.output, "instead of FILE.html; - for stdout");
    report->add_option("--module", c.module, "the program: adds its code, calls and edges");
    report->add_option("--against", c.against, "another profile, to compare with");
    report->add_option("--listings", c.listings, "methods whose code is shown, the hottest")
        ->check(not_negative())
        ->capture_default_str();
    report->callback([this] { code = uptier::tools::report(report_command); });
  }

  void add_replay() {
    CLI::App* replay =
        add("replay", "makes the decisions of a run again, by its options or by others");
    if (replay == nullptr) return;
    replay->footer(
        "With the options of the run every answer is the one in the log. With others, e.g.\n"
        "-O speedup=1.5, it is what the policy would have said at that point; not what that would\n"
        "have led to. Exit codes: 0 all answers are the same, 1 some are not, 3 no report.");
    replay->add_option("REPORT", replay_command.file, "a file of `uptier run --report=json`")
        ->required();
    words.add_to(*replay);
    replay->callback([this] {
      Result<Options> o = words.options();
      if (!o) {
        code = usage_error(o.error().message);
        return;
      }
      replay_command.options = *o;
      code = uptier::tools::replay(replay_command);
    });
  }

  void add_wast() {
    CLI::App* wast_app =
        add("wast", "speaks the line protocol of WebAssembly test runners on stdin and stdout");
    if (wast_app == nullptr) return;
    words.add_to(*wast_app);
    wast_app->callback([this] {
      Result<Options> o = words.options();
      code = o ? wast(*o) : usage_error(o.error().message);
    });
  }

  void add_options() {
    CLI::App* options_app = add("options", "prints every option of the runtime");
    if (options_app == nullptr) return;
    words.add_to(*options_app);
    options_app->callback([this] {
      Result<Options> o = words.options();
      if (!o) {
        code = usage_error(o.error().message);
      } else {
        std::fputs(o->table().c_str(), stdout);
      }
    });
  }

  static int run_fn(const RunCommand& c) { return uptier::tools::run(c); }
};

// Names a command that there is not; the parser would only say that one is missing.
int check_commands(const CLI::App& app, int argc, char** argv) {
  const CLI::App* at = &app;
  for (int i = 1; i < argc; ++i) {
    const std::vector<const CLI::App*> all =
        at->get_subcommands([](const CLI::App* a) { return !a->get_name().empty(); });
    const std::string word = argv[i];
    if (all.empty() || word.empty() || word[0] == '-') return kOk;
    const auto found =
        std::ranges::find_if(all, [&](const CLI::App* a) { return a->get_name() == word; });
    if (found == all.end()) {
      std::string names;
      for (const CLI::App* a : all) names += (names.empty() ? "" : ", ") + a->get_name();
      return usage_error(word + ": no such command; there are " + names);
    }
    at = *found;
  }
  return kOk;
}

}  // namespace

// What is thrown here is the parser's, std::bad_alloc, or a JSON library's.
int main(int argc, char** argv) try {
  // Without any memory not even an exception can be thrown.
  if (std::unique_ptr<char[]> some(new (std::nothrow) char[1]); some == nullptr) {
    return fail_without_memory();
  }
  Commands commands;
  commands.given = {argv + std::min(argc, 1), argv + argc};
  commands.app.require_subcommand(1);
  commands.app.set_version_flag("--version", "uptier 0.1.0");
  commands.add_run();
  commands.add_trace();
  commands.add_profile();
  commands.add_ir();
  commands.add_compile();
  commands.add_report();
  commands.add_replay();
  commands.add_wast();
  commands.add_options();
  if (int code = check_commands(commands.app, argc, argv); code != kOk) return code;
  try {
    commands.app.parse(argc, argv);
  } catch (const CLI::ParseError& e) { return written(commands.app.exit(e) == 0 ? kOk : kUsage); }
  return written(commands.code);
} catch (const std::bad_alloc&) {
  return written(fail_without_memory());
} catch (const std::exception& e) {
  std::fprintf(stderr, "uptier: %s\n", e.what());
  return written(kFailed);
}
