#include "jit/code/code_space.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "jit/code/code.h"

namespace uptier::jit {
namespace {

constexpr uint64_t kPage = CodeSpace::kPage;
constexpr uint64_t kReach = uint64_t{1} << 31;  // of a signed 32-bit displacement
constexpr uint8_t kInt3 = 0xcc;
constexpr uint32_t kColourStep = 64;  // one cache line
// Pages that are made writable at a time: a system call and a page fault less for most methods.
constexpr uint64_t kAhead = 16;

uint64_t round_up(uint64_t n) { return (n + kPage - 1) & ~(kPage - 1); }

Error refused(const char* what) {
  return {ErrorCode::kResourceExhausted, std::string("code space: ") + what};
}

}  // namespace

struct CodeSpace::State {
  uint8_t* base = nullptr;  // of the region
  uint64_t data_size = 0;   // of the data area, in whole pages
  uint64_t size = 0;        // of the region
  uint64_t budget = 0;
  std::atomic<int32_t> edge_counters{0};
  std::atomic<const Code*>* owners = nullptr;  // by page of the code part; a mapping of its own

  mutable std::mutex mutex;                // guards what follows
  std::map<uint64_t, uint64_t> free_runs;  // first page -> pages; runs never touch one another
  uint64_t ready_from = 0, ready_to = 0;   // free pages that are writable already
  uint32_t colour = 0;
  uint64_t in_service = 0;
  uint64_t freed = 0;
  uint64_t fail_in = 0;
  uint64_t failures_forced = 0;

  uint8_t* code() const { return base + data_size; }
  uint64_t code_size() const { return size - data_size; }
  uint64_t page_of(const void* p) const {
    return static_cast<uint64_t>(static_cast<const uint8_t*>(p) - code()) / kPage;
  }

  bool take(uint64_t pages, uint64_t* first);
  bool make_writable(uint64_t first, uint64_t pages);
  void give_back(uint64_t first, uint64_t pages);
  bool forced_failure();

  ~State() {
    if (owners != nullptr) ::munmap(owners, round_up(code_size() / kPage * sizeof(*owners)));
    if (base != nullptr) ::munmap(base, size);
  }
};

// Takes the first run that is long enough: low addresses fill up first, so the pages in use stay
// close to one another.
bool CodeSpace::State::take(uint64_t pages, uint64_t* first) {
  auto run = std::find_if(free_runs.begin(), free_runs.end(),
                          [&](const auto& r) { return r.second >= pages; });
  if (run == free_runs.end()) return false;
  auto [at, length] = *run;
  free_runs.erase(run);
  if (length > pages) free_runs.emplace(at + pages, length - pages);
  *first = at;
  return true;
}

// Makes pages that were just taken writable, and free ones behind them with them.
bool CodeSpace::State::make_writable(uint64_t first, uint64_t pages) {
  if (first < ready_from || first + pages > ready_to) {
    auto behind = free_runs.find(first + pages);
    uint64_t room = behind == free_runs.end() ? 0 : behind->second;
    uint64_t all = std::max(pages, std::min(pages + room, kAhead));
    uint8_t* at = code() + first * kPage;
    if (::mprotect(at, all * kPage, PROT_READ | PROT_WRITE) != 0) return false;
    // Older kernels refuse, and the pages come by faults.
    (void)::madvise(at, all * kPage, MADV_POPULATE_WRITE);
    ready_to = first + all;
  }
  ready_from = first + pages;
  return true;
}

void CodeSpace::State::give_back(uint64_t first, uint64_t pages) {
  auto next = free_runs.lower_bound(first);
  if (next != free_runs.end() && next->first == first + pages) {
    pages += next->second;
    next = free_runs.erase(next);
  }
  if (next != free_runs.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == first) {
      before->second += pages;
      return;
    }
  }
  free_runs.emplace_hint(next, first, pages);
}

bool CodeSpace::State::forced_failure() {
  if (fail_in == 0 || --fail_in != 0) return false;
  ++failures_forced;
  return true;
}

CodeSpace::CodeSpace() : state_(std::make_unique<State>()) {}
CodeSpace::~CodeSpace() { assert(state_->in_service == 0 && "a CodeSpan outlives its CodeSpace"); }

Result<std::unique_ptr<CodeSpace>> CodeSpace::create(const Limits& limits) {
  uint64_t data_size = round_up(limits.data_bytes);
  // Twice the budget of address space, as far as rel32 reaches: holes then seldom matter.
  uint64_t code_size = round_up(limits.code_budget);
  if (data_size + code_size > kReach) {
    return Error{ErrorCode::kInvalidArgument, "code space: code and data exceed 2 GiB"};
  }
  code_size = std::min(2 * code_size, kReach - data_size);

  std::unique_ptr<CodeSpace> space(new CodeSpace);
  State& s = *space->state_;
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* region = ::mmap(nullptr, data_size + code_size, PROT_NONE, kFlags, -1, 0);
  if (region == MAP_FAILED) return refused("the kernel refuses the region");
  s.base = static_cast<uint8_t*>(region);
  s.data_size = data_size;
  s.size = data_size + code_size;
  s.budget = limits.code_budget;
  uint64_t pages = code_size / kPage;
  void* owners =
      ::mmap(nullptr, round_up(pages * sizeof(*s.owners)), PROT_READ | PROT_WRITE, kFlags, -1, 0);
  if (owners == MAP_FAILED) return refused("the kernel refuses the owner table");
  s.owners = static_cast<std::atomic<const Code*>*>(owners);  // zero pages are null pointers
  if (data_size != 0 && ::mprotect(s.base, data_size, PROT_READ | PROT_WRITE) != 0) {
    return refused("the kernel refuses the data area");
  }
  s.free_runs.emplace(0, pages);
  return space;
}

