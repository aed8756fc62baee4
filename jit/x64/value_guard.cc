#include "jit/code/value_guard.h"

#include <cstddef>

#include "jit/x64/call_layout.h"
#include "jit/x64/code_buffer.h"

namespace uptier::jit {
namespace {

using namespace asmjit::x86;

ArgPlace place_of(const Signature& s, uint32_t param) {
  ArgCursor c;
  ArgPlace p{};
  for (uint32_t k = 0; k <= param; ++k) p = c.next(s.params[k]);
  return p;
}

void emit_compare(Assembler& a, const Signature& s, const ParamValue& v) {
  uint8_t id = kGpArgs[place_of(s, v.param).index];
  auto bits = static_cast<int64_t>(v.bits);
  if (!is_wide(s.params[v.param])) {
    a.cmp(gpd(id), imm(static_cast<int32_t>(v.bits)));
  } else if (bits == static_cast<int32_t>(bits)) {
    a.cmp(gpq(id), imm(bits));
  } else {
    a.mov(r11, imm(bits));
    a.cmp(gpq(id), r11);
  }
}

void emit_guard_count(Assembler& a, const int32_t* word, const Label& told) {
  a.mov(r11, imm(reinterpret_cast<uintptr_t>(word)));
  a.sub(dword_ptr(r11), imm(1));
  a.js(told);
}

}  // namespace

bool can_guard(const Signature& s, uint32_t param) {
  return param < s.params.size() && place_of(s, param).kind == ArgPlace::Kind::kGp;
}

Result<ValueGuard> make_value_guard(CodeSpace& space, const ValueGuardRequest& r) {
  for (const ParamValue& v : r.values) {
    if (!can_guard(r.signature, v.param)) {
      return Error{ErrorCode::kInvalidArgument, "value guard: the parameter is in no register"};
    }
  }
  CodeBuffer b(space);
  b.begin_body();
  Assembler& a = b.assembler();
  Label miss = b.new_label(), told = b.new_label();
  b.landing_pad();
  emit_guard_count(a, &r.words->calls, told);
  uint32_t quiet = b.offset();
  b.landing_pad();
  for (const ParamValue& v : r.values) {
    emit_compare(a, r.signature, v);
    a.jne(miss);
  }
  b.jump_address(r.special);
  b.bind(miss);
  emit_guard_count(a, &r.words->misses, told);
  b.jump_address(r.general);
  b.bind(told);
  a.mov(r11d, imm(r.method.index()));
  b.jump_address(r.told);
  Result<CodeSpan> code = b.publish_bare(space);
  if (!code) return code.error();
  ValueGuard g;
  g.counted = code->data();
  g.quiet = code->data() + quiet;
  g.code = std::move(*code);
  return g;
}

}  // namespace uptier::jit
