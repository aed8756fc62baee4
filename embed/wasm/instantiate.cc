#include "embed/wasm/instantiate.h"

#include <utility>

#include "embed/wasm/engine.h"
#include "embed/wasm/wall.h"

namespace uptier::wasm {
namespace {

std::string import_text(const Import& i) {
  return std::string(extern_kind_name(i.kind)) + " \"" + i.module + "\".\"" + i.name + "\"";
}

Error incompatible(const Import& i, const std::string& why) {
  return Error{ErrorCode::kInvalidInput,
               "incompatible import type: " + import_text(i) + ": " + why};
}

// Returns whether something of `size` now, and at most `max`, serves an import with `wanted`
// limits.
bool serves(uint64_t size, const std::optional<uint64_t>& max, const Limits& wanted) {
  if (size < wanted.min) return false;
  return !wanted.max || (max && *max <= *wanted.max);
}

}  // namespace

// One instantiation. Each step returns a Status; traps go to `trap_`.
class Instantiator {
 public:
  Instantiator(Store& store, Module& module, const Linker& linker)
      : store_(store), module_(module), info_(module.info()), linker_(linker) {}

  Instantiation run() {
    std::unique_ptr<Instance> made(new Instance(store_, module_));
    instance_ = made.get();
    Instantiation out;
    // The store keeps it in any case: tables may refer to it even when its start function traps.
    store_.instances_.push_back(std::move(made));
    Status s = link();
    if (s.ok()) s = allocate();
    if (!s.ok()) {
      out.error = s.error();
      return out;
    }
    init_globals();
    copy_segments();
    if (!trap_.trapped()) start();
    if (trap_.trapped()) {
      out.trap = trap_;
    } else {
      out.instance = instance_;
    }
    return out;
  }

 private:
  template <typename T>
  T* at(uint32_t offset) {
    return reinterpret_cast<T*>(reinterpret_cast<std::byte*>(instance_->context()) + offset);
  }

  Status link() {
    for (const Import& i : info_.imports) {
      const Extern* e = linker_.find(i.module, i.name);
      if (e == nullptr || std::holds_alternative<std::monostate>(*e)) {
        return Error{ErrorCode::kNotFound, "unknown import: " + import_text(i)};
      }
      if (Status s = link_one(i, *e); !s) return s.error();
    }
    return {};
  }

  Status link_one(const Import& i, const Extern& e) {
    switch (i.kind) {
      case ExternKind::kFunction: return link_function(i, e);
      case ExternKind::kTable: return link_table(i, e);
      case ExternKind::kMemory: return link_memory(i, e);
      case ExternKind::kGlobal: return link_global(i, e);
    }
    return {};
  }

  Status link_function(const Import& i, const Extern& e) {
    const FuncType& wanted = info_.type_of(i.index);
    auto differs = [&](const FuncType& type) {
      return incompatible(i, "wants " + to_string(wanted) + ", is " + to_string(type));
    };
    auto* record = at<FuncRef>(module_.layout().import(i.index));
    if (auto* host = std::get_if<HostImport>(&e)) {
      if (host->type != wanted) return differs(host->type);
      Result<FuncRef> ref = store_.bind_host(*host, *instance_);
      if (!ref) return ref.error();
      *record = *ref;
      return {};
    }
    auto* function = std::get_if<FuncRef>(&e);
    if (function == nullptr) return incompatible(i, "not a function");
    if (*function->type != wanted) return differs(*function->type);
    *record = *function;
    return {};
  }

  Status link_table(const Import& i, const Extern& e) {
    auto* table = std::get_if<Table*>(&e);
    if (table == nullptr) return incompatible(i, "not a table");
    if (!serves((*table)->size(), (*table)->max(), *info_.table)) {
      return incompatible(i, "its limits do not fit");
    }
    instance_->table_ = *table;
    return {};
  }

  Status link_memory(const Import& i, const Extern& e) {
    auto* memory = std::get_if<Memory*>(&e);
    if (memory == nullptr) return incompatible(i, "not a memory");
    if (!serves((*memory)->pages(), (*memory)->max(), *info_.memory)) {
      return incompatible(i, "its limits do not fit");
    }
    instance_->memory_ = *memory;
    return {};
  }

