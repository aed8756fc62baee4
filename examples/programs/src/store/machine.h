// The register machine: one loop with one switch runs the program of a statement.
#ifndef UPTIER_EXAMPLES_STORE_MACHINE_H
#define UPTIER_EXAMPLES_STORE_MACHINE_H

#include "select.h"

enum { kMostRemembered = 4096, kMostSorted = 1024, kSortedBytes = 65536, kMostParameters = 6 };

typedef struct SortedRow {
  int64_t key;
  uint32_t at;
} SortedRow;

typedef struct Machine {
  Value r[kMostRegisters];
  char room[kMostRegisters][kMostText];  // for texts that registers own
  Cursor cursors[kMostCursors];
  Tree temporary;
  int has_temporary;
  Value parameters[kMostParameters];
  uint8_t record[kMostRecord];
  uint32_t record_size;
  int64_t remembered[kMostRemembered];
  uint32_t remembered_count, recalled;
  SortedRow sorted[kMostSorted], merged[kMostSorted];
  uint8_t sorted_bytes[kSortedBytes];
  uint32_t sorted_count, sorted_used, sorted_at;
  uint64_t hash, rows, steps;
} Machine;

// Gives a register a text of its own.
static void keep_text(Machine* m, int32_t to, const char* text, uint32_t size) {
  if (size > kMostText) fail("the text is too long");
  memmove(m->room[to], text, size);
  m->r[to] = of_text(m->room[to], size);
}

static void copy_register(Machine* m, int32_t from, int32_t to) {
  if (m->r[from].kind == kText) {
    keep_text(m, to, m->r[from].text, m->r[from].size);
  } else {
    m->r[to] = m->r[from];
  }
}

static NOINLINE void text_of_value(Machine* m, const Value* v, int32_t to) {
  char digits[24];
  uint32_t at = sizeof digits;
  if (v->kind != kInteger) {
    keep_text(m, to, v->text, v->kind == kText ? v->size : 0);
    return;
  }
  uint64_t rest = v->number < 0 ? -(uint64_t)v->number : (uint64_t)v->number;
  do {
    digits[--at] = (char)('0' + rest % 10);
    rest /= 10;
  } while (rest > 0);
  if (v->number < 0) digits[--at] = '-';
  keep_text(m, to, digits + at, (uint32_t)sizeof digits - at);
}

static NOINLINE void concatenate(Machine* m, int32_t a, int32_t b, int32_t to) {
  char joined[2 * kMostText];
  text_of_value(m, &m->r[a], to);
  uint32_t size = m->r[to].size;
  memcpy(joined, m->r[to].text, size);
  text_of_value(m, &m->r[b], to);
  memcpy(joined + size, m->r[to].text, m->r[to].size);
  keep_text(m, to, joined, size + m->r[to].size);
}

static NOINLINE void upper(Machine* m, int32_t from, int32_t to) {
  text_of_value(m, &m->r[from], to);
  for (uint32_t i = 0; i < m->r[to].size; ++i) {
    char* at = &m->room[to][i];
    if (*at >= 'a' && *at <= 'z') *at = (char)(*at - 'a' + 'A');
  }
}

static NOINLINE void substring(Machine* m, int32_t from, int32_t bounds, int32_t to) {
  int64_t begin = number_of(&m->r[bounds]), size = number_of(&m->r[bounds + 1]);
  text_of_value(m, &m->r[from], to);
  int64_t whole = m->r[to].size;
  if (begin < 0) begin = 0;
  if (begin > whole) begin = whole;
  if (size < 0) size = 0;
  if (size > whole - begin) size = whole - begin;
  keep_text(m, to, m->r[to].text + begin, (uint32_t)size);
}

static NOINLINE int64_t divide(int64_t a, int64_t b, int remainder) {
  if (b == 0) fail("division by zero");
  if (b == -1) return remainder ? 0 : (int64_t)(0 - (uint64_t)a);
  return remainder ? a % b : a / b;
}

static NOINLINE int likes(const Value* text, const Value* pattern) {
  if (text->kind != kText || pattern->kind != kText) return 0;
  return is_like(pattern->text, pattern->size, text->text, text->size);
}

