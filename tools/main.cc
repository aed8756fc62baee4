// uptier: the command line. Parses words, then calls commands.h.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string_view>

#include "tools/commands.h"
#include "tools/fail.h"
#include "tools/image_words.h"
#include "tools/leave.h"
#include "tools/nearest.h"
#include "tools/not_negative.h"
#include "tools/profile_view_words.h"
#include "tools/profile_words.h"
#include "tools/runtime_words.h"

namespace {

using namespace uptier;
using namespace uptier::tools;

// Adds the flags for the output after a run.
void add_shown(CLI::App& app, Shown& s) {
  app.add_flag("--report{text}", s.report,
               "prints a report of the tiers to stderr: --report or --report=json")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_option("--report-to", s.report_to,
                 "writes only the report to FILE; - is stdout; implies --report")
      ->type_name("FILE");
  app.add_flag("--loops{text}", s.loops,
               "times every loop and prints a table to stderr: --loops, --loops=json or "
               "--loops=csv; --loops=each prints the first 4096 executions of each thread as JSON; "
               "implies -O loops=on --interval=1 --policy=never unless given")
      ->check(CLI::IsMember({"text", "json", "csv", kEachLoop}));
  app.add_option("--loops-to", s.loops_to,
                 "writes only the table of loops to FILE; - is stdout; implies --loops")
      ->type_name("FILE");
  app.add_flag("--sample{1000}", s.sample,
               "samples stacks and prints to stderr where processor time went: --sample=HZ, 1000 a "
               "second if not given")
      ->check(CLI::Range(1, 20000));
  app.add_option(
         "--folded", s.folded,
         "writes the sampled call paths to FILE for flame graph tools; - is stdout; implies "
         "--sample")
      ->type_name("FILE");
  app.add_flag("--log", s.log, "prints the records of log probes to stderr");
  app.add_option("--log-to", s.log_to,
                 "writes only these records to FILE; - is stdout; implies --log")
      ->type_name("FILE");
}

// Adds the arguments after the options of `run`, which the parser does not know.
class RunFormatter final : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: " + std::string(kRunUsage) + "\n";
  }
};

// Returns the first word that is an option of `app`, or "".
std::string option_among(const CLI::App& app, std::span<const std::string> words) {
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    if (name.size() > 1 && app.get_option_no_throw(name) != nullptr) return name;
  }
  return "";
}

