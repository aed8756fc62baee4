// Data for profile files, and log lines, in the C API.
#include "uptier/gather.h"

#include <string>

#include "tiering/c_api/builder.h"
#include "tiering/c_api/c_api.h"
#include "uptier/log_format.h"

using namespace uptier;
using namespace uptier::tiering;

// The list of a call of uptier_data_source::gather.
struct uptier_gather_list {
  GatherList& list;
};

namespace {

static_assert(sizeof(uptier_piece) == sizeof(Piece) &&
              offsetof(uptier_piece, data) == offsetof(Piece, data) &&
              offsetof(uptier_piece, bytes) == offsetof(Piece, bytes));

std::span<const std::byte> bytes_at(const void* data, size_t bytes) {
  return {static_cast<const std::byte*>(data), bytes};
}

std::string_view text_of(const char* text) { return text == nullptr ? "" : text; }

class CSource final : public DataSource {
 public:
  explicit CSource(const uptier_data_source& s) : source_(s), name_(s.name) {}

  std::string_view name() const noexcept override { return name_; }
  void gather(GatherList& list) noexcept override {
    uptier_gather_list passed{list};
    source_.gather(source_.user, &passed);
  }
  void release() noexcept override {
    if (source_.release != nullptr) source_.release(source_.user);
  }

 private:
  const uptier_data_source source_;
  const std::string name_;
};

// Says that a function of the list was called with NULL data.
bool refuse_null(uptier_gather_list* list, const void* data, size_t bytes) {
  if (data != nullptr || bytes == 0) return false;
  list->list.fail("the data is NULL, but its size is not 0");
  return true;
}

// Attaches something by `attach`, which returns the number for Runtime::detach_data, and remembers
// it. The lock is not held meanwhile, since the runtime may be asking sources.
template <typename Attach>
uptier_status attach(uptier_runtime& r, std::unique_ptr<DataSource> source, Attach attach,
                     uptier_data* out, uptier_error* error) {
  uint64_t id = 0;
  {
    const Held lock(r.sources_mutex);
    r.attached.push_back({r.last_data + 1, 0, std::move(source)});
    id = ++r.last_data;
  }
  const Result<uint64_t> made = attach();
  const Held lock(r.sources_mutex);
  const auto at = std::ranges::find(r.attached, id, &CAttached::id);
  if (!made) {
    r.attached.erase(at);
    return fail(error, made.error());
  }
  at->data = *made;
  if (out != nullptr) out->id = id;
  return UPTIER_OK;
}

}  // namespace

