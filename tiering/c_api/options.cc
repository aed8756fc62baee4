// Options of the C API.
#include "tiering/c_api/c_api.h"

using namespace uptier;
using namespace uptier::tiering;

extern "C" {

uptier_status uptier_options_create(uptier_options** out, uptier_error* error) noexcept try {
  if (out == nullptr) return bad_argument(error, "out is NULL");
  *out = new uptier_options{};
  return UPTIER_OK;
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_options_from_env(uptier_options** out, uptier_error* error) noexcept try {
  if (out == nullptr) return bad_argument(error, "out is NULL");
  Result<Options> options = Options::from_env();
  if (!options) return fail(error, options.error());
  *out = new uptier_options{std::move(*options)};
  return UPTIER_OK;
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_options_set(uptier_options* options, const char* name, const char* value,
                                 uptier_error* error) noexcept try {
  if (options == nullptr) return bad_argument(error, "the options are NULL");
  if (name == nullptr || value == nullptr) return bad_argument(error, "name or value is NULL");
  Status s = options->options.set(name, value);
  return s ? UPTIER_OK : fail(error, s.error());
} catch (const std::exception&) { return ran_out(error); }

uptier_status uptier_options_text(const uptier_options* options, char* buffer, size_t capacity,
                                  size_t* length, uptier_error* error) noexcept try {
  if (options == nullptr) return bad_argument(error, "the options are NULL");
  return write_text(options->options.table(), buffer, capacity, length, error);
} catch (const std::exception&) { return ran_out(error); }

void uptier_options_destroy(uptier_options* options) noexcept { delete options; }

}  // extern "C"
