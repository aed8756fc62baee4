// The C API's header, options, runtimes and methods: every function, every refusal.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "tests/support/c_api_world.h"
#include "uptier/profile.h"
#include "uptier/runtime.h"

extern "C" {
extern const uint32_t c_opcodes[];
extern const uint32_t c_traps[];
extern const uint32_t c_guard_reasons[];
extern const uint32_t c_probe_kinds[];
extern const size_t c_layout[];
uptier_status c_add_gcd(uptier_runtime* runtime, int* builds, uptier_method* out,
                        uptier_error* error);
int64_t c_call_gcd(uptier_code entry, int64_t a, int64_t b);
char* c_report(const uptier_runtime* runtime);
}

namespace uptier::test::c_api_test {
namespace {

// ---- The header ---------------------------------------------------------------------------------

#define X(id, name, text, shape, types, effects) \
  static_assert(UPTIER_OP_##name == static_cast<int>(Opcode::id));
UPTIER_OPCODES(X)
#undef X
#define X(id, name, text) static_assert(UPTIER_TRAP_##name == static_cast<int>(TrapCode::id));
UPTIER_TRAPS(X)
#undef X
#define X(id, name, text) static_assert(UPTIER_GUARD_##name == static_cast<int>(GuardReason::id));
UPTIER_GUARD_REASONS(X)
#undef X
static_assert(UPTIER_OPCODE_COUNT == kOpcodeCount);

// A C name is the opcode's text in capitals, so that it can be guessed.
TEST(CApiHeader, opcodes_are_called_what_their_text_says){
#define X(id, name, text, shape, types, effects)             \
  {                                                          \
    std::string upper = text;                                \
    for (char& c : upper) c = static_cast<char>(toupper(c)); \
    EXPECT_EQ(upper, #name);                                 \
  }
    UPTIER_OPCODES(X)
#undef X
}

TEST(CApiHeader, a_c_compiler_reads_the_same_numbers_and_layouts) {
  for (uint32_t i = 0; i < UPTIER_OPCODE_COUNT; ++i) EXPECT_EQ(c_opcodes[i], i);
  for (uint32_t i = 0; i < UPTIER_TRAP_COUNT; ++i) EXPECT_EQ(c_traps[i], i);
  for (uint32_t i = 0; i < UPTIER_GUARD_REASON_COUNT; ++i) EXPECT_EQ(c_guard_reasons[i], i);
  const size_t layout[] = {sizeof(uptier_error),
                           offsetof(uptier_error, message),
                           sizeof(uptier_signature),
                           sizeof(uptier_host),
                           offsetof(uptier_host, drop),
                           offsetof(uptier_host, positions),
                           sizeof(uptier_method_info),
                           offsetof(uptier_method_info, host_entry),
                           offsetof(uptier_method_info, host_may_trap),
                           sizeof(uptier_outcome),
                           offsetof(uptier_outcome, method),
                           sizeof(uptier_method_totals),
                           offsetof(uptier_method_totals, tier),
                           sizeof(uptier_totals),
                           offsetof(uptier_totals, evictions),
                           sizeof(uptier_trace_sink),
                           sizeof(uptier_host_frame),
                           sizeof(uptier_log_record),
                           sizeof(uptier_profile_answer),
                           sizeof(uptier_profile_entry),
                           sizeof(uptier_address),
                           offsetof(uptier_address, flags),
                           sizeof(uptier_event),
                           offsetof(uptier_event, version),
                           offsetof(uptier_event, text),
                           sizeof(uptier_subscription),
                           sizeof(uptier_subscriber),
                           offsetof(uptier_subscriber, kinds),
                           sizeof(uptier_code_events),
                           offsetof(uptier_code_events, lost),
                           sizeof(uptier_place),
                           sizeof(uptier_place_frame),
                           sizeof(uptier_position),
                           sizeof(uptier_data),
                           sizeof(uptier_piece),
                           sizeof(uptier_gathered_instrument),
                           sizeof(uptier_data_source),
                           sizeof(uptier_gather_report),
                           sizeof(uptier_log_format)};
  for (size_t i = 0; i < std::size(layout); ++i) EXPECT_EQ(c_layout[i], layout[i]) << i;
}

// C offers exactly the probe kinds that a body may contain.
TEST(CApiHeader, probes_are_those_that_a_host_places) {
  std::vector<uint32_t> placed;
  for (uint32_t k = 0; k < 256; ++k) {
    if (host_places(static_cast<ProbeKind>(k))) placed.push_back(k);
  }
  const uint32_t* end = std::find(c_probe_kinds, c_probe_kinds + 20, 0u);
  EXPECT_EQ(std::vector<uint32_t>(c_probe_kinds, end), placed);
  EXPECT_STREQ(uptier_probe_kind_name(UPTIER_PROBE_CALL_TARGET), "call_target");
  EXPECT_STREQ(uptier_probe_kind_name(UPTIER_PROBE_RANGE), "range");
}

// No padding at the end, where a new member would not change the size.
TEST(CApiHeader, structs_that_grow_end_with_their_last_member) {
  EXPECT_EQ(sizeof(uptier_host), offsetof(uptier_host, positions) + sizeof(void*));
  EXPECT_EQ(sizeof(uptier_method_info), offsetof(uptier_method_info, describes_at_once) + 4);
  EXPECT_EQ(sizeof(uptier_method_totals), offsetof(uptier_method_totals, left_for_host) + 8);
  EXPECT_EQ(sizeof(uptier_totals), offsetof(uptier_totals, stack_samples_lost) + 8);
  EXPECT_EQ(sizeof(uptier_trace_sink), offsetof(uptier_trace_sink, close) + sizeof(void*));
  EXPECT_EQ(sizeof(uptier_profile_answer), offsetof(uptier_profile_answer, changes) + 8);
  EXPECT_EQ(sizeof(uptier_data_source), offsetof(uptier_data_source, release) + sizeof(void*));
  EXPECT_EQ(sizeof(uptier_gather_report), offsetof(uptier_gather_report, refused) + 8);
}

TEST(CApiHeader, numbers_have_names_and_nonsense_has_a_question_mark) {
  EXPECT_STREQ(uptier_status_name(UPTIER_OK), "ok");
  EXPECT_STREQ(uptier_status_name(UPTIER_TRAPPED), "trapped");
  for (uptier_status s = UPTIER_INVALID_ARGUMENT; s < UPTIER_TRAPPED; ++s) {
    EXPECT_STREQ(uptier_status_name(s), error_code_name(static_cast<ErrorCode>(s - 1)));
  }
  EXPECT_STREQ(uptier_status_name(UPTIER_FORKED), "forked");
  for (uptier_status s : {-1, UPTIER_FORKED + 1, INT32_MAX, INT32_MIN}) {
    EXPECT_STREQ(uptier_status_name(s), "?");
  }
  EXPECT_STREQ(uptier_opcode_name(UPTIER_OP_DIV_S), "div_s");
  EXPECT_STREQ(uptier_type_name(UPTIER_TYPE_REF), "ref");
  EXPECT_STREQ(uptier_trap_text(UPTIER_TRAP_DIVIDE_BY_ZERO), "integer divide by zero");
  EXPECT_STREQ(uptier_tier_name(UPTIER_TIER_OPTIMIZED), "optimized");
  EXPECT_STREQ(uptier_guard_reason_name(UPTIER_GUARD_OVERFLOW), "overflow");
  for (uint32_t bad : {200u, 256u, 257u, UINT32_MAX}) {
    EXPECT_STREQ(uptier_guard_reason_name(bad), "?");
    EXPECT_STREQ(uptier_probe_kind_name(bad), "?");
    EXPECT_STREQ(uptier_opcode_name(bad), "?");
    EXPECT_STREQ(uptier_type_name(bad), "?");
    EXPECT_STREQ(uptier_trap_text(bad), "?");
    EXPECT_STREQ(uptier_tier_name(bad), "?");
  }
}

// ---- Options ------------------------------------------------------------------------------------

TEST(CApiOptions, are_set_by_name_and_refuse_what_is_out_of_range) {
  uptier_error e = {};
  uptier_options* o = nullptr;
  EXPECT_EQ(uptier_options_create(nullptr, &e), UPTIER_INVALID_ARGUMENT);
  ASSERT_EQ(uptier_options_create(&o, nullptr), UPTIER_OK);
  EXPECT_EQ(uptier_options_set(o, "interval", "64", &e), UPTIER_OK);
  EXPECT_EQ(uptier_options_set(o, "tier", "baseline", nullptr), UPTIER_OK);
  EXPECT_EQ(uptier_options_set(o, "no_such", "1", &e), UPTIER_NOT_FOUND);
  EXPECT_EQ(e.status, UPTIER_NOT_FOUND);
  EXPECT_STREQ(e.message, "there is no option \"no_such\"");
  EXPECT_EQ(uptier_options_set(o, "interval", "0", &e), UPTIER_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(e.message, "from 1 to"), nullptr) << e.message;
  EXPECT_EQ(uptier_options_set(o, "listen", "on", &e), UPTIER_OK);
  EXPECT_EQ(uptier_options_set(o, "listen", "here", &e), UPTIER_INVALID_ARGUMENT);
  EXPECT_NE(std::strstr(e.message, "on, off or the path of a socket"), nullptr) << e.message;
  EXPECT_EQ(uptier_options_set(nullptr, "interval", "1", &e), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_options_set(o, nullptr, "1", &e), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_options_set(o, "interval", nullptr, &e), UPTIER_INVALID_ARGUMENT);

  Options same;
  ASSERT_TRUE(same.set("interval", "64").ok() && same.set("tier", "baseline").ok() &&
              same.set("listen", "on").ok());
  std::vector<char> text(1 << 16);
  size_t length = 0;
  EXPECT_EQ(uptier_options_text(o, text.data(), text.size(), &length, &e), UPTIER_OK);
  EXPECT_EQ(text.data(), same.table());
  EXPECT_EQ(length, same.table().size());
  EXPECT_EQ(uptier_options_text(nullptr, text.data(), 1, &length, &e), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_options_text(o, nullptr, 1, &length, &e), UPTIER_INVALID_ARGUMENT);
  uptier_options_destroy(o);
  uptier_options_destroy(nullptr);
}

TEST(CApiOptions, come_from_the_environment_when_asked_for) {
  uptier_error e = {};
  uptier_options* o = nullptr;
  EXPECT_EQ(uptier_options_from_env(nullptr, &e), UPTIER_INVALID_ARGUMENT);
  ASSERT_EQ(setenv("UPTIER_INTERVAL", "77", 1), 0);
  ASSERT_EQ(uptier_options_from_env(&o, &e), UPTIER_OK);
  std::vector<char> text(1 << 16);
  uptier_options_text(o, text.data(), text.size(), nullptr, &e);
  EXPECT_NE(std::strstr(text.data(), " 77 "), nullptr);
  uptier_options_destroy(o);
  o = nullptr;
  ASSERT_EQ(setenv("UPTIER_INTERVAL", "many", 1), 0);
  EXPECT_EQ(uptier_options_from_env(&o, &e), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(o, nullptr);
  unsetenv("UPTIER_INTERVAL");
}

// A message that does not fit is cut between characters; no byte after the struct is written.
TEST(CApiOptions, long_messages_are_cut_at_a_whole_character) {
  struct {
    uptier_error error;
    char after = 'x';
  } e;
  uptier_options* o = nullptr;
  ASSERT_EQ(uptier_options_create(&o, nullptr), UPTIER_OK);
  for (size_t shift = 0; shift < 3; ++shift) {
    std::string name(shift, 'a');
    while (name.size() < 2000) name += "\u20ac";
    EXPECT_EQ(uptier_options_set(o, name.c_str(), "1", &e.error), UPTIER_NOT_FOUND);
    std::string message = e.error.message;
    size_t euros = message.size() - std::strlen("there is no option \"") - shift;
    EXPECT_EQ(euros % 3, 0u);
    EXPECT_GE(message.size(), sizeof e.error.message - 4);
    EXPECT_EQ(e.after, 'x');
  }
  uptier_options_destroy(o);
}

// ---- Runtimes and methods -----------------------------------------------------------------------

TEST_F(CApi, a_body_from_c_runs_hot_and_is_reported) {
  create({{"interval", "1"}, {"policy", "always"}});
  int builds = 0;
  uptier_method gcd = {};
  ASSERT_EQ(c_add_gcd(runtime_, &builds, &gcd, &error_), UPTIER_OK) << error_.message;
  EXPECT_EQ(builds, 0);
  ASSERT_EQ(uptier_runtime_attach(runtime_, &error_), UPTIER_OK);
  for (uint64_t i = 1; i <= 500; ++i) {
    ASSERT_EQ(invoke(gcd, {i * 6, 9}), UPTIER_OK) << error_.message;
    ASSERT_EQ(outcome_.bits, i % 3 == 0 ? 9u : 3u);
  }
  uptier_code entry = nullptr;
  ASSERT_EQ(uptier_runtime_entry(runtime_, gcd, &entry, &error_), UPTIER_OK);
  EXPECT_EQ(c_call_gcd(entry, 48, 36), 12);
  EXPECT_EQ(uptier_runtime_quiescent(runtime_), UPTIER_OK);
  EXPECT_EQ(uptier_runtime_flush(runtime_), UPTIER_OK);

  uptier_method_totals totals = {};
  totals.size = sizeof totals;
  ASSERT_EQ(uptier_runtime_method_totals(runtime_, gcd, &totals, &error_), UPTIER_OK);
  EXPECT_EQ(totals.calls, 501u);
  EXPECT_EQ(totals.tier, uptier_tier{UPTIER_TIER_OPTIMIZED});
  EXPECT_GE(totals.versions, 3u);
  EXPECT_GT(totals.sampled_calls, 0u);
  EXPECT_GT(totals.flushes, 0u);
  EXPECT_GT(totals.code_bytes, 0u);
  EXPECT_GT(totals.compile_ns, 0u);
  EXPECT_GE(builds, 2);

  uptier_totals all = {};
  all.size = sizeof all;
  ASSERT_EQ(uptier_runtime_totals(runtime_, &all, &error_), UPTIER_OK);
  EXPECT_EQ(all.methods_registered, 1u);
  EXPECT_EQ(all.methods_called, 1u);
  EXPECT_GT(all.decisions, 0u);
  EXPECT_GT(all.code_bytes_in_service, 0u);
  EXPECT_EQ(all.compiles_failed, 0u);

  char* report = c_report(runtime_);
  EXPECT_NE(std::strstr(report, "gcd"), nullptr);
  EXPECT_NE(std::strstr(report, "optimized"), nullptr);
  std::free(report);
  const std::string profile = text([&](char* b, size_t n, size_t* l, uptier_error* e) {
    return uptier_runtime_profile_text(runtime_, b, n, l, e);
  });
  Result<Profile> parsed = parse_profile(profile);
  ASSERT_TRUE(parsed.ok());
  ASSERT_EQ(parsed->methods.size(), 1u);  // the key was left out, so the method got its own
  EXPECT_EQ(parsed->methods.begin()->second.calls, 501u);
  EXPECT_EQ(uptier_runtime_detach(runtime_), UPTIER_OK);
}

TEST_F(CApi, texts_are_cut_as_snprintf_cuts_them) {
  BodyHost& host = keep({ret_first});
  uptier_method m = add("first", host, signature(2));
  const std::string whole = ir(m);
  for (size_t capacity : {size_t{1}, size_t{5}, whole.size(), whole.size() + 1}) {
    std::vector<char> buffer(capacity + 1, 'x');
    size_t length = 0;
    ASSERT_EQ(uptier_runtime_ir_text(runtime_, m, buffer.data(), capacity, &length, &error_),
              UPTIER_OK);
    EXPECT_EQ(length, whole.size());
    EXPECT_EQ(buffer.data(), whole.substr(0, capacity - 1));
    EXPECT_EQ(buffer[capacity], 'x');
  }
}

TEST_F(CApi, a_trace_file_is_written_and_ended) {
  const std::string path = testing::TempDir() + "c_api_test." + std::to_string(getpid()) + ".trace";
  create({{"interval", "1"}}, path.c_str());
  BodyHost& host = keep({ret_first});
  uptier_method m = add("first", host, signature(2));
  for (int i = 0; i < 100; ++i) ASSERT_EQ(invoke(m, {1, 2}), UPTIER_OK);
  uptier_runtime_destroy(runtime_);
  runtime_ = nullptr;
  EXPECT_EQ(host.drops, 1);

  std::FILE* f = std::fopen(path.c_str(), "rb");
  ASSERT_NE(f, nullptr);
  std::vector<std::byte> bytes(1 << 20);
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), f));
  std::fclose(f);
  std::remove(path.c_str());
  Result<TraceProfile> trace = profile_from_trace(bytes);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_FALSE(trace->truncated);
  EXPECT_EQ(trace->profile.find({7, 0})->calls, 100u);
}

TEST_F(CApi, a_runtime_is_refused_with_a_reason) {
  uptier_runtime* r = nullptr;
  EXPECT_EQ(uptier_runtime_create(nullptr, nullptr, nullptr, &error_), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_create(nullptr, "/no/such/folder/t", &r, &error_), UPTIER_IO);
  EXPECT_NE(std::strstr(error_.message, "/no/such/folder/t"), nullptr);
  EXPECT_EQ(r, nullptr);
  EXPECT_EQ(uptier_runtime_create(nullptr, nullptr, &r, nullptr), UPTIER_OK);
  uptier_runtime_destroy(r);
}

TEST_F(CApi, methods_are_refused_with_a_reason) {
  BodyHost& host = keep({ret_first});
  uptier_method m = {99};
  auto refused = [&](const std::function<void(uptier_method_info&, uptier_host&)>& change) {
    uptier_host functions = kBodyHost;
    uptier_method_info info = info_of("refused", &host, signature(2));
    info.host = &functions;
    change(info, functions);
    error_ = {};
    uptier_status s = uptier_runtime_add_method(runtime_, &info, &m, &error_);
    EXPECT_EQ(s, error_.status);
    EXPECT_NE(error_.message[0], 0);
    return s;
  };
  using I = uptier_method_info;
  using H = uptier_host;
  EXPECT_EQ(refused([](I& i, H&) { i.size = 8; }), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](I& i, H&) { i.size += 8; }), UPTIER_UNSUPPORTED);
  EXPECT_EQ(refused([](I&, H& h) { h.size = 0; }), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](I&, H& h) { h.size += 8; }), UPTIER_UNSUPPORTED);
  EXPECT_EQ(refused([](I& i, H&) { i.name = nullptr; }), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](I& i, H&) { i.host_may_trap = 2; }), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](I& i, H&) { i.describes_at_once = 2; }), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](I& i, H&) { i.host = nullptr; }), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](I&, H& h) { h.build = nullptr; }), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](I& i, H&) { i.signature.params = nullptr; }), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](I& i, H&) { i.signature.param_count = SIZE_MAX; }), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](I& i, H&) { i.signature.result = 6; }), UPTIER_INVALID_ARGUMENT);
  static const uptier_type none[] = {UPTIER_TYPE_NONE, UINT32_MAX};
  EXPECT_EQ(refused([](I& i, H&) { i.signature = {none, 1, 0}; }), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(refused([](I& i, H&) { i.signature = {none + 1, 1, 0}; }), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(m.id, 99u);
  EXPECT_EQ(host.drops, 0);

  uptier_method_info info = info_of("x", &host, signature(2));
  EXPECT_EQ(uptier_runtime_add_method(nullptr, &info, &m, nullptr), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_add_method(runtime_, nullptr, &m, nullptr), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_add_method(runtime_, &info, nullptr, nullptr), UPTIER_INVALID_ARGUMENT);
}

TEST_F(CApi, more_methods_than_max_methods_are_refused) {
  create({{"max_methods", "1030"}});  // past the first page of the table
  BodyHost& host = keep({ret_first});
  uptier_method last = {};
  for (int i = 0; i < 1030; ++i) last = add("m", host, signature(1));
  EXPECT_EQ(last.id, 1030u);
  uptier_method_info info = info_of("m", &host, signature(1));
  EXPECT_EQ(uptier_runtime_add_method(runtime_, &info, &last, &error_), UPTIER_RESOURCE_EXHAUSTED);
  EXPECT_EQ(invoke(last, {41}), UPTIER_OK);
  EXPECT_EQ(outcome_.bits, 41u);
  EXPECT_EQ(invoke({1025}, {42}), UPTIER_OK);
  EXPECT_EQ(invoke({1031}, {1}), UPTIER_INVALID_ARGUMENT);
}

TEST_F(CApi, null_runtimes_and_ids_out_of_range_are_refused) {
  BodyHost& host = keep({ret_first});
  add("first", host, signature(2));
  uptier_code code = nullptr;
  uptier_method_totals totals = {};
  totals.size = sizeof totals;
  uptier_totals all = {};
  all.size = sizeof all;
  const uint64_t args[2] = {};
  char buffer[8];
  for (uptier_runtime* r : {static_cast<uptier_runtime*>(nullptr), runtime_}) {
    for (uint32_t id : {0u, 2u, 1025u, 65537u, 1u << 31, UINT32_MAX}) {
      uptier_method m = {r == nullptr ? 1u : id};
      EXPECT_EQ(uptier_runtime_entry(r, m, &code, &error_), UPTIER_INVALID_ARGUMENT) << id;
      EXPECT_EQ(uptier_runtime_invoke(r, m, args, 2, &outcome_, &error_), UPTIER_INVALID_ARGUMENT);
      EXPECT_EQ(uptier_runtime_remove_methods(r, &m, 1, &error_), UPTIER_INVALID_ARGUMENT);
      EXPECT_EQ(uptier_runtime_ir_text(r, m, buffer, 8, nullptr, &error_), UPTIER_INVALID_ARGUMENT);
      EXPECT_EQ(uptier_runtime_method_totals(r, m, &totals, &error_), UPTIER_INVALID_ARGUMENT);
      EXPECT_EQ(uptier_runtime_method_error(r, m, buffer, 8, nullptr, &error_),
                UPTIER_INVALID_ARGUMENT);
    }
  }
  EXPECT_EQ(uptier_runtime_attach(nullptr, &error_), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_detach(nullptr), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_quiescent(nullptr), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_begin_blocked(nullptr), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_end_blocked(nullptr), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_flush(nullptr), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_totals(nullptr, &all, &error_), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_report_text(nullptr, 0, buffer, 8, nullptr, &error_),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_profile_text(nullptr, buffer, 8, nullptr, &error_),
            UPTIER_INVALID_ARGUMENT);

  const uptier_method first = {1};
  EXPECT_EQ(uptier_runtime_entry(runtime_, first, nullptr, &error_), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_method_totals(runtime_, first, nullptr, &error_),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_totals(runtime_, nullptr, &error_), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_remove_methods(runtime_, nullptr, 1, &error_), UPTIER_INVALID_ARGUMENT);
  totals.size = all.size = 4;
  EXPECT_EQ(uptier_runtime_method_totals(runtime_, first, &totals, &error_),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_totals(runtime_, &all, &error_), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_report_text(runtime_, 0, nullptr, 8, nullptr, &error_),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_detach(runtime_), UPTIER_OK);  // not attached: no effect
}

TEST_F(CApi, removed_methods_are_dropped_once_and_refused_from_then_on) {
  BodyHost& a = keep({ret_first});
  BodyHost& b = keep({ret_first});
  uptier_method ids[] = {add("a", a, signature(1)), add("b", b, signature(1))};
  ASSERT_EQ(invoke(ids[0], {5}), UPTIER_OK);
  const uptier_method with_unknown[] = {ids[0], {17}};
  EXPECT_EQ(uptier_runtime_remove_methods(runtime_, with_unknown, 2, &error_),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(invoke(ids[0], {5}), UPTIER_OK);  // all methods or none are removed

  const uptier_method twice[] = {ids[0], ids[0]};
  EXPECT_EQ(uptier_runtime_remove_methods(runtime_, twice, 2, &error_), UPTIER_OK);
  EXPECT_EQ(a.drops, 1);
  EXPECT_EQ(invoke(ids[0], {5}), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_remove_methods(runtime_, ids, 1, &error_), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_remove_methods(runtime_, nullptr, 0, &error_), UPTIER_OK);
  uptier_runtime_destroy(runtime_);
  runtime_ = nullptr;
  EXPECT_EQ(a.drops, 1);
  EXPECT_EQ(b.drops, 1);
}

}  // namespace
}  // namespace uptier::test::c_api_test
