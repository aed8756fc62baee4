// Frames of old code are called back: to newer code of the same loop, if there is any.
//
//   worker   a callee comes into service that a version reaches by its stub, or the version is
//            taken out of service: its words are set, one a loop
//   guest    finds one set at a loop header: is there newer code for this loop? then the frame goes
//            there; if not, the word is cleared, the code asked for, and the frame stays
//   worker   makes that code, if it is due, installs it, and sets the words of older versions again
//
// So a frame never waits in plainer code, and a check that finds nothing costs once. The words of
// versions that calls still reach are set for one frame at a time: what comes after it is no older
// than the code that calls reach.
//
// Due: the newest that a frame of the method could go to has been in service for kPatience times as
// long as it took to compile (without measured rates: at once) and no frame has gone there, nothing
// of the kind is being made, and fewer than max_recompiles versions were made for the loop.
#include <algorithm>

#include "jit/code/leave.h"
#include "tiering/base/clock.h"
#include "tiering/runtime/runtime_impl.h"

namespace uptier::tiering {
namespace {

constexpr uint64_t kPatience = 10;
// A method that was called more often is not known for its long calls.
constexpr uint64_t kFewCalls = 8;
// What moving a frame may take below the frame that it makes.
constexpr uint64_t kMoveStack = 4096;

// The frame that OSR code has above its own.
uint64_t baseline_frame_of(const jit::Code& osr) {
  return static_cast<uint64_t>(-int64_t{osr.tables().saved_at} - 8);
}

jit::Leave moved(Method& m) {
  m.shape.made()->osr_outs.fetch_add(1, std::memory_order_relaxed);
  return jit::Leave::kEnter;
}

// Whether calls of the method may run the code: by themselves, or behind the guard of a version for
// values.
bool calls_reach(const Method& m, const jit::Code& code) {
  const Version* called = m.optimized.load(std::memory_order_acquire);
  if (!usable(called)) return false;
  return called->code.get() == &code ||
         (called->general != nullptr && called->general->code.get() == &code);
}

// Beside an OsrOut in a word: a thread is to stop, perhaps the one that asks.
constexpr uint32_t kStops = 1u << 31;

OsrOut reason_in(uint32_t word) { return static_cast<OsrOut>(word & ~kStops); }

}  // namespace

// A word only rises until a frame takes what it says: that code must not be run any more is not
// forgotten over newer code. Release pairs with the acquire in poll(): who sees the word finds what
// was installed before.
void raise_word(jit::PollWord& word, OsrOut to) noexcept {
  auto why = static_cast<uint32_t>(to);
  uint32_t old = word.load(std::memory_order_relaxed);
  while (reason_in(old) < to &&
         !word.compare_exchange_weak(old, why | (old & kStops), std::memory_order_release,
                                     std::memory_order_relaxed)) {}
}

// In a signal handler: all words there are, also those that no version has, whose next owner is asked
// once in vain.
void RuntimeImpl::have_all_loops_ask() noexcept {
  auto capacity = static_cast<uint32_t>(options_.max_methods);
  std::span<uint8_t> data = space_->data().subspan(jit::StubTable::data_bytes(capacity));
  std::span words(reinterpret_cast<jit::PollWord*>(data.data()),
                  data.size() / sizeof(jit::PollWord));
  for (jit::PollWord& word : words) {
    bool says_so = (word.load(std::memory_order_relaxed) & kStops) != 0;
    if (!says_so) word.fetch_or(kStops, std::memory_order_relaxed);
  }
}

// ---- The worker's side; the caller holds the state mutex --------------------------------------

void Version::call_back(OsrOut why) const noexcept {
  for (jit::PollWord& word : polls.words()) raise_word(word, why);
}

void InService::call_back(Version& v) {
  v.outdated = true;
  v.call_back(OsrOut::kNewer);
}

void InService::watch_callees(Version& v) {
  bool late = false;
  for (MethodId id : v.by_stub) {
    Method& callee = methods_.at(id.index());
    if (usable(callee.optimized.load(std::memory_order_relaxed))) {
      late = true;  // it has come meanwhile
    } else {
      callee.stub_callers.own().push_back(&v);
    }
  }
  if (late) call_back(v);
}

void InService::tell_callers(Method& callee) {
  for (Version* v : *callee.stub_callers) {
    if (!v->freed) call_back(*v);
  }
  callee.stub_callers.reset();
}

namespace {

// There is code for a loop now: frames that came there in the copy of another one have a way back.
void let_observed_back(const Method& m, LoopId loop) {
  for (const auto& v : m.versions) {
    bool copy = !v->freed && v->code != nullptr && v->code->observed_loop().valid();
    bool may = copy && loop.index() < v->polls.words().size() && !v->scope.inner[loop.index()];
    if (may) raise_word(v->polls.words()[loop.index()], OsrOut::kObserve);
  }
}

}  // namespace

void InService::replace_osr(Method& m, const Version& v) {
  bool from_host = v.from_host;
  auto& entries = from_host ? m.shape->osr_from_host : m.shape->osr;
  // Release pairs with the acquire in osr_target(), osr_enter() and poll().
  auto* before =
      const_cast<Version*>(entries[v.osr_loop.index()].exchange(&v, std::memory_order_acq_rel));
  if (before != nullptr && !before->retired) reclaimer_.retire(*before);
  if (from_host) return;
  retire_loop_copy(m, v.osr_loop);
  fast_.set_loops(m.id.index(), nullptr);  // its loops ask, and are led there
  m.shape.made()->osr_versions[v.osr_loop.index()]++;
  for (auto& old : m.versions) {
    bool waits = old->tier == Tier::kOptimized && !old->freed && old->serial < v.serial &&
                 (old->retired || old->outdated);
    if (waits) old->call_back(OsrOut::kNewer);
  }
  let_observed_back(m, v.osr_loop);
}

namespace {

const Version* newest_for_loops(const Method& m) {
  const Version* newest = m.optimized.load(std::memory_order_relaxed);
  for (uint32_t l = 0; l < m.shape->loop_count; ++l) {
    const Version* v = m.shape->osr[l].load(std::memory_order_relaxed);
    if (v != nullptr && (newest == nullptr || v->serial > newest->serial)) newest = v;
  }
  return newest;
}

}  // namespace

// When code may be made for a frame of old code. 0: now.
uint64_t NewerCode::due_ns(const Method& m) const {
  if (std::ranges::find(m.shape->osr_requested, true) != m.shape->osr_requested.end()) return 1;
  const Version* newest = newest_for_loops(m);
  if (!options_.measure_rates || newest == nullptr) return 0;
  uint64_t due = newest->installed_ns + kPatience * newest->compile_ns;
  return due <= now_ns() ? 0 : due;
}

bool NewerCode::cannot_follow(const Method& m, uint32_t loop) const {
  return m.removed || m.guard_banned || m.optimize_failed ||
         m.shape->osr_versions[loop] >= policy_.max_recompiles || system_.budget_spent();
}

void NewerCode::want(Method& m, uint32_t loop) {
  if (cannot_follow(m, loop))
    return m.shape->osr_asked[loop].store(false, std::memory_order_relaxed);
  if (uint64_t due = due_ns(m)) {
    return frames_.want_newer({&m, loop, due, m.shape->osr_outs.load(std::memory_order_relaxed)});
  }
  observer_.log(m, "osr_out", "a frame of older code is in loop " + std::to_string(loop), "");
  Plan plan{.method = m.id, .tier = Tier::kOptimized};
  plan.osr_loop = LoopId(loop);
  plan.use_profile = observer_.samples_of(m) != 0;
  requests_.add(m, plan, 1e18);
}

void NewerCode::want_if_due() {
  frames_.take_newer([&](const WantedFrames::Newer& w) {
    Method& m = *w.method;
    if (m.shape->osr_outs.load(std::memory_order_relaxed) == w.osr_outs) return want(m, w.loop);
    m.shape->osr_asked[w.loop].store(false, std::memory_order_relaxed);  // another way was found
  });
}

// ---- The guest's side -------------------------------------------------------------------------

// The word of the loop is set, and cleared before anything is looked at: what is
// installed later sets it again.
jit::Leave RuntimeImpl::poll(jit::LeaveState& s, const jit::Code& from,
                             const jit::ExitRow& row) noexcept {
  Method& m = method(from.method().index());
  uint32_t loop = row.polls.index();
  if (stress_.active(StressKind::kOsrOut)) return stress_poll(m, s, from, row);
  jit::PollWord& word = from.polls()[loop];
  // Acquire pairs with the release in call_back().
  OsrOut why = reason_in(word.exchange(0, std::memory_order_acq_rel));
  // Another thread's frame was here, or another thread is to stop.
  if (why == OsrOut{}) return jit::Leave::kStay;
  bool observed = from.observed_loop().valid();
  if (why == OsrOut::kObserve) {
    return observed ? observed_round(m, s, from, row) : observe_frame(m, s, from, row);
  }
  const Version* v = m.shape->osr[loop].load(std::memory_order_acquire);
  bool sticks = why == OsrOut::kAnywhere;
  bool newer = usable(v) && (observed || v->serial > from.serial());
  if (newer && prepare_move(s, from, row, *v->code)) {
    if (!calls_reach(m, from)) raise_word(word, why);
    note_moved_frame(*v, from);
    return moved(m);
  }
  if (sticks) {
    raise_word(word, why);
    m.shape.made()->left.fetch_add(1, std::memory_order_relaxed);
    note_left(from, "the code must not run any more", row.exit);
    return leave_for_baseline(s, from, row, 0);
  }
  if (!newer) ask_for_newer(m, loop, from, word);
  return jit::Leave::kStay;
}

// Says in `s` that the frame goes to `osr`. Returns whether there is stack for it.
bool RuntimeImpl::prepare_move(jit::LeaveState& s, const jit::Code& from, const jit::ExitRow& row,
                               const jit::Code& osr) {
  jit::enter_loop(s, from, row, osr, baseline_frame_of(osr));
  uint64_t wanted = baseline_frame_of(osr) + osr.tables().frame_size + s.buffer_bytes + kMoveStack;
  uintptr_t limit = sampler::current_context()->stack_limit;
  return s.rbp() > limit && s.rbp() - limit > wanted;
}

// Whether calls of the thread reach the code, so often that they are what it is known for.
bool RuntimeImpl::known_for_calls(const Method& m, AttachedThread& t,
                                  const jit::Code& from) noexcept {
  return calls_reach(m, from) && sampler::calls_so_far(t.state(m.id)) > kFewCalls;
}

void RuntimeImpl::ask_for_newer(Method& m, uint32_t loop, const jit::Code& from,
                                jit::PollWord& word) noexcept {
  AttachedThread* t = here();
  if (t == nullptr || options_.tier != TierMode::kAuto) return;
  if (known_for_calls(m, *t, from)) return;
  if (m.shape->osr_asked[loop].exchange(true, std::memory_order_relaxed)) return;
  sampler::Note n;
  n.kind = sampler::NoteKind::kWantNewer;
  n.method = m.id.index();
  n.loop = loop;
  if (t->ring().push(n, {})) return wake_worker();
  // A full ring: asks again at the next header.
  m.shape->osr_asked[loop].store(false, std::memory_order_relaxed);
  raise_word(word, OsrOut::kNewer);
}

// Words are never 0. A point that is forced goes to code for this loop, which is made on the spot:
// every third one to baseline code, and every third one to an instrumented copy.
jit::Leave RuntimeImpl::stress_poll(Method& m, jit::LeaveState& s, const jit::Code& from,
                                    const jit::ExitRow& row) noexcept {
  uint32_t loop = row.polls.index();
  if (!stress_.point(StressKind::kOsrOut, from.serial(), loop)) return jit::Leave::kStay;
  if (stress_.forced(StressKind::kOsrOut) % 3 == 0) {
    m.shape.made()->left.fetch_add(1, std::memory_order_relaxed);
    note_left(from, "stress", row.exit);
    return leave_for_baseline(s, from, row, 0);
  }
  if (m.shape->osr[loop].load(std::memory_order_acquire) == nullptr) {
    compile_and_install({.method = m.id, .tier = Tier::kOptimized, .osr_loop = LoopId(loop)});
  }
  if (stress_observe(m, s, from, row)) return moved(m);
  const Version* v = m.shape->osr[loop].load(std::memory_order_acquire);
  if (!usable(v) || !prepare_move(s, from, row, *v->code)) return jit::Leave::kStay;
  note_moved_frame(*v, from);
  return moved(m);
}

}  // namespace uptier::tiering
