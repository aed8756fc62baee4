// lz: two formats of a dictionary coder, in the manner of the common ones, both ways.
//
// Five kinds of data are packed by three levels and unpacked again: matches from chains of hashes,
// with lazy matching; then canonical Huffman codes, or Huffman codes for the literals and asymmetric
// numeral systems for the sequences.
// Exercises shifts of bits in long loops, table lookups that depend on each other, addresses with
// small offsets, copies of bytes that overlap, and loops that end after few rounds.
// Size: kilobytes of each kind of data.
#include "data.h"
#include "lz/blocks.h"
#include "lz/sequences.h"

typedef struct Level {
  const char* name;
  Effort effort;
  uint32_t (*pack)(const uint8_t*, uint32_t, const Effort*, uint8_t*, uint32_t);
  void (*unpack)(const uint8_t*, uint32_t, uint8_t*, uint32_t);
} Level;

static const Level kLevels[] = {
    {"quick", {4, 6, 8, 32, 0}, pack_blocks, unpack_blocks},
    {"blocks", {3, 24, 16, 96, 1}, pack_blocks, unpack_blocks},
    {"sequences", {4, 40, 32, 128, 2}, pack_sequences, unpack_sequences}};
enum { kLevelCount = sizeof kLevels / sizeof kLevels[0] };

int main(int argc, char** argv) {
  uint32_t kilobytes = size_argument(argc, argv, 16);
  if (kilobytes > 100000) kilobytes = 100000;
  uint32_t size = kilobytes * 1024, room = size + size / 4 + 4096;
  uint8_t* text = malloc(size);
  uint8_t* copy = malloc(size);
  uint8_t* packed = malloc(room);
  if (text == NULL || copy == NULL || packed == NULL) return 1;
  uint64_t checksum = 0;
  start_crc();
  for (uint32_t kind = 0; kind < kKindCount; ++kind) {
    Sink sink = {text, 0, size, 2463534242u + kind};
    kKinds[kind].put(&sink);
    printf("%-8s %" PRIu32 " bytes", kKinds[kind].name, size);
    for (uint32_t level = 0; level < kLevelCount; ++level) {
      const Level* l = &kLevels[level];
      uint32_t packed_size = l->pack(text, size, &l->effort, packed, room);
      memset(copy, 0, size);
      l->unpack(packed, packed_size, copy, size);
      if (memcmp(text, copy, size) != 0) fail("the round trip changed the data");
      checksum = fold(fold(checksum, packed_size), crc_of(packed, packed_size));
      printf(", %s %" PRIu32, l->name, packed_size);
    }
    printf("\n");
  }
  print_checksum("lz", checksum);
  free(packed);
  free(copy);
  free(text);
  return 0;
}
