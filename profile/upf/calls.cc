#include "profile/upf/calls.h"

#include <algorithm>

#include "profile/base/corrupt.h"
#include "profile/base/numbers.h"
#include "profile/upf/part.h"

namespace uptier::profile {
namespace {

void write_shape(const CodeShape& shape, PartWriter& out) {
  out.fixed(shape.cfg_hash);
  out.number(shape.successors.size());
  for (size_t b = 0; b < shape.successors.size(); ++b) {
    out.number(shape.successors[b].size());
    for (const SiteId site : shape.successors[b]) out.number(site);
  }
  out.number(shape.anchors.size());
  for (const Anchor& anchor : shape.anchors) {
    out.number(static_cast<uint64_t>(anchor.kind));
    out.fixed(anchor.target);
    out.number(anchor.block);
    out.number(anchor.site);
  }
}

CodeShape read_shape(PartReader& in) {
  CodeShape shape;
  shape.cfg_hash = in.fixed();
  const uint64_t blocks = in.count(1);
  shape.successors.reserve(blocks);
  for (uint64_t b = 0; b < blocks; ++b) {
    shape.successors.add_list();
    const uint64_t count = in.count(1);
    in.require(count <= UINT32_MAX - shape.successors.sites());
    for (uint64_t i = 0; i < count && in.ok(); ++i) {
      const SiteId site = in.site();
      in.require(site >= 1 && site <= blocks);
      shape.successors.add(site);
    }
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

void read_shapes(PartReader& in, CallProfile& calls) {
  for (uint64_t n = in.count(12); n > 0 && in.ok(); --n) {
    const MethodKey key = in.method();
    in.require(calls.shapes.emplace(key, read_shape(in)).second);
  }
}

void read_graph(PartReader& in, CallProfile& calls) {
  for (uint64_t n = in.count(5); n > 0 && in.ok(); --n) {
    const MethodKey caller = in.method();
    const MethodKey callee = in.method();
    in.require(calls.graph.emplace(std::pair(caller, callee), in.number()).second);
  }
}

void read_order(PartReader& in, CallProfile& calls) {
  for (uint64_t n = in.count(4); n > 0 && in.ok(); --n) {
    const MethodKey key = in.method();
    const uint64_t positions = in.number();
    in.require(calls.first.emplace(key, FirstCall{positions, in.number()}).second);
  }
}

void read_path(PartReader& in, uint32_t depth, PathTime& path, uint64_t& sampled_ns) {
  in.require(depth <= TimeProfile::kMostFrames);
  path.samples = in.number();
  path.ns = in.number();
  add_saturating(sampled_ns, path.ns);
  const uint64_t callees = in.count(4);
  for (uint64_t i = 0; i < callees && in.ok(); ++i) {
    PathTime callee;
    const uint64_t place = in.number();
    in.require(place < kTimePlaces);
    callee.frame.place = static_cast<TimePlace>(place);
    if (callee.frame.place == TimePlace::kMethod) callee.frame.method = in.method();
    in.require(i == 0 || path.callees.back().frame < callee.frame);
    if (in.ok()) read_path(in, depth + 1, callee, sampled_ns);
    path.callees.push_back(std::move(callee));
  }
}

void read_time(PartReader& in, TimeProfile& time) {
  time.asked_ns = in.number();
  time.squares = in.number();
  read_path(in, 0, time.root, time.sampled_ns);
}

void know_methods(const PathTime& path, PartWriter& out) {
  if (path.frame.place == TimePlace::kMethod) out.know(path.frame.method);
  for (const PathTime& callee : path.callees) know_methods(callee, out);
}

void write_path(const PathTime& path, PartWriter& out) {
  out.number(path.samples);
  out.number(path.ns);
  out.number(path.callees.size());
  for (const PathTime& callee : path.callees) {
    out.number(static_cast<uint64_t>(callee.frame.place));
    if (callee.frame.place == TimePlace::kMethod) out.method(callee.frame.method);
    write_path(callee, out);
  }
}

Bytes time_part(const TimeProfile& time) {
  PartWriter out;
  know_methods(time.root, out);
  out.head();
  out.number(time.asked_ns);
  out.number(time.squares);
  write_path(time.root, out);
  return out.take();
}

Bytes shapes_part(const CallProfile& calls) {
  PartWriter out;
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
  PartWriter out;
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
  PartWriter out;
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
    case UpfKind::kTime: return calls.time.empty() ? Bytes{} : time_part(calls.time);
    default: return {};
  }
}

Status take_call_part(UpfKind kind, ByteSpan part, CallProfile& into) {
  PartReader in(part);
  CallProfile read;
  switch (kind) {
    case UpfKind::kShapes: read_shapes(in, read); break;
    case UpfKind::kCalls: read_graph(in, read); break;
    case UpfKind::kOrder: read_order(in, read); break;
    case UpfKind::kTime: read_time(in, read.time); break;
    default: break;
  }
  if (!in.done()) return corrupt("numbers or lists that are not possible");
  into += read;
  return {};
}

}  // namespace uptier::profile
