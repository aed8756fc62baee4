#include "tiering/image/symbols.h"

#include <algorithm>

#include "jit/code/compile_input.h"
#include "jit/code/stubs.h"
#include "sampler/context.h"

namespace uptier::tiering {
namespace {

using Kind = jit::CodeRef::Kind;

Error unnamed(const char* what) { return {ErrorCode::kUnsupported, what}; }
Error missing(const char* what) { return {ErrorCode::kNotFound, what}; }

uint64_t address_of(const void* p) { return reinterpret_cast<uintptr_t>(p); }

}  // namespace

std::vector<const void*> routines_of(const jit::Helpers& h) {
  std::vector<const void*> all{h.loop_slow_plain, h.loop_slow_instrumented, h.trap_exit,
                               h.leave,           h.ask_to_leave,           h.scalable_count64,
                               h.scalable_count32};
  all.insert(all.end(), std::begin(h.probes), std::end(h.probes));
  return all;
}

// ---- Naming -------------------------------------------------------------------------------------

SymbolNames::SymbolNames(const jit::Helpers& helpers, const jit::StubTable& stubs,
                         const MethodTable& methods)
    : helpers_(helpers), stubs_(stubs), methods_(methods), routines_(routines_of(helpers)) {}

Result<SymbolRef> SymbolNames::name(const jit::CodeRef& ref, const Method& m) {
  SymbolRef named{ref.offset, ref.kind, ref.plus, {}};
  if (ref.kind != Kind::kDistance && ref.kind != Kind::kAddress) return named;
  Result<Symbol> symbol =
      ref.kind == Kind::kAddress ? name_address(ref.target) : name_target(ref.target, m);
  if (!symbol) return symbol.error();
  named.symbol = *symbol;
  return named;
}

Result<Symbol> SymbolNames::name_target(const void* target, const Method& m) {
  auto routine = std::ranges::find(routines_, target);
  if (target != nullptr && routine != routines_.end()) {
    return Symbol{Symbol::Kind::kRoutine, static_cast<uint32_t>(routine - routines_.begin())};
  }
  const MethodId callee = stubs_.method_of(target);
  if (!callee.valid() || callee.index() >= methods_.size()) return unnamed("an unknown routine");
  const Method& c = methods_.at(callee.index());
  if (!methods_.serves(c.id) || stubs_.stub(c.id) != target) return unnamed("an unknown stub");
  if (&c.host != &m.host || c.info.key.module_key != m.info.key.module_key) {
    return unnamed("a call of a method of another host");
  }
  return Symbol{Symbol::Kind::kStub, c.info.key.function_index};
}

Result<Symbol> SymbolNames::name_address(const void* target) {
  if (target == helpers_.runtime) return Symbol{Symbol::Kind::kRuntime};
  const LoadedObjects::Object* o = objects_.of(target);
  if (o == nullptr) return unnamed("an address outside of loaded code");
  if (o->build_id.empty() || objects_.find(o->build_id) != o) {
    return unnamed("a function of an object without a build id of its own");
  }
  auto at = std::ranges::find(used_, o->build_id);
  const auto number = static_cast<uint32_t>(at - used_.begin());
  if (at == used_.end()) used_.push_back(o->build_id);
  return Symbol{Symbol::Kind::kHostCode, number, address_of(target) - o->base};
}

// ---- Finding ------------------------------------------------------------------------------------

SymbolValues::SymbolValues(const jit::Helpers& helpers, const jit::StubTable& stubs,
                           const MethodTable& methods)
    : helpers_(helpers), stubs_(stubs), methods_(methods), routines_(routines_of(helpers)) {}

void SymbolValues::set_objects(std::span<const profile::Bytes> build_ids) {
  if (build_ids.empty()) return;
  const LoadedObjects loaded = LoadedObjects::read();
  for (const profile::Bytes& id : build_ids) {
    const LoadedObjects::Object* o = loaded.find(id);
    objects_.push_back(o == nullptr ? Found() : Found{o->base, o->code});
  }
}

Result<uint64_t> SymbolValues::value(const SymbolRef& ref, Method& m,
                                     std::vector<MethodId>& callees) const {
  const uint32_t index = m.id.index();
  const auto word = [](int64_t n) { return static_cast<uint64_t>(n); };
  switch (ref.kind) {
    case Kind::kContext: return word(sampler::context_tls_offset());
    case Kind::kBlock:
      return word(int64_t{sampler::context_tls_offset()} + sampler::block_tls_offset(index));
    case Kind::kMethodWord: return uint64_t{sampler::method_offset(index)} + ref.plus;
    case Kind::kMethodIndex: return uint64_t{index};
    case Kind::kDistance:
    case Kind::kAddress: break;
  }
  switch (ref.symbol.kind) {
    case Symbol::Kind::kRoutine: {
      const bool there =
          ref.symbol.number < routines_.size() && routines_[ref.symbol.number] != nullptr;
      return there ? Result<uint64_t>(address_of(routines_[ref.symbol.number]))
                   : missing("a routine of the library");
    }
    case Symbol::Kind::kStub: return stub_of(ref.symbol.number, m, callees);
    case Symbol::Kind::kRuntime: return address_of(helpers_.runtime);
    case Symbol::Kind::kHostCode: return host_code(ref.symbol);
    case Symbol::Kind::kOwn: break;
  }
  return missing("a symbol");
}

Result<uint64_t> SymbolValues::stub_of(uint32_t function, Method& m,
                                       std::vector<MethodId>& callees) const {
  Result<MethodId> callee = m.host.callee(m.id, function);
  if (!callee) return callee.error();
  const bool right = methods_.serves(*callee) &&
                     methods_.at(callee->index()).info.key.function_index == function &&
                     &methods_.at(callee->index()).host == &m.host;
  if (!right) return missing("a method that the code calls");
  if (std::ranges::find(callees, *callee) == callees.end()) callees.push_back(*callee);
  return address_of(stubs_.stub(*callee));
}

Result<uint64_t> SymbolValues::host_code(const Symbol& symbol) const {
  if (symbol.number >= objects_.size() || objects_[symbol.number].code.empty()) {
    return missing("an object with functions that the code calls");
  }
  const Found& o = objects_[symbol.number];
  const uintptr_t address = o.base + symbol.offset;
  for (auto [begin, end] : o.code) {
    if (address >= begin && address < end) return uint64_t{address};
  }
  return missing("a function that the code calls");
}

}  // namespace uptier::tiering
