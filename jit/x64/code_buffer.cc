#include "jit/x64/code_buffer.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>

#include "sampler/context.h"

// asmjit defines these three functions in an object file that refers to `stderr`, which keeps the
// static library out of shared objects. With the definitions below, a link never needs that object.
// They are weak, because a link that names asmjit before this library already has it.
ASMJIT_BEGIN_NAMESPACE
namespace DebugUtils {
__attribute__((weak)) const char* errorAsString(Error err) noexcept {
  switch (err) {
    case kErrorOk: return "ok";
    case kErrorOutOfMemory: return "out of memory";
    case kErrorInvalidLabel: return "a label that does not exist";
    case kErrorInvalidInstruction: return "an instruction in a form that does not exist";
    case kErrorInvalidDisplacement: return "a displacement out of reach";
    case kErrorInvalidImmediate: return "an immediate that does not fit";
    case kErrorInvalidPhysId: return "a register that does not exist";
    default: return "an operand or state that the assembler refuses";
  }
}
__attribute__((weak)) void debugOutput(const char*) noexcept {}
__attribute__((weak)) void assertionFailed(const char*, int, const char*) noexcept {
  __builtin_trap();
}
}  // namespace DebugUtils
ASMJIT_END_NAMESPACE

namespace uptier::jit {

// Throws like `operator new`, so that the same handlers catch it (profile/base/wall.h).
void CodeBuffer::FirstError::end_without_memory(asmjit::Error error) {
  if (error == asmjit::kErrorOutOfMemory) throw std::bad_alloc();
}

CodeBuffer::CodeBuffer(const CodeSpace& space) : space_(space) {
  auto needed = [](asmjit::Error e) { FirstError::end_without_memory(e); };
  needed(holder_.init(asmjit::Environment::host()));
  holder_.setErrorHandler(&error_);
  needed(holder_.attach(&asm_));
  if (space.packed()) {
    needed(holder_.newSection(&cold_section_, ".cold", SIZE_MAX, asmjit::SectionFlags::kExecutable,
                              1));
  }
#ifndef NDEBUG
  asm_.addDiagnosticOptions(asmjit::DiagnosticOptions::kValidateAssembler);
#endif
}

CodeBuffer::~CodeBuffer() = default;

void CodeBuffer::begin_body() {
  const Hardening& h = space_.hardening();
  if (!h.blind_constants) return;
  uint64_t seed;
  if (!h.random(&seed, sizeof seed)) {
    error_.handleError(0, "blind_constants: the kernel gives no random numbers", nullptr);
    return;
  }
  asm_.start(seed, h.blind_above);
  float_key_ = asm_.draw();
}

// The most common constants have 0 in all bits but the top 16: 1.0, 0.5, 100.0.
bool CodeBuffer::hides_float(uint64_t bits, bool wide) const {
  uint32_t top = static_cast<uint32_t>(wide ? bits >> 32 : bits);
  bool plain = (!wide || static_cast<uint32_t>(bits) == 0) && (top & 0xffff) == 0;
  return asm_.is_on() && !plain;
}

void CodeBuffer::jump_untracked(const Gp& to) {
  static constexpr uint8_t kNoTrack = 0x3e;
  if (has_landing_pads()) asm_.embed(&kNoTrack, 1);
  asm_.jmp(to);
}

void CodeBuffer::BodyAssembler::instruction_moved(size_t bytes) {
  uint32_t to = buffer_.offset(), from = to - static_cast<uint32_t>(bytes);
  auto& rows = buffer_.tables_.traps;
  if (!rows.empty() && rows.back().offset == from) rows.back().offset = to;
}

void CodeBuffer::begin_cold() {
  if (cold_section_ == nullptr) {
    if (cold_at_ == UINT32_MAX) cold_at_ = offset();
    return;
  }
  asm_.section(cold_section_);
  in_cold_ = true;
}

bool CodeBuffer::is_cold(const Label& l) const {
  return cold_section_ != nullptr && holder_.labelEntry(l)->section() == cold_section_;
}

uint32_t CodeBuffer::offset_of(const Label& l) const {
  return static_cast<uint32_t>(holder_.labelOffset(l)) + (is_cold(l) ? kColdPart : 0);
}

void CodeBuffer::patch32(uint32_t at, uint32_t value) {
  assert(at + 4 <= offset());
  std::memcpy(holder_.textSection()->data() + at, &value, sizeof value);
}

Label CodeBuffer::trap_label(TrapCode code, Origin at) {
  // Searching the last few is enough: equal traps come from one instruction or its neighbours.
  size_t first = cold_.size() > 8 ? cold_.size() - 8 : 0;
  bool by_site = tables_.counts_edges && !tables_.probes.empty();
  SiteId site = by_site ? tables_.probes.back().site : 0;
  FrameState frame = tables_.frames.empty() ? FrameState() : tables_.frames.back().state;
  for (size_t i = first; i < cold_.size(); ++i) {
    const ColdTrap& t = cold_[i];
    if (t.code == code && t.at == at && t.site == site && t.frame == frame) return t.label;
  }
  cold_.push_back({code, at, site, frame, asm_.newLabel()});
  return cold_.back().label;
}

void CodeBuffer::trap_now(TrapCode code, Origin at) {
  trap_row(code, at);
  asm_.ud2();
}

void CodeBuffer::frame_row(FrameState state) {
  auto& rows = tables_.frames;
  if (!rows.empty() && rows.back().offset == offset()) rows.pop_back();
  if (rows.empty() || rows.back().state != state) rows.push_back({offset(), state});
}

void CodeBuffer::probe_row(SiteId site, uint32_t body, bool starts) {
  if (!has_block_rows_) return;
  auto& rows = tables_.probes;
  if (!rows.empty() && rows.back().offset == offset() && !rows.back().starts) rows.pop_back();
  bool same = !rows.empty() && rows.back().site == site && rows.back().body == body;
  if (starts || !same) rows.push_back({offset(), site, body, starts});
}

void CodeBuffer::add_line(const LineRow& row) {
  auto& rows = tables_.lines;
  if (!rows.empty() && rows.back().offset == row.offset) rows.pop_back();
  const bool same = !rows.empty() && rows.back().loc == row.loc && rows.back().body == row.body;
  if (!same) rows.push_back(row);
}

void CodeBuffer::end_rows() {
  auto& rows = tables_.probes;
  for (; !rows.empty() && rows.back().offset == offset(); rows.pop_back()) {
    if (rows.back().starts) lose_row(rows.back().site, rows.back().body);
  }
}

// Blocks with lost rows are known in part only.
void CodeBuffer::mark_partial_rows() {
  std::ranges::sort(lost_rows_);
  for (ProbeRow& r : tables_.probes) {
    r.partial = r.starts && std::ranges::binary_search(lost_rows_, std::pair(r.body, r.site));
  }
}

Mem CodeBuffer::constant(uint64_t low, uint64_t high, uint32_t size) {
  auto same = [&](const Constant& c) { return c.low == low && c.high == high && c.size == size; };
  size_t first = constants_.size() > 64 ? constants_.size() - 64 : 0;  // bounds the search
  auto it =
      std::find_if(constants_.begin() + static_cast<ptrdiff_t>(first), constants_.end(), same);
  if (it == constants_.end()) { it = constants_.insert(it, {low, high, size, asm_.newLabel()}); }
  return x86::ptr(it->label, 0, size);
}

// ---- Transfers to addresses -------------------------------------------------------------------

void CodeBuffer::rel32(std::initializer_list<uint8_t> opcode, const void* target) {
  uint8_t bytes[8] = {};
  std::copy(opcode.begin(), opcode.end(), bytes);
  rel32_.push_back({offset() + static_cast<uint32_t>(opcode.size()), target});
  asm_.embed(bytes, opcode.size() + 4);
}

uint32_t CodeBuffer::call_address(const void* target) {
  if (space_.contains(target)) {
    rel32({0xe8}, target);
    return 5;
  }
  load_address(x86::r11, target);
  return call_register(x86::r11);
}

uint32_t CodeBuffer::call_label(const Label& l) {
  uint32_t from = offset();
  asm_.call(l);
  return offset() - from;
}

uint32_t CodeBuffer::call_register(const Gp& target) {
  uint32_t from = offset();
  asm_.call(target);
  return offset() - from;
}

void CodeBuffer::jump_address(const void* target) {
  if (space_.contains(target)) return rel32({0xe9}, target);
  load_address(x86::r11, target);
  asm_.jmp(x86::r11);
}

void CodeBuffer::jump_address_if(x86::CondCode condition, const void* target) {
  // The opcode's low nibble is the condition's number in the instruction set, which asmjit hides.
  static constexpr std::pair<x86::CondCode, uint8_t> kNumbers[] = {
      {x86::CondCode::kO, 0},  {x86::CondCode::kNO, 1},  {x86::CondCode::kB, 2},
      {x86::CondCode::kAE, 3}, {x86::CondCode::kE, 4},   {x86::CondCode::kNE, 5},
      {x86::CondCode::kBE, 6}, {x86::CondCode::kA, 7},   {x86::CondCode::kS, 8},
      {x86::CondCode::kNS, 9}, {x86::CondCode::kP, 10},  {x86::CondCode::kNP, 11},
      {x86::CondCode::kL, 12}, {x86::CondCode::kGE, 13}, {x86::CondCode::kLE, 14},
      {x86::CondCode::kG, 15}};
  auto it = std::find_if(std::begin(kNumbers), std::end(kNumbers),
                         [&](const auto& n) { return n.first == condition; });
  assert(it != std::end(kNumbers));
  rel32({0x0f, static_cast<uint8_t>(0x80 + it->second)}, target);
}

uint32_t CodeBuffer::call_cell(const void* cell) {
  if (space_.contains(cell)) {
    rel32({0xff, 0x15}, cell);
    return 6;
  }
  load_address(x86::r11, cell);
  uint32_t from = offset();
  asm_.call(x86::qword_ptr(x86::r11));
  return offset() - from;
}

void CodeBuffer::jump_cell(const void* cell) {
  if (space_.contains(cell)) return rel32({0xff, 0x25}, cell);
  load_address(x86::r11, cell);
  asm_.jmp(x86::qword_ptr(x86::r11));
}

void CodeBuffer::compare_word_with_0(const void* word) {
  if (!space_.contains(word)) {
    load_address(x86::r11, word);
    asm_.cmp(x86::dword_ptr(x86::r11), imm(0));
    return;
  }
  // The displacement is relative to the end of the instruction, and an immediate byte follows it.
  rel32_.push_back({offset() + 2, static_cast<const uint8_t*>(word) - 1, PlaceField::To::kPoll});
  constexpr uint8_t kBytes[] = {0x83, 0x3d, 0, 0, 0, 0, 0};
  asm_.embed(kBytes, sizeof kBytes);
}

// ---- Things of the process ----------------------------------------------------------------------

void CodeBuffer::note_refs(MethodId m) {
  assert(m.valid() && offset() == 0);
  refs_of_ = m;
}

// Notes the field that ends the instruction emitted last, and checks that it is the one.
void CodeBuffer::note_ref(CodeRef::Kind kind, uint64_t contents, const void* target,
                          uint32_t plus) {
  if (!refs_of_.valid()) return;
  const uint32_t bytes = size_of(kind), at = offset() - bytes;
  const asmjit::Section* part = in_cold_ ? cold_section_ : holder_.textSection();
  const bool found = std::memcmp(part->data() + (at & ~kColdPart), &contents, bytes) == 0;
  if (!found) unnamed_ = "a field of this process in an unknown place";
  refs_.push_back({at, kind, plus, target});
}

// The form with an immediate of 8 bytes, whatever the address is: it differs from process to process.
void CodeBuffer::load_address(const Gp& dst, const void* address) {
  const auto bits = reinterpret_cast<uintptr_t>(address);
  if (!refs_of_.valid()) return static_cast<void>(asm_.mov(dst.r64(), imm(bits)));
  uint8_t bytes[10] = {static_cast<uint8_t>(dst.id() < 8 ? 0x48 : 0x49),
                       static_cast<uint8_t>(0xb8 + (dst.id() & 7))};
  std::memcpy(bytes + 2, &bits, sizeof bits);
  asm_.embed(bytes, sizeof bytes);
  note_ref(CodeRef::Kind::kAddress, bits, address);
}

void CodeBuffer::load_context(const Gp& dst) {
  load_tls(dst, sampler::context_tls_offset(), CodeRef::Kind::kContext);
}

Mem CodeBuffer::method_word(const Gp& dst, MethodId m, uint32_t at, uint32_t bytes) {
  load_tls(dst, sampler::context_tls_offset() + sampler::block_tls_offset(m.index()),
           CodeRef::Kind::kBlock);
  if (refs_of_.valid() && m != refs_of_) unnamed_ = "a word of another method";
  ++words_open_;
  word_at_ = at;
  return x86::ptr(dst, static_cast<int32_t>(sampler::method_offset(m.index()) + at), bytes);
}

void CodeBuffer::method_word_used() {
  --words_open_;
  if (!refs_of_.valid()) return;
  note_ref(CodeRef::Kind::kMethodWord, sampler::method_offset(refs_of_.index()) + word_at_, nullptr,
           word_at_);
}

void CodeBuffer::load_method_index(const Gp& dst, MethodId m) {
  if (!refs_of_.valid()) return static_cast<void>(asm_.mov(dst.r32(), imm(m.index())));
  LibrarysOwn own(*this);  // the field must be there, whatever its contents
  asm_.mov(dst.r32(), imm(m.index()));
  if (m != refs_of_) unnamed_ = "the number of another method";
  note_ref(CodeRef::Kind::kMethodIndex, m.index());
}

void CodeBuffer::load_tls(const Gp& dst, int64_t offset, CodeRef::Kind kind) {
  // The displacement is negative and absolute; asmjit takes it as a sign-extended address.
  Mem context = x86::ptr_abs(static_cast<uint64_t>(offset), 8);
  context.setSegment(x86::fs);
  asm_.mov(dst.r64(), context);
  note_ref(kind, static_cast<uint64_t>(offset));
}

// ---- Publishing -------------------------------------------------------------------------------

Status CodeBuffer::status() const {
  if (!error_.failed) return {};
  return Error{ErrorCode::kInvalidInput, "assembler: " + error_.text};
}

void CodeBuffer::emit_cold_traps() {
  begin_cold();
  for (const ColdTrap& t : cold_) {
    asm_.bind(t.label);
    if (tables_.counts_edges) probe_row(t.site);
    if (!tables_.lines.empty()) first_line_row(t.at);
    if (!tables_.frames.empty()) frame_row(t.frame);
    trap_now(t.code, t.at);
  }
  cold_.clear();
}

// link() fills in the fields once both parts have their place.
void CodeBuffer::emit_distances() {
  for (const Distances& t : tables32_) {
    asm_.align(asmjit::AlignMode::kData, 4);
    asm_.bind(t.table);
    static constexpr uint8_t kZero[4] = {};
    for (size_t n = 0; n < t.targets.size(); ++n) asm_.embed(kZero, sizeof kZero);
  }
}

void CodeBuffer::emit_constants() {
  // Largest first: then all are aligned without padding in between.
  std::stable_sort(constants_.begin(), constants_.end(),
                   [](const Constant& a, const Constant& b) { return a.size > b.size; });
  if (!constants_.empty()) asm_.align(asmjit::AlignMode::kData, constants_[0].size);
  for (const Constant& c : constants_) {
    asm_.bind(c.label);
    asm_.embed(&c.low, std::min(c.size, 8u));
    if (c.size == 16) asm_.embed(&c.high, 8);
  }
  constants_.clear();
}

// Ends the emission. In spaces that are not packed there is only one part; the order is: tables,
// traps, constants.
Status CodeBuffer::close() {
  if (cold_section_ == nullptr) emit_distances();
  emit_cold_traps();
  if (cold_section_ != nullptr) {
    asm_.section(holder_.textSection());
    in_cold_ = false;
    tables_.data_at = offset();
    emit_distances();
  } else {
    tables_.data_at = offset();
  }
  emit_constants();
  return status();
}

uint32_t CodeBuffer::hot_bytes() const {
  auto text = static_cast<uint32_t>(holder_.textSection()->bufferSize());
  return cold_section_ != nullptr ? text : std::min(cold_at_, text);
}

uint32_t CodeBuffer::cold_bytes() const {
  auto text = static_cast<uint32_t>(holder_.textSection()->bufferSize());
  return cold_section_ != nullptr ? static_cast<uint32_t>(cold_section_->bufferSize())
                                  : text - hot_bytes();
}

// Numbers the offsets of the cold part after those of the hot one.
void CodeBuffer::number_offsets() {
  uint32_t hot = hot_bytes();
  auto number = [&](uint32_t& offset) {
    if (offset >= kColdPart) offset = offset - kColdPart + hot;
  };
  for (TrapRow& r : tables_.traps) number(r.offset);
  for (CallRow& r : tables_.calls) number(r.offset);
  for (ProbeRow& r : tables_.probes) number(r.offset);
  for (LineRow& r : tables_.lines) number(r.offset);
  for (FrameRow& r : tables_.frames) number(r.offset);
  for (ExitRow& r : tables_.exits) number(r.offset);
  for (uint32_t& e : tables_.entries) number(e);
  for (LoopEntry& l : tables_.loops) {
    number(l.continue_offset);
    number(l.arrive_offset);
  }
  for (LoopRange& l : tables_.loop_ranges) {
    number(l.begin);
    number(l.end);
  }
  for (Rel32& r : rel32_) number(r.at);
  for (CodeRef& r : refs_) number(r.offset);
  assert(std::is_sorted(tables_.traps.begin(), tables_.traps.end(),
                        [](const TrapRow& a, const TrapRow& b) { return a.offset < b.offset; }));
}

// Lists the fields whose contents depend on where the code, or one of its parts, lies. Called after
// offsets have been numbered, and before the assembler's links are resolved.
void CodeBuffer::list_place_fields() {
  std::vector<PlaceField>& fields = tables_.place_fields;
  fields.reserve(rel32_.size());
  for (const Rel32& r : rel32_) fields.push_back({r.at, static_cast<uint32_t>(r.to)});
  list_links();
  list_distances();
}

// The only links that the assembler has not resolved lead from one section to the other: the
// distance to a label in the same section is fixed.
void CodeBuffer::list_links() {
  if (cold_section_ == nullptr || !holder_.hasUnresolvedLinks()) return;
  constexpr auto kOther = static_cast<uint32_t>(PlaceField::To::kOtherPart);
  for (const asmjit::LabelEntry* label : holder_.labelEntries()) {
    for (const asmjit::LabelLink* link = label->links(); link != nullptr; link = link->next) {
      assert(link->format.valueSize() == 4 && "a short jump between parts");
      uint32_t from = link->sectionId == cold_section_->id() ? hot_bytes() : 0;
      auto at = static_cast<uint32_t>(link->offset) + link->format.valueOffset();
      tables_.place_fields.push_back({from + at, kOther});
    }
  }
}

// Tables lie after the hot code, so their distances to hot labels are fixed.
void CodeBuffer::list_distances() {
  constexpr auto kOther = static_cast<uint32_t>(PlaceField::To::kOtherPart);
  for (const Distances& t : tables32_) {
    uint32_t at = offset_of(t.table);
    for (const Label& l : t.targets) {
      if (is_cold(l)) tables_.place_fields.push_back({at, kOther});
      at += 4;
    }
  }
}

// Tells the assembler where its sections lie: `cold_at` bytes apart.
Status CodeBuffer::place(int64_t cold_at) {
  holder_.textSection()->setOffset(0);
  if (cold_section_ != nullptr) cold_section_->setOffset(static_cast<uint64_t>(cold_at));
  bool done = holder_.resolveUnresolvedLinks() == asmjit::kErrorOk &&
              !holder_.hasUnresolvedLinks() && !holder_.hasRelocEntries();
  if (done) return {};
  return Error{ErrorCode::kInvalidInput, "assembler: a label was never bound"};
}

void CodeBuffer::copy_parts(uint8_t* to) const {
  const uint32_t hot = hot_bytes(), cold = cold_bytes();
  if (cold_section_ == nullptr) {
    std::memcpy(to, holder_.textSection()->data(), hot + cold);
    return;
  }
  if (hot != 0) std::memcpy(to, holder_.textSection()->data(), hot);
  if (cold != 0) std::memcpy(to + hot, cold_section_->data(), cold);
}

// Fills in the tables of distances, for parts that will lie at these addresses.
void CodeBuffer::write_distances(uint8_t* to, const uint8_t* hot_at, const uint8_t* cold_at) const {
  const uint32_t hot = hot_bytes();
  auto bound = [&](const Label& l) {
    uint32_t at = offset_of(l);
    return at >= kColdPart ? at - kColdPart + hot : at;
  };
  auto address = [&](uint32_t at) { return at < hot ? hot_at + at : cold_at + (at - hot); };
  for (const Distances& t : tables32_) {
    uint32_t at = bound(t.table);
    const uint8_t* start = address(at);
    for (const Label& l : t.targets) {
      auto distance = static_cast<int32_t>(address(bound(l)) - start);
      std::memcpy(to + at, &distance, sizeof distance);
      at += sizeof distance;
    }
  }
}

// Writes the bytes to where they will be published, and fills in the fields that depend on their
// place.
Status CodeBuffer::link(const CodeSpan& span) {
  const uint32_t hot = span.hot_size();
  uint8_t* to = span.writable();
  copy_parts(to);
  for (const Rel32& r : rel32_) {
    const uint8_t* field = r.at < hot ? span.data() + r.at : span.cold_data() + (r.at - hot);
    int64_t distance = static_cast<const uint8_t*>(r.target) - (field + 4);
    if (distance != static_cast<int32_t>(distance)) {
      return Error{ErrorCode::kInvalidInput, "assembler: a target out of reach of rel32"};
    }
    auto narrow = static_cast<int32_t>(distance);
    std::memcpy(to + r.at, &narrow, sizeof narrow);
  }
  write_distances(to, span.data(), span.cold_data());
  return {};
}

Result<RecordedCode> CodeBuffer::record(uint32_t entry_offset) {
  assert(refs_of_.valid());
  if (Status s = close(); !s.ok()) return s.error();
  if (words_open_ != 0) unnamed_ = "a word of the method in an unknown place";
  if (unnamed_ != nullptr) return Error{ErrorCode::kUnsupported, unnamed_};
  mark_partial_rows();
  number_offsets();
  list_place_fields();
  RecordedCode out;
  out.hot_size = hot_bytes();
  out.entry_offset = entry_offset;
  if (Status s = place(out.hot_size); !s.ok()) return s.error();
  out.bytes.resize(out.hot_size + cold_bytes());
  uint8_t* to = out.bytes.data();
  copy_parts(to);
  write_distances(to, to, to + out.hot_size);
  for (const Rel32& r : rel32_) {
    refs_.push_back({r.at, CodeRef::Kind::kDistance, 0, r.target});
    if (r.to != PlaceField::To::kOutside) return Error{ErrorCode::kUnsupported, "a poll word"};
  }
  std::ranges::sort(refs_, {}, &CodeRef::offset);
  for (const CodeRef& r : refs_) std::memset(to + r.offset, 0, size_of(r.kind));
  out.tables = std::move(tables_);
  out.refs = std::move(refs_);
  return out;
}

Result<CodeSpan> CodeBuffer::publish_bare(CodeSpace& space, bool beyond_budget) {
  if (Status s = close(); !s.ok()) return s.error();
  mark_partial_rows();
  number_offsets();
  if (space.moves()) list_place_fields();
  auto span = space.allocate(hot_bytes(), beyond_budget, cold_bytes());
  if (!span.ok()) return span.error();
  if (Status s = place(span->cold_data() - span->data()); !s.ok()) return s.error();
  if (Status s = link(*span); !s.ok()) return s.error();
  if (Status s = space.publish(*span); !s.ok()) return s.error();
  return span;
}

Result<std::unique_ptr<Code>> CodeBuffer::publish(CodeSpace& space, uint32_t entry_offset,
                                                  MethodId method, bool beyond_budget) {
  auto span = publish_bare(space, beyond_budget);
  if (!span.ok()) return span.error();
  return std::make_unique<Code>(std::move(span).value(), entry_offset, std::move(tables_), method);
}

}  // namespace uptier::jit
