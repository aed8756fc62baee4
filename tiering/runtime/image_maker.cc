#include "tiering/runtime/image_maker.h"

#include <algorithm>
#include <utility>

#include "jit/code/float_state.h"
#include "profile/base/new_file.h"
#include "profile/base/write_all.h"
#include "profile/image/image_writer.h"
#include "tiering/base/state_lock.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/compile/compile_turns.h"
#include "tiering/compile/method_compiler.h"
#include "tiering/image/image_code.h"
#include "tiering/image/method_record.h"
#include "tiering/image/symbols.h"
#include "tiering/model/looking_around.h"
#include "tiering/runtime/engine.h"
#include "tiering/runtime/looks.h"

namespace uptier::tiering {
namespace {

Status write_file(const std::string& path, const profile::Bytes& bytes) {
  Result<profile::NewFile> file = profile::NewFile::create(path);
  if (!file) return file.error();
  int error = profile::write_all(file->fd(), bytes);
  if (error == 0) error = file->close();
  if (error == 0) error = file->replace();
  return error == 0 ? Status() : Status(profile::io_error(path, "cannot write the image", error));
}

Result<MethodRecord> record_of(const Method& m, const MethodCompiler::Recorded& r,
                               SymbolNames& names) {
  MethodRecord record;
  record.loop_count = m.shape->loop_count;
  record.cfg_hash = m.shape->cfg_hash;
  record.block_weights = m.shape->block_weights;
  record.static_shape = r.shape;
  record.bytes = std::as_bytes(std::span(r.code.bytes));
  record.hot_size = r.code.hot_size;
  record.entry_offset = r.code.entry_offset;
  record.tables = r.code.tables;
  for (const jit::CodeRef& ref : r.code.refs) {
    Result<SymbolRef> named = names.name(ref, m);
    if (!named) return named.error();
    record.refs.push_back(*named);
  }
  const size_t blocks = record.block_weights.size();
  const bool whole =
      record.static_shape.per_call.size() == blocks && record.static_shape.in_loop.size() == blocks;
  if (whole) return record;
  return Error{ErrorCode::kUnsupported, "its blocks have no sites"};
}

}  // namespace

// Those that have code, in the order of their first calls.
std::vector<MethodId> ImageMaker::called() const {
  std::vector<std::pair<uint64_t, MethodId>> found;
  {
    HeldState lock(engine_.state_mutex);
    for (const auto& m : engine_.methods.all()) {
      if (!m->removed && m->code_made) found.push_back({m->first_call, m->id});
    }
  }
  std::ranges::stable_sort(found, {}, [](const auto& f) { return f.first; });
  std::vector<MethodId> ids;
  for (auto [order, id] : found) ids.push_back(id);
  return ids;
}

Result<ImageMade> ImageMaker::write(const std::string& file, std::span<const MethodId> methods) {
  if (engine_.is_in_build("write_image")) {
    return Error{ErrorCode::kInvalidArgument, "write_image was called inside of a build"};
  }
  if (Status s = allows_images(engine_.options); !s) return s.error();
  Result<profile::ImageKey> key = image_key(engine_.options, *engine_.space, engine_.has_lines());
  if (!key) return key.error();
  jit::StandardFloats floats;
  std::vector<MethodId> all;
  if (methods.empty()) {
    all = called();
    methods = all;
  }
  SymbolNames names(engine_.helpers, *engine_.stubs, engine_.methods);
  profile::ImageWriter image(*key);
  ImageMade made;
  for (MethodId id : methods) {
    Status s = add(id, names, image, made);
    if (s) continue;
    if (s.error().code == ErrorCode::kResourceExhausted) return s.error();
    if (made.left_out++ == 0) made.first_left_out = s.error().message;
  }
  made.methods = image.methods();
  const profile::Bytes bytes = image.finish(names.objects(), {});
  made.bytes = bytes.size();
  if (Status s = write_file(file, bytes); !s) return s.error();
  return made;
}

Status ImageMaker::add(MethodId id, SymbolNames& names, profile::ImageWriter& image,
                       ImageMade& made) {
  LookingAround looking(*engine_.looks);
  if (!engine_.is_method(id)) return Error{ErrorCode::kNotFound, "the method was removed"};
  Method& m = engine_.method(id.index());
  const auto left_out = [&](const Error& why) {
    return Error{why.code, m.info.name + ": " + why.message};
  };
  const ContentHash content = m.host.content(id);
  if (!content.known()) {
    return left_out({ErrorCode::kUnsupported, "its host has no hash of its content"});
  }
  CompileTurn turn(engine_.turns, m);
  if (!turn || engine_.is_removed(m)) {
    return left_out({ErrorCode::kUnsupported, "it is being described or was removed"});
  }
  Result<MethodCompiler::Recorded> recorded = engine_.compiler->record(m);
  if (!recorded) return left_out(recorded.error());
  Result<MethodRecord> record = record_of(m, *recorded, names);
  if (!record) return left_out(record.error());
  profile::Bytes bytes;
  if (Status s = append_record(*record, bytes); !s) return left_out(s.error());
  image.add(content.bytes, m.info.key.function_index, bytes);
  made.code_bytes += record->bytes.size();
  return {};
}

}  // namespace uptier::tiering
