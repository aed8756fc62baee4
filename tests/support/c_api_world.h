// c_api_world.h: a runtime created through the C API, and hosts whose bodies are function objects,
// for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "uptier/uptier.h"

namespace uptier::test {

using Body = std::function<void(uptier_builder*)>;

// The callbacks of a test host: the body is a function object.
struct BodyHost {
  Body body = {};
  uptier_status answer = UPTIER_OK;
  std::string message = {};
  int drops = 0;

  static uptier_status build(void* user, uptier_method, uptier_builder* b, uptier_error* error) {
    auto& self = *static_cast<BodyHost*>(user);
    self.body(b);
    std::snprintf(error->message, sizeof error->message, "%s", self.message.c_str());
    return self.answer;
  }
  static void drop(void* user) { static_cast<BodyHost*>(user)->drops++; }
};

inline constexpr uptier_host kBodyHost = {sizeof(uptier_host), BodyHost::build, BodyHost::drop,
                                          nullptr};
inline constexpr uptier_type kI64[] = {UPTIER_TYPE_I64, UPTIER_TYPE_I64, UPTIER_TYPE_I64};

inline uptier_signature signature(size_t params, uptier_type result = UPTIER_TYPE_I64) {
  return {kI64, params, result};
}

inline uptier_method_info info_of(const char* name, BodyHost* host, uptier_signature s) {
  uptier_method_info info = {};
  info.size = sizeof info;
  info.module_key = 7;
  info.name = name;
  info.signature = s;
  info.host = &kBodyHost;
  info.user = host;
  return info;
}

// A runtime that does its background work at flushes, so results do not depend on timing.
class CApi : public testing::Test {
 protected:
  void SetUp() override { create({}); }
  void TearDown() override { uptier_runtime_destroy(runtime_); }

  void create(const std::vector<std::pair<const char*, const char*>>& settings,
              const char* trace = nullptr) {
    uptier_runtime_destroy(runtime_);
    runtime_ = nullptr;
    uptier_options* options = nullptr;
    ASSERT_EQ(uptier_options_create(&options, &error_), UPTIER_OK);
    ASSERT_EQ(uptier_options_set(options, "workers", "0", &error_), UPTIER_OK);
    for (auto [name, value] : settings) {
      ASSERT_EQ(uptier_options_set(options, name, value, &error_), UPTIER_OK) << error_.message;
    }
    ASSERT_EQ(uptier_runtime_create(options, trace, &runtime_, &error_), UPTIER_OK)
        << error_.message;
    uptier_options_destroy(options);
  }

  // Returns a host that lives until the fixture is destroyed, as long as the runtime may call it.
  BodyHost& keep(BodyHost host) { return hosts_.emplace_back(std::move(host)); }

  uptier_method add(const char* name, BodyHost& host, uptier_signature s) {
    uptier_method_info info = info_of(name, &host, s);
    uptier_method m = {};
    EXPECT_EQ(uptier_runtime_add_method(runtime_, &info, &m, &error_), UPTIER_OK) << error_.message;
    return m;
  }

  uptier_status invoke(uptier_method m, std::vector<uint64_t> args) {
    outcome_ = {};
    return uptier_runtime_invoke(runtime_, m, args.data(), args.size(), &outcome_, &error_);
  }

  // Returns the text that `write(buffer, capacity, length, error)` produces.
  template <typename F>
  std::string text(F write) {
    size_t length = 0;
    EXPECT_EQ(write(nullptr, 0, &length, &error_), UPTIER_OK) << error_.message;
    std::vector<char> buffer(length + 1, 'x');
    size_t again = 0;
    EXPECT_EQ(write(buffer.data(), buffer.size(), &again, &error_), UPTIER_OK);
    EXPECT_EQ(again, length);
    EXPECT_EQ(std::strlen(buffer.data()), length);
    return buffer.data();
  }
  std::string ir(uptier_method m) {
    return text([&](char* b, size_t n, size_t* l, uptier_error* e) {
      return uptier_runtime_ir_text(runtime_, m, b, n, l, e);
    });
  }

  // Builds a body and returns the error message of the build; empty if the build succeeds.
  std::string complaint(const Body& body, uptier_signature s = signature(2)) {
    BodyHost& host = keep({body});
    uptier_method m = add("broken", host, s);
    uptier_error e = {};
    char none[1];
    uptier_status status = uptier_runtime_ir_text(runtime_, m, none, 0, nullptr, &e);
    EXPECT_EQ(status, e.status);
    EXPECT_EQ(uptier_runtime_remove_methods(runtime_, &m, 1, nullptr), UPTIER_OK);
    EXPECT_EQ(host.drops, 1);
    return status == UPTIER_OK ? "" : e.message;
  }

  std::deque<BodyHost> hosts_;
  uptier_runtime* runtime_ = nullptr;
  uptier_error error_ = {};
  uptier_outcome outcome_ = {};
};

// A host function.
inline int64_t host_triple(int64_t x) { return 3 * x; }

inline void ret_first(uptier_builder* b) { uptier_build_ret(b, uptier_build_param(b, 0)); }

}  // namespace uptier::test
