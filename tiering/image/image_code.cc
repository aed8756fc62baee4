#include "tiering/image/image_code.h"

#include <utility>

#include "jit/code/code_space.h"
#include "jit/code/place_code.h"
#include "profile/base/wall.h"
#include "tiering/base/clock.h"

namespace uptier::tiering {
namespace {

profile::Sha256 hash_of(const ContentHash& content) { return content.bytes; }

std::unique_ptr<MethodShape> shape_of(MethodRecord& r, const void* alias_scope) {
  auto shape = std::make_unique<MethodShape>(r.loop_count);
  shape->block_weights = std::move(r.block_weights);
  for (uint32_t w : shape->block_weights) shape->instructions += w;
  shape->cfg_hash = r.cfg_hash;
  shape->static_shape = std::move(r.static_shape);
  shape->alias_scope = alias_scope;
  shape->undescribed = true;
  return shape;
}

}  // namespace

void ImageCode::open() {
  const uint64_t start = now_ns();
  Status s = open_file();
  open_ms_ = static_cast<double>(now_ns() - start) / 1e6;
  if (s) return;
  view_.reset();
  file_ = {};
  problem_ = s.error().message;
  p_.log.say(LogLevel::kWarning, "the image is not used: " + problem_);
}

Status ImageCode::open_file() {
  const std::string& path = p_.options.image;
  if (Status s = allows_images(p_.options); !s) return s;
  Result<profile::ImageKey> here = image_key(p_.options, p_.space, p_.lines);
  if (!here) return here.error();
  Result<TrustedFile> file = TrustedFile::read(path, profile::kMostImageBytes);
  if (!file) return file.error();
  file_ = std::move(*file);
  Result<profile::ImageView> view = profile::ImageView::open(file_.bytes());
  if (!view) return Error{view.error().code, path + ": " + view.error().message};
  if (std::string why = difference(view->key(), *here); !why.empty()) {
    return Error{ErrorCode::kInvalidInput, path + ": " + why};
  }
  values_.set_objects(view->objects());
  view_ = std::make_unique<profile::ImageView>(std::move(*view));
  return {};
}

bool ImageCode::has(const ContentHash& content) const {
  return is_open() && content.known() && view_->find(hash_of(content)) != nullptr;
}

ImageReport ImageCode::report() const {
  ImageReport r;
  r.file = p_.options.image;
  r.problem = problem_;
  r.open_ms = open_ms_;
  if (!is_open()) return r;
  r.bytes = view_->bytes();
  r.methods = view_->methods();
  r.placed = placed_.load(std::memory_order_relaxed);
  r.refused = refused_.load(std::memory_order_relaxed);
  const Held lock(mutex_);
  r.first_refused = first_refused_;
  return r;
}

Result<ImageCode::Body> ImageCode::place(Method& m) {
  const Error none{ErrorCode::kNotFound, "the image does not have the method"};
  if (!is_open()) return none;
  const ContentHash content = m.host.content(m.id);
  const profile::ImageView::Content* of = content.known() ? view_->find(hash_of(content)) : nullptr;
  if (of == nullptr) return none;
  const profile::ByteSpan record = view_->find(*of, m.info.key.function_index);
  if (record.empty()) return none;
  Result<Body> body = place_record(m, record);
  if (body) {
    placed_.fetch_add(1, std::memory_order_relaxed);
  } else if (body.error().code != ErrorCode::kResourceExhausted) {
    note_refused(m, body.error());
  }
  return body;
}

Result<ImageCode::Body> ImageCode::place_record(Method& m, profile::ByteSpan bytes) {
  Result<MethodRecord> r = read_record(bytes);
  if (!r) return r.error();
  Body body;
  std::vector<jit::FilledRef> refs;
  refs.reserve(r->refs.size());
  for (const SymbolRef& ref : r->refs) {
    Result<uint64_t> value = values_.value(ref, m, body.callees);
    if (!value) return value.error();
    refs.push_back({ref.offset, ref.kind, *value});
  }
  const jit::BodyToPlace to_place{
      {reinterpret_cast<const uint8_t*>(r->bytes.data()), r->bytes.size()},
      r->hot_size,
      r->entry_offset,
      refs};
  Result<std::unique_ptr<jit::Code>> code =
      jit::place_code(p_.space, to_place, std::move(r->tables), m.id);
  if (!code) return code.error();
  body.code = std::move(*code);
  body.shape = shape_of(*r, m.host.alias_scope());
  return body;
}

void ImageCode::note_refused(const Method& m, const Error& why) {
  refused_.fetch_add(1, std::memory_order_relaxed);
  const Held lock(mutex_);
  if (first_refused_.empty()) first_refused_ = m.info.name + ": " + why.message;
}

}  // namespace uptier::tiering
