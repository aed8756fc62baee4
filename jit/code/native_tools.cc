#include "jit/code/native_tools.h"

#include "jit/code/code.h"

namespace uptier::jit {

void NativeTools::add(const Code& code, const std::string& name, bool at_loop) {
  if (perf_map == nullptr && jit_dump == nullptr && gdb_names == nullptr) return;
  NamedCode hot;
  hot.base = code.base();
  hot.size = code.hot_size();
  hot.at_loop = at_loop;
  hot.saved = code.tables().saved;
  hot.saved_at = code.tables().saved_at;
  hot.name = name + "]";
  NamedCode cold = hot;
  add(std::move(hot));
  if (code.size() == code.hot_size()) return;
  cold.base = code.cold_base();
  cold.size = code.size() - code.hot_size();
  cold.at_loop = true;  // it is come to from the hot part
  cold.name = name + " cold]";
  add(std::move(cold));
}

void NativeTools::add(NamedCode code) {
  if (perf_map != nullptr) perf_map->add(code);
  if (jit_dump != nullptr) jit_dump->add(code);
  if (gdb_names != nullptr) gdb_names->add(std::move(code));
}

}  // namespace uptier::jit
