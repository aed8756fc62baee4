#include "jit/code/stubs.h"

#include <cassert>
#include <cstring>
#include <initializer_list>

#include "sampler/context.h"

namespace uptier::jit {
namespace {

static_assert(std::atomic<const void*>::is_always_lock_free &&
              sizeof(std::atomic<const void*>) == 8);
static_assert(std::atomic<int32_t>::is_always_lock_free && sizeof(std::atomic<int32_t>) == 4);

constexpr uint32_t kTailsAt = StubTable::kChunk * StubTable::kStubBytes;
constexpr uint32_t kTrialsAt = kTailsAt + StubTable::kChunk * StubTable::kTailBytes;
static_assert(StubTable::kTailBytes == StubTable::kTrialBytes);
constexpr uint32_t kChunkBytes = kTrialsAt + StubTable::kChunk * StubTable::kTrialBytes;
static_assert(kChunkBytes % CodeSpace::kPage == 0);

uint32_t chunk_count(uint32_t capacity) {
  return (capacity + StubTable::kChunk - 1) / StubTable::kChunk;
}

// Writes the instructions of a chunk, bypassing the assembler: a program may have a hundred
// thousand methods, of which it calls a tenth. The bytes are the same
// (tests/jit/code/stub_test.cc). All targets lie in the code space, so a rel32 reaches them.
class Writer {
 public:
  // `to`: where the bytes are written; `at`: where they will run.
  Writer(uint8_t* to, const uint8_t* at) : to_(to), at_(at) {}

  uint32_t offset() const { return offset_; }
  void go_on_at(uint32_t offset) {
    assert(offset >= offset_ && "what stands before is too long");
    offset_ = offset;
  }

  // endbr64
  void landing_pad() { put({0xf3, 0x0f, 0x1e, 0xfa}); }
  // mov r11, fs:[block]; dec dword [r11 + displacement]
  void count_down(uint32_t method) {
    put({0x64, 0x4c, 0x8b, 0x1c, 0x25},
        sampler::context_tls_offset() + sampler::block_tls_offset(method));
    auto displacement =
        static_cast<int32_t>(sampler::method_offset(method) + sampler::kCallCountdownOffset);
    if (displacement == static_cast<int8_t>(displacement)) {
      put({0x41, 0xff, 0x4b, static_cast<uint8_t>(displacement)});
    } else {
      put({0x41, 0xff, 0x8b}, displacement);
    }
  }
  // lock dec dword [rip + distance]
  void count_down_shared(const void* countdown) { refer({0xf0, 0xff, 0x0d}, countdown); }
  // js to an offset in the chunk.
  void jump_below_zero(uint32_t to) { refer({0x0f, 0x88}, at_ + to); }
  // jmp [rip + distance]
  void jump_cell(const void* cell) { refer({0xff, 0x25}, cell); }
  // mov r11d, number
  void load_number(uint32_t number) { put({0x41, 0xbb}, static_cast<int32_t>(number)); }
  void jump(const void* target) { refer({0xe9}, target); }

 private:
  void put(std::initializer_list<uint8_t> opcode) {
    std::memcpy(to_ + offset_, opcode.begin(), opcode.size());
    offset_ += static_cast<uint32_t>(opcode.size());
  }
  void put(std::initializer_list<uint8_t> opcode, int32_t number) {
    put(opcode);
    std::memcpy(to_ + offset_, &number, sizeof number);
    offset_ += sizeof number;
  }
  // The distance counts from the end of the instruction, which the field ends.
  void refer(std::initializer_list<uint8_t> opcode, const void* target) {
    const uint8_t* end = at_ + offset_ + opcode.size() + sizeof(int32_t);
    put(opcode, static_cast<int32_t>(static_cast<const uint8_t*>(target) - end));
  }

