// Reads a range of a group's methods, and learns where the group's keys lie.
#include "profile/upf/read.h"

namespace uptier::profile {
namespace {

void learn(const MethodKey& key, bool first, GroupKeys& keys) {
  keys.ascending = keys.ascending && (first || keys.last <= key);
  if (first) keys.first = key;
  keys.last = key;
}

}  // namespace

void UpfReader::read(const Segment& segment, const Group& group, const KeyRange& wanted,
                     GroupKeys& keys, const Visitor& visit,
                     const std::function<void(std::string_view)>& pass_over) {
  read_some(segment, group, wanted, keys, visit, pass_over);
  if (done_) done_(group.record);
}

void UpfReader::read_some(const Segment& segment, const Group& group, const KeyRange& wanted,
                          GroupKeys& keys, const Visitor& visit,
                          const std::function<void(std::string_view)>& pass_over) {
  const bool again = std::exchange(keys.read, true);
  const std::optional<MethodKey> end = wanted.end;
  ByteSpan raw;
  // Its checksum is asked for each time, since it may be another file's by now; and what was learned
  // then need not hold of what is here.
  if (!unpack(group, raw)) {
    keys.stop = 0;
    return;
  }
  const size_t size = raw.size();
  const auto name_of = [&](uint32_t id) { return segment.strings.find(id); };
  const uint64_t from = wanted.from == keys.end ? keys.behind : keys.start;
  if (from > size) return warn(group.offset, "group: it became shorter while it was read");
  raw = raw.subspan(from);
  bool started = false;
  uint32_t methods = 0;
  MethodView view;
  for (; !raw.empty(); ++methods) {
    const uint64_t at = size - raw.size();
    if (at >= keys.stop) return;
    const std::optional<EntryHead> head =
        group.format == kUpfEntries ? head_of(group.module_key, raw) : std::nullopt;
    const bool before = head && head->key < wanted.from;
    if (!before && !std::exchange(started, true)) keys.start = at;
    if (head && !wanted.contains(head->key)) {
      // All before this one lie before the end as it was, wherever that is now.
      const bool first_behind = !before && end && keys.end != *end;
      if (first_behind) keys.end = *end, keys.behind = at;
      if (again && !before) return;
      if (!again) learn(head->key, methods == 0, keys);
      pass_over(name_of(head->name).value_or(""));
      raw = raw.subspan(head->size);
      continue;
    }
    view.time = segment.info.time;
    const Status taken = take_entry(group.format, group.module_key, raw, words_, view);
    if (!taken.ok()) {
      keys.stop = at;
      return warn(group.offset, "group: " + taken.error().message);
    }
    if (!again) learn(view.key, methods == 0, keys);
    const auto name = name_of(view.name);
    if (!name) warn(group.offset, "group: a name that is not in the string table");
    wanted.contains(view.key) ? visit(view, name.value_or("")) : pass_over(name.value_or(""));
  }
  if (!again) tell_count(group, methods);
}

}  // namespace uptier::profile