  Status link_global(const Import& i, const Extern& e) {
    auto* global = std::get_if<Global>(&e);
    if (global == nullptr) return incompatible(i, "not a global");
    if (global->type != info_.globals[i.index].type) return incompatible(i, "its type differs");
    *at<uint64_t>(module_.layout().global(i.index)) = reinterpret_cast<uintptr_t>(global->cell);
    return {};
  }

  // The memory decides how code must guard its accesses, and so which methods the instance has.
  Status allocate() {
    if (info_.memory && !info_.imports_memory) {
      Result<Memory*> m = store_.create_memory(*info_.memory);
      if (!m) return m.error();
      instance_->memory_ = *m;
    }
    if (info_.table && !info_.imports_table) {
      Result<Table*> t = store_.create_table(*info_.table);
      if (!t) return t.error();
      instance_->table_ = *t;
    }
    Memory* memory = instance_->memory_;
    instance_->bounds_ = memory != nullptr ? memory->bounds() : Bounds::kGuarded;
    if (Status s = register_reachable(); !s) return s;
    VmContext& c = *instance_->context();
    if (memory != nullptr) {
      c.memory = memory->record();
      c.memory_base = memory->record()->base;
    }
    if (Table* table = instance_->table_) {
      c.table_base = table->entries().data();
      c.table_size = table->size();
    }
    return {};
  }

  // Registers what others may come to call, so that nothing is refused later.
  Status register_reachable() {
    auto reach = [&](uint32_t function) -> Status {
      if (function < info_.imported_functions || function == ElemSegment::kNullFunction) return {};
      Result<MethodId> m = module_.method(instance_->bounds_, function);
      return m ? Status() : Status(m.error());
    };
    for (const Export& e : info_.exports) {
      if (e.kind != ExternKind::kFunction) continue;
      if (Status s = reach(e.index); !s) return s;
    }
    for (const ElemSegment& e : info_.elems) {
      for (uint32_t f : e.functions) {
        if (Status s = reach(f); !s) return s;
      }
    }
    return info_.start ? reach(*info_.start) : Status();
  }

  uint64_t evaluate(const ConstExpr& e) {
    return e.global ? *instance_->global(*e.global).cell : e.bits;
  }

  void init_globals() {
    for (uint32_t g = info_.imported_globals; g < info_.globals.size(); ++g) {
      *at<uint64_t>(module_.layout().global(g)) = evaluate(info_.globals[g].init);
    }
  }

  // Elements first, then data, each in order, up to the first that does not fit. A segment is gone
  // once it is copied.
  void copy_segments() {
    for (uint32_t s = 0; s < info_.elems.size(); ++s) {
      const ElemSegment& e = info_.elems[s];
      if (e.is_declarative) instance_->drop_elem(s);
      if (!e.is_active) continue;
      auto to = static_cast<uint32_t>(evaluate(e.offset));
      if (!instance_->table_init(s, to, 0, e.functions.size())) {
        return fail(TrapCode::kOutOfBoundsTable);
      }
      instance_->drop_elem(s);
    }
    for (uint32_t s = 0; s < info_.data.size(); ++s) {
      const DataSegment& d = info_.data[s];
      if (!d.is_active) continue;
      auto to = static_cast<uint32_t>(evaluate(d.offset));
      if (!instance_->memory_init(s, to, 0, d.bytes.size())) {
        return fail(TrapCode::kOutOfBoundsMemory);
      }
      instance_->drop_data(s);
    }
  }

  void fail(TrapCode code) {
    trap_.code = code;
    trap_.message = trap_text(code);
  }

  void start() {
    if (!info_.start) return;
    // Validation has it that a start function takes nothing, so the call itself cannot be refused.
    Result<CallResult> r = store_.call(instance_->function(*info_.start), {});
    if (r.ok()) trap_ = r->trap;
  }

  Store& store_;
  Module& module_;
  const ModuleInfo& info_;
  const Linker& linker_;
  Instance* instance_ = nullptr;
  TrapReport trap_;
};

Instantiation instantiate(Store& store, Module& module, const Linker& linker) {
  Instantiation made;
  if (!finishes([&] { made = Instantiator(store, module, linker).run(); })) {
    made = {};
    made.error = out_of_memory();
  }
  return made;
}

}  // namespace uptier::wasm