Result<CodeSpan> CodeSpace::allocate(uint32_t size, bool beyond_budget) {
  State& s = *state_;
  uint64_t bytes = round_up(std::max<uint64_t>(size, 1));
  std::lock_guard lock(s.mutex);
  if (!beyond_budget && s.forced_failure()) return refused("allocation failed by request");
  if (!beyond_budget && bytes > s.budget - std::min(s.in_service, s.budget))
    return refused("code_budget is spent");
  uint64_t first = 0;
  if (!s.take(bytes / kPage, &first)) return refused("no run of free pages is long enough");
  uint8_t* page = s.code() + first * kPage;
  if (!s.make_writable(first, bytes / kPage)) {
    s.give_back(first, bytes / kPage);
    return refused("the kernel refuses pages");
  }
  std::memset(page, kInt3, bytes);
  s.in_service += bytes;
  uint64_t room = (bytes - size) & ~uint64_t{kColourStep - 1};
  uint64_t offset = s.colour;
  s.colour = (s.colour + kColourStep) % kPage;
  CodeSpan span;
  span.space_ = this;
  span.data_ = page + offset % (room + kColourStep);
  span.size_ = size;
  return span;
}

namespace {

struct Pages {
  uint8_t* at;
  uint64_t bytes;
};

Pages pages_of(const CodeSpan& span) {
  uint64_t into_page = reinterpret_cast<uintptr_t>(span.data()) & (kPage - 1);
  return {span.data() - into_page, round_up(into_page + std::max(span.size(), 1u))};
}

}  // namespace

Status CodeSpace::publish(const CodeSpan& span) {
  Pages p = pages_of(span);
  if (::mprotect(p.at, p.bytes, PROT_READ | PROT_EXEC) != 0) {
    return refused("the kernel refuses to make code executable");
  }
  return {};
}

void CodeSpace::set_owner(const CodeSpan& span, const Code* owner) noexcept {
  Pages p = pages_of(span);
  uint64_t first = state_->page_of(p.at);
  for (uint64_t i = first; i < first + p.bytes / kPage; ++i) {
    // Pairs with the acquire load in owner_of(): whoever finds the Code finds its tables.
    state_->owners[i].store(owner, std::memory_order_release);
  }
}

void CodeSpace::note_edge_counter(int change) noexcept {
  state_->edge_counters.fetch_add(change, std::memory_order_relaxed);
}

// Whoever runs such a code saw it installed, and its count before that.
bool CodeSpace::has_edge_counters() const noexcept {
  return state_->edge_counters.load(std::memory_order_relaxed) != 0;
}

const Code* CodeSpace::owner_of(const void* pc) const noexcept {
  const State& s = *state_;
  auto distance = reinterpret_cast<uintptr_t>(pc) - reinterpret_cast<uintptr_t>(s.code());
  if (distance >= s.code_size()) return nullptr;
  // Pairs with the release store in set_owner().
  const Code* code = s.owners[distance / kPage].load(std::memory_order_acquire);
  if (code == nullptr) return nullptr;
  auto inside = reinterpret_cast<uintptr_t>(pc) - reinterpret_cast<uintptr_t>(code->base());
  return inside < code->size() ? code : nullptr;
}

bool CodeSpace::contains(const void* p) const noexcept {
  auto distance = reinterpret_cast<uintptr_t>(p) - reinterpret_cast<uintptr_t>(state_->base);
  return distance < state_->size;
}

std::span<uint8_t> CodeSpace::data() const { return {state_->base, state_->data_size}; }

uint64_t CodeSpace::bytes_in_service() const {
  std::lock_guard lock(state_->mutex);
  return state_->in_service;
}

uint64_t CodeSpace::bytes_freed() const {
  std::lock_guard lock(state_->mutex);
  return state_->freed;
}

void CodeSpace::fail_allocation(uint64_t n) {
  std::lock_guard lock(state_->mutex);
  state_->fail_in = n;
}

uint64_t CodeSpace::failures_forced() const {
  std::lock_guard lock(state_->mutex);
  return state_->failures_forced;
}

void CodeSpace::free(const CodeSpan& span) noexcept {
  Pages p = pages_of(span);
  set_owner(span, nullptr);
  // Gives the memory back and makes a stale jump fault. A refusal is harmless: the pages keep their
  // bytes, and the next allocate() changes their protection before it writes.
  (void)::madvise(p.at, p.bytes, MADV_DONTNEED);
  (void)::mprotect(p.at, p.bytes, PROT_NONE);
  std::lock_guard lock(state_->mutex);
  state_->give_back(state_->page_of(p.at), p.bytes / kPage);
  state_->in_service -= p.bytes;
  state_->freed += p.bytes;
}

CodeSpan::CodeSpan(CodeSpan&& other) noexcept
    : space_(std::exchange(other.space_, nullptr)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

CodeSpan& CodeSpan::operator=(CodeSpan&& other) noexcept {
  std::swap(space_, other.space_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

CodeSpan::~CodeSpan() {
  if (space_ != nullptr) space_->free(*this);
}

}  // namespace uptier::jit