extern "C" {

void uptier_gather_borrow(uptier_gather_list* list, const void* data, size_t bytes) noexcept {
  if (!refuse_null(list, data, bytes)) list->list.borrow(bytes_at(data, bytes));
}

void uptier_gather_copy(uptier_gather_list* list, const void* data, size_t bytes) noexcept {
  if (!refuse_null(list, data, bytes)) list->list.copy(bytes_at(data, bytes));
}

void uptier_gather_user_data(uptier_gather_list* list, const char* type, const char* metadata,
                             const void* data, size_t bytes) noexcept {
  if (refuse_null(list, data, bytes)) return;
  list->list.user_data(text_of(type), text_of(metadata), bytes_at(data, bytes));
}

void uptier_gather_instruments(uptier_gather_list* list,
                               const uptier_gathered_instrument* instruments, size_t count) noexcept
    try {
  if (refuse_null(list, instruments, count)) return;
  std::vector<GatheredInstrument> all;
  for (size_t i = 0; i < count; ++i) {
    const uptier_gathered_instrument& c = instruments[i];
    if (refuse_null(list, c.payload, c.bytes)) return;
    all.push_back({text_of(c.type), text_of(c.stage), text_of(c.scope_hash), text_of(c.scope_key),
                   text_of(c.metadata), bytes_at(c.payload, c.bytes)});
  }
  list->list.instruments(all);
} catch (const std::exception&) { list->list.fail("memory ran out"); }

void uptier_gather_source_id(uptier_gather_list* list, const char* stage, const char* scope_hash,
                             const char* key, const char* parent_hash) noexcept {
  list->list.source_id(text_of(stage), text_of(scope_hash), text_of(key), text_of(parent_hash));
}

void uptier_gather_fail(uptier_gather_list* list, const char* problem) noexcept {
  list->list.fail(problem == nullptr ? "the source says that it failed" : problem);
}

uptier_status uptier_runtime_attach_data(uptier_runtime* runtime, const char* type,
                                         const char* metadata, const void* data, size_t bytes,
                                         uptier_data* out, uptier_error* error) noexcept try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (type == nullptr) return bad_argument(error, "the type is NULL");
  if (data == nullptr && bytes != 0) return bad_argument(error, "the data is NULL");
  const auto add = [&] {
    return runtime->runtime->attach_data(type, text_of(metadata), bytes_at(data, bytes));
  };
  return attach(*runtime, nullptr, add, out, error);
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_runtime_attach_source(uptier_runtime* runtime,
                                           const uptier_data_source* source, uptier_data* out,
                                           uptier_error* error) noexcept try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (source == nullptr) return bad_argument(error, "the source is NULL");
  uptier_data_source s;
  if (const char* why = read_struct(source, UPTIER_C_END(uptier_data_source, release), s)) {
    return wrong_struct("uptier_data_source", why, error);
  }
  if (s.name == nullptr) return bad_argument(error, "the source has no name");
  if (s.gather == nullptr) return bad_argument(error, "the source has no gather");
  auto made = std::make_unique<CSource>(s);
  CSource& attached = *made;
  const auto add = [&]() -> Result<uint64_t> {
    const Status added = runtime->runtime->attach_data(attached);
    return added ? Result<uint64_t>(uint64_t{0}) : Result<uint64_t>(added.error());
  };
  return attach(*runtime, std::move(made), add, out, error);
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_runtime_import_counters(uptier_runtime* runtime, const char* stage,
                                             const char* scope_hash, const char* const* keys,
                                             const uint64_t* words, size_t count,
                                             const char* parent_hash, uptier_data* out,
                                             uptier_error* error) noexcept try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (stage == nullptr) return bad_argument(error, "the stage is NULL");
  if ((keys == nullptr || words == nullptr) && count != 0) {
    return bad_argument(error, "the keys or the words are NULL");
  }
  CounterBuffer buffer;
  buffer.stage = stage;
  buffer.scope_hash = text_of(scope_hash);
  buffer.parent_hash = text_of(parent_hash);
  buffer.words = {words, count};
  for (size_t i = 0; i < count; ++i) {
    if (keys[i] == nullptr) return bad_argument(error, "key " + std::to_string(i) + " is NULL");
    buffer.keys.emplace_back(keys[i]);
  }
  const auto add = [&] { return runtime->runtime->import_counters(std::move(buffer)); };
  return attach(*runtime, nullptr, add, out, error);
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_runtime_detach_data(uptier_runtime* runtime, uptier_data data,
                                         uptier_error* error) noexcept try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  DataSource* source = nullptr;
  uint64_t number = 0;
  {
    const Held lock(runtime->sources_mutex);
    const auto at = std::ranges::find(runtime->attached, data.id, &CAttached::id);
    if (at == runtime->attached.end()) {
      return fail(error, UPTIER_NOT_FOUND,
                  "no data with the number " + std::to_string(data.id) + " is attached");
    }
    source = at->source.get();
    number = at->data;
  }
  const Status s = source != nullptr ? runtime->runtime->detach_data(*source)
                                     : runtime->runtime->detach_data(number);
  if (!s) return fail(error, s.error());
  const Held lock(runtime->sources_mutex);
  std::erase_if(runtime->attached, [&](const CAttached& one) { return one.id == data.id; });
  return UPTIER_OK;
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_runtime_gather(uptier_runtime* runtime, uptier_take_pieces take, void* user,
                                    uptier_gather_report* report, uptier_error* error) noexcept
    try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (take == nullptr) return bad_argument(error, "take is NULL");
  constexpr size_t kFirst = UPTIER_C_END(uptier_gather_report, refused);
  if (report != nullptr && report->size < kFirst) {
    return bad_argument(error, "uptier_gather_report: its size is too small");
  }
  uptier_status taken = UPTIER_OK;
  uptier_error said = {};
  Result<GatherReport> gathered = runtime->runtime->gather([&](std::span<const Piece> pieces) {
    taken = take(user, reinterpret_cast<const uptier_piece*>(pieces.data()), pieces.size(), &said);
    return taken == UPTIER_OK ? Status() : Status(Error{ErrorCode::kIo, "take failed"});
  });
  if (taken != UPTIER_OK) return fail(error, taken, said.message);
  if (!gathered) return fail(error, gathered.error());
  if (report == nullptr) return UPTIER_OK;
  uptier_gather_report made = {};
  made.bytes = gathered->bytes;
  made.pieces = gathered->pieces;
  made.sources = gathered->sources;
  made.refused = gathered->refused.size();
  write_struct(made, kFirst, report);
  return UPTIER_OK;
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_runtime_add_log_format(uptier_runtime* runtime, const char* text,
                                            uptier_log_format* out, uptier_error* error) noexcept
    try {
  if (runtime == nullptr) return bad_argument(error, "the runtime is NULL");
  if (text == nullptr) return bad_argument(error, "the text is NULL");
  if (out == nullptr) return bad_argument(error, "out is NULL");
  const Result<LogFormat> made = runtime->runtime->add_log_format(text);
  if (!made) return fail(error, made.error());
  out->tag = made->tag;
  return UPTIER_OK;
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_build_log(uptier_builder* b, uptier_log_format format,
                               const uptier_value* arguments, size_t count,
                               uint32_t* index) noexcept try {
  std::vector<Value> values;
  if (!uptier_builder::enter_inst(b, __func__) || !b->list(arguments, count, values)) {
    return b == nullptr ? UPTIER_INVALID_ARGUMENT : b->status();
  }
  const uint32_t site = b->builder.log(LogFormat{format.tag}, values);
  if (index != nullptr) *index = site;
  return b->status();
} catch (const std::exception&) { return b->ran_out(); }

}  // extern "C"
