// Compiled with -mgeneral-regs-only: see site_tables.h.
#include "sampler/site_tables.h"

#include <cassert>

namespace uptier::sampler {
namespace {

__extension__ using Int128 = __int128;

// Stores a word that copy_table() may be reading; one writer.
void put(uint64_t& word, uint64_t value) noexcept {
  __atomic_store_n(&word, value, __ATOMIC_RELAXED);
}
void put(TableEntry& e, const TableEntry& value) noexcept {
  put(e.key, value.key);
  put(e.count, value.count);
}

class Table {
 public:
  Table(uint64_t* words, const TableShape& shape)
      : w_(words),
        e_(reinterpret_cast<TableEntry*>(words + shape.entries_at())),
        seen_(words + shape.marks_at()),
        s_(shape) {}

  void count(uint64_t key) noexcept {
    uint64_t before = begin();
    uint32_t at = find(key);
    bool missed = at == s_.top;
    if (missed) {
      to_other(key, 1);
    } else {
      if (e_[at].count != 0) see(at, 1);
      put(e_[at], {key, e_[at].count + 1});
      if (e_[at].count > e_[0].count) swap(0, at);
    }
    uint64_t slow = before + 1 + (missed ? uint64_t{1} << 32 : 0);
    if (static_cast<uint32_t>(slow) >= kTableWindow) {
      look_back(key, slow);
      slow = 0;
    }
    // Release pairs with copy_table(): copies that start after this are consistent.
    __atomic_store_n(&w_[kTableSlow], slow, __ATOMIC_RELEASE);
  }

  void age() noexcept {
    uint64_t total = events();
    if (total - w_[kTableMark] < kTableWindow) return;
    begin();
    halve(s_.top);
    put(w_[kTableMark], total);
    __atomic_store_n(&w_[kTableSlow], 0, __ATOMIC_RELEASE);  // as in count()
  }

 private:
  uint64_t events() const noexcept {
    uint64_t total = w_[kTableOther];
    for (uint32_t i = 0; i < s_.top; ++i) total += e_[i].count;
    return total;
  }

  // Returns word 1 as it was.
  uint64_t begin() noexcept {
    uint64_t slow = w_[kTableSlow];
    __atomic_store_n(&w_[kTableSlow], slow | kTableBusy, __ATOMIC_RELAXED);
    // Pairs with copy_table(): a reader that sees an entry move also sees kTableBusy.
    __atomic_thread_fence(__ATOMIC_RELEASE);
    return slow;
  }

  // Returns the entry of a key, else the first free one, else top.
  uint32_t find(uint64_t key) const noexcept {
    uint32_t at = 0;
    while (at < s_.top && e_[at].count != 0 && e_[at].key != key) ++at;
    return at;
  }

  void swap(uint32_t a, uint32_t b) noexcept {
    TableEntry t = e_[a];
    put(e_[a], e_[b]);
    put(e_[b], t);
    Seen of_a = seen_of(a);
    set_seen(a, seen_of(b));
    set_seen(b, of_a);
  }

  // ---- How often an entry is seen ----

  struct Seen {
    uint32_t late;   // events, in units of 1 / kOne
    uint32_t looks;  // likewise
  };
  static constexpr uint32_t kMostLate = 0xfffff;
  static constexpr uint32_t kOne = 64;
  static constexpr uint32_t kUnknown = 4 * kOne;
  static constexpr uint32_t kForgotten = 32;  // 1 in so many of both, at each look back

  Seen seen_of(uint32_t i) const noexcept {
    uint64_t w = seen_[i / 2] >> 32 * (i % 2);
    return {static_cast<uint32_t>(w & kMostLate), static_cast<uint32_t>(w >> 20 & 0xfff)};
  }
  void set_seen(uint32_t i, Seen s) noexcept {
    uint32_t shift = 32 * (i % 2);
    uint64_t mine = uint64_t{s.looks} << 20 | s.late;
    put(seen_[i / 2], (seen_[i / 2] & ~(uint64_t{0xffffffff} << shift)) | mine << shift);
  }
  void see(uint32_t i, uint64_t events) noexcept {
    assert(i < s_.top);
    Seen s = seen_of(i);
    uint64_t late = s.late + kOne * events;
    s.late = late < kMostLate ? static_cast<uint32_t>(late) : kMostLate;
    set_seen(i, s);
  }
  void look() noexcept {
    for (uint32_t i = 0; i < s_.top && e_[i].count != 0; ++i) {
      Seen s = seen_of(i);
      set_seen(i, {s.late, s.looks + kOne});
    }
  }
  void forget() noexcept {
    for (uint32_t i = 0; i < s_.top; ++i) {
      Seen s = seen_of(i);
      set_seen(i, {s.late - s.late / kForgotten, s.looks - s.looks / kForgotten});
    }
  }
  bool less_often(uint32_t a, uint32_t b) const noexcept {
    Seen of_a = seen_of(a), of_b = seen_of(b);
    uint64_t x = uint64_t{of_a.late} * (of_b.looks + kUnknown);
    uint64_t y = uint64_t{of_b.late} * (of_a.looks + kUnknown);
    return x != y ? x < y : e_[a].count < e_[b].count;
  }
  // Returns the least frequent of the first `n` entries.
  uint32_t least_of(uint32_t n) const noexcept {
    assert(n != 0 && n <= s_.top);
    uint32_t least = 0;
    for (uint32_t i = 1; i < n; ++i) {
      if (!less_often(least, i)) least = i;
    }
    return least;
  }