// A file for an output requests that output; two outputs cannot share a file.
void settle(Shown& s, const std::string& trace = "", const std::string& coverage = "") {
  if (!s.report_to.empty() && s.report.empty()) s.report = "text";
  if (!s.loops_to.empty() && s.loops.empty()) s.loops = "text";
  s.log |= !s.log_to.empty();
  if (!s.folded.empty() && s.sample.empty()) s.sample = "1000";
  const std::pair<const char*, const std::string*> files[] = {
      {"--report-to", &s.report_to}, {"--loops-to", &s.loops_to}, {"--log-to", &s.log_to},
      {"--folded", &s.folded},       {"--trace", &trace},         {"--coverage", &coverage}};
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
int with_options(RuntimeWords& words, Command& c, int (*call)(const Command&), bool guest) {
  if (!c.shown.loops.empty()) words.imply_loops();
  if (!c.shown.sample.empty()) words.sample(c.shown.sample);
  Result<Options> o = words.options(guest);
  if (!o) return usage_error(o.error().message);
  c.options = *o;
  return call(c);
}

struct Commands {
  CLI::App app{
      "Uptier: runs WebAssembly programs in tiers with sampling, and shows what the tiers did"};
  std::span<char*> given;  // the words of the command line
  int code = kOk;
  RuntimeWords words;
  RunCommand run_command;
  IrCommand ir_command;
  CompileCommand compile_command;
  ReportCommand report_command;
  ReplayCommand replay_command;
  TopCommand top_command;
  ExplainCommand explain_command;
  std::string file;
  std::string other_file;
  ProfileViewWords profile_view_words;
  ProfileWords profile_words;
  ImageWords image_words;
  std::string image;  // of `run`
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
    run->formatter(std::make_shared<RunFormatter>());
    run->footer(
        "Arguments: prog.wasm (- for stdin), followed by the arguments of the program.\nExit "
        "codes: the program's own; 134 after a trap (out of fuel included); 124 after\n--timeout; "
        "125 if the module or memory was refused; 2 if the command line is wrong;\n1 if a file "
        "could not be written and the program's own code was 0.");
    run->prefix_command();
    words.add_to(*run);
    RunCommand& c = run_command;
    add_shown(*run, c.shown);
    run->add_option("--report-methods", c.shown.report_methods,
                    "number of rows in the text report; 0: all")
        ->check(not_negative());
    run->add_option("--trace", c.trace, "writes the trace of all flushes to FILE");
    run->add_option("--events", c.events,
                    "writes the program's WASI calls and the runtime's events to FILE: .json for "
                    "ui.perfetto.dev, .jsonl (also for `uptier explain`), or a table of counts");
    run->add_option("--coverage", c.coverage,
                    "writes which source lines ran to FILE, for genhtml, or as JSON if it ends in "
                    ".json; to a directory (DIR/): adds the run to those before; needs a module "
                    "with -g; with --tier=instrumented: how often they ran")
        ->type_name("FILE");
    run->add_option("--pseudo-probe", c.probes,
                    "writes code and stack samples to DIR for llvm-profgen: code.elf, "
                    "samples.unsymbolized.txt, samples.perfscript.txt; samples stacks 1000 times a "
                    "second if no rate is given")
        ->type_name("DIR");
    run->add_option("--image", image, "takes code from this file of `uptier image`")
        ->type_name("FILE");
    run->add_option("--image-out", c.image_out,
                    "writes the code of all functions that ran to FILE, for --image")
        ->type_name("FILE");
    run->add_flag("--listen{on}", c.listen,
                  "lets `uptier top` see where time goes, through a socket of this user: --listen, "
                  "or --listen=PATH; samples stacks 100 times a second if no rate is given");
    run->add_option("--dir", c.dirs, "opens a directory to the program: HOST or HOST::GUEST")
        ->allow_extra_args(false);
    run->add_option("--env", c.env,
                    "sets a variable for the program: NAME=VALUE, or NAME to pass it on")
        ->allow_extra_args(false);
    run->add_option("--invoke", c.invoke, "calls this export with ARGS instead of _start");
    run->add_option(
           "--log-at", c.log_at,
           "logs a line of text where a function runs, in sampled calls and iterations (all of "
           "them with -O interval=1 --policy=never): FUNCTION=TEXT or FUNCTION@OFFSET=TEXT; {0} is "
           "the value of local 0; with --profile the lines are in the profile, else they are "
           "printed as by --log; may be repeated")
        ->allow_extra_args(false);
    run->add_option("--timeout", c.timeout,
                    "ends the program after this many seconds, with exit code 124")
        ->check(CLI::NonNegativeNumber);
    run->add_option("--fuel", c.fuel,
                    "ends the program after this many calls and loop iterations, by a trap")
        ->check(not_negative());
    run->add_option(
           "--max-memory", c.max_memory,
           "limits the program's memory to this many bytes; memory.grow beyond it returns -1")
        ->check(not_negative());
    run->add_flag("--lazy-validation", c.lazy_validation,
                  "validates each function at its first call; an invalid function traps then");
    run->add_flag("--explicit-bounds", c.explicit_bounds,
                  "checks memory bounds in code instead of reserving address space");
    run->add_flag("--trap-unknown-imports", c.trap_unknown,
                  "runs programs that import functions outside of WASI; a call of one traps");
    run->callback([this, run] {
      std::vector<std::string> rest = run->remaining();
      if (rest.empty()) throw CLI::RequiredError("prog.wasm");
      if (rest.front().size() > 1 && rest.front().starts_with("-")) {
        throw CLI::ValidationError("no option " + rest.front());
      }
      run_command.module = rest.front();
      run_command.args.assign(rest.begin() + 1, rest.end());
      run_command.misplaced = option_among(*run, run_command.args);
      settle(run_command.shown, run_command.trace, run_command.coverage);
      if (!run_command.coverage.empty()) words.imply_coverage();
      if (!run_command.listen.empty()) words.listen(run_command.listen);
      if (!image.empty()) words.image(image);
      if (!run_command.probes.empty()) words.keep_code();
      code = with_options(words, run_command, run_fn, true);
    });
  }

  void add_trace() {
    CLI::App* trace = add("trace", "reads trace files; - is stdin");
    if (trace == nullptr) return;
    trace->require_subcommand(1);
    CLI::App* dump = trace->add_subcommand("dump", "prints a trace as text");
    dump->add_option("FILE", file)->required();
    dump->add_flag("--json", json, "as JSON: one object a line for each event");
    dump->callback([this] { code = trace_dump(file, json); });
    CLI::App* validate = trace->add_subcommand("validate", "checks a trace against its rules");
    validate->add_option("FILE", file)->required();
    validate->add_flag("--json", json, "as JSON");
    validate->callback([this] { code = trace_validate(file, json); });
    CLI::App* profile = trace->add_subcommand("profile", "prints the merged profile of a trace");
    profile->add_option("FILE", file)->required();
    profile->add_flag("--json", json, "as JSON: every kind, raw and estimated");
    profile->callback([this] { code = trace_profile(file, json); });
    CLI::App* overlap = trace->add_subcommand("overlap", "compares the profiles of two traces");
    overlap->add_option("A", file)->required();
    overlap->add_option("B", other_file)->required();
    overlap->add_flag("--json", json, "as JSON: all kinds and methods");
    overlap->callback([this] { code = trace_overlap(file, other_file, json); });
  }

  void add_profile() {
    CLI::App* profile =
        add("profile", "works with profile files (.upf); also reads traces, and profiles as text");
    if (profile == nullptr) return;
    profile->require_subcommand(1);
    profile_view_words.add_to(*profile, code);
    profile_words.add_to(*profile, code);
  }

  void add_image() {
    CLI::App* image_app = add("image", "compiles prog.wasm ahead of time");
    if (image_app != nullptr) image_words.add_to(*image_app, words, code);
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
    run->add_option("--function", c.function,
                    "the function to run; by default the last one of the file");
    run->add_flag("--interpret", c.interpret, "runs it in the reference interpreter");
    add_shown(*run, c.shown);
    words.add_to(*run);
    run->callback([this] {
      settle(ir_command.shown);
      code = with_options(words, ir_command, ir_run, false);
    });
  }

  void add_compile() {
    CLI::App* compile =
        add("compile",
            "compiles a function of prog.wasm or prog.uir and shows the stages; runs nothing");
    if (compile == nullptr) return;
    CompileCommand& c = compile_command;
    compile->add_option("FILE", c.file)->required();
    compile->add_option("--function,-f", c.function,
                        "the function's name, or its number in the file");
    compile->add_option("--dump", c.dump, "list of: ir, passes, listing, probes, lines, frames")
        ->delimiter(',')
        ->check(CLI::IsMember({"ir", "passes", "listing", "probes", "lines", "frames"}))
        ->capture_default_str();
    compile->add_option(
        "--profile", c.profile,
        "compiles with this profile: a profile file, a trace, or a profile as text");
    compile->add_flag("--baseline", c.baseline, "uses the baseline compiler");
    compile->add_flag("--instrumented", c.instrumented, "the instrumented copy");
    compile->add_flag("!--no-inlining", c.inlining, "calls stay calls");
    compile->add_flag("--cold-exits", c.cold_exits,
                      "omits blocks that never ran; they become exits");
    compile
        ->add_option("--osr", c.osr_loop,
                     "makes code that is entered at this loop (a number); optimized code only")
        ->check(not_negative());
    CLI::Option* speed =
        compile
            ->add_flag("--speed{text}", c.speed,
                       "instead times both compilers on all functions: --speed or --speed=json")
            ->check(CLI::IsMember({"text", "json"}));
    compile->add_flag("--lines", c.lines, "code has rows of lines, as with -O line_rows=on")
        ->needs(speed);
    CLI::Option* list = compile->add_flag("--list", c.list, "instead lists the functions of FILE");
    CLI::Option* rows = compile->add_flag(
        "--probe-table", c.probe_table,
        "instead compiles all functions with and without rows of blocks: what the rows "
        "take, and whether the code is the same");
    CLI::Option* verify =
        compile->add_flag("--verify-probes", c.verify_probes,
                          "instead runs the program with ARGS, in the interpreter after each pass "
                          "and in single steps of the "
                          "machine code: executions of blocks must stay the same, or be unknown");
    compile->add_option("ARGS", c.args, "of the program, for --verify-probes")->needs(verify);
    compile->add_flag("--json", c.json, "prints the list, what rows take, or the check as JSON");
    compile->callback([this, list, rows, verify] {
      if (compile_command.json && list->empty() && rows->empty() && verify->empty()) {
        throw CLI::ValidationError("--json", "needs --list, --probe-table or --verify-probes");
      }
      const bool is_dump = compile_command.speed.empty() && !compile_command.list &&
                           !compile_command.probe_table && !compile_command.verify_probes;
      if (is_dump && compile_command.function.empty()) {
        throw CLI::ValidationError("-f NAME is required; --list names the functions of the file");
      }
      if (compile_command.baseline && compile_command.osr_loop >= 0) {
        throw CLI::ValidationError("--osr", "baseline code cannot be entered at a loop");
      }
      code = uptier::tools::compile(compile_command);
    });
  }

  void add_report() {
    CLI::App* report = add("report", "makes an HTML page of a profile");
    if (report == nullptr) return;
    ReportCommand& c = report_command;
    report->add_option("FILE", c.file, "a .upf file, a trace, or a profile as text")->required();
    report->add_option("-o,--output", c.output,
                       "writes this file in place of FILE.html; - for stdout");
    report->add_option("--module", c.module,
                       "the program; adds its code, calls and edges to the page");
    report->add_option("--against", c.against, "another profile, to compare with");
    report->add_flag(
        "--sources", c.sources,
        "puts the source files that the module names on the page; for modules you trust");
    report
        ->add_option("--listings", c.listings, "shows the code of this many of the hottest methods")
        ->check(not_negative())
        ->capture_default_str();
    report->callback([this] { code = uptier::tools::report(report_command); });
  }

  void add_replay() {
    CLI::App* replay =
        add("replay", "repeats the decisions of a run, with its options or with others");
    if (replay == nullptr) return;
    replay->footer(
        "With the options of the run, every answer must be the one in the log. With others, "
        "e.g.\n-O speedup=1.5, each answer is the decision that the policy would have made at that "
        "point;\nlater effects are not simulated. Exit codes: 0 no differences, 1 some, 3 not a "
        "report.");
    replay->add_option("REPORT", replay_command.file, "a file of `uptier run --report=json`")
        ->required();
    replay->add_flag("--json", replay_command.json, "as JSON: the differences, and their number");
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

  void add_top() {
    CLI::App* top = add("top", "shows where a running process spends its time");
    if (top == nullptr) return;
    top->footer(
        "The process must have been started with `uptier run --listen`, or with its option "
        "listen.\nThe first table counts from the beginning, the next ones from the table before. "
        "Nothing is\nchanged in the process. Exit codes: 0 at the end of the process as well, 1 "
        "if it cannot be read.");
    TopCommand& c = top_command;
    top->add_option("PROCESS", c.process, "the id of the process, or the path of its socket")
        ->required();
    top->add_option("--interval", c.interval, "seconds from table to table")
        ->check(CLI::Range(0.1, 60.0))
        ->capture_default_str();
    top->add_option("--count", c.count, "ends after this many tables; 0: when the process ends")
        ->check(not_negative());
    top->add_option("-n", c.rows, "rows of a table, 0 for all; as many as fit if not given")
        ->check(CLI::NonNegativeNumber);
    top->add_flag("--json", c.json, "as JSON: one object a line for each table");
    top->callback([this] { code = uptier::tools::top(top_command); });
  }

  void add_explain() {
    CLI::App* explain =
        add("explain", "tells in sentences what happened to a method in a run, and why");
    if (explain == nullptr) return;
    explain->footer("Exit codes: 0 found, 1 there is no such method, 3 not a file of events.");
    ExplainCommand& c = explain_command;
    explain->add_option("METHOD", c.method, "its name, or #NUMBER")->required();
    explain->add_option("FILE", c.file, "a file of `uptier run --events FILE.jsonl`; - for stdin")
        ->required();
    explain->add_flag("--json", c.json, "as JSON");
    explain->callback([this] { code = uptier::tools::explain(explain_command); });
  }

  void add_wast() {
    CLI::App* wast_app =
        add("wast", "speaks the line protocol of WebAssembly test runners on stdin and stdout");
    if (wast_app == nullptr) return;
    words.add_to(*wast_app);
    wast_app->callback([this] {
      Result<Options> o = words.options(true);
      code = o ? wast(*o) : usage_error(o.error().message);
    });
  }

  void add_options() {
    CLI::App* options_app = add("options", "prints every option of the runtime");
    if (options_app == nullptr) return;
    words.add_to(*options_app);
    options_app->add_flag("--json", json, "as JSON");
    options_app->callback([this] {
      Result<Options> o = words.options();
      code = o ? show_options(*o, json) : usage_error(o.error().message);
    });
  }

  static int run_fn(const RunCommand& c) { return uptier::tools::run(c); }
};

std::vector<const CLI::App*> subcommands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* a) { return !a->get_name().empty(); });
}