static NOINLINE void remember(Machine* m, int64_t key) {
  if (m->remembered_count == kMostRemembered) fail("too many rows change at once");
  m->remembered[m->remembered_count++] = key;
}

static NOINLINE void sort_row(Machine* m, int32_t first, uint32_t count, int64_t key) {
  if (m->sorted_count == kMostSorted || m->sorted_used + kMostRecord > kSortedBytes) {
    fail("too many rows to sort");
  }
  m->sorted[m->sorted_count++] = (SortedRow){key, m->sorted_used};
  m->sorted_used += write_record(m->sorted_bytes + m->sorted_used, &m->r[first], count);
}

// Sorts by merging, so rows of one key stay in order.
static NOINLINE void sort_rows(Machine* m) {
  SortedRow *from = m->sorted, *to = m->merged;
  uint32_t n = m->sorted_count;
  for (uint32_t width = 1; width < n; width *= 2) {
    for (uint32_t begin = 0; begin < n; begin += 2 * width) {
      uint32_t middle = begin + width < n ? begin + width : n;
      uint32_t end = begin + 2 * width < n ? begin + 2 * width : n;
      uint32_t i = begin, j = middle;
      for (uint32_t k = begin; k < end; ++k) {
        int left = i < middle && (j >= end || from[i].key <= from[j].key);
        to[k] = left ? from[i++] : from[j++];
      }
    }
    SortedRow* swap = from;
    from = to;
    to = swap;
  }
  if (from != m->sorted) memcpy(m->sorted, from, n * sizeof *from);
}

static NOINLINE void free_tree(uint32_t page) {
  PageFrame* f = pin(page);
  for (uint32_t i = 0; !is_leaf(f->bytes) && i <= count_of(f->bytes); ++i) {
    free_tree(child_at(f->bytes, i));
  }
  free_page(f);
}

static NOINLINE void open_temporary(Machine* m, Cursor* cursor) {
  start_tree(&m->temporary);
  m->has_temporary = 1;
  *cursor = (Cursor){&m->temporary, NULL, 0};
}

static NOINLINE int64_t last_key(Tree* t) {
  PageFrame* f = pin(t->root);
  while (!is_leaf(f->bytes)) {
    uint32_t child = right_of(f->bytes);
    unpin(f);
    f = pin(child);
  }
  uint32_t count = count_of(f->bytes);
  int64_t key = count > 0 ? key_at(f->bytes, count - 1) : 0;
  unpin(f);
  return key;
}

static NOINLINE void result_row(Machine* m, int32_t first, int32_t count) {
  for (int32_t i = 0; i < count; ++i) m->hash = hash_value(m->hash, &m->r[first + i]);
  ++m->rows;
}

static inline int is_true(const Value* v) { return number_of(v) != 0; }

static void reset(Machine* m) {
  for (uint32_t i = 0; i < kMostCursors; ++i) close_cursor(&m->cursors[i]);
  if (m->has_temporary) free_tree(m->temporary.root);
  m->has_temporary = 0;
  m->remembered_count = m->recalled = 0;
  m->sorted_count = m->sorted_used = m->sorted_at = 0;
}

#define ARITHMETIC(name, expression)                     \
  case k##name##Op: {                                    \
    const Value *left = &r[o->a], *right = &r[o->b];     \
    if (left->kind == kNull || right->kind == kNull) {   \
      r[o->c].kind = kNull;                              \
    } else {                                             \
      int64_t x = number_of(left), y = number_of(right); \
      r[o->c] = of_number((int64_t)(expression));        \
    }                                                    \
    break;                                               \
  }
#define COMPARISON(name, op)                                           \
  case kIs##name##Op: {                                                \
    const Value *left = &r[o->a], *right = &r[o->b];                   \
    if (left->kind == kNull || right->kind == kNull) {                 \
      r[o->c].kind = kNull;                                            \
    } else {                                                           \
      r[o->c] = of_number(compare_values(left, right) op 0);           \
    }                                                                  \
    break;                                                             \
  }                                                                    \
  case k##name##Op: {                                                  \
    const Value *left = &r[o->a], *right = &r[o->c];                   \
    if (left->kind == kInteger && right->kind == kInteger) {           \
      if (left->number op right->number) o = operations + o->b - 1;    \
    } else if (left->kind != kNull && right->kind != kNull) {          \
      if (compare_values(left, right) op 0) o = operations + o->b - 1; \
    }                                                                  \
    break;                                                             \
  }
