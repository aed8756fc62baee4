// script: an interpreter for a small dynamic language, with a compiler in front. It sorts, maps and
// folds with functions of the script, so its loop is entered again hundreds of thousands of times
// while the first call of it goes on and runs most operations.
// Exercises one function with a switch of more than 100 cases, a frame that never returns among
// many short calls, tagged values, and a heap.
// Size: number of rounds of the script's jobs.
#include "script/compiler.h"
#include "script/jobs.h"

int main(int argc, char** argv) {
  static Machine machine;
  static Compiler compiler;
  uint32_t rounds = size_argument(argc, argv, 20);
  compile(&compiler, &machine, kScript);
  machine.top = machine.stack;
  Value argument = from_int((int32_t)rounds);
  int32_t start = find_name(&compiler.functions, "start");
  Value result = run(&machine, (uint32_t)start, &argument, 1);
  printf("script: %" PRIu32 " bytes of code, %" PRIu64 " callbacks, result %" PRId32 "\n",
         compiler.e.at, machine.callbacks, int_of(result));
  print_checksum("script", fold(result, machine.callbacks));
  return 0;
}
