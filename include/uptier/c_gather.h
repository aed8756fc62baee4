// c_gather.h: data of a host that goes into profile files, and log lines, in C. Part of uptier.h;
// programs include that.
//
// The rules are those of <uptier/gather.h> and <uptier/log_text.h>: a source appends pieces of
// memory, which form whole chunks of IREE's instrumentation database; they are checked, and written
// from the memory where they lie.
#pragma once

#include "uptier/c_builder.h"
#include "uptier/c_report.h"
#include "uptier/c_types.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- Data ---------------------------------------------------------------------------------------

// Functions that attach data write its number for uptier_runtime_detach_data to `out`, which may be NULL.

// Data or a source that is attached to a runtime. `id` 0 is none; no number is given twice.
typedef struct uptier_data {
  uint64_t id;
} uptier_data;

// Adds `bytes` bytes of user data to the profiles of a runtime. They are not copied: they must stay
// as they are until they are detached or the runtime has been destroyed.
//
//   type      names the kind of data, e.g. "my.tool.table"
//   metadata  text for readers, e.g. JSON; may be NULL
//   data      may be NULL if `bytes` is 0
uptier_status uptier_runtime_attach_data(uptier_runtime* runtime, const char* type,
                                         const char* metadata, const void* data, size_t bytes,
                                         uptier_data* out, uptier_error* error) UPTIER_NOEXCEPT;

// Bytes in memory. Frozen: it has the layout of struct iovec.
typedef struct uptier_piece {
  const void* data;
  size_t bytes;
} uptier_piece;

// An instrument whose payload lies in memory. Texts that are NULL are empty. Frozen.
typedef struct uptier_gathered_instrument {
  const char* type;  // e.g. "iree.instrument.counter": one uint64_t
  const char* stage;
  const char* scope_hash;
  const char* scope_key;
  const char* metadata;
  const void* payload;
  size_t bytes;
} uptier_gathered_instrument;

// The list that a source appends pieces to, valid until its `gather` returns.
typedef struct uptier_gather_list uptier_gather_list;
// Appends bytes where they lie; they must stay as they are until the source's `release`.
void uptier_gather_borrow(uptier_gather_list* list, const void* data, size_t bytes) UPTIER_NOEXCEPT;
// Appends a copy of bytes.
void uptier_gather_copy(uptier_gather_list* list, const void* data, size_t bytes) UPTIER_NOEXCEPT;
// Appends a chunk of user data, with a string table for its texts. Only `data` is borrowed.
void uptier_gather_user_data(uptier_gather_list* list, const char* type, const char* metadata,
                             const void* data, size_t bytes) UPTIER_NOEXCEPT;
// Appends a table of instruments, with a string table. Only the payloads are borrowed.
void uptier_gather_instruments(uptier_gather_list* list,
                               const uptier_gathered_instrument* instruments,
                               size_t count) UPTIER_NOEXCEPT;
// Says that the code with `scope_hash` was made from code with `parent_hash`: a query without an
// answer for the first is answered from the second. `stage` and `key` may be NULL for all stages
// and all keys.
void uptier_gather_source_id(uptier_gather_list* list, const char* stage, const char* scope_hash,
                             const char* key, const char* parent_hash) UPTIER_NOEXCEPT;
// Says that the source cannot gather its data: it is left out. `problem` is not copied.
void uptier_gather_fail(uptier_gather_list* list, const char* problem) UPTIER_NOEXCEPT;

// A part of the program that has data for profile files. It is asked whenever the profile is saved
// or gathered, on the thread that does that, one call at a time. It may read the runtime, but must
// not save, gather, attach or detach: such calls are refused.
typedef struct uptier_data_source {
  size_t size;                                           // sizeof(uptier_data_source)
  void* user;                                            // passed to the functions
  const char* name;                                      // in messages; copied
  void (*gather)(void* user, uptier_gather_list* list);  // appends pieces
  void (*release)(void* user);                           // they are no longer used; may be NULL
} uptier_data_source;

// Attaches a source. `source` is copied; its functions and `user` must be usable until it is
// detached or the runtime has been destroyed.
uptier_status uptier_runtime_attach_source(uptier_runtime* runtime,
                                           const uptier_data_source* source, uptier_data* out,
                                           uptier_error* error) UPTIER_NOEXCEPT;

// Adds the counters of other code: `count` words, each with a key. The words are read, one by one,
// whenever the profile is saved or gathered; they must live until they are detached. `keys` is
// copied.
//
//   parent_hash  hash of the code that the code with `scope_hash` was made from; NULL: none
uptier_status uptier_runtime_import_counters(uptier_runtime* runtime, const char* stage,
                                             const char* scope_hash, const char* const* keys,
                                             const uint64_t* words, size_t count,
                                             const char* parent_hash, uptier_data* out,
                                             uptier_error* error) UPTIER_NOEXCEPT;

// Detaches data, counters or a source. When this returns, nothing of it is being used. Errors:
// UPTIER_NOT_FOUND; UPTIER_INVALID_ARGUMENT in a source.
uptier_status uptier_runtime_detach_data(uptier_runtime* runtime, uptier_data data,
                                         uptier_error* error) UPTIER_NOEXCEPT;

// Takes the pieces of a profile file. Any other status than UPTIER_OK is returned by
// uptier_runtime_gather, with the message.
typedef uptier_status (*uptier_take_pieces)(void* user, const uptier_piece* pieces, size_t count,
                                            uptier_error* error);

typedef struct uptier_gather_report {
  size_t size;       // in: sizeof(uptier_gather_report)
  uint64_t bytes;    // of all pieces
  uint64_t pieces;   // their number
  uint64_t sources;  // that were asked
  uint64_t refused;  // that were left out; the log says why
} uptier_gather_report;

// Passes the profile of this process and the data of all sources to `take`, as pieces that form a
// profile file. They are valid until `take` returns. `report` may be NULL. Flushes the calling
// thread first. Not from a host function, from `build`, or from a source.
uptier_status uptier_runtime_gather(uptier_runtime* runtime, uptier_take_pieces take, void* user,
                                    uptier_gather_report* report,
                                    uptier_error* error) UPTIER_NOEXCEPT;

// ---- Log lines ----------------------------------------------------------------------------------

// A format of log lines. `tag` 0 is none. Frozen.
typedef struct uptier_log_format {
  uint32_t tag;
} uptier_log_format;

// Makes a format, e.g. "read {u} bytes of {u}". Placeholders: {} signed, {u} unsigned, {x}
// hexadecimal, {f} a double; {{ and }} are braces; at most 8. Errors: UPTIER_INVALID_ARGUMENT, with
// position and rule.
uptier_status uptier_runtime_add_log_format(uptier_runtime* runtime, const char* text,
                                            uptier_log_format* out,
                                            uptier_error* error) UPTIER_NOEXCEPT;
// Logs a line at this place of a body, with as many arguments as the format has placeholders.
// `index` receives the number of its first probe, as in uptier_build_probe; may be NULL.
uptier_status uptier_build_log(uptier_builder* b, uptier_log_format format,
                               const uptier_value* arguments, size_t count,
                               uint32_t* index) UPTIER_NOEXCEPT;

#ifdef __cplusplus
}
#endif
