// exprvm: a machine with two accumulators for a small typed language, with a compiler in front.
//
// Five scripts run in turn, each for all of its rounds: numbers, matrices, planes, arrays and bits.
// Exercises one function with a switch of 194 cases, most of them short, whose state (two
// accumulators, code, frame and stack) lives across the switch, and a mix of opcodes that changes
// from script to script.
// Size: number of rounds of each script.
#include "exprvm/machine.h"
#include "exprvm/scripts.h"

int main(int argc, char** argv) {
  static Machine machine;
  static Program program;
  static const char* const kScripts[] = {kNumbers, kMatrices, kPlanes, kArrays, kBits};
  static const char* const kNames[] = {"numbers", "matrices", "planes", "arrays", "bits"};
  uint32_t rounds = size_argument(argc, argv, 10);
  uint64_t all = 0;
  for (uint32_t i = 0; i < sizeof kScripts / sizeof kScripts[0]; ++i) {
    uint32_t start = compile(kScripts[i], &program);
    uint64_t hash = 0;
    for (uint32_t round = 0; round < rounds; ++round) {
      machine.heap_top = 0;
      hash = fold(hash, (uint64_t)run(&machine, &program, start, round));
    }
    printf("%s: %" PRIu32 " bytes of code, result %016" PRIx64 "\n", kNames[i], program.size, hash);
    all = fold(all, hash);
  }
  print_checksum("exprvm", fold(all, machine.calls));
  return 0;
}
