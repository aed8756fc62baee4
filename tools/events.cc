#include "tools/events.h"

#include <filesystem>

#include "tools/commands.h"
#include "tools/fail.h"
#include "uptier/tracing.h"

namespace uptier::tools {
namespace {

// Returns the folder of the libraries: beside the tool in a build tree, below lib in an installation.
std::filesystem::path library_folder() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  auto built = self / "tracing";
  if (std::filesystem::is_directory(built, error)) return built;
  return (self / UPTIER_LIBRARY_FOLDER).lexically_normal();
}

std::string tool_for(const std::string& file) {
  const std::string extension = std::filesystem::path(file).extension();
  return extension == ".json" ? "perfetto" : extension == ".jsonl" ? "jsonl" : "counts";
}

void log(void*, const char* line) { fail(kOk, line); }

}  // namespace

int start_events(const std::string& file) {
  uptier_trace_options options = {};
  options.size = sizeof options;
  options.log = log;
  if (file.empty()) {
    uptier_trace_init(&options);
    return kOk;
  }
#ifdef UPTIER_TRACE_DISABLED
  return fail(kUsage,
              "--events: this program was built without trace points (UPTIER_TRACE_POINTS)");
#endif
  if (file.find(',') != file.npos)
    return fail(kUsage, "--events: the name of the file must not contain a comma");
  const auto folder = library_folder();
  const std::string dispatcher = folder / "libuptier_trace_dispatcher.so";
  const std::string tool = folder / ("libuptier_trace_" + tool_for(file) + ".so");
  const std::string subscribers = tool + "=" + file;
  options.dispatcher = dispatcher.c_str();
  options.subscribers = subscribers.c_str();
  if (uptier_trace_init(&options) != 0) return kOk;
  return fail(kFailed, "--events: tracing cannot begin, so nothing was run");
}

int finish_events() { return uptier_trace_finish() == 0 ? kOk : kFailed; }

}  // namespace uptier::tools
