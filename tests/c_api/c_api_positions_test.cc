// Positions of locations through the C API: the file table of a body, and the host's answer.
#include <string>
#include <vector>

#include "tests/support/c_api_world.h"

namespace uptier::test::c_api_positions_test {
namespace {

struct Found {
  std::string file, function;
  uint32_t line, column;

  friend bool operator==(const Found&, const Found&) = default;
};

class CApiPositions : public CApi {
 protected:
  // A host that answers for locations from 100 on.
  static void positions(void*, uptier_method, uint32_t location, uptier_position_visitor visit,
                        void* to) {
    if (location < 100) return;
    const uptier_position inner{"host.c", "inner", location, 1}, outer{"host.c", nullptr, 9, 0};
    visit(to, &inner);
    visit(to, &outer);
  }
  uptier_method add_resolving(BodyHost& body) {
    static constexpr uptier_host kHost = {sizeof(uptier_host), BodyHost::build, BodyHost::drop,
                                          &CApiPositions::positions};
    uptier_method_info info = info_of("resolving", &body, signature(1));
    info.host = &kHost;
    uptier_method m = {};
    EXPECT_EQ(uptier_runtime_add_method(runtime_, &info, &m, &error_), UPTIER_OK);
    return m;
  }
  std::vector<Found> at(uptier_method m, uint32_t location) const {
    std::vector<Found> found;
    const auto take = [](void* to, const uptier_position* p) {
      const char* function = p->function == nullptr ? "" : p->function;
      static_cast<std::vector<Found>*>(to)->push_back({p->file, function, p->line, p->column});
    };
    const size_t n = uptier_runtime_positions(runtime_, m, location, take, &found);
    EXPECT_EQ(n, found.size());
    return found;
  }
};

TEST_F(CApiPositions, come_from_the_body_or_the_host) {
  BodyHost& body = keep({[](uptier_builder* b) {
    const uptier_file file = uptier_build_add_file(b, "x.calc");
    EXPECT_EQ(uptier_build_add_file(b, "x.calc").id, file.id);
    uptier_build_set_location(b, 3);
    uptier_build_ret(b, uptier_build_param(b, 0));
    EXPECT_EQ(uptier_build_add_position(b, 3, file, 30, 4, UPTIER_NOT_INLINED), UPTIER_OK);
    EXPECT_EQ(uptier_build_add_position(b, 4, file, 31, 0, 3), UPTIER_OK);
  }});
  const uptier_method m = add_resolving(body);
  ASSERT_EQ(invoke(m, {1}), UPTIER_OK);
  EXPECT_EQ(at(m, 3), (std::vector<Found>{{"x.calc", "", 30, 4}}));
  EXPECT_EQ(at(m, 4), (std::vector<Found>{{"x.calc", "", 31, 0}, {"x.calc", "", 30, 4}}));
  EXPECT_EQ(at(m, 100), (std::vector<Found>{{"host.c", "inner", 100, 1}, {"host.c", "", 9, 0}}));
  EXPECT_TRUE(at(m, 5).empty());
  EXPECT_TRUE(at({0}, 3).empty());
  EXPECT_TRUE(at({999}, 3).empty());
  EXPECT_EQ(uptier_runtime_positions(runtime_, m, 3, nullptr, nullptr), 0u);
  EXPECT_EQ(uptier_runtime_positions(nullptr, m, 3, nullptr, nullptr), 0u);
}

// Hosts of the first version of uptier_host have no such function.
TEST_F(CApiPositions, an_older_host_has_none) {
  static constexpr uptier_host kOld = {offsetof(uptier_host, positions), BodyHost::build,
                                       BodyHost::drop, nullptr};
  BodyHost& body = keep({[](uptier_builder* b) { uptier_build_ret(b, uptier_build_param(b, 0)); }});
  uptier_method_info info = info_of("old", &body, signature(1));
  info.host = &kOld;
  uptier_method m = {};
  ASSERT_EQ(uptier_runtime_add_method(runtime_, &info, &m, &error_), UPTIER_OK) << error_.message;
  ASSERT_EQ(invoke(m, {1}), UPTIER_OK);
  EXPECT_TRUE(at(m, 100).empty());
}

TEST_F(CApiPositions, misuse_fails_the_build_with_its_reason) {
  const auto error_of = [&](const char* name, auto add_rows) {
    BodyHost& body = keep({[=](uptier_builder* b) {
      add_rows(b);
      uptier_build_ret(b, uptier_build_param(b, 0));
    }});
    EXPECT_NE(invoke(add(name, body, signature(1)), {1}), UPTIER_OK) << name;
    return std::string(error_.message);
  };
  EXPECT_NE(error_of("file",
                     [](uptier_builder* b) {
                       uptier_build_add_position(b, 1, {3}, 1, 1, UPTIER_NOT_INLINED);
                     })
                .find("the file is none of this builder"),
            std::string::npos)
      << error_.message;
  EXPECT_NE(error_of("path", [](uptier_builder* b) { uptier_build_add_file(b, nullptr); })
                .find("the path is NULL"),
            std::string::npos)
      << error_.message;
  EXPECT_NE(error_of("twice",
                     [](uptier_builder* b) {
                       const uptier_file f = uptier_build_add_file(b, "x");
                       uptier_build_add_position(b, 1, f, 1, 1, UPTIER_NOT_INLINED);
                       uptier_build_add_position(b, 1, f, 2, 1, UPTIER_NOT_INLINED);
                     })
                .find("location 1 has two positions"),
            std::string::npos)
      << error_.message;
}

}  // namespace
}  // namespace uptier::test::c_api_positions_test
