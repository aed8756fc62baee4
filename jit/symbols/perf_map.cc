#include "jit/symbols/perf_map.h"

#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <span>

#include "jit/symbols/tool_file.h"

namespace uptier::jit {

Result<std::unique_ptr<PerfMap>> PerfMap::create() {
  std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  Result<int> fd = create_tool_file(path);
  if (!fd) return fd.error();
  return std::unique_ptr<PerfMap>(new PerfMap(*fd));
}

bool PerfMap::add(const NamedCode& code) {
  char head[64];
  int n = std::snprintf(head, sizeof head, "%" PRIxPTR " %" PRIx32 " ",
                        reinterpret_cast<uintptr_t>(code.base), code.size);
  std::string line(head, static_cast<size_t>(n));
  for (char c : code.name) line += c == '\n' ? ' ' : c;
  line += '\n';
  return file_.append(std::as_bytes(std::span(line)));
}

}  // namespace uptier::jit
