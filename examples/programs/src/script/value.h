// Values of the script language, and the heap that they refer to.
//
// A value has 64 bits: a double, or a tag in its upper 16 bits and 32 bits of data. Objects are rows
// of words in one heap, and references are indices into it, so that every build makes the same
// values. Nothing is collected; a script frees what it has allocated since a mark.
#ifndef UPTIER_EXAMPLES_SCRIPT_VALUE_H
#define UPTIER_EXAMPLES_SCRIPT_VALUE_H

#include <math.h>
#include <string.h>

#include "../program.h"

typedef uint64_t Value;

#define TAG_INT UINT64_C(0xfffa)
#define TAG_OBJECT UINT64_C(0xfffb)
#define TAG_SPECIAL UINT64_C(0xfffc)
#define TAG_FUNCTION UINT64_C(0xfffd)
#define TAGGED(tag, data) ((tag) << 48 | (uint32_t)(data))
#define NULL_VALUE TAGGED(TAG_SPECIAL, 0)
#define FALSE_VALUE TAGGED(TAG_SPECIAL, 1)
#define TRUE_VALUE TAGGED(TAG_SPECIAL, 2)

enum { kHeapWords = 1 << 20, kLeastCapacity = 4, kLeastBuckets = 8 };
typedef enum { kString = 1, kArray, kRecord, kMap } Kind;

// The first word of an object is its header. A string has its bytes after it, a record its fields,
// an array and a map a word with the place and the capacity of their elements.
static Value heap[kHeapWords];
static uint32_t heap_top = 1;

static NOINLINE void fail(const char* what) {
  fprintf(stderr, "script: %s\n", what);
  exit(1);
}

static inline int is_tagged(Value v, uint64_t tag) { return v >> 48 == tag; }
static inline int is_int(Value v) { return is_tagged(v, TAG_INT); }
static inline int is_double(Value v) { return v >> 48 < TAG_INT; }
static inline int both_ints(Value a, Value b) { return is_int(a) && is_int(b); }
static inline int32_t as_int(Value v) { return (int32_t)(uint32_t)v; }
static inline Value from_int(int32_t i) { return TAGGED(TAG_INT, i); }
static inline Value from_bool(int b) { return b ? TRUE_VALUE : FALSE_VALUE; }

static inline double as_double(Value v) {
  double d;
  memcpy(&d, &v, sizeof d);
  return d;
}

static inline Value from_double(double d) {
  Value v;
  memcpy(&v, &d, sizeof v);
  return v;
}

// An integer if it fits, otherwise a double.
static inline Value from_wide(int64_t i) {
  return i == (int32_t)i ? from_int((int32_t)i) : from_double((double)i);
}

static inline double number_of(Value v) {
  if (is_int(v)) return as_int(v);
  if (!is_double(v)) fail("a number was expected");
  return as_double(v);
}

static inline int32_t int_of(Value v) {
  if (is_int(v)) return as_int(v);
  double d = number_of(v);
  if (!(d > -9e18 && d < 9e18)) fail("a number is too large");
  return (int32_t)(uint32_t)(int64_t)d;
}

static inline int is_true(Value v) {
  if (is_tagged(v, TAG_SPECIAL)) return v == TRUE_VALUE;
  return v != from_int(0) && v != from_double(0);
}

static inline Kind kind_at(uint32_t at) { return (Kind)(heap[at] >> 56); }
static inline uint32_t extra_at(uint32_t at) { return (uint32_t)(heap[at] >> 32) & 0xffffff; }
static inline uint32_t size_at(uint32_t at) { return (uint32_t)heap[at]; }
static inline int is_kind(Value v, Kind kind) {
  return is_tagged(v, TAG_OBJECT) && kind_at((uint32_t)v) == kind;
}
static inline uint32_t object_of(Value v, Kind kind) {
  if (!is_kind(v, kind)) fail("an object of another kind was expected");
  return (uint32_t)v;
}
static inline void set_header(uint32_t at, Kind kind, uint32_t extra, uint32_t size) {
  heap[at] = (uint64_t)kind << 56 | (uint64_t)extra << 32 | size;
}

static NOINLINE uint32_t allocate(uint32_t words) {
  if (words > kHeapWords - heap_top) fail("the heap is full");
  uint32_t at = heap_top;
  heap_top += words;
  return at;
}

// Strings.

static inline char* bytes_at(uint32_t at) { return (char*)&heap[at + 1]; }

static Value new_string(uint32_t size) {
  uint32_t at = allocate(1 + (size + 7) / 8);
  set_header(at, kString, 0, size);
  return TAGGED(TAG_OBJECT, at);
}

static Value string_from(const char* bytes, uint32_t size) {
  Value v = new_string(size);
  memcpy(bytes_at((uint32_t)v), bytes, size);
  return v;
}

static NOINLINE Value concatenate(Value a, Value b) {
  uint32_t x = object_of(a, kString), y = object_of(b, kString);
  Value v = new_string(size_at(x) + size_at(y));
  memcpy(bytes_at((uint32_t)v), bytes_at(x), size_at(x));
  memcpy(bytes_at((uint32_t)v) + size_at(x), bytes_at(y), size_at(y));
  return v;
}

static NOINLINE Value substring(Value s, int32_t from, int32_t size) {
  uint32_t at = object_of(s, kString);
  int32_t length = (int32_t)size_at(at);
  if (from < 0 || size < 0 || from > length || size > length - from) fail("substring out of range");
  return string_from(bytes_at(at) + from, (uint32_t)size);
}

