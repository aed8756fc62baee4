// Compiled with -mgeneral-regs-only: see site_tables.h.
#include "sampler/site_tables.h"

namespace uptier::sampler {
namespace {

__extension__ using Int128 = __int128;

// What copy_table() may be reading; one writer.
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
      : w_(words), e_(reinterpret_cast<TableEntry*>(words + shape.entries_at())), s_(shape) {}

  void count(uint64_t key) noexcept {
    uint64_t before = begin();
    uint32_t at = find(key);
    bool missed = at == s_.top;
    if (missed) {
      to_other(key, 1);
    } else {
      put(e_[at], {key, e_[at].count + 1});
      if (e_[at].count > e_[0].count) swap(0, at);
    }
    uint64_t slow = before + 1 + (missed ? uint64_t{1} << 32 : 0);
    if (static_cast<uint32_t>(slow) >= kTableWindow) {
      look_back(key, slow);
      slow = 0;
    }
    // Release pairs with copy_table(): what it copies from here on is whole.
    __atomic_store_n(&w_[kTableSlow], slow, __ATOMIC_RELEASE);
  }

  void age() noexcept {
    uint64_t total = events();
    if (total - w_[kTableMark] < kTableWindow) return;
    begin();
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s_.top && e_[i].count != 0; ++i) {
      uint64_t stays = e_[i].count / 2;
      to_other(e_[i].key, e_[i].count - stays);
      put(e_[i].count, stays);
      if (stays != 0) swap(kept++, i);
    }
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
    // Pairs with copy_table(): who sees an entry that moves sees this before.
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
    uint64_t seen = total - w_[kTableMark];
    uint64_t slow = static_cast<uint32_t>(window), missed = window >> 32;
    if (2 * missed > seen) {
      evict();
    } else {
      uint32_t at = find(last);
      bool hit = at < s_.top && e_[at].count != 0;
      if (hit && 2 * slow > seen) swap(0, at);
      drop_least(missed / 4);
    }
    put(w_[kTableMark], total);
  }

  void evict() noexcept {
    uint32_t keep = s_.top / 2;
    for (uint32_t i = 0; i < keep; ++i) {
      uint32_t best = i;
      for (uint32_t j = i + 1; j < s_.top; ++j) {
        if (e_[j].count > e_[best].count) best = j;
      }
      swap(i, best);
    }
    for (uint32_t i = 0; i < s_.top; ++i) {
      uint64_t stays = i >= keep ? 0 : s_.recent ? e_[i].count / 2 : e_[i].count;
      if (stays == e_[i].count) continue;
      to_other(e_[i].key, e_[i].count - stays);
      put(e_[i].count, stays);
    }
  }

  // Frees the least entry if there is no free one and it has at most `bound` events.
  void drop_least(uint64_t bound) noexcept {
    uint32_t least = 0;
    for (uint32_t i = 1; i < s_.top; ++i) {
      if (e_[i].count <= e_[least].count) least = i;
    }
    if (e_[least].count == 0 || e_[least].count > bound) return;
    to_other(e_[least].key, e_[least].count);
    put(e_[least].count, 0);
    swap(least, s_.top - 1);
  }

  uint64_t* w_;
  TableEntry* e_;
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
    // Acquire: word 1 is looked at again behind the others; pairs with begin().
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
