// profile_commands.h: what `uptier profile` does, apart from how its words are parsed.
//
// Every command reads profile files, traces, and profiles as text. Problems of a file go to stderr
// with its name. The exit codes are those of commands.h.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "profile/upf/timeline.h"
#include "tools/profile_changes.h"
#include "uptier/profile_file.h"

namespace uptier::tools {

// Reads one file of any kind: those above, and what import reads.
Result<ProfileFile> load_profile(const std::string& path);
// The same for a command: what is wrong goes to stderr. Returns kOk, or the exit code.
int open_profile(const std::string& path, ProfileFile& file);
// Writes one; returns kOk, or the exit code after a message.
int write_profile(const std::string& path, const ProfileFile& file);
// Returns whether a file would go to stdout, where the table goes; says so.
bool is_taken(const std::string& out);

// Returns whether bytes begin like a trace.
bool is_trace(std::span<const std::byte> bytes);

struct ProfileShowCommand {
  std::string file;
  bool json = false;
  bool log = false;       // the decisions of its runs instead
  bool calls = false;     // the calls between methods instead
  bool order = false;     // the order of first calls instead
  bool timeline = false;  // which code came into service when instead
  bool data = false;      // the data of other tools instead
  bool time = false;      // the tree of call paths with their processor time instead
  double least = 1;       // percent of the time; paths with less are left out of the text
  bool lines = false;     // the source lines that ran most instead; needs `module`
  std::string module;     // the program, with its debug sections
  std::string method;     // every site of the methods of this name
  uint64_t top = 10;
  std::vector<double> cutoffs;  // percent, of the summary's executions; empty: as usual
};
int profile_show(const ProfileShowCommand& c);

struct ProfileMergeCommand {
  std::vector<std::string> files;  // PATH, or FACTOR@PATH
  std::string out;                 // %H stands for the hash of the file's bytes
  double half_life = 0;  // days; a run so much older than the latest counts half; 0: all the same
  uint64_t trim = 0;     // entries that a table keeps; 0: all
  bool sparse = false;   // drop methods without any counts
  bool force = false;    // sums files that share some runs
  uint64_t threads = 0;  // 0: as many as help
  uint64_t cap = 0;      // runs that one host counts for at most; 0: all it has
  uint64_t quorum = 0;   // hosts that must have seen an entry; 0: any
  bool by_file = false;  // cap and quorum count files, not hosts
  bool json = false;     // prints what was said, and the output's name, as JSON
  std::string methods;   // only methods whose names are like this glob; empty: all
  std::vector<std::string> modules;  // only methods of modules with these keys; empty: all
};
int profile_merge(const ProfileMergeCommand& c);

// Prints how alike two profiles are, by kind, and the methods that differ most; trace.cc.
void print_overlap(OverlapReport report);

struct ProfileOverlapCommand {
  ChangesCommand sides;
  std::string dot;     // a directory that receives a picture of each of the worst methods, or ""
  std::string module;  // says how their blocks are connected; may be ""
  uint64_t top = 10;   // how many of them
};
int profile_overlap(const ProfileOverlapCommand& c);

struct ProfileDiffCommand {
  ChangesCommand sides;
  uint64_t top = 10;  // rows of a table
  std::string out;    // receives b minus a, if each side is one file; may be ""
};
// Prints how shares changed from a to b, and which changes are beyond the noise; profile_diff.cc.
int profile_diff(const ProfileDiffCommand& c);
int profile_top(const std::string& file, uint64_t n, const std::string& out, bool json);
int profile_check(const std::vector<std::string>& files, bool json);
// Prints the calls between methods, or the methods in the order of their first calls;
// profile_calls.cc.
// As JSON they are all there, whatever `top` is.
int profile_show_calls(const std::string& file, uint64_t top, bool json);
int profile_show_order(const std::string& file, uint64_t top, bool json);
// Prints the call paths that took at least `least` percent of the processor time; profile_time.cc. As
// JSON they are all there.
int profile_show_time(const std::string& file, double least, bool json);
// Prints the source lines that took most time, or ran most operations; profile_lines.cc. As JSON they
// are all there.
int profile_show_lines(const ProfileShowCommand& c);
// Prints when code came into service, or the decisions, for each of the last runs;
// profile_timeline.cc.
int profile_show_timeline(const std::string& file, bool json);
int profile_show_log(const std::string& file, bool json);
// Prints the data of other tools and of hosts: type, size and where it belongs; profile_log.cc.
int profile_show_data(const std::string& file, bool json);
// Prints the lines that compiled code has logged, by time. Goes on after a log that breaks a rule,
// and returns kCorrupt then.
enum class LogForm : uint8_t { kText, kJson, kCsv };  // kJson: a JSON object in each line
int profile_log(const std::string& file, LogForm form);
// Returns a Unix time as text, "-" for 0.
std::string time_text(uint64_t time);
// Returns the timeline of the latest run (the last in the file if times are equal), or an empty one.
// `warnings` receives the problems of its records.
profile::Timeline last_timeline(const std::string& file, std::vector<std::string>& warnings);
// Says what a profile knows of a module that was edited since: methods kept, matched by their
// calls, dropped. `out` (may be empty) receives the profile of that module; profile_match.cc.
int profile_match(const std::string& file, const std::string& module, const std::string& out,
                  bool json);

struct ProfileExportCommand {
  std::string file;
  std::string format;     // of kExportFormats
  std::string out;        // "": stdout
  bool contexts = false;  // csspgo: inlined bodies are records of their own
  std::string by;         // folded: "time", "executions", or "": time if there is any
  std::string module;     // wasm-hints: the module that gets them; lines, autofdo: that has them
  bool lines = false;     // pprof, folded, speedscope: frames are source lines
  double share = 0.9;     // wasm-hints, see wasm_hints.h
  uint64_t executions = 16;
};
inline constexpr const char* kExportFormats[] = {
    "json", "csv",   "tsv",        "lcov",   "folded",     "llvm-text",
    "text", "pprof", "speedscope", "csspgo", "wasm-hints", "autofdo"};
int profile_export(const ProfileExportCommand& c);

struct ProfileImportCommand {
  std::vector<std::string> files;  // rows (tsv) or llvm-text; "-" is stdin
  std::string out;
  std::string module;  // llvm-text has no keys: those of the functions of this module; may be ""
};
int profile_import(const ProfileImportCommand& c);

struct ProfileDotCommand {
  std::string file;
  std::string method;  // draws its blocks; "": the calls between methods
  std::string module;  // how blocks are connected, and direct calls; may be ""
  std::string out;     // "": stdout
  uint64_t top = 40;   // methods, for calls between methods
};
int profile_dot(const ProfileDotCommand& c);

struct ProfilePromoteCommand {
  std::string candidate;
  std::string to;
  double min_overlap = 0.8;  // with the profile in service
  uint64_t min_runs = 1;
  uint64_t min_samples = 1000;  // sampled calls and bursts
  uint64_t keep = 3;            // generations: TO.1 is the profile before
  bool dry_run = false;
  bool json = false;
  bool roll_back = false;  // TO.1 becomes TO again
};
int profile_promote(const ProfilePromoteCommand& c);

}  // namespace uptier::tools
