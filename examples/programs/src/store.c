// store: a store of tables in B-trees, with a small query language in front.
//
// Statements are compiled once to operations of a register machine and run many times: they insert,
// find by key and by index, join, group, sort, update and delete.
// Exercises one function with a switch of more than 70 cases, most of which call; binary searches in
// pages of bytes; nodes that split and merge; and a cache of pages that is too small for all.
// Size: number of rounds.
#include "store/jobs.h"

int main(int argc, char** argv) {
  uint32_t rounds = size_argument(argc, argv, 40), random = 2463534242u;
  start_store();
  add_people(&random);
  for (uint32_t i = 0; i < rounds; ++i) run_round(i, &random);
  uint64_t hash = machine.hash, splits = 0, merges = 0;
  for (uint32_t i = 0; i < table_count; ++i) {
    hash = fold(hash, check_tree(&tables[i].tree));
    splits += tables[i].tree.splits;
    merges += tables[i].tree.merges;
    for (uint32_t k = 0; k < tables[i].index_count; ++k) {
      hash = fold(hash, check_tree(&tables[i].indexes[k].tree));
    }
  }
  printf("store: %" PRIu64 " operations, %" PRIu64 " rows, %" PRIu64 " splits, %" PRIu64
         " merges, %" PRIu32 " pages\n",
         machine.steps, machine.rows, splits, merges, file_pages);
  printf("store: %" PRIu64 " pages found, %" PRIu64 " read, %" PRIu64 " written\n", page_stats.hits,
         page_stats.misses, page_stats.written);
  print_checksum("store", hash);
  return 0;
}
