// Pages of a file, and a cache of them.
//
// The file is an array in memory, but nothing reads or writes it except the cache: a page is copied
// into a frame, pinned while it is used, and copied back when its frame is needed for another page.
#ifndef UPTIER_EXAMPLES_STORE_PAGES_H
#define UPTIER_EXAMPLES_STORE_PAGES_H

#include <string.h>

#include "../program.h"

enum { kPageSize = 1024, kMostPages = 4096, kFrames = 48, kFrameHash = 64 };
enum { kNoPage = 0, kNoFrame = 0xff };

typedef struct PageFrame {
  uint32_t page;  // kNoPage for a frame that holds none
  uint16_t pins;
  uint8_t dirty;
  uint8_t used;  // since the clock's hand came by
  uint8_t next;  // frame with the same hash
  uint8_t bytes[kPageSize];
} PageFrame;

typedef struct PageStats {
  uint64_t hits, misses, written;
} PageStats;

static uint8_t file[kMostPages][kPageSize];
static uint32_t file_pages = 1;  // page 0 is not used
static uint32_t free_list;       // first free page; each holds the number of the next one
static PageFrame frames[kFrames];
static uint8_t frame_hash[kFrameHash];
static uint32_t clock_hand;
static PageStats page_stats;

static NOINLINE void fail(const char* what) {
  fprintf(stderr, "store: %s\n", what);
  exit(1);
}

static inline uint32_t get16(const uint8_t* at) { return at[0] | (uint32_t)at[1] << 8; }
static inline void put16(uint8_t* at, uint32_t value) {
  at[0] = (uint8_t)value;
  at[1] = (uint8_t)(value >> 8);
}
static inline uint32_t get32(const uint8_t* at) { return get16(at) | get16(at + 2) << 16; }
static inline void put32(uint8_t* at, uint32_t value) {
  put16(at, value);
  put16(at + 2, value >> 16);
}
static inline int64_t get64(const uint8_t* at) {
  return (int64_t)((uint64_t)get32(at) | (uint64_t)get32(at + 4) << 32);
}
static inline void put64(uint8_t* at, int64_t value) {
  put32(at, (uint32_t)value);
  put32(at + 4, (uint32_t)((uint64_t)value >> 32));
}

static void start_pages(void) {
  memset(frame_hash, kNoFrame, sizeof frame_hash);
  for (uint32_t i = 0; i < kFrames; ++i) frames[i].next = kNoFrame;
}

static uint8_t* hash_slot(uint32_t page) { return &frame_hash[page * 2654435761u >> 26]; }

static void forget(uint32_t index) {
  uint8_t* link = hash_slot(frames[index].page);
  while (*link != index) link = &frames[*link].next;
  *link = frames[index].next;
}

// Frees a frame: the first one that is not pinned and was not used for a round of the clock.
static NOINLINE uint32_t evict(void) {
  for (uint32_t turns = 0; turns < 3 * kFrames; ++turns) {
    uint32_t index = clock_hand;
    PageFrame* f = &frames[index];
    clock_hand = (clock_hand + 1) % kFrames;
    if (f->pins > 0) continue;
    if (f->page == kNoPage) return index;
    if (f->used) {
      f->used = 0;
      continue;
    }
    forget(index);
    if (f->dirty) {
      memcpy(file[f->page], f->bytes, kPageSize);
      ++page_stats.written;
    }
    return index;
  }
  fail("every frame is pinned");
  return 0;
}

static NOINLINE PageFrame* read_page(uint32_t page) {
  uint32_t index = evict();
  PageFrame* f = &frames[index];
  uint8_t* slot = hash_slot(page);
  memcpy(f->bytes, file[page], kPageSize);
  f->page = page;
  f->dirty = 0;
  f->next = *slot;
  *slot = (uint8_t)index;
  ++page_stats.misses;
  return f;
}

// Returns the frame of a page; it stays there until it is unpinned as often as it was pinned.
static PageFrame* pin(uint32_t page) {
  uint32_t index = *hash_slot(page);
  while (index != kNoFrame && frames[index].page != page) index = frames[index].next;
  PageFrame* f;
  if (index != kNoFrame) {
    f = &frames[index];
    ++page_stats.hits;
  } else {
    f = read_page(page);
  }
  ++f->pins;
  f->used = 1;
  return f;
}

static inline void unpin(PageFrame* f) { --f->pins; }

static PageFrame* pin_to_write(uint32_t page) {
  PageFrame* f = pin(page);
  f->dirty = 1;
  return f;
}

// Returns a page of unknown contents, pinned.
static PageFrame* allocate_page(void) {
  uint32_t page = free_list;
  if (page == kNoPage) {
    if (file_pages == kMostPages) fail("the file is full");
    page = file_pages++;
  }
  PageFrame* f = pin_to_write(page);
  if (page == free_list) free_list = get32(f->bytes);
  return f;
}

// Frees a page that is pinned once.
static void free_page(PageFrame* f) {
  put32(f->bytes, free_list);
  free_list = f->page;
  f->dirty = 1;
  unpin(f);
}

#endif  // UPTIER_EXAMPLES_STORE_PAGES_H
