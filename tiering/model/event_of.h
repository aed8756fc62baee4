// event_of: makes records about a method or a version.
#pragma once

#include <string_view>

#include "tiering/events/events.h"
#include "tiering/model/method.h"

namespace uptier::tiering {

// `text` is copied when the record is emitted.
inline Event event_of(EventKind kind, const Method& m, std::string_view text = {},
                      uint64_t count = 0) {
  Event e;
  e.kind = kind;
  e.method = m.id;
  e.text = text;
  e.count = count;
  return e;
}

// `at_ns`: the time of the event; 0: now.
inline Event event_of(EventKind kind, const Version& v, uint64_t at_ns = 0) {
  Event e;
  e.kind = kind;
  e.tier = v.tier;
  e.copy = v.copy;
  e.loop = v.osr_loop;
  e.location = v.loop_location;
  e.method = v.method;
  e.at_ns = at_ns;
  e.version = v.serial;
  e.bytes = v.code_bytes;
  if (kind != EventKind::kCompiled && kind != EventKind::kInstalled) return e;
  e.duration_ns = v.compile_ns;
  e.count = v.inlined;
  return e;
}

// A frame entered a version at its loop. `from`: the serial number of the version that it left; 0:
// unknown.
inline Event entered_event(const Version& v, uint64_t from) {
  Event e = event_of(EventKind::kEntered, v);
  e.other_version = from;
  return e;
}

// A frame left code of a version. `to`: the code that it goes on in; null: the host's, or none. `why`
// is static.
inline Event left_event(const jit::Code& from, const jit::Code* to, const char* why,
                        const jit::ExitRow& row) {
  Event e;
  e.kind = EventKind::kLeft;
  e.tier = Tier::kOptimized;
  e.method = from.method();
  e.version = from.serial();
  e.other_version = to == nullptr ? 0 : to->serial();
  e.text = why;
  e.body = from.method_of(from.tables().exit_frames[row.frames_at].body);
  e.location = row.loc;
  e.count = row.exit;
  return e;
}

}  // namespace uptier::tiering
