#include "profile/upf/calls.h"

#include <algorithm>
#include <set>

#include "profile/varint.h"

namespace uptier::profile {
namespace {

Error corrupt(std::string rule) { return Error{ErrorCode::kCorruptInput, std::move(rule)}; }

class Writer {
 public:
  void know(const MethodKey& key) { modules_.insert(key.module_key); }
  void head() {
    number(modules_.size());
    for (const uint64_t module : modules_) fixed(module);
  }
  void number(uint64_t n) { append_varint(n, out_); }
  void fixed(uint64_t n) { ByteWriter(out_).u64(n); }
  void method(const MethodKey& key) {
    const auto at = modules_.find(key.module_key);
    number(static_cast<uint64_t>(std::distance(modules_.begin(), at)));
    number(key.function_index);
  }
  Bytes take() { return std::move(out_); }

 private:
  std::set<uint64_t> modules_;
  Bytes out_;
};

void write_shape(const CodeShape& shape, Writer& out) {
  out.fixed(shape.cfg_hash);
  out.number(shape.successors.size());
  for (const std::vector<SiteId>& to : shape.successors) {
    out.number(to.size());
    for (const SiteId site : to) out.number(site);
  }
  out.number(shape.anchors.size());
  for (const Anchor& anchor : shape.anchors) {
    out.number(static_cast<uint64_t>(anchor.kind));
    out.fixed(anchor.target);
    out.number(anchor.block);
    out.number(anchor.site);
  }
}

class Reader {
 public:
  explicit Reader(ByteSpan bytes) : in_(bytes) {
    for (uint64_t n = count(sizeof(uint64_t)); n > 0; --n) modules_.push_back(in_.fixed());
  }

  uint64_t number() { return in_.number(); }
  uint64_t fixed() { return in_.fixed(); }
  SiteId site() { return in_.small(); }
  // A number of things that take so many bytes at least; 0 if they cannot be there.
  uint64_t count(size_t least) {
    const uint64_t n = in_.number();
    ok_ = ok_ && in_.ok() && n <= in_.rest().size() / least;
    return ok_ ? n : 0;
  }
  MethodKey method() {
    const uint64_t module = in_.number();
    const uint32_t function = in_.small();
    ok_ = ok_ && module < modules_.size();
    return ok_ ? MethodKey{modules_[module], function} : MethodKey{};
  }
  void require(bool right) { ok_ = ok_ && right; }
  bool ok() const { return ok_ && in_.ok(); }
  bool done() const { return ok() && in_.rest().empty(); }

 private:
  VarintReader in_;
  std::vector<uint64_t> modules_;
  bool ok_ = true;
};

CodeShape read_shape(Reader& in) {
  CodeShape shape;
  shape.cfg_hash = in.fixed();
  const uint64_t blocks = in.count(1);
  shape.successors.resize(blocks);
  for (std::vector<SiteId>& to : shape.successors) {
    const uint64_t count = in.count(1);
    to.reserve(count);
    for (uint64_t i = 0; i < count; ++i) to.push_back(in.site());
    in.require(std::ranges::all_of(to, [&](SiteId s) { return s >= 1 && s <= blocks; }));
  }
  const uint64_t anchors = in.count(11);
  shape.anchors.reserve(anchors);
  SiteId block = 1;
  for (uint64_t i = 0; i < anchors; ++i) {
    const uint64_t kind = in.number();
    Anchor anchor{static_cast<AnchorKind>(kind), in.fixed(), in.site(), in.site()};
    in.require(kind >= static_cast<uint64_t>(AnchorKind::kCall) &&
               kind <= static_cast<uint64_t>(AnchorKind::kLoop) && anchor.block >= block &&
               anchor.block <= blocks);
    if (!in.ok()) break;
    block = anchor.block;
    shape.anchors.push_back(anchor);
  }
  return shape;
}

void read_shapes(Reader& in, CallProfile& calls) {
  for (uint64_t n = in.count(12); n > 0 && in.ok(); --n) {
    const MethodKey key = in.method();
    in.require(calls.shapes.emplace(key, read_shape(in)).second);
  }
}

void read_graph(Reader& in, CallProfile& calls) {
  for (uint64_t n = in.count(5); n > 0 && in.ok(); --n) {
    const MethodKey caller = in.method();
    const MethodKey callee = in.method();
    in.require(calls.graph.emplace(std::pair(caller, callee), in.number()).second);
  }
}

void read_order(Reader& in, CallProfile& calls) {
  for (uint64_t n = in.count(4); n > 0 && in.ok(); --n) {
    const MethodKey key = in.method();
    const uint64_t positions = in.number();
    in.require(calls.first.emplace(key, FirstCall{positions, in.number()}).second);
  }
}

Bytes shapes_part(const CallProfile& calls) {
  Writer out;
  for (const auto& [key, shape] : calls.shapes) out.know(key);
  out.head();
  out.number(calls.shapes.size());
  for (const auto& [key, shape] : calls.shapes) {
    out.method(key);
    write_shape(shape, out);
  }
  return out.take();
}

Bytes graph_part(const CallProfile& calls) {
  Writer out;
  for (const auto& [call, count] : calls.graph) {
    out.know(call.first);
    out.know(call.second);
  }
  out.head();
  out.number(calls.graph.size());
  for (const auto& [call, count] : calls.graph) {
    out.method(call.first);
    out.method(call.second);
    out.number(count);
  }
  return out.take();
}

Bytes order_part(const CallProfile& calls) {
  Writer out;
  for (const auto& [key, call] : calls.first) out.know(key);
  out.head();
  out.number(calls.first.size());
  for (const auto& [key, call] : calls.first) {
    out.method(key);
    out.number(call.positions);
    out.number(call.runs);
  }
  return out.take();
}

}  // namespace

Bytes call_part(UpfKind kind, const CallProfile& calls) {
  switch (kind) {
    case UpfKind::kShapes: return calls.shapes.empty() ? Bytes{} : shapes_part(calls);
    case UpfKind::kCalls: return calls.graph.empty() ? Bytes{} : graph_part(calls);
    case UpfKind::kOrder: return calls.first.empty() ? Bytes{} : order_part(calls);
    default: return {};
  }
}

Status take_call_part(UpfKind kind, ByteSpan part, CallProfile& into) {
  Reader in(part);
  CallProfile read;
  switch (kind) {
    case UpfKind::kShapes: read_shapes(in, read); break;
    case UpfKind::kCalls: read_graph(in, read); break;
    case UpfKind::kOrder: read_order(in, read); break;
    default: break;
  }
  if (!in.done()) return corrupt("numbers or lists that are not possible");
  into += read;
  return {};
}

}  // namespace uptier::profile
