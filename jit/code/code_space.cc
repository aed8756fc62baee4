#include "jit/code/code_space.h"

#include <linux/membarrier.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "jit/code/code.h"
#include "jit/code/code_mapping.h"
#include "jit/code/code_space_state.h"
#include "profile/base/wall.h"

namespace uptier::jit {
namespace {

constexpr uint64_t kReach = uint64_t{1} << 31;  // the reach of a signed 32-bit displacement
constexpr uint8_t kInt3 = 0xcc;
constexpr int kMapFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

Error refused(const char* what) {
  return {ErrorCode::kResourceExhausted, std::string("code space: ") + what};
}

// Makes every thread of the process execute a serializing instruction before this returns, so that
// no pipeline holds the earlier bytes. If the kernel cannot, nothing is lost: every x86-64
// processor sees stores to code when it fetches that code again.
void serialize_threads() noexcept {
  (void)::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
}
void expect_serializing() noexcept {
  (void)::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
}

}  // namespace

// Takes the first free run that is long enough: low addresses fill up first, so used space stays
// compact. With `from_end`, takes the end of the last such run.
bool CodeSpace::State::take(uint64_t units, bool from_end, uint64_t* first) {
  auto fits = [&](const auto& r) { return r.second >= units; };
  auto run = free_runs.end();
  if (from_end) {
    auto last = std::find_if(free_runs.rbegin(), free_runs.rend(), fits);
    if (last != free_runs.rend()) run = std::prev(last.base());
  } else {
    run = std::find_if(free_runs.begin(), free_runs.end(), fits);
  }
  if (run == free_runs.end()) return false;
  auto [at, length] = *run;
  *first = from_end ? at + length - units : at;
  if (length == units) {
    free_runs.erase(run);
  } else if (from_end) {
    run->second = length - units;
  } else {
    auto rest = free_runs.extract(run);  // reuses the node, so this needs no memory
    rest.key() = at + units;
    rest.mapped() = length - units;
    free_runs.insert(std::move(rest));
  }
  return true;
}

void CodeSpace::State::give_back(uint64_t first, uint64_t units) noexcept {
  auto next = free_runs.lower_bound(first);
  const bool joins_next = next != free_runs.end() && next->first == first + units;
  if (next != free_runs.begin()) {
    auto before = std::prev(next);
    if (before->first + before->second == first) {
      before->second += units + (joins_next ? next->second : 0);
      if (joins_next) free_runs.erase(next);
      return;
    }
  }
  if (joins_next) {  // reuses the node, so this needs no memory
    auto joined = free_runs.extract(next);
    joined.key() = first;
    joined.mapped() += units;
    free_runs.insert(std::move(joined));
    return;
  }
  // If memory for the node is refused, a run of address space is lost; there is twice the budget.
  finishes([&] {
    mutex.known_held();
    free_runs.emplace_hint(next, first, units);
  });
}

bool CodeSpace::State::forced_failure() {
  if (fail_in == 0 || --fail_in != 0) return false;
  ++failures_forced;
  return true;
}

Bytes CodeSpace::State::taken_by(const uint8_t* data, uint32_t bytes) const {
  uint64_t from = offset_of(data) / unit * unit;
  uint64_t to = round_up(offset_of(data) + std::max(bytes, 1u), unit);
  return {code() + from, to - from};
}

Bytes CodeSpace::State::pages_of(Bytes b) const {
  uint64_t from = offset_of(b.at) / kPage * kPage;
  return {code() + from, round_up(offset_of(b.at) + b.bytes) - from};
}

// Adds `change` for each line of `b` to its page's count. Returns how many pages came into use, or
// went out of use.
uint64_t CodeSpace::State::count_lines(Bytes b, int change) {
  uint64_t pages = 0;
  uint64_t line = offset_of(b.at) / kLine, end = line + b.bytes / kLine;
  for (; line < end; ++line) {
    uint8_t& used = lines_used[line / kLinesInPage];
    pages += used == 0;
    used = static_cast<uint8_t>(used + change);
    pages += used == 0;
  }
  return pages;
}

// Maps the code area's memory a second time if pages are to be shared, or cannot become executable
// later. If the twin is refused (for example by valgrind), pages are not shared.
Status CodeSpace::State::map(bool shared, bool at_once) {
  bool opens = can_open_pages(code());
  if (!shared && opens) return {};
  CodeMapping m = map_code_twice(code(), code_size(), hardening.random);
  if (m.twin == nullptr && opens) return {};
  if (m.twin == nullptr) {
    return refused(
        "the kernel refuses executable memory, by mprotect and by memfd_create: a policy of the "
        "process (PR_SET_MDWE, a seccomp filter, SELinux) forbids compiled code");
  }
  twin = m.twin;
  always_executable = m.always_executable;
  if (at_once && !always_executable) {
    always_executable = ::mprotect(code(), code_size(), PROT_READ | PROT_EXEC) == 0;
  }
  unit = kLine;
  return {};
}

// Opens those pages of a part that are closed: fills them with int3, makes them read-execute and
// their twins read-write. Returns whether it succeeded.
bool CodeSpace::State::open_pages(Bytes part) {
  Bytes pages = pages_of(part);
  uint64_t page = offset_of(pages.at) / kPage, end = page + pages.bytes / kPage;
  while (page < end) {
    uint64_t first = page;
    if (spare[page]) {
      spare[page] = false;
      --spare_count;
    }
    while (page < end && !open[page]) ++page;
    if (page == first) {
      ++page;
      continue;
    }
    uint64_t bytes = (page - first) * kPage;
    if (::mprotect(twin + first * kPage, bytes, PROT_READ | PROT_WRITE) != 0) return false;
    std::memset(twin + first * kPage, kInt3, bytes);
    int rights = PROT_READ | PROT_EXEC;
    if (!always_executable && ::mprotect(code() + first * kPage, bytes, rights) != 0) return false;
    std::fill(open.begin() + static_cast<ptrdiff_t>(first),
              open.begin() + static_cast<ptrdiff_t>(page), true);
  }
  return true;
}

// Makes the owners of a part's lines writable. Until then they are readable, and null.
bool CodeSpace::State::open_owners(Bytes part) {
  const uint64_t last = (offset_of(part.at) + std::max<uint64_t>(part.bytes, 1) - 1) / kOwnerStep;
  for (uint64_t step = offset_of(part.at) / kOwnerStep; step <= last; ++step) {
    if (owners_open[step]) continue;
    auto* at = reinterpret_cast<char*>(owners) + step * kOwnerBytes;
    if (::mprotect(at, kOwnerBytes, PROT_READ | PROT_WRITE) != 0) return false;
    owners_open[step] = true;
  }
  return true;
}

// Erases a part that is no longer counted, so that a stale jump faults.
void CodeSpace::State::erase_shared(Bytes part) {
  std::memset(twin_of(part.at), kInt3, part.bytes);
}

// Gives those pages of a freed part that hold no code back to the kernel, but keeps some of them for
// code that is made next, as in a host that makes and removes methods. A refusal is harmless,
// since pages are filled again before reuse. Pages that cannot be closed keep their int3.
void CodeSpace::State::close_unused(Bytes part) {
  if (always_executable) return;
  Bytes pages = pages_of(part);
  for (uint64_t p = 0; p < pages.bytes; p += kPage) {
    uint8_t* page = pages.at + p;
    uint64_t number = offset_of(page) / kPage;
    if (lines_used[number] != 0 || !open[number] || spare[number]) continue;
    if (spare_count < kMostSpare) {
      spare[number] = true;
      ++spare_count;
      continue;
    }
    open[number] = false;
    (void)::mprotect(page, kPage, PROT_NONE);
    (void)::madvise(twin_of(page), kPage, MADV_REMOVE);
    (void)::mprotect(twin_of(page), kPage, PROT_NONE);
  }
}

// Keeps an erased part until its lines may be reused. Many parts wait for one system call, and a
// page that is soon used again stays open.
void CodeSpace::State::free_later(Bytes part) noexcept {
  freed_parts[freed_count++] = part;
  freed_bytes += part.bytes;
  if (freed_count == kMostFreed || freed_bytes >= kMostFreedBytes) reuse_freed();
}

// Makes the lines of all freed parts free: no thread runs their old instructions from here on.
void CodeSpace::State::reuse_freed() noexcept {
  if (freed_count == 0) return;
  serialize_threads();
  for (uint32_t i = 0; i < freed_count; ++i) {
    close_unused(freed_parts[i]);
    give_back(offset_of(freed_parts[i].at) / unit, freed_parts[i].bytes / unit);
  }
  freed_count = 0;
  freed_bytes = 0;
}

bool CodeSpace::State::take_or_reuse(uint64_t units, bool from_end, uint64_t* first) {
  if (take(units, from_end, first)) return true;
  reuse_freed();
  return take(units, from_end, first);
}

CodeSpace::CodeSpace() : state_(std::make_unique<State>()) {}
CodeSpace::~CodeSpace() { assert(state_->in_service == 0 && "a CodeSpan outlives its CodeSpace"); }

bool CodeSpace::packed() const { return state_->packed(); }
const Hardening& CodeSpace::hardening() const { return state_->hardening; }
bool CodeSpace::moves() const { return state_->packed() && state_->moves; }

Result<std::unique_ptr<CodeSpace>> CodeSpace::create(const Limits& limits) {
  uint64_t data_size = round_up(limits.data_bytes);
  // Twice the budget of address space, within the limits of rel32: so holes seldom matter.
  uint64_t code_size = round_up(limits.code_budget);
  if (data_size + code_size > kReach) {
    return Error{ErrorCode::kInvalidArgument, "code space: code and data exceed 2 GiB"};
  }
  code_size = std::min(2 * code_size, kReach - data_size);

  std::unique_ptr<CodeSpace> space(new CodeSpace);
  State& s = *space->state_;
  void* region = ::mmap(nullptr, data_size + code_size, PROT_NONE, kMapFlags, -1, 0);
  if (region == MAP_FAILED) {
    return refused(("no address space for " + std::to_string(data_size + code_size) +
                    " bytes (see `ulimit -v`; code_budget and max_methods say how much)")
                       .c_str());
  }
  s.base = static_cast<uint8_t*>(region);
  s.data_size = data_size;
  s.size = data_size + code_size;
  s.budget = limits.code_budget;
  s.moves = limits.moves;
  s.hardening = limits.hardening;
  if (Status mapped = s.map(limits.packed, limits.open_at_once); !mapped) return mapped.error();
  const Held lock(s.mutex);
  if (s.packed()) {
    s.open.resize(code_size / kPage);
    s.spare.resize(code_size / kPage);
    expect_serializing();
  }
  uint64_t table = State::owner_bytes(code_size);
  void* owners = ::mmap(nullptr, table, PROT_NONE, kMapFlags, -1, 0);
  if (owners == MAP_FAILED) return refused("the kernel refuses the owner table");
  // A process that locks its mappings (mlockall) would have all of it in memory at once.
  (void)::munlock(owners, table);
  (void)::munlock(s.base, s.size);
  if (s.packed()) (void)::munlock(s.twin, code_size);
  if (::mprotect(owners, table, PROT_READ) != 0) {
    ::munmap(owners, table);
    return refused("the kernel refuses the owner table");
  }
  s.owners_open.resize(table / State::kOwnerBytes);
  s.owners = static_cast<std::atomic<const Code*>*>(owners);  // zero pages are null pointers
  if (data_size != 0 && ::mprotect(s.base, data_size, PROT_READ | PROT_WRITE) != 0) {
    return refused("the kernel refuses the data area");
  }
  s.lines_used.resize(code_size / kPage);
  s.free_runs.emplace(0, code_size / s.unit);
  return space;
}

// A refusal is harmless: the memory is freed with the region.
void CodeSpace::release_all() noexcept {
  State& s = *state_;
  const Held lock(s.mutex);
  s.released = true;
  (void)::madvise(s.owners, State::owner_bytes(s.code_size()), MADV_DONTNEED);
  (void)::mprotect(s.code(), s.code_size(), PROT_NONE);
  s.freed += s.in_service;
  s.in_service = 0;
}

// Returns the number of units that a part of `bytes` bytes needs.
uint64_t CodeSpace::State::units_of(uint64_t bytes) const {
  return (std::max<uint64_t>(bytes, 1) + unit - 1) / unit;
}

// Takes room for a first part, and for a second one if it must lie apart (0: there is none).
Status CodeSpace::State::take_parts(uint64_t bytes, uint64_t cold, bool beyond_budget, Runs* runs) {
  if (released) return refused("it has been released");
  if (!beyond_budget && forced_failure()) return refused("allocation failed by request");
  runs->units = units_of(bytes);
  runs->cold_units = cold == 0 ? 0 : units_of(cold);
  uint64_t left = budget - std::min(in_service, budget);
  bool fits = (runs->units + runs->cold_units) * unit <= left;
  if (!beyond_budget && !fits) return refused("code_budget is spent");
  if (!take_or_reuse(runs->units, false, &runs->first)) {
    return refused("no run of free pages is long enough");
  }
  if (cold != 0 && !take_or_reuse(runs->cold_units, true, &runs->cold_first)) {
    give_back(runs->first, runs->units);
    return refused("no run of free pages is long enough");
  }
  return {};
}

void CodeSpace::State::give_back(const Runs& runs) {
  if (runs.units != 0) give_back(runs.first, runs.units);
  if (runs.cold_units != 0) give_back(runs.cold_first, runs.cold_units);
}

Result<CodeSpan> CodeSpace::allocate(uint32_t size, bool beyond_budget, uint32_t cold) {
  State& s = *state_;
  bool apart = s.packed() && cold != 0;
  const Held lock(s.mutex);
  State::Runs runs;
  Status taken = s.take_parts(apart ? size : size + cold, apart ? cold : 0, beyond_budget, &runs);
  if (!taken) return taken.error();
  Result<CodeSpan> span = walled("code space", [&] { return fill(runs, size, cold); });
  if (!span) s.give_back(runs);
  return span;
}

// Makes a span in room that was taken. The caller holds the lock. If refused, the room stays taken.
Result<CodeSpan> CodeSpace::fill(const Runs& runs, uint32_t size, uint32_t cold) {
  State& s = *state_;
  s.mutex.known_held();
  bool apart = runs.cold_units != 0;
  uint64_t bytes = runs.units * s.unit, cold_bytes = runs.cold_units * s.unit;
  uint8_t* at = s.code() + runs.first * s.unit;
  uint8_t* far = apart ? s.code() + runs.cold_first * s.unit : nullptr;
  bool opened = !s.packed() || s.open_pages({at, bytes});
  if (apart) opened &= s.open_pages({far, cold_bytes});
  if (!opened) return refused("the kernel refuses to make code executable");
  if (!s.open_owners({at, bytes}) || (apart && !s.open_owners({far, cold_bytes}))) {
    return refused("the kernel refuses the owner table");
  }
  CodeSpan span;
  span.hot_size_ = size;
  span.cold_size_ = cold;
  span.data_ = at;
  if (s.packed()) {
    span.cold_ = apart ? far : at + size;
    span.staged_ = std::make_unique<uint8_t[]>(bytes + cold_bytes);
    std::memset(span.staged_.get(), kInt3, bytes + cold_bytes);
  } else {
    if (::mprotect(at, bytes, PROT_READ | PROT_WRITE) != 0)
      return refused("the kernel refuses pages");
    std::memset(at, kInt3, bytes);
    uint64_t room = (bytes - size - cold) & ~uint64_t{kLine - 1};
    span.data_ = at + s.colour % (room + kLine);
    span.cold_ = span.data_ + size;
    s.colour = (s.colour + kLine) % kPage;
  }
  s.in_service += kPage * s.count_lines({at, bytes}, +1);
  if (apart) s.in_service += kPage * s.count_lines({span.cold_, cold_bytes}, +1);
  span.space_ = this;
  return span;
}

// ---- Rooms ------------------------------------------------------------------------------------

Result<CodeRoom> CodeSpace::reserve(uint64_t hot, uint64_t cold, bool beyond_budget) {
  State& s = *state_;
  const Held lock(s.mutex);
  State::Runs runs;
  if (!s.packed()) return refused("pages are not shared");
  if (Status taken = s.take_parts(hot, cold, beyond_budget, &runs); !taken) return taken.error();
  CodeRoom room;
  room.space_ = this;
  room.left_ = runs;
  return room;
}

Result<CodeSpan> CodeSpace::allocate(CodeRoom& room, uint32_t size, uint32_t cold) {
  State& s = *state_;
  const Held lock(s.mutex);
  if (s.released) return refused("it has been released");
  Runs& left = room.left_;
  Runs runs{left.first, s.units_of(size), 0, cold == 0 ? 0 : s.units_of(cold)};
  if (runs.units > left.units || runs.cold_units > left.cold_units) {
    return refused("the room is full");
  }
  runs.cold_first =
      left.cold_first + left.cold_units - runs.cold_units;  // cold parts grow downwards
  Result<CodeSpan> span = fill(runs, size, cold);
  if (!span) return span;
  left.first += runs.units;
  left.units -= runs.units;
  left.cold_units -= runs.cold_units;
  return span;
}

void CodeSpace::give_back(CodeRoom& room) noexcept {
  State& s = *state_;
  const Held lock(s.mutex);
  s.give_back(std::exchange(room.left_, {}));
}

CodeRoom::CodeRoom(CodeRoom&& other) noexcept
    : space_(std::exchange(other.space_, nullptr)), left_(std::exchange(other.left_, {})) {}

CodeRoom::~CodeRoom() {
  if (space_ != nullptr) space_->give_back(*this);
}

// ---- Use --------------------------------------------------------------------------------------

Status CodeSpace::publish(CodeSpan& span) {
  State& s = *state_;
  if (!s.packed()) {
    Bytes p = s.pages_of({span.data_, std::max(span.size(), 1u)});
    if (::mprotect(p.at, p.bytes, PROT_READ | PROT_EXEC) == 0) return {};
    return refused("the kernel refuses to make code executable");
  }
  const uint8_t* from = span.staged_.get();
  std::copy_n(from, span.hot_size_, s.twin_of(span.data_));
  std::copy_n(from + span.hot_size_, span.cold_size_, s.twin_of(span.cold_));
  span.staged_.reset();
  return {};
}

void CodeSpace::set_owner(const CodeSpan& span, const Code* owner) noexcept {
  if (state_->released) return;
  auto set = [&](const uint8_t* data, uint32_t size) {
    uint64_t first = state_->offset_of(data) / kLine;
    uint64_t end = round_up(state_->offset_of(data) + std::max(size, 1u), kLine) / kLine;
    for (uint64_t i = first; i < end; ++i) {
      // Pairs with the acquire load in owner_of(): a thread that finds the Code also finds its
      // tables.
      state_->owners[i].store(owner, std::memory_order_release);
    }
  };
  set(span.data(), span.hot_size());
  if (span.cold_size() != 0) set(span.cold_data(), span.cold_size());
}

void CodeSpace::note_edge_counter(int change) noexcept {
  state_->edge_counters.fetch_add(change, std::memory_order_relaxed);
}

// Relaxed: a thread that runs such a code has seen its installation, which comes after the count.
bool CodeSpace::has_edge_counters() const noexcept {
  return state_->edge_counters.load(std::memory_order_relaxed) != 0;
}

const Code* CodeSpace::owner_of(const void* pc) const noexcept {
  const State& s = *state_;
  auto distance = reinterpret_cast<uintptr_t>(pc) - reinterpret_cast<uintptr_t>(s.code());
  if (distance >= s.code_size()) return nullptr;
  // Pairs with the release store in set_owner().
  const Code* code = s.owners[distance / kLine].load(std::memory_order_acquire);
  return code != nullptr && code->contains(pc) ? code : nullptr;
}

bool CodeSpace::contains(const void* p) const noexcept {
  auto distance = reinterpret_cast<uintptr_t>(p) - reinterpret_cast<uintptr_t>(state_->base);
  return distance < state_->size;
}

std::span<uint8_t> CodeSpace::data() const { return {state_->base, state_->data_size}; }

uint64_t CodeSpace::bytes_in_service() const {
  const Held lock(state_->mutex);
  return state_->in_service;
}

std::vector<uint8_t> CodeSpace::lines_used() const {
  const Held lock(state_->mutex);
  return state_->lines_used;
}

uint32_t CodeSpace::line_of(const void* pc) const noexcept {
  return static_cast<uint32_t>(state_->offset_of(static_cast<const uint8_t*>(pc)) / kLine);
}

uint64_t CodeSpace::bytes_freed() const {
  const Held lock(state_->mutex);
  return state_->freed;
}

void CodeSpace::fail_allocation(uint64_t n) {
  const Held lock(state_->mutex);
  state_->fail_in = n;
}

uint64_t CodeSpace::failures_forced() const {
  const Held lock(state_->mutex);
  return state_->failures_forced;
}

void CodeSpace::free(CodeSpan& span) noexcept {
  State& s = *state_;
  if (s.released) return;
  set_owner(span, nullptr);
  bool apart = span.cold_ != span.data_ + span.hot_size_;
  auto release = [&](const uint8_t* data, uint32_t size) {
    s.mutex.known_held();
    Bytes part = s.taken_by(data, size);
    uint64_t pages = s.count_lines(part, -1);
    s.in_service -= kPage * pages;
    s.freed += part.bytes;
    if (s.packed()) {
      s.erase_shared(part);
      return s.free_later(part);
    }
    // Gives the memory back and makes a stale jump fault. A refusal is harmless: the pages keep
    // their bytes, and become read-write when they are reused.
    (void)::madvise(part.at, part.bytes, MADV_DONTNEED);
    (void)::mprotect(part.at, part.bytes, PROT_NONE);
    s.give_back(s.offset_of(part.at) / s.unit, part.bytes / s.unit);
  };
  const Held lock(s.mutex);
  release(span.data_, apart ? span.hot_size_ : span.size());
  if (apart) release(span.cold_, span.cold_size_);
}

CodeSpan::CodeSpan(CodeSpan&& other) noexcept { *this = std::move(other); }

CodeSpan& CodeSpan::operator=(CodeSpan&& other) noexcept {
  std::swap(space_, other.space_);
  std::swap(data_, other.data_);
  std::swap(cold_, other.cold_);
  std::swap(hot_size_, other.hot_size_);
  std::swap(cold_size_, other.cold_size_);
  std::swap(staged_, other.staged_);
  return *this;
}

CodeSpan::~CodeSpan() {
  if (space_ != nullptr) space_->free(*this);
}

}  // namespace uptier::jit
