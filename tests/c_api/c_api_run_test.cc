// Calls through the C API: traps, host functions, callbacks that fail, threads.
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <thread>

#include "tests/support/c_api_world.h"

namespace uptier::test::c_api_run_test {
namespace {

using CApiRun = CApi;

TEST_F(CApiRun, a_wrong_call_is_refused_and_a_trap_is_told_apart) {
  BodyHost& host = keep({[](uptier_builder* b) {
    uptier_build_set_location(b, 1234);
    uptier_value q =
        uptier_build_binary(b, UPTIER_OP_DIV_S, uptier_build_param(b, 0), uptier_build_param(b, 1));
    uptier_build_ret(b, q);
  }});
  uptier_method m = add("divide", host, signature(2));
  EXPECT_EQ(invoke(m, {7}), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(invoke(m, {7, 1, 1}), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_invoke(runtime_, m, nullptr, 2, &outcome_, &error_),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(invoke(m, {42, 7}), UPTIER_OK);
  EXPECT_EQ(outcome_.bits, 6u);
  EXPECT_EQ(outcome_.trap, uptier_trap{UPTIER_TRAP_NONE});

  EXPECT_EQ(invoke(m, {42, 0}), UPTIER_TRAPPED);
  EXPECT_EQ(outcome_.trap, uptier_trap{UPTIER_TRAP_DIVIDE_BY_ZERO});
  EXPECT_EQ(outcome_.location, 1234u);
  EXPECT_EQ(outcome_.method.id, m.id);
  EXPECT_STREQ(error_.message, "divide: integer divide by zero at location 1234");
  const uint64_t args[] = {42, 0};
  EXPECT_EQ(uptier_runtime_invoke(runtime_, m, args, 2, nullptr, nullptr), UPTIER_TRAPPED);
}

TEST_F(CApiRun, a_call_of_what_could_not_be_made_says_why) {
  BodyHost& host = keep({[](uptier_builder* b) { uptier_build_ret(b, uptier_build_i64(b, 1)); }});
  host.answer = UPTIER_UNSUPPORTED;
  host.message = "there is no such bytecode";
  uptier_method m = add("odd", host, signature(1));
  EXPECT_EQ(invoke(m, {1}), UPTIER_TRAPPED);
  EXPECT_EQ(outcome_.trap, uptier_trap{UPTIER_TRAP_NO_CODE});
  EXPECT_STREQ(
      error_.message,
      "odd: no code could be made: odd: the host's build failed: there is no such bytecode");
}

struct Said {
  std::vector<std::pair<uptier_log_level, std::string>> lines;

  static void add(void* to, uptier_log_level level, const char* line, size_t size) {
    EXPECT_EQ(line[size], 0);
    static_cast<Said*>(to)->lines.emplace_back(level, std::string(line, size));
  }
};

TEST_F(CApiRun, the_log_goes_where_the_options_say) {
  Said said;
  uptier_options* options = nullptr;
  ASSERT_EQ(uptier_options_create(&options, &error_), UPTIER_OK);
  EXPECT_EQ(uptier_options_set_log(nullptr, Said::add, &said, &error_), UPTIER_INVALID_ARGUMENT);
  ASSERT_EQ(uptier_options_set_log(options, Said::add, &said, &error_), UPTIER_OK);
  ASSERT_EQ(uptier_options_set(options, "workers", "0", &error_), UPTIER_OK);
  ASSERT_EQ(uptier_options_set(options, "profile", "/nonexistent/p.upf", &error_), UPTIER_OK);
  uptier_runtime* runtime = nullptr;
  ASSERT_EQ(uptier_runtime_create(options, nullptr, &runtime, &error_), UPTIER_OK);
  uptier_options_destroy(options);
  BodyHost host{ret_first};
  uptier_method_info info = info_of("m", &host, signature(1));
  uptier_method m = {};
  ASSERT_EQ(uptier_runtime_add_method(runtime, &info, &m, &error_), UPTIER_OK);
  uptier_code entry = nullptr;
  ASSERT_EQ(uptier_runtime_entry(runtime, m, &entry, &error_), UPTIER_OK);
  EXPECT_EQ(reinterpret_cast<int64_t (*)(int64_t)>(entry)(5), 5);  // the thread is not attached
  uptier_totals totals = {};
  totals.size = sizeof totals;
  ASSERT_EQ(uptier_runtime_totals(runtime, &totals, &error_), UPTIER_OK);
  EXPECT_EQ(totals.calls_unattached, 1u);
  EXPECT_EQ(totals.keys_shared, 0u);
  EXPECT_EQ(totals.unstable_bodies, 0u);
  uptier_runtime_destroy(runtime);
  ASSERT_EQ(said.lines.size(), 2u);
  EXPECT_EQ(said.lines[0].first, uptier_log_level{UPTIER_LOG_WARNING});
  EXPECT_NE(said.lines[0].second.find("not attached"), std::string::npos);
  EXPECT_EQ(said.lines[1].first, uptier_log_level{UPTIER_LOG_ERROR});
  EXPECT_NE(said.lines[1].second.find("the profile of this process is lost"), std::string::npos);
}

uptier_status raise_status;
extern "C" int64_t raise_exit(int64_t detail) {
  raise_status = uptier_raise(UPTIER_TRAP_NONE, 1);
  if (raise_status == UPTIER_INVALID_ARGUMENT) raise_status = uptier_raise(UPTIER_TRAP_COUNT, 1);
  if (detail == 0) return 5;
  raise_status = uptier_raise(UPTIER_TRAP_EXIT, static_cast<uint64_t>(detail));
  return 0;
}

TEST_F(CApiRun, a_host_function_raises) {
  BodyHost& host = keep({[](uptier_builder* b) {
    uptier_value detail = uptier_build_param(b, 0);
    uptier_build_ret(
        b, uptier_build_call_host(b, "raise_exit", reinterpret_cast<uptier_code>(raise_exit),
                                  signature(1), &detail, 1, UPTIER_CALL_MAY_TRAP));
  }});
  uptier_method m = add("leave", host, signature(1));
  EXPECT_EQ(invoke(m, {0}), UPTIER_OK);
  EXPECT_EQ(outcome_.bits, 5u);
  EXPECT_EQ(raise_status, UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(invoke(m, {77}), UPTIER_TRAPPED);
  EXPECT_EQ(raise_status, UPTIER_OK);
  EXPECT_EQ(outcome_.trap, uptier_trap{UPTIER_TRAP_EXIT});
  EXPECT_EQ(outcome_.detail, 77u);
  EXPECT_EQ(outcome_.method.id, m.id);  // the method that called the host function
  EXPECT_STREQ(error_.message, "leave: program exit at location 0");
}

TEST_F(CApiRun, a_wrong_number_of_arguments_is_named) {
  BodyHost& host = keep({[](uptier_builder* b) { uptier_build_ret(b, uptier_build_param(b, 0)); }});
  uptier_method m = add("same", host, signature(1));
  EXPECT_EQ(invoke(m, {1, 2}), UPTIER_INVALID_ARGUMENT);
  EXPECT_STREQ(error_.message, "2 arguments, where the signature has 1");
}

uint64_t stack_seen;
extern "C" int64_t see_stack(int64_t x) {
  stack_seen = uptier_stack_left();
  return x;
}

TEST_F(CApiRun, an_interpreter_asks_for_the_stack_that_is_left) {
  BodyHost& host = keep({[](uptier_builder* b) {
    uptier_value x = uptier_build_param(b, 0);
    uptier_build_ret(
        b, uptier_build_call_host(b, "see_stack", reinterpret_cast<uptier_code>(see_stack),
                                  signature(1), &x, 1, 0));
  }});
  uptier_method m = add("see", host, signature(1));
  EXPECT_EQ(uptier_stack_left(), UINT64_MAX);
  ASSERT_EQ(uptier_runtime_attach(runtime_, &error_), UPTIER_OK);
  uint64_t before = uptier_stack_left();
  EXPECT_EQ(invoke(m, {7}), UPTIER_OK);
  EXPECT_LT(stack_seen, before);
  EXPECT_GT(stack_seen, before / 2);
  uptier_runtime_detach(runtime_);
}

TEST_F(CApiRun, settings_change_while_it_runs) {
  EXPECT_EQ(uptier_runtime_set(runtime_, "interval", "64", &error_), UPTIER_OK);
  EXPECT_EQ(uptier_runtime_set(runtime_, "interval", "0", &error_), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_set(runtime_, "workers", "0", &error_), UPTIER_UNSUPPORTED);
  EXPECT_EQ(uptier_runtime_set(runtime_, "interval", nullptr, &error_), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_observe(runtime_, UPTIER_SAMPLING_OFF, &error_), UPTIER_OK);
  EXPECT_EQ(uptier_runtime_observe(runtime_, 3, &error_), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_observe(nullptr, UPTIER_SAMPLING_OFF, &error_), UPTIER_INVALID_ARGUMENT);
}

// The alias classes claim that the two accesses do not overlap, which is false: the loaded value
// shows whether the compiler relied on the claim. It may do so only if both methods have the same
// alias scope.
TEST_F(CApiRun, alias_classes_hold_in_what_is_inlined_from_the_same_host) {
  for (uint64_t module : {7, 8}) {
    create({{"policy", "always"}, {"interval", "2"}, {"flush_first", "2"}});
    BodyHost& writes = keep({[](uptier_builder* b) {
      uptier_address word = {uptier_build_param(b, 0), {}, 0, UPTIER_MEM_ALIAS_CLASS(1)};
      uptier_build_store(b, UPTIER_OP_STORE, uptier_build_i64(b, 7), word);
      uptier_build_ret(b, uptier_build_param(b, 0));
    }});
    uptier_method_info info = info_of("writes", &writes, signature(1));
    info.module_key = module;
    uptier_method callee = {};
    ASSERT_EQ(uptier_runtime_add_method(runtime_, &info, &callee, &error_), UPTIER_OK);
    BodyHost& reads = keep({[callee](uptier_builder* b) {
      uptier_value at = uptier_build_param(b, 0);
      uptier_address word = {at, {}, 0, UPTIER_MEM_ALIAS_CLASS(2)};
      uptier_build_store(b, UPTIER_OP_STORE, uptier_build_i64(b, 5), word);
      uptier_build_call(b, callee, &at, 1);
      uptier_build_ret(b, uptier_build_load(b, UPTIER_OP_LOAD, UPTIER_TYPE_I64, word));
    }});
    uptier_method root = add("reads", reads, signature(1));
    uint64_t word = 0;
    for (int n = 0; n < 200; ++n) {
      ASSERT_EQ(invoke(root, {reinterpret_cast<uintptr_t>(&word)}), UPTIER_OK) << error_.message;
    }
    EXPECT_EQ(outcome_.bits, module == 7 ? 5u : 7u);
  }
}

TEST_F(CApiRun, raising_with_no_call_under_way_is_refused) {
  EXPECT_EQ(uptier_raise(UPTIER_TRAP_EXIT, 1), UPTIER_INVALID_ARGUMENT);
  ASSERT_EQ(uptier_runtime_attach(runtime_, &error_), UPTIER_OK);
  EXPECT_EQ(uptier_raise(UPTIER_TRAP_EXIT, 1), UPTIER_INVALID_ARGUMENT);
  uptier_runtime_detach(runtime_);
}

TEST_F(CApiRun, a_host_entry_runs_until_the_body_is_compiled) {
  create({{"interval", "1"}, {"policy", "always"}});
  BodyHost& host = keep({[](uptier_builder* b) {
    uptier_build_ret(
        b, uptier_build_binary(b, UPTIER_OP_MUL, uptier_build_param(b, 0), uptier_build_i64(b, 3)));
  }});
  uptier_method_info info = info_of("triple", &host, signature(1));
  info.host_entry = reinterpret_cast<uptier_code>(host_triple);
  uptier_method both = {}, only = {};
  ASSERT_EQ(uptier_runtime_add_method(runtime_, &info, &both, &error_), UPTIER_OK);
  const uptier_host nothing = {sizeof nothing, nullptr, nullptr, nullptr};
  info.host = &nothing;
  ASSERT_EQ(uptier_runtime_add_method(runtime_, &info, &only, &error_), UPTIER_OK);
  for (uint64_t i = 0; i < 300; ++i) {
    ASSERT_EQ(invoke(both, {i}), UPTIER_OK);
    ASSERT_EQ(outcome_.bits, 3 * i);
    ASSERT_EQ(invoke(only, {i}), UPTIER_OK);
    ASSERT_EQ(outcome_.bits, 3 * i);
  }
  char buffer[8];
  EXPECT_EQ(uptier_runtime_ir_text(runtime_, only, buffer, 8, nullptr, &error_),
            UPTIER_UNSUPPORTED);
  uptier_method_totals totals = {};
  totals.size = sizeof totals;
  ASSERT_EQ(uptier_runtime_method_totals(runtime_, only, &totals, &error_), UPTIER_OK);
  EXPECT_EQ(totals.tier, uptier_tier{UPTIER_TIER_HOST});
}

TEST_F(CApiRun, a_build_that_fails_makes_calls_trap_and_says_why) {
  BodyHost& host = keep({[](uptier_builder*) {}, UPTIER_UNSUPPORTED, "no such bytecode"});
  uptier_method m = add("odd", host, signature(1));
  EXPECT_EQ(invoke(m, {1}), UPTIER_TRAPPED);
  EXPECT_EQ(outcome_.trap, uptier_trap{UPTIER_TRAP_NO_CODE});
  const std::string why = text([&](char* b, size_t n, size_t* l, uptier_error* e) {
    return uptier_runtime_method_error(runtime_, m, b, n, l, e);
  });
  EXPECT_EQ(why, "odd: the host's build failed: no such bytecode");
  char buffer[8];
  EXPECT_EQ(uptier_runtime_ir_text(runtime_, m, buffer, 8, nullptr, &error_), UPTIER_UNSUPPORTED);
  host.message = "";
  host.answer = 123456;  // not a valid status
  EXPECT_EQ(uptier_runtime_ir_text(runtime_, m, buffer, 8, nullptr, &error_), UPTIER_INVALID_INPUT);
  EXPECT_STREQ(error_.message, "odd: the host's build failed: ?");
}

using CApiDeathTest = CApi;

TEST_F(CApiDeathTest, an_exception_does_not_leave_a_callback) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  BodyHost& host = keep({[](uptier_builder*) { throw std::runtime_error("thrown by the body"); }});
  uptier_method m = add("throws", host, signature(1));
  char buffer[8];
  // Through a pointer type that does not promise noexcept, as in C.
  using IrText =
      uptier_status (*)(uptier_runtime*, uptier_method, char*, size_t, size_t*, uptier_error*);
  volatile IrText ir_text = uptier_runtime_ir_text;
  auto build = [&] {
    try {
      ir_text(runtime_, m, buffer, 8, nullptr, &error_);
    } catch (const std::runtime_error&) {
      std::fputs("it came through\n", stderr);
      std::exit(0);
    }
  };
  EXPECT_DEATH(build(), "thrown by the body");
}

TEST_F(CApiRun, threads_add_and_invoke_at_the_same_time) {
  create({{"workers", "1"}, {"interval", "2"}});
  std::vector<std::thread> threads;
  std::vector<std::unique_ptr<BodyHost>> hosts;
  for (int t = 0; t < 4; ++t) hosts.push_back(std::make_unique<BodyHost>(BodyHost{ret_first}));
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      ASSERT_EQ(uptier_runtime_attach(runtime_, nullptr), UPTIER_OK);
      for (uint64_t i = 0; i < 50; ++i) {
        uptier_method_info info = info_of("m", hosts[t].get(), signature(1));
        uptier_method m = {};
        ASSERT_EQ(uptier_runtime_add_method(runtime_, &info, &m, nullptr), UPTIER_OK);
        uptier_outcome o = {};
        for (uint64_t n = 0; n < 40; ++n) {
          ASSERT_EQ(uptier_runtime_invoke(runtime_, m, &n, 1, &o, nullptr), UPTIER_OK);
          ASSERT_EQ(o.bits, n);
        }
        if (i % 2 == 0) {
          ASSERT_EQ(uptier_runtime_remove_methods(runtime_, &m, 1, nullptr), UPTIER_OK);
        }
      }
      uptier_runtime_detach(runtime_);
    });
  }
  for (std::thread& t : threads) t.join();
  uptier_runtime_destroy(runtime_);
  runtime_ = nullptr;
  for (auto& h : hosts) EXPECT_EQ(h->drops, 50);
}

}  // namespace
}  // namespace uptier::test::c_api_run_test
