// blocksort: a compressor that sorts blocks, and its inverse.
//
// Run lengths, suffixes in order (peaks by radix and quicksort, the others induced from them; by
// doubling where quicksort takes too long), moving to the front, run lengths again, and Huffman codes
// with several tables.
// Exercises loads that depend on loads, loops over pairs of pointers, branches that nobody can
// predict, small loops in hot ones, and an inner loop over six tables.
// Size: kilobytes of each kind of data.
#include "blocksort/format.h"
#include "blocksort/kinds.h"

static Packer packer;
static Unpacker unpacker;

static uint64_t round_trip(const DataKind* kind, Sink* sink, uint8_t* packed, uint8_t* copy,
                           uint32_t room) {
  uint32_t doubled = packer.sorter.doubled;
  kind->put(sink);
  uint32_t packed_size = pack(&packer, sink->bytes, sink->size, packed, room);
  memset(copy, 0, sink->size);
  uint32_t size = unpack(&unpacker, packed, packed_size, copy, sink->size);
  if (size != sink->size || memcmp(sink->bytes, copy, size) != 0) {
    fail("the round trip changed the data");
  }
  printf("%-8s %" PRIu32 " bytes to %" PRIu32 ", %" PRIu32 " blocks by doubling\n", kind->name,
         size, packed_size, packer.sorter.doubled - doubled);
  return fold(packed_size, crc_of(packed, packed_size));
}

int main(int argc, char** argv) {
  uint32_t kilobytes = size_argument(argc, argv, 12);
  if (kilobytes > 100000) kilobytes = 100000;
  uint32_t size = kilobytes * 1024, room = size + size / 4 + 4096;
  uint8_t* text = malloc(size);
  uint8_t* copy = malloc(size);
  uint8_t* packed = malloc(room);
  if (text == NULL || copy == NULL || packed == NULL) return 1;
  uint64_t checksum = 0;
  start_crc();
  for (uint32_t kind = 0; kind < kKindCount + kHardKindCount; ++kind) {
    Sink sink = {text, 0, size, 88172645u + kind};
    const DataKind* k = kind < kKindCount ? &kKinds[kind] : &kHardKinds[kind - kKindCount];
    checksum = fold(checksum, round_trip(k, &sink, packed, copy, room));
  }
  print_checksum("blocksort", checksum);
  free(packed);
  free(copy);
  free(text);
  return 0;
}
