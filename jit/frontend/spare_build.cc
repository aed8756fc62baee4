#include "jit/frontend/spare_build.h"

#include <utility>

#include "jit/frontend/builder_impl.h"
#include "jit/frontend/take_room.h"

namespace uptier::jit {
namespace {

// Returns the last element of a list, or an empty one.
template <typename T>
T take_last(std::vector<T>& from) {
  if (from.empty()) return {};
  T last = std::move(from.back());
  from.pop_back();
  return last;
}

// Gives `to` the empty tables of another builder, which is no longer used.
void take_tables(BuilderAccess::Impl& to, BuilderAccess::Impl& from) {
  take_room(to.params, from.params, SpareBuild::kMostBytes);
  take_room(to.blocks, from.blocks, SpareBuild::kMostBytes);
  take_room(to.variables, from.variables, SpareBuild::kMostBytes);
  take_room(to.defined_at, from.defined_at, SpareBuild::kMostBytes);
  take_room(to.incoming, from.incoming, SpareBuild::kMostBytes);
  take_room(to.waiting, from.waiting, SpareBuild::kMostBytes);
  take_room(to.pending, from.pending, SpareBuild::kMostBytes);
  take_room(to.body, from.body, SpareBuild::kMostBytes);
  take_room(to.walked, from.walked, SpareBuild::kMostBytes);
  to.edge_args.take_room(from.edge_args, SpareBuild::kMostBytes);
  if (from.defs.bytes() > SpareBuild::kMostBytes) return;
  from.defs.clear();
  to.defs = std::move(from.defs);
}

// The same for a function that is no longer read.
void take_tables(Function& f, Function& from) {
  take_room(f.insts, from.insts, SpareBuild::kMostBytes);
  take_room(f.blocks, from.blocks, SpareBuild::kMostBytes);
  take_room(f.values, from.values, SpareBuild::kMostBytes);
  take_room(f.edges, from.edges, SpareBuild::kMostBytes);
  take_room(f.pool, from.pool, SpareBuild::kMostBytes);
  take_room(f.layout, from.layout, SpareBuild::kMostBytes);
}

}  // namespace

SpareBuild::SpareBuild() = default;
SpareBuild::~SpareBuild() = default;

FunctionBuilder SpareBuild::begin(const Signature& signature, std::string_view name) {
  std::unique_ptr<BuilderAccess::Impl> builder;
  Function function;
  {
    const Held lock(mutex_);
    builder = take_last(builders_);
    function = take_last(functions_);
  }
  if (builder == nullptr) builder = std::make_unique<BuilderAccess::Impl>();
  take_tables(builder->f, function);
  return BuilderAccess::begin(std::move(builder), signature, name);
}

void SpareBuild::keep(FunctionBuilder& b) {
  auto empty = std::make_unique<BuilderAccess::Impl>();
  take_tables(*empty, BuilderAccess::impl(b));
  const Held lock(mutex_);
  if (builders_.size() < kMost) builders_.push_back(std::move(empty));
}

void SpareBuild::keep(Function f) {
  const Held lock(mutex_);
  if (functions_.size() < kMost) functions_.push_back(std::move(f));
}

}  // namespace uptier::jit