  // Lowers the count of an entry to `stays`; 0 frees the entry.
  void lower(uint32_t i, uint64_t stays) noexcept {
    assert(i < s_.top && stays <= e_[i].count);  // the rest goes to `other`
    to_other(e_[i].key, e_[i].count - stays);
    put(e_[i].count, stays);
    if (stays == 0) set_seen(i, {0, 0});
  }

  void to_other(uint64_t key, uint64_t count) noexcept {
    put(w_[kTableOther], w_[kTableOther] + count);
    if (!s_.sums) return;
    Int128 moved = Int128{static_cast<int64_t>(key)} * static_cast<Int128>(count);
    uint64_t low = w_[kTableSumLow] + static_cast<uint64_t>(moved);
    uint64_t carry = low < w_[kTableSumLow] ? 1 : 0;
    w_[kTableSumLow] = low;
    w_[kTableSumHigh] += static_cast<uint64_t>(moved >> 64) + carry;
    uint64_t rank = flip_sign(key);
    if (rank > w_[kTableGreatest]) w_[kTableGreatest] = rank;
    if (~rank > w_[kTableLeast]) w_[kTableLeast] = ~rank;
  }

  void look_back(uint64_t last, uint64_t window) noexcept {
    uint64_t total = events();
    assert(total >= w_[kTableMark]);  // no event is lost
    uint64_t seen = total - w_[kTableMark];
    uint64_t slow = static_cast<uint32_t>(window), missed = window >> 32;
    see(0, seen - slow);  // the hits that code has counted
    look();
    if (2 * missed > seen) {
      evict();
    } else {
      uint32_t at = find(last);
      bool hit = at < s_.top && e_[at].count != 0;
      if (hit && 2 * slow > seen) swap(0, at);
      drop_least(missed);
    }
    forget();
    put(w_[kTableMark], total);
  }

  void evict() noexcept {
    assert(s_.top != 0);
    uint32_t gone = s_.top < 8 ? 1 : s_.top / 4;
    for (uint32_t i = s_.top; i-- > s_.top - gone;) {
      swap(least_of(i + 1), i);
      lower(i, 0);
    }
    if (s_.recent) halve(s_.top - gone);
  }

  // Halves the counts of the first `n` entries.
  void halve(uint32_t n) noexcept {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n && e_[i].count != 0; ++i) {
      lower(i, e_[i].count / 2);
      if (e_[i].count != 0) swap(kept++, i);
    }
  }

  // Frees the least frequent entry, if no entry is free and there were eight times as many misses.
  void drop_least(uint64_t missed) noexcept {
    if (e_[s_.top - 1].count == 0) return;
    uint32_t least = least_of(s_.top);
    Seen s = seen_of(least);
    if (8 * uint64_t{s.late} >= missed * s.looks) return;
    lower(least, 0);
    swap(least, s_.top - 1);
  }

  uint64_t* w_;
  TableEntry* e_;
  uint64_t* seen_;
  const TableShape& s_;
};

}  // namespace

void count_in_table(uint64_t* words, const TableShape& shape, uint64_t key) noexcept {
  Table(words, shape).count(key);
}

void age_table(uint64_t* words, const TableShape& shape) noexcept { Table(words, shape).age(); }

bool copy_table(const uint64_t* words, const TableShape& shape, uint64_t* out) noexcept {
  constexpr int kTries = 100;
  for (int tries = 0; tries < kTries; ++tries) {
    uint64_t slow = __atomic_load_n(&words[kTableSlow], __ATOMIC_ACQUIRE);  // pairs with count()
    for (uint32_t i = 0; i < shape.words(); ++i) {
      out[i] = __atomic_load_n(&words[i], __ATOMIC_RELAXED);
    }
    // Acquire: word 1 is read again after the others; pairs with begin().
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    bool still = __atomic_load_n(&words[kTableSlow], __ATOMIC_RELAXED) == slow &&
                 __atomic_load_n(&words[kTableMark], __ATOMIC_RELAXED) == out[kTableMark];
    if (still && (slow & kTableBusy) == 0) return true;
  }
  return false;
}

extern "C" void uptier_probe_target(uint64_t* slab, const ProbeCall* call,
                                    ThreadContext*) noexcept {
  count_in_table(call->words(slab), TableShape::unpack(call->extra, false), call->value);
}

extern "C" void uptier_probe_value(uint64_t* slab, const ProbeCall* call, ThreadContext*) noexcept {
  count_in_table(call->words(slab), TableShape::unpack(call->extra, true), call->value);
}

}  // namespace uptier::sampler