  uint8_t* to_;
  const uint8_t* at_;
  uint32_t offset_ = 0;
};

}  // namespace

uint32_t StubTable::data_bytes(uint32_t capacity) {
  return chunk_count(capacity) * kChunk * (sizeof(void*) + sizeof(int32_t));
}

Result<std::unique_ptr<StubTable>> StubTable::create(CodeSpace& space, std::span<uint8_t> data,
                                                     uint32_t capacity, const void* entry_slow,
                                                     Countdown countdown, const void* trial) {
  if (data.size() < data_bytes(capacity)) {
    return Error{ErrorCode::kInvalidArgument, "stub table: the data area is too small"};
  }
  return std::unique_ptr<StubTable>(
      new StubTable(space, data, capacity, entry_slow, countdown, trial));
}

StubTable::StubTable(CodeSpace& space, std::span<uint8_t> data, uint32_t capacity,
                     const void* entry_slow, Countdown countdown, const void* trial)
    : space_(space),
      data_(data.data()),
      capacity_(capacity),
      entry_slow_(entry_slow),
      trial_(trial != nullptr ? trial : entry_slow),
      countdown_(countdown),
      chunks_(std::make_unique<std::atomic<const uint8_t*>[]>(chunk_count(capacity))) {}

std::atomic<const void*>& StubTable::cell_of(uint32_t m) const {
  return reinterpret_cast<std::atomic<const void*>*>(data_)[m];
}

std::atomic<int32_t>& StubTable::shared_countdown(MethodId m) const {
  uint8_t* countdowns = data_ + sizeof(void*) * chunk_count(capacity_) * kChunk;
  return reinterpret_cast<std::atomic<int32_t>*>(countdowns)[m.index()];
}

Result<CodeSpan> StubTable::write_chunk(uint32_t first) {
  auto span = space_.allocate(kChunkBytes);  // full of int3
  if (!span.ok()) return span.error();
  Writer w(span->writable(), span->data());
  bool pads = space_.hardening().landing_pads;
  for (uint32_t i = 0; i < kChunk; ++i) {
    w.go_on_at(i * kStubBytes);
    if (pads) w.landing_pad();
    if (countdown_ == Countdown::kShared) {
      w.count_down_shared(&shared_countdown(MethodId(first + i)));
    } else {
      w.count_down(first + i);
    }
    w.jump_below_zero(kTailsAt + i * kTailBytes);
    w.jump_cell(&cell_of(first + i));
  }
  for (uint32_t i = 0; i < kChunk; ++i) {
    w.go_on_at(kTailsAt + i * kTailBytes);
    if (pads) w.landing_pad();
    w.load_number(first + i);
    w.jump(entry_slow_);
  }
  for (uint32_t i = 0; i < kChunk; ++i) {
    w.go_on_at(kTrialsAt + i * kTrialBytes);
    if (pads) w.landing_pad();
    w.load_number(first + i);
    w.jump(trial_);
  }
  assert(w.offset() <= kChunkBytes);
  if (Status s = space_.publish(*span); !s.ok()) return s.error();
  return span;
}

Status StubTable::ensure(MethodId m) {
  if (m.index() >= capacity_) {
    return Error{ErrorCode::kResourceExhausted, "stub table: max_methods is reached"};
  }
  uint32_t chunk = m.index() / kChunk;
  if (chunks_[chunk].load(std::memory_order_relaxed) != nullptr) return {};
  auto span = write_chunk(chunk * kChunk);
  if (!span.ok()) return span.error();
  const uint8_t* at = span->data();
  for (uint32_t i = 0; i < kChunk; ++i) {
    // The release store of the chunk publishes it.
    cell_of(chunk * kChunk + i).store(at + kTailsAt + i * kTailBytes, std::memory_order_relaxed);
  }
  spans_.push_back(std::move(span).value());
  // Pairs with the acquire load in chunk_of(): a thread with a stub's address sees cell and code.
  chunks_[chunk].store(at, std::memory_order_release);
  return {};
}

const uint8_t* StubTable::chunk_of(uint32_t m) const {
  assert(m < capacity_);
  // Pairs with the release store in ensure().
  const uint8_t* chunk = chunks_[m / kChunk].load(std::memory_order_acquire);
  assert(chunk != nullptr && "ensure() comes first");
  return chunk;
}

const void* StubTable::stub(MethodId m) const {
  return chunk_of(m.index()) + m.index() % kChunk * kStubBytes;
}

const void* StubTable::tail(MethodId m) const {
  return chunk_of(m.index()) + kTailsAt + m.index() % kChunk * kTailBytes;
}

const void* StubTable::trial(MethodId m) const {
  return chunk_of(m.index()) + kTrialsAt + m.index() % kChunk * kTrialBytes;
}

const void* StubTable::target(MethodId m) const {
  // Pairs with the release store in set_target(): the caller may read the code at the address.
  return cell_of(m.index()).load(std::memory_order_acquire);
}

void StubTable::set_target(MethodId m, const void* code) {
  // Release: the code and its tables are complete for every thread that jumps through the cell.
  cell_of(m.index()).store(code, std::memory_order_release);
}

const void* StubTable::cell(MethodId m) const { return &cell_of(m.index()); }

MethodId StubTable::method_of(const void* pc) const {
  for (uint32_t c = 0; c < chunk_count(capacity_); ++c) {
    // Acquire: see chunk_of().
    const uint8_t* at = chunks_[c].load(std::memory_order_acquire);
    auto offset = reinterpret_cast<uintptr_t>(pc) - reinterpret_cast<uintptr_t>(at);
    if (at == nullptr || offset >= kChunkBytes) continue;
    uint64_t i = offset < kTailsAt ? offset / kStubBytes : (offset - kTailsAt) / kTailBytes;
    i %= kChunk;
    return MethodId(static_cast<uint32_t>(c * kChunk + i));
  }
  return MethodId::none();
}

}  // namespace uptier::jit