std::string names_of(const CLI::App& app) {
  std::string names;
  for (const CLI::App* a : subcommands_of(app))
    names += (names.empty() ? "" : ", ") + a->get_name();
  return names;
}

// Reports an error of the command line in one line: the command, the error, the word that was probably
// meant, and the help to read.
int words_error(const CLI::App& app, const CLI::ParseError& e) {
  const CLI::App* at = &app;
  std::string command = "uptier";
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    command += " " + at->get_name();
  }
  std::string what = e.what();
  std::ranges::replace(what, '\n', ' ');
  if (what == "A subcommand is required")
    what = "a command is missing; the commands are " + names_of(*at);
  std::vector<std::string> flags;
  for (const CLI::Option* option : at->get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  const size_t flag = what.find("--");
  const std::string word =
      flag == what.npos ? "" : what.substr(flag, what.find_first_of(" =:", flag) - flag);
  const bool unknown = !word.empty() && std::ranges::find(flags, word) == flags.end();
  return usage_error(what + (unknown ? did_you_mean(word, flags) : "") + " (see `" + command +
                     " --help`)");
}

// Reports an unknown command by name; the parser would only say that a command is missing.
int check_commands(const CLI::App& app, int argc, char** argv) {
  const CLI::App* at = &app;
  for (int i = 1; i < argc; ++i) {
    const std::vector<const CLI::App*> all = subcommands_of(*at);
    const std::string word = argv[i];
    if (all.empty() || word.empty() || word[0] == '-') return kOk;
    const auto found =
        std::ranges::find_if(all, [&](const CLI::App* a) { return a->get_name() == word; });
    if (found == all.end()) {
      std::vector<std::string> known;
      for (const CLI::App* a : all) known.push_back(a->get_name());
      return usage_error(word + ": no such command" + did_you_mean(word, known) + "; there are " +
                         names_of(*at));
    }
    at = *found;
  }
  return kOk;
}

}  // namespace