#define JUMP o = operations + o->b - 1

// Runs a program to its end.
static NOINLINE void run(Machine* m, const Program* program) {
  const Operation* operations = program->operations;
  Value* r = m->r;
  uint64_t steps = 0;
  for (const Operation* o = operations;; ++o) {
    ++steps;
    switch ((Opcode)o->opcode) {
      case kHaltOp: m->steps += steps; return;
      case kGotoOp: JUMP; break;
      case kIfOp:
        if (is_true(&r[o->a])) JUMP;
        break;
      case kIfNotOp:
        if (!is_true(&r[o->a])) JUMP;
        break;
      case kIfNullOp:
        if (r[o->a].kind == kNull) JUMP;
        break;
      case kIfNotNullOp:
        if (r[o->a].kind != kNull) JUMP;
        break;
      case kCountdownOp:
        if (--r[o->a].number < 0) JUMP;
        break;

      case kNullOp: r[o->b].kind = kNull; break;
      case kIntegerOp: r[o->b] = of_number(o->a); break;
      case kConstantOp: r[o->b] = of_number(program->constants[o->a]); break;
      case kTextOp: r[o->b] = program->texts[o->a]; break;
      case kParameterOp: r[o->b] = m->parameters[o->a]; break;
      case kCopyOp:
        copy_register(m, o->a, o->b);
        break;

        ARITHMETIC(Add, (uint64_t)x + (uint64_t)y)
        ARITHMETIC(Subtract, (uint64_t)x - (uint64_t)y)
        ARITHMETIC(Multiply, (uint64_t)x * (uint64_t)y)
        ARITHMETIC(Divide, divide(x, y, 0))
        ARITHMETIC(Remainder, divide(x, y, 1))
        ARITHMETIC(BitAnd, x & y)
        ARITHMETIC(BitOr, x | y)
        ARITHMETIC(ShiftLeft, (uint64_t)x << (y & 63))
        ARITHMETIC(ShiftRight, x >> (y & 63))
      case kConcatOp:
        concatenate(m, o->a, o->b, o->c);
        break;
        COMPARISON(Eq, ==)
        COMPARISON(Ne, !=)
        COMPARISON(Lt, <)
        COMPARISON(Le, <=)
        COMPARISON(Gt, >)
        COMPARISON(Ge, >=)
      case kAndOp: r[o->c] = of_number(is_true(&r[o->a]) && is_true(&r[o->b])); break;
      case kOrOp: r[o->c] = of_number(is_true(&r[o->a]) || is_true(&r[o->b])); break;
      case kLikeOp: r[o->c] = of_number(likes(&r[o->a], &r[o->b])); break;
      case kLeastOp:
        copy_register(m, compare_values(&r[o->a], &r[o->b]) <= 0 ? o->a : o->b, o->c);
        break;
      case kMostOp:
        copy_register(m, compare_values(&r[o->a], &r[o->b]) >= 0 ? o->a : o->b, o->c);
        break;

      case kNegateOp: r[o->b] = of_number((int64_t)(0 - (uint64_t)number_of(&r[o->a]))); break;
      case kNotOp: r[o->b] = of_number(!is_true(&r[o->a])); break;
      case kLengthOp: r[o->b] = of_number(r[o->a].kind == kText ? r[o->a].size : 0); break;
      case kUpperOp: upper(m, o->a, o->b); break;
      case kAbsoluteOp: {
        int64_t x = number_of(&r[o->a]);
        r[o->b] = of_number(x < 0 ? (int64_t)(0 - (uint64_t)x) : x);
        break;
      }
      case kHashOp: r[o->b] = of_number((int64_t)(hash_value(1, &r[o->a]) >> 33)); break;
      case kToTextOp: text_of_value(m, &r[o->a], o->b); break;
      case kToIntegerOp: r[o->b] = of_number(number_of(&r[o->a])); break;
      case kSubstringOp: substring(m, o->a, o->b, o->c); break;
      case kAddConstantOp: r[o->a].number += o->b; break;

      case kOpenTableOp: m->cursors[o->a] = (Cursor){&tables[o->b].tree, NULL, 0}; break;
      case kOpenIndexOp:
        m->cursors[o->a] = (Cursor){&tables[o->b].indexes[o->c].tree, NULL, 0};
        break;
      case kOpenTemporaryOp: open_temporary(m, &m->cursors[o->a]); break;
      case kCloseOp: close_cursor(&m->cursors[o->a]); break;
      case kRewindOp:
        if (!cursor_seek(&m->cursors[o->a], INT64_MIN)) JUMP;
        break;
      case kSeekGeOp:
        if (!cursor_seek(&m->cursors[o->a], number_of(&r[o->c]))) JUMP;
        break;
      case kSeekKeyOp: {
        Cursor* c = &m->cursors[o->a];
        int64_t key = number_of(&r[o->c]);
        if (!cursor_seek(c, key) || cursor_key(c) != key) JUMP;
        break;
      }
      case kNextOp:
        if (cursor_next(&m->cursors[o->a])) JUMP;
        break;
      case kKeyOp: r[o->b] = of_number(cursor_key(&m->cursors[o->a])); break;
      case kColumnOp: {
        uint32_t size;
        const uint8_t* record = cursor_record(&m->cursors[o->a], &size);
        r[o->c] = read_column(record, (uint32_t)o->b);
        break;
      }
      case kIndexRowOp:
        r[o->b] = of_number((int64_t)((uint64_t)cursor_key(&m->cursors[o->a]) & UINT32_MAX));
        break;
      case kLastKeyOp: r[o->b] = of_number(last_key(m->cursors[o->a].tree)); break;
      case kIndexKeyOp: {
        uint64_t value = (uint64_t)number_of(&r[o->a]) & INT32_MAX;
        r[o->c] = of_number((int64_t)(value << 32 | (uint32_t)number_of(&r[o->b])));
        break;
      }

      case kMakeRecordOp: m->record_size = write_record(m->record, &r[o->a], (uint32_t)o->b); break;
      case kInsertOp:
        tree_insert(m->cursors[o->a].tree, number_of(&r[o->b]), m->record, m->record_size);
        break;
      case kInsertKeyOp:
        tree_insert(m->cursors[o->a].tree, number_of(&r[o->b]), m->record, 0);
        break;
      case kDeleteOp: tree_delete(m->cursors[o->a].tree, number_of(&r[o->b])); break;
      case kRememberOp: remember(m, number_of(&r[o->a])); break;
      case kRecallOp:
        if (m->recalled == m->remembered_count) {
          JUMP;
        } else {
          r[o->a] = of_number(m->remembered[m->recalled++]);
        }
        break;

      case kStepCountOp: ++r[o->a].number; break;
      case kStepSumOp: r[o->a].number += number_of(&r[o->b]); break;
      case kStepLeastOp:
        if (r[o->a].kind == kNull || compare_values(&r[o->b], &r[o->a]) < 0) {
          copy_register(m, o->b, o->a);
        }
        break;
      case kStepMostOp:
        if (r[o->a].kind == kNull || compare_values(&r[o->b], &r[o->a]) > 0) {
          copy_register(m, o->b, o->a);
        }
        break;

      case kResultRowOp: result_row(m, o->a, o->b); break;
      case kSortRowOp: sort_row(m, o->a, (uint32_t)o->b, number_of(&r[o->c])); break;
      case kSortOp:
        sort_rows(m);
        if (m->sorted_count == 0) JUMP;
        break;
      case kLoadSortedOp:
        for (int32_t i = 0; i < o->b; ++i) {
          const uint8_t* row = m->sorted_bytes + m->sorted[m->sorted_at].at;
          r[o->a + i] = read_column(row, (uint32_t)i);
        }
        break;
      case kNextSortedOp:
        if (++m->sorted_at < m->sorted_count) JUMP;
        break;
      case kOpcodes: break;
    }
  }
}

#endif  // UPTIER_EXAMPLES_STORE_MACHINE_H