static NOINLINE Value text_of(Value v) {
  char text[40];
  if (is_kind(v, kString)) return v;
  if (is_int(v)) {
    snprintf(text, sizeof text, "%" PRId32, as_int(v));
  } else {
    snprintf(text, sizeof text, "%.6g", number_of(v));
  }
  return string_from(text, (uint32_t)strlen(text));
}

static NOINLINE int compare_strings(Value a, Value b) {
  uint32_t x = object_of(a, kString), y = object_of(b, kString);
  uint32_t least = size_at(x) < size_at(y) ? size_at(x) : size_at(y);
  int order = memcmp(bytes_at(x), bytes_at(y), least);
  if (order != 0) return order < 0 ? -1 : 1;
  return (size_at(x) > size_at(y)) - (size_at(x) < size_at(y));
}

static NOINLINE int equal_slowly(Value a, Value b) {
  if (is_kind(a, kString) && is_kind(b, kString)) return compare_strings(a, b) == 0;
  int numbers = (is_int(a) || is_double(a)) && (is_int(b) || is_double(b));
  return numbers && number_of(a) == number_of(b);
}

static inline int are_equal(Value a, Value b) {
  return a == b ? !is_double(a) || as_double(a) == as_double(a)
                : !both_ints(a, b) && equal_slowly(a, b);
}

// Arrays and records.

static inline uint32_t elements_at(uint32_t at) { return (uint32_t)heap[at + 1]; }
static inline uint32_t capacity_at(uint32_t at) { return (uint32_t)(heap[at + 1] >> 32); }
static inline void set_elements(uint32_t at, uint32_t elements, uint32_t capacity) {
  heap[at + 1] = (uint64_t)capacity << 32 | elements;
}

static NOINLINE Value new_array(uint32_t capacity) {
  uint32_t at = allocate(2 + capacity);
  set_header(at, kArray, 0, 0);
  set_elements(at, at + 2, capacity);
  return TAGGED(TAG_OBJECT, at);
}

static NOINLINE void grow_array(uint32_t at) {
  uint32_t old = capacity_at(at), capacity = old < kLeastCapacity ? kLeastCapacity : 2 * old;
  uint32_t to = allocate(capacity);
  memcpy(&heap[to], &heap[elements_at(at)], size_at(at) * sizeof heap[0]);
  set_elements(at, to, capacity);
}

static inline void push_value(uint32_t at, Value v) {
  if (size_at(at) == capacity_at(at)) grow_array(at);
  heap[elements_at(at) + size_at(at)] = v;
  ++heap[at];
}

static inline Value* element_of(Value array, Value index) {
  uint32_t at = object_of(array, kArray);
  if (!is_int(index) || (uint32_t)index >= size_at(at)) fail("index out of range");
  return &heap[elements_at(at) + (uint32_t)index];
}

static inline Value* field_of(Value record, uint32_t field) {
  uint32_t at = object_of(record, kRecord);
  if (field >= size_at(at)) fail("no such field");
  return &heap[at + 1 + field];
}

// Maps: open addressing, twice as many buckets as entries at least. A bucket is a key and a value.

static uint32_t hash_of(Value key) {
  if (!is_kind(key, kString)) return (uint32_t)fold(key, 1);
  uint32_t at = (uint32_t)key, hash = 2166136261u;
  for (uint32_t i = 0; i < size_at(at); ++i) hash = (hash ^ (uint8_t)bytes_at(at)[i]) * 16777619u;
  return hash ^ hash >> 15;
}

static void clear_buckets(uint32_t elements, uint32_t buckets) {
  for (uint32_t i = 0; i < 2 * buckets; ++i) heap[elements + i] = NULL_VALUE;
}

static NOINLINE Value new_map(void) {
  uint32_t at = allocate(2 + 2 * kLeastBuckets);
  set_header(at, kMap, 0, 0);
  set_elements(at, at + 2, kLeastBuckets);
  clear_buckets(at + 2, kLeastBuckets);
  return TAGGED(TAG_OBJECT, at);
}

// Returns the bucket of the key, or the empty one where it belongs.
static NOINLINE Value* find_bucket(uint32_t at, Value key) {
  uint32_t mask = capacity_at(at) - 1;
  for (uint32_t i = hash_of(key) & mask;; i = (i + 1) & mask) {
    Value* bucket = &heap[elements_at(at) + 2 * i];
    if (bucket[0] == NULL_VALUE || are_equal(bucket[0], key)) return bucket;
  }
}

static NOINLINE void grow_map(uint32_t at) {
  uint32_t old = elements_at(at), buckets = capacity_at(at);
  uint32_t to = allocate(4 * buckets);
  clear_buckets(to, 2 * buckets);
  set_elements(at, to, 2 * buckets);
  for (uint32_t i = 0; i < buckets; ++i) {
    Value* from = &heap[old + 2 * i];
    if (from[0] == NULL_VALUE) continue;
    memcpy(find_bucket(at, from[0]), from, 2 * sizeof *from);
  }
}

static NOINLINE void put(uint32_t at, Value key, Value value) {
  Value* bucket = find_bucket(at, key);
  if (bucket[0] == NULL_VALUE) {
    if (2 * (size_at(at) + 1) > capacity_at(at)) {
      grow_map(at);
      bucket = find_bucket(at, key);
    }
    ++heap[at];
    bucket[0] = key;
  }
  bucket[1] = value;
}

static NOINLINE Value index_slowly(Value object, Value key) {
  if (is_kind(object, kMap)) return find_bucket((uint32_t)object, key)[1];
  return *element_of(object, key);
}

static NOINLINE void store_slowly(Value object, Value key, Value value) {
  if (is_kind(object, kMap)) {
    put((uint32_t)object, key, value);
  } else {
    *element_of(object, key) = value;
  }
}

#endif  // UPTIER_EXAMPLES_SCRIPT_VALUE_H
