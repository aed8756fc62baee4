#include <cstdio>
#include <fstream>
#include <sstream>
#include "interpret.h"
using namespace calc;
int main(int argc, char** argv) {
  std::ifstream in(argv[1]); std::stringstream ss; ss << in.rdbuf();
  Vm vm(1u<<30);
  for (int i = 2; i < argc; ++i) vm.arguments.push_back(argv[i]);
  std::string w = vm.load(ss.str());
  if (!w.empty()) { fprintf(stderr, "%s\n", w.c_str()); return 1; }
  Closure* f = vm.heap.closure(vm.code.protos[0].get(), 0);
  interpret(vm, Interpreter::kPlain, f, nullptr);
  if (vm.failed) { fprintf(stderr, "%s\n", vm.error.c_str()); return 1; }
}
