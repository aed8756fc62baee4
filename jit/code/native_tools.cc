#include "jit/code/native_tools.h"

#include "jit/code/code.h"

namespace uptier::jit {

void NativeTools::add(const Code& code, std::string name, bool at_loop) {
  if (perf_map == nullptr && jit_dump == nullptr && gdb_names == nullptr) return;
  NamedCode named;
  named.base = code.base();
  named.size = code.size();
  named.at_loop = at_loop;
  named.saved = code.tables().saved;
  named.saved_at = code.tables().saved_at;
  named.name = std::move(name);
  add(std::move(named));
}

void NativeTools::add(NamedCode code) {
  if (perf_map != nullptr) perf_map->add(code);
  if (jit_dump != nullptr) jit_dump->add(code);
  if (gdb_names != nullptr) gdb_names->add(std::move(code));
}

}  // namespace uptier::jit
