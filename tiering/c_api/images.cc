// Images of code in the C API.
#include "uptier/code_image.h"

#include "tiering/c_api/c_api.h"

using namespace uptier;
using namespace uptier::tiering;

namespace {

static_assert(static_cast<int>(ImageRow::Kind::kBlock) == UPTIER_ROW_BLOCK &&
              static_cast<int>(ImageRow::Kind::kContinues) == UPTIER_ROW_CONTINUES &&
              static_cast<int>(ImageRow::Kind::kCall) == UPTIER_ROW_CALL &&
              static_cast<int>(ImageRow::Kind::kIndirectCall) == UPTIER_ROW_INDIRECT_CALL);
static_assert(ImageRow::kNoCallee == UINT32_MAX);

// The images as C sees them, and what they point to. Lists are complete before anything points into them.
struct CImages : uptier_code_images {
  explicit CImages(CodeImages&& from) : uptier_code_images{}, images(std::move(from)) {
    add_methods();
    add_codes();
    add_stacks();
    size = sizeof(uptier_code_images);
    elsewhere = images.elsewhere;
    lost_samples = images.lost_samples;
    lost_codes = images.lost_codes;
    cut_stacks = images.cut_stacks;
  }

 private:
  void add_methods() {
    for (const ImagedMethod& m : images.methods) {
      c_methods.push_back(
          {m.key.module_key, m.key.function_index, m.blocks, m.name.c_str(), m.cfg_hash});
    }
    methods = c_methods.data();
    method_count = c_methods.size();
  }

  void add_codes() {
    for (const CodeImage& c : images.codes) {
      for (const ImageBody& b : c.bodies) c_bodies.push_back({b.method, b.parent, b.site});
      for (const ImageRow& r : c.rows) {
        c_rows.push_back({r.offset, static_cast<uptier_row_kind>(r.kind), r.site, r.body, r.returns,
                          r.callee, r.partial ? 1u : 0u});
      }
    }
    const uptier_image_body* body = c_bodies.data();
    const uptier_image_row* row = c_rows.data();
    for (const CodeImage& c : images.codes) {
      c_codes.push_back({.version = c.version,
                         .tier = static_cast<uptier_tier>(c.tier),
                         .instrumented = c.copy == Copy::kInstrumented,
                         .loop = c.loop.valid() ? c.loop.index() : UINT32_MAX,
                         .freed = c.freed,
                         .address = c.address,
                         .cold_address = c.cold_address,
                         .hot_size = c.hot_size,
                         .data_at = c.data_at,
                         .data_end = c.data_end,
                         .reserved = 0,
                         .bytes = c.bytes.data(),
                         .byte_count = c.bytes.size(),
                         .bodies = std::exchange(body, body + c.bodies.size()),
                         .body_count = c.bodies.size(),
                         .rows = std::exchange(row, row + c.rows.size()),
                         .row_count = c.rows.size()});
    }
    codes = c_codes.data();
    code_count = c_codes.size();
  }

  void add_stacks() {
    for (const ImagedStack& s : images.stacks) {
      for (const ImageFrame& f : s.frames) c_frames.push_back({f.code, f.offset});
    }
    const uptier_image_frame* frame = c_frames.data();
    for (const ImagedStack& s : images.stacks) {
      c_stacks.push_back(
          {std::exchange(frame, frame + s.frames.size()), s.frames.size(), s.samples, s.ns});
    }
    stacks = c_stacks.data();
    stack_count = c_stacks.size();
  }

  const CodeImages images;  // names and bytes
  std::vector<uptier_imaged_method> c_methods;
  std::vector<uptier_code_image> c_codes;
  std::vector<uptier_image_body> c_bodies;  // of all codes, one after the other; likewise the next
  std::vector<uptier_image_row> c_rows;
  std::vector<uptier_imaged_stack> c_stacks;
  std::vector<uptier_image_frame> c_frames;
};

}  // namespace

extern "C" {

uptier_status uptier_runtime_code_images(uptier_runtime* runtime, const uptier_code_images** out,
                                         uptier_error* error) noexcept try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (out == nullptr) return bad_argument(error, "out is NULL");
  if (forked(*runtime)) return fail_forked(error);
  *out = std::make_unique<CImages>(runtime->runtime->code_images()).release();
  return UPTIER_OK;
} catch (const std::exception&) { return ran_out(error); }

void uptier_code_images_destroy(const uptier_code_images* images) noexcept {
  delete static_cast<const CImages*>(images);
}

}  // extern "C"
