// uptier profile dot: a method's blocks, or the calls between methods, for graphviz.
#include <algorithm>
#include <cstdio>

#include "profile/upf/file.h"
#include "tools/commands.h"
#include "tools/dot.h"
#include "tools/fail.h"
#include "tools/profile_commands.h"
#include "tools/streams.h"

namespace uptier::tools {
namespace {

int draw_method(const ProfileDotCommand& c, const Profile& p, const std::vector<BodyGraph>& bodies,
                std::string& text) {
  const MethodProfile* method = nullptr;
  for (const auto& [key, m] : p.methods) {
    if (m.name != c.method) continue;
    if (method != nullptr)
      fail(kOk, c.method + ": several methods have this name; the last is drawn");
    method = &m;
  }
  if (method == nullptr) return fail(kFailed, c.file + ": no method " + c.method);
  const BodyGraph* body = nullptr;
  for (const BodyGraph& g : bodies) {
    if (profile_of(p, g) == method) body = &g;
  }
  if (body == nullptr) {
    fail(kOk, c.module.empty() ? "no arrows: edges between blocks are known with --module only"
                               : "no arrows: " + c.module + " has no such method with this code");
  }
  text = dot_of_blocks(*method, body);
  return kOk;
}

}  // namespace

int profile_dot(const ProfileDotCommand& c) {
  ProfileFile file;
  if (int code = open_profile(c.file, file); code != kOk) return code;
  std::vector<BodyGraph> bodies;
  if (!c.module.empty()) {
    Result<std::vector<BodyGraph>> read = read_body_graphs(c.module);
    if (!read) return fail(read.error());
    bodies = std::move(*read);
  }
  std::string text;
  if (!c.method.empty()) {
    if (int code = draw_method(c, file.profile, bodies, text); code != kOk) return code;
  } else {
    if (c.module.empty()) fail(kOk, "indirect calls only: direct ones are known with --module");
    text = dot_of_calls(file.profile, bodies, c.top);
  }
  Status s = write_output(c.out.empty() ? kStream : c.out, std::as_bytes(std::span(text)));
  return s ? int{kOk} : fail(kFailed, s.error().message);
}

}  // namespace uptier::tools
