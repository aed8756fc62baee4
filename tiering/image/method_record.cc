#include "tiering/image/method_record.h"

#include <bit>

#include "jit/code/pack_tables.h"
#include "profile/base/corrupt.h"
#include "profile/base/varint.h"

namespace uptier::tiering {
namespace {

using profile::append_varint;
using profile::Bytes;
using profile::VarintReader;

// Floats of static shapes have few bits at the top, which come last as a number.
uint64_t reversed(float f) { return __builtin_bswap32(std::bit_cast<uint32_t>(f)); }
float unreversed(uint32_t bits) { return std::bit_cast<float>(__builtin_bswap32(bits)); }

void append_fixed(uint64_t n, Bytes& out) {
  profile::ByteWriter w(out);
  w.u64(n);
}

void append_shape(const MethodRecord& r, Bytes& out) {
  const size_t blocks = r.block_weights.size();
  append_varint(r.loop_count, out);
  append_fixed(r.cfg_hash, out);
  append_varint(blocks, out);
  for (uint32_t w : r.block_weights) append_varint(w, out);
  append_varint(reversed(r.static_shape.headers_per_call), out);
  for (float f : r.static_shape.per_call) append_varint(reversed(f), out);
  for (bool in : r.static_shape.in_loop) append_varint(in ? 1 : 0, out);
}

void append_refs(const MethodRecord& r, Bytes& out) {
  append_varint(r.refs.size(), out);
  uint32_t before = 0;
  for (const SymbolRef& ref : r.refs) {
    append_varint(ref.offset - before, out);
    before = ref.offset;
    append_varint(static_cast<uint64_t>(ref.kind) | static_cast<uint64_t>(ref.symbol.kind) << 3,
                  out);
    if (ref.symbol.kind == Symbol::Kind::kOwn) append_varint(ref.plus, out);
    if (ref.symbol.kind == Symbol::Kind::kOwn || ref.symbol.kind == Symbol::Kind::kRuntime)
      continue;
    append_varint(ref.symbol.number, out);
    if (ref.symbol.kind == Symbol::Kind::kHostCode) append_varint(ref.symbol.offset, out);
  }
}

bool fits_kind(jit::CodeRef::Kind k, Symbol::Kind s) {
  switch (k) {
    case jit::CodeRef::Kind::kDistance:
      return s == Symbol::Kind::kRoutine || s == Symbol::Kind::kStub;
    case jit::CodeRef::Kind::kAddress:
      return s == Symbol::Kind::kRuntime || s == Symbol::Kind::kHostCode;
    default: return s == Symbol::Kind::kOwn;
  }
}

bool read_shape(VarintReader& in, MethodRecord& r) {
  r.loop_count = in.small();
  r.cfg_hash = in.fixed();
  const uint64_t blocks = in.number();
  if (!in.ok() || blocks > in.rest().size() || r.loop_count > blocks) return false;
  r.block_weights.resize(blocks);
  for (uint32_t& w : r.block_weights) w = in.small();
  r.static_shape.headers_per_call = unreversed(in.small());
  r.static_shape.per_call.resize(blocks);
  for (float& f : r.static_shape.per_call) f = unreversed(in.small());
  r.static_shape.in_loop.resize(blocks);
  for (size_t i = 0; i < blocks; ++i) r.static_shape.in_loop[i] = in.number() != 0;
  return in.ok();
}

bool read_refs(VarintReader& in, MethodRecord& r) {
  const uint64_t count = in.number();
  if (!in.ok() || count > in.rest().size()) return false;
  r.refs.resize(count);
  uint64_t before = 0;
  for (SymbolRef& ref : r.refs) {
    before += in.small();
    const uint64_t kinds = in.number();
    if (before > UINT32_MAX || kinds > 63) return false;
    ref.offset = static_cast<uint32_t>(before);
    ref.kind = static_cast<jit::CodeRef::Kind>(kinds & 7);
    ref.symbol.kind = static_cast<Symbol::Kind>(kinds >> 3);
    const bool known = ref.kind <= jit::CodeRef::Kind::kMethodIndex &&
                       ref.symbol.kind <= Symbol::Kind::kHostCode &&
                       fits_kind(ref.kind, ref.symbol.kind);
    if (!known) return false;
    if (ref.symbol.kind == Symbol::Kind::kOwn) ref.plus = in.small();
    if (ref.symbol.kind == Symbol::Kind::kOwn || ref.symbol.kind == Symbol::Kind::kRuntime)
      continue;
    ref.symbol.number = in.small();
    if (ref.symbol.kind == Symbol::Kind::kHostCode) ref.symbol.offset = in.number();
  }
  return in.ok();
}

}  // namespace

Status append_record(const MethodRecord& r, Bytes& out) {
  append_shape(r, out);
  append_varint(r.bytes.size(), out);
  append_varint(r.hot_size, out);
  append_varint(r.entry_offset, out);
  append_refs(r, out);
  if (Status s = jit::pack_tables(r.tables, out); !s) return s;
  out.insert(out.end(), r.bytes.begin(), r.bytes.end());
  return {};
}

Result<MethodRecord> read_record(profile::ByteSpan record) {
  MethodRecord r;
  VarintReader in(record);
  if (!read_shape(in, r)) return profile::corrupt("the shape of the method is damaged");
  const uint32_t size = in.small();
  r.hot_size = in.small();
  r.entry_offset = in.small();
  if (!read_refs(in, r)) return profile::corrupt("the fields of the code are damaged");
  Result<jit::CodeTables> tables = jit::unpack_tables(in, size);
  if (!tables) return tables.error();
  r.tables = std::move(*tables);
  const bool loops = r.tables.loops.size() == r.loop_count;
  r.bytes = in.rest();
  if (loops && in.ok() && r.bytes.size() == size) return r;
  return profile::corrupt("the code of the method is damaged");
}

}  // namespace uptier::tiering
