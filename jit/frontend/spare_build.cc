#include "jit/frontend/spare_build.h"

#include <utility>

#include "jit/frontend/builder_impl.h"

namespace uptier {
namespace {

template <typename T>
void take(std::vector<T>& to, std::vector<T>& from) {
  if (from.capacity() * sizeof(T) > jit::SpareBuild::kMostBytes) return;
  from.clear();
  to = std::move(from);
}

}  // namespace

void EdgeArgs::take_room(EdgeArgs& other) {
  take(lists_, other.lists_);
  take(pool_, other.pool_);
}

void FunctionBuilder::Impl::take_room(Impl& other) {
  take(params, other.params);
  take(blocks, other.blocks);
  take(variables, other.variables);
  take(defined_at, other.defined_at);
  take(incoming, other.incoming);
  take(waiting, other.waiting);
  take(pending, other.pending);
  take(body, other.body);
  take(walked, other.walked);
  edge_args.take_room(other.edge_args);
  if (other.defs.bytes() > jit::SpareBuild::kMostBytes) return;
  other.defs.clear();
  defs = std::move(other.defs);
}

void FunctionBuilder::Impl::take_room(jit::Function& other) {
  take(f.insts, other.insts);
  take(f.blocks, other.blocks);
  take(f.values, other.values);
  take(f.edges, other.edges);
  take(f.pool, other.pool);
  take(f.layout, other.layout);
}

FunctionBuilder BuilderAccess::begin(std::unique_ptr<Impl> empty, const Signature& s,
                                     std::string_view name) {
  return FunctionBuilder(std::move(empty), s, name);
}

namespace jit {
namespace {

// Returns the last of a list, none where it is empty.
template <typename T>
T take_last(std::vector<T>& from) {
  if (from.empty()) return {};
  T last = std::move(from.back());
  from.pop_back();
  return last;
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
  builder->take_room(function);
  return BuilderAccess::begin(std::move(builder), signature, name);
}

void SpareBuild::keep(FunctionBuilder& b) {
  auto empty = std::make_unique<BuilderAccess::Impl>();
  empty->take_room(BuilderAccess::impl(b));
  const Held lock(mutex_);
  if (builders_.size() < kMost) builders_.push_back(std::move(empty));
}

void SpareBuild::keep(Function f) {
  const Held lock(mutex_);
  if (functions_.size() < kMost) functions_.push_back(std::move(f));
}

}  // namespace jit
}  // namespace uptier
