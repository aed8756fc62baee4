// commands.h: what each command of the tool does, apart from how its words are parsed.
//
// Every command returns the process's exit code: 0 ok, 1 failed, 2 usage, 3 corrupt input; `run`
// passes the program's own code through, 134 after a trap, 125 for a module that is refused, 124 where
// --timeout has ended it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "uptier/options.h"
#include "uptier/runtime.h"

namespace uptier::tools {

inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kCorrupt = 3;
inline constexpr int kTimedOut = 124;
inline constexpr int kRefused = 125;
inline constexpr int kTrapped = 134;

// The output of a run after its end. Each part goes to stderr, or to a file of its own ("-" is stdout),
// which receives nothing else.
// A form of --loops: the first executions of each thread, one by one.
inline constexpr const char* kEachLoop = "each";
inline constexpr uint32_t kEachLoopMost = 4096;

struct Shown {
  std::string report;                       // "", "text" or "json"
  uint64_t report_methods = 30;             // rows of the text report, 0 for all
  std::string loops;                        // "", "text", "json", "csv" or kEachLoop
  std::string sample;                       // stack samples a second, or ""
  bool log = false;                         // records of log probes
  std::string report_to, loops_to, log_to;  // "": stderr
  std::string folded;                       // file for the call paths of stack samples, or ""
};

inline constexpr const char* kRunUsage = "uptier run [OPTIONS] prog.wasm [ARGS...]";

struct RunCommand {
  Options options;
  std::string module;               // path of the .wasm file, "-" for stdin
  std::vector<std::string> args;    // of the program, or of the function with `invoke`
  std::string misplaced;            // the first of `args` that is named like an option of `run`
  std::vector<std::string> dirs;    // HOST or HOST::GUEST
  std::vector<std::string> env;     // NAME=VALUE, or NAME for the tool's own value
  std::vector<std::string> log_at;  // places that log text (wasm/log_places.h)
  std::string invoke;               // exported function to call instead of _start
  Shown shown;
  std::string listen;                // "", "on" or the path of a socket
  std::string trace;                 // file for the trace, or ""
  std::string coverage;              // file for the coverage of source lines, or ""
  std::string events;                // file for the host's events (events.h), or ""
  std::string image_out;             // file for an image of the code that ran, or ""
  std::string probes;                // directory for files of pseudo-probes (pseudo_probe.h), or ""
  double timeout = 0;                // seconds that the program may take; 0: any number
  uint64_t fuel = 0;                 // calls and iterations that it may run; 0: any number
  uint64_t max_memory = UINT64_MAX;  // bytes of all its memories
  bool explicit_bounds = false;
  bool lazy_validation = false;
  bool trap_unknown = false;  // imported functions that nobody has: a call traps, linking succeeds
};
int run(const RunCommand& c);

// `uptier image`.
struct ImageCommand {
  Options options;
  std::string module;
  std::string output;
  std::string profile;  // only functions that this profile has; "": all
  bool explicit_bounds = false;
  bool json = false;
};
// Compiles a module's functions ahead of time.
int image_make(const ImageCommand& c);
int image_show(const std::string& file, bool json);
// Says whether a run with these options would use an image; `module` may be "".
int image_check(const std::string& file, const std::string& module, const ImageCommand& c);

int trace_dump(const std::string& file, bool json);
int trace_validate(const std::string& file, bool json);
// Prints the profile of a trace, as text that parse_profile reads or as JSON; what the trace lacks
// goes to stderr.
int trace_profile(const std::string& file, bool json);
// Prints how alike the profiles of two traces are, and the methods that differ most.
int trace_overlap(const std::string& a, const std::string& b, bool json);

struct IrCommand {
  std::string file;
  std::string function;           // with run: which one, the last of the file by default
  std::vector<std::string> args;  // TYPE:VALUE or a number of the parameter's type
  Options options;
  bool interpret = false;  // in the reference interpreter instead of the tiers
  Shown shown;             // the report has all rows
};
int ir_print(const IrCommand& c);
int ir_verify(const IrCommand& c);
int ir_run(const IrCommand& c);

struct CompileCommand {
  std::string file;                             // WebAssembly or IR text
  std::string function;                         // name or number in the file
  std::vector<std::string> dump = {"listing"};  // of ir, passes, listing, probes, lines, frames
  std::string profile;                          // trace or profile text, or ""
  bool baseline = false;
  bool instrumented = false;
  bool inlining = true;
  bool cold_exits = false;     // blocks that never ran become exits
  int64_t osr_loop = -1;       // the loop at which the code is entered; -1: at the start
  std::string speed;           // "text" or "json": instead of a dump, time both compilers on all
  bool lines = false;          // with `speed`: code has rows of lines
  bool list = false;           // instead of a dump, the functions of the file
  bool probe_table = false;    // instead of a dump, what the rows of blocks cost
  bool verify_probes = false;  // instead of a dump, run the program and check the counts of probes
  std::vector<std::string> args;  // of the program
  bool json = false;              // the list, the costs or the check, for programs
};
int compile(const CompileCommand& c);

struct ReportCommand {
  std::string file;         // profile file, trace or profile as text
  std::string output;       // "": the file's name and ".html"; "-": stdout
  std::string module;       // the program, or ""
  std::string against;      // a profile to compare with, or ""
  bool sources = false;     // shows the text of the source files that the module names
  uint64_t listings = 200;  // methods whose code is shown, the hottest
};
// Writes the HTML report of a profile.
int report(const ReportCommand& c);

struct ReplayCommand {
  std::string file;  // what `run --report=json` wrote
  Options options;   // for the policy; decisions of the run are made with the run's own
  bool json = false;
};
// Repeats all decisions and prints those that differ; then the exit code is 1.
int replay(const ReplayCommand& c);

struct TopCommand {
  std::string process;  // its id, or the path of its socket
  double interval = 1;  // seconds from table to table
  uint64_t count = 0;   // tables; 0: until the process ends
  int64_t rows = -1;    // of a table; 0: all; -1: as many as fit, or 20
  bool json = false;
};
// Prints where a running process spends its time.
int top(const TopCommand& c);

struct ExplainCommand {
  std::string method;  // a name, or "#" and a number
  std::string file;    // what `run --events FILE.jsonl` wrote
  bool json = false;
};
// Prints what happened to a method, in sentences.
int explain(const ExplainCommand& c);

int wast(const Options& options);

// Prints every option with its value, unit, range and reason.
int show_options(const Options& options, bool json);

// Flushes, then writes the requested output. If a file cannot be written, prints a message and returns
// kFailed.
int show(Runtime& runtime, const Shown& what);

// Reads a whole file, or stdin ("-"), into memory of its own; the error names it.
Result<std::vector<uint8_t>> read_file(const std::string& path);
// The same for a command: an error message goes to stderr and false comes back.
bool read_file(const std::string& path, std::vector<uint8_t>& out);

}  // namespace uptier::tools