namespace {

// The parser's header makes objects before main(), where nothing can catch what memory that is refused
// throws: until main() begins that ends as it does in there.
std::terminate_handler usual_end = nullptr;
[[gnu::constructor(101)]] void expect_no_memory() {
  usual_end = std::set_terminate([] { std::_Exit(fail_without_memory()); });
}

// Likewise where a destructor asks for memory, as those of the JSON library do.
[[noreturn]] void end_without_memory() {
  if (std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) { leave(fail_without_memory()); } catch (...) {
    }
  }
  usual_end();
  std::abort();
}

}  // namespace

// Only the parser, the JSON library and `new` throw.
int main(int argc, char** argv) try {
  std::set_terminate(end_without_memory);
  // Without any memory not even an exception can be thrown.
  if (std::unique_ptr<char[]> some(new (std::nothrow) char[1]); some == nullptr) {
    return fail_without_memory();
  }
  // A write past the limit of file sizes is an error, the program's as ours (EFBIG), and kills nobody.
  std::signal(SIGXFSZ, SIG_IGN);
  Commands commands;
  commands.given = {argv + std::min(argc, 1), argv + argc};
  commands.app.require_subcommand(0, 1);
  commands.app.set_version_flag("--version", "uptier 0.1.0");
  commands.add_run();
  commands.add_trace();
  commands.add_profile();
  commands.add_image();
  commands.add_ir();
  commands.add_compile();
  commands.add_report();
  commands.add_replay();
  commands.add_top();
  commands.add_explain();
  commands.add_wast();
  commands.add_options();
  if (int code = check_commands(commands.app, argc, argv); code != kOk) return code;
  try {
    commands.app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return written(commands.app.exit(e) == 0 ? kOk : kUsage);
    return words_error(commands.app, e);
  }
  if (commands.app.get_subcommands().empty()) {
    return usage_error("a command is missing; the commands are " + names_of(commands.app) +
                       "; `uptier --help` explains them");
  }
  return written(commands.code);
} catch (const std::bad_alloc&) {
  return written(fail_without_memory());
} catch (const std::exception& e) {
  std::fprintf(stderr, "uptier: %s\n", e.what());
  return written(kFailed);
}
