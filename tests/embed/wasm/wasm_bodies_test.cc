// Bodies that are validated separately from their module: on several threads at load, or at the
// first call.
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "embed/wasm/read_module.h"
#include "embed/wasm/validate_bodies.h"
#include "test_paths.h"
#include "tests/support/wasm_world.h"

namespace uptier::wasm::test::wasm_bodies_test {
namespace {

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(in), {});
}

// Compares the validation at load with a validator of single bodies, which either reads the
// declarations again (`anew`) or gets the rules that reading has made.
void expect_same(const Bytes& bytes, bool anew) {
  auto whole = read_module(bytes);
  auto later = read_module(bytes, Bodies::kLater);
  ASSERT_TRUE(whole.ok() && later.ok());
  ASSERT_EQ(whole->functions.size(), later->functions.size());
  ASSERT_NE(later->rules, nullptr);
  BodyValidator validator = anew ? BodyValidator(*later) : BodyValidator(std::move(later->rules));
  for (uint32_t f = whole->imported_functions; f < whole->functions.size(); ++f) {
    Status s = validator.validate(*later, f, 1);
    ASSERT_TRUE(s.ok()) << whole->name_of(f) << ": " << s.error().message;
    const FunctionInfo& a = whole->functions[f];
    const FunctionInfo& b = later->functions[f];
    EXPECT_EQ(whole->name_of(f), later->name_of(f));
    EXPECT_EQ(a.body_begin, b.body_begin);
    EXPECT_EQ(a.body_end, b.body_end);
    EXPECT_EQ(a.facts, b.facts) << whole->name_of(f);
  }
}

void expect_same(const Bytes& bytes) {
  expect_same(bytes, true);
  expect_same(bytes, false);
}

TEST(WasmBodies, each_of_the_example_programs_passes_by_itself) {
  int modules = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(UPTIER_SOURCE_DIR "/examples/programs/wasm")) {
    if (entry.path().extension() != ".wasm") continue;
    SCOPED_TRACE(entry.path().filename());
    expect_same(read_file(entry.path()));
    ++modules;
  }
  EXPECT_GE(modules, 13);
}

// Uses everything that a body can refer to: types, functions, tables, segments, globals, the
// memory.
constexpr const char* kNamesAll = R"((module
  (type $two (func (param i32 i64) (result i64 i32)))
  (import "e" "f" (func $f (param i32) (result i32)))
  (import "e" "g" (global $g i32))
  (memory 1) (table 4 funcref)
  (global $h (mut i64) (i64.const 5))
  (elem $e funcref (ref.func $f) (ref.null func))
  (data $d "abc")
  (func (param i32) (result i32)
    (memory.init $d (i32.const 0) (i32.const 0) (i32.const 3))
    (data.drop $d)
    (table.init $e (i32.const 0) (i32.const 0) (i32.const 2))
    (elem.drop $e)
    (memory.copy (i32.const 0) (i32.const 1) (i32.const 2))
    (memory.fill (i32.const 0) (i32.const 1) (i32.const 2))
    (table.copy (i32.const 0) (i32.const 1) (i32.const 2))
    (call $f (call_indirect (param i32) (result i32) (global.get $g) (local.get 0))))
  (func (param i32 i64) (result i64)
    (local.get 0) (local.get 1)
    (loop (type $two)
      (br_if 0 (memory.grow (i32.const 0)))
      (drop) (drop) (global.get $h) (i32.const 1))
    (drop) (drop) (local.get 0) (local.get 1)
    (block (type $two)
      (drop) (drop) (i64.load (i32.const 8)) (i32.const 2)
      (br_if 0 (i32.const 0)))
    (drop) (drop) (local.get 0) (local.get 1)
    (if (type $two) (local.get 0)
      (then (drop) (drop) (i64.const 1) (i32.const 2))
      (else (drop) (drop) (i64.const 3) (i32.const 4)))
    (drop))))";

TEST(WasmBodies, each_that_names_everything_passes_by_itself) {
  Bytes bytes = assemble(kNamesAll);
  auto whole = read_module(bytes);
  if (!whole.ok()) FAIL() << whole.error().message;
  expect_same(bytes);
}

void append(Bytes& out, size_t n) {
  do {
    out.push_back(static_cast<uint8_t>((n & 0x7f) | (n > 0x7f ? 0x80 : 0)));
    n >>= 7;
  } while (n != 0);
}

void append_section(Bytes& out, uint8_t id, const Bytes& content) {
  out.push_back(id);
  append(out, content.size());
  out.insert(out.end(), content.begin(), content.end());
}

// A body of type i32 -> i32 with a loop, an if with else, and `padding` more instructions.
Bytes sum_body(uint32_t padding) {
  Bytes b{1, 1, 0x7f};  // a local
  b.insert(b.end(), {0x03, 0x40, 0x20, 0, 0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b});
  b.insert(b.end(), {0x20, 0, 0x04, 0x7f, 0x41, 1, 0x05, 0x41, 2, 0x0b, 0x21, 1});
  for (uint32_t i = 0; i < padding; ++i) b.insert(b.end(), {0x20, 1, 0x41, 3, 0x6a, 0x21, 1});
  b.insert(b.end(), {0x20, 1, 0x0b});
  return b;
}

// A module of these bodies, each of type i32 -> i32.
Bytes module_of(const std::vector<Bytes>& bodies) {
  Bytes out{0, 'a', 's', 'm', 1, 0, 0, 0};
  append_section(out, 1, {1, 0x60, 1, 0x7f, 1, 0x7f});
  Bytes functions, code;
  append(functions, bodies.size());
  functions.insert(functions.end(), bodies.size(), 0);
  append_section(out, 3, functions);
  append(code, bodies.size());
  for (const Bytes& b : bodies) {
    append(code, b.size());
    code.insert(code.end(), b.begin(), b.end());
  }
  append_section(out, 10, code);
  return out;
}

// A module with one body of type i32 -> i32 that begins with `code`.
Bytes module_with(bool memory, const Bytes& code) {
  Bytes out{0, 'a', 's', 'm', 1, 0, 0, 0};
  append_section(out, 1, {1, 0x60, 1, 0x7f, 1, 0x7f});
  append_section(out, 3, {1, 0});
  if (memory) append_section(out, 5, {1, 0, 1});
  Bytes body{0}, section{1};
  body.insert(body.end(), code.begin(), code.end());
  body.insert(body.end(), {0x41, 0, 0x0b});
  append(section, body.size());
  section.insert(section.end(), body.begin(), body.end());
  append_section(out, 10, section);
  return out;
}

TEST(WasmBodies, accesses_are_refused_in_the_words_of_their_rules) {
  struct Row {
    bool memory;
    Bytes code;
    const char* words;  // null: the body is valid
  };
  const char* natural = "alignment must not be larger than natural alignment";
  const Row rows[] = {
      {true, {0x41, 0, 0x28, 2, 0, 0x1a}, nullptr},  // i32.load
      {true, {0x41, 0, 0x28, 3, 0, 0x1a}, natural},
      {true, {0x41, 0, 0x2d, 0, 0, 0x1a}, nullptr},  // i32.load8_u
      {true, {0x41, 0, 0x2d, 1, 0, 0x1a}, natural},
      {true, {0x41, 0, 0x42, 0, 0x37, 3, 0}, nullptr},  // i64.store
      {true, {0x41, 0, 0x42, 0, 0x37, 4, 0}, natural},
      {true, {0x41, 0, 0x42, 0, 0x3e, 3, 0}, natural},  // i64.store32
      {true, {0x42, 0, 0x28, 2, 0, 0x1a}, "in i32.load, expected [i32] but got [i64]"},
      {true, {0x28, 2, 0, 0x1a}, "in i32.load, expected [i32] but got []"},
      {true, {0x41, 0, 0x29, 3, 0, 0x45, 0x1a}, "in i32.eqz, expected [i32] but got [i64]"},
      {true,
       {0x41, 0, 0x42, 0, 0x36, 2, 0},
       "in i32.store, expected [i32, i32] but got [i32, i64]"},
      {true,
       {0x42, 0, 0x42, 0, 0x37, 3, 0},
       "in i64.store, expected [i32, i64] but got [i64, i64]"},
      {false, {0x41, 0, 0x28, 2, 0, 0x1a}, "memory"},
      {false, {0x41, 0, 0x42, 0, 0x37, 3, 0}, "memory"},
  };
  for (size_t n = 0; n < std::size(rows); ++n) {
    auto read = read_module(module_with(rows[n].memory, rows[n].code));
    ASSERT_EQ(read.ok(), rows[n].words == nullptr) << "row " << n;
    if (!read.ok()) {
      EXPECT_NE(read.error().message.find(rows[n].words), std::string::npos)
          << "row " << n << ": " << read.error().message;
    }
  }
}

// Parameters and locals of each type, used as each type.
TEST(WasmBodies, local_is_of_the_type_that_it_was_declared_with) {
  const char* types[] = {"i32", "i64", "f32", "f64"};
  auto body_of = [](const std::string& kind, const std::string& is, const std::string& used) {
    std::string get = "(local.get 2)";
    return "(module (func (param i32) " +
           (kind == "param" ? "(param f32) (param " + is + ")" : "(param i64) (local " + is + ")") +
           " (local f64) " + get + " (" + used + ".const 0) (" + used + ".ne) drop))";
  };
  for (const char* kind : {"param", "local"}) {
    for (const char* is : types) {
      for (const char* used : types) {
        auto read = read_module(assemble(body_of(kind, is, used)));
        EXPECT_EQ(read.ok(), std::string(is) == used) << kind << " " << is << " as " << used;
        if (read.ok()) continue;
        EXPECT_EQ(read.error().code, ErrorCode::kInvalidInput);
        EXPECT_NE(read.error().message.find("type mismatch"), std::string::npos)
            << read.error().message;
      }
    }
  }
}

TEST(WasmBodies, local_that_there_is_not_is_named) {
  Bytes bytes =
      module_of({{1, 2, 0x7e, 0x20, 3, 0x1a, 0x20, 0, 0x0b}});  // two i64 locals after a parameter
  auto read = read_module(bytes);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::kInvalidInput);
  EXPECT_NE(read.error().message.find("local"), std::string::npos) << read.error().message;
}

std::vector<Bytes> many_bodies() {
  std::vector<Bytes> bodies;
  for (uint32_t i = 0; i < 12000; ++i) bodies.push_back(sum_body(i % 40));
  return bodies;
}

TEST(WasmBodies, stretches_on_threads_say_what_each_body_says) {
  Bytes bytes = module_of(many_bodies());
  ASSERT_GT(bytes.size(), size_t{1} << 20) << "no second thread has anything to do";
  expect_same(bytes);
}

TEST(WasmBodies, what_is_wrong_in_a_stretch_is_named_with_its_place) {
  for (size_t wrong : {0, 1, 5000, 11999}) {
    std::vector<Bytes> bodies = many_bodies();
    bodies[wrong] = {0, 0x42, 9, 0x0b};  // an i64
    Bytes bytes = module_of(bodies);
    auto read = read_module(bytes);
    ASSERT_FALSE(read.ok()) << wrong;
    EXPECT_EQ(read.error().code, ErrorCode::kInvalidInput);
    auto later = read_module(bytes, Bodies::kLater);
    ASSERT_TRUE(later.ok());
    BodyValidator validator(*later);
    Status s = validator.validate(*later, static_cast<uint32_t>(wrong), 1);
    ASSERT_FALSE(s.ok());
    EXPECT_EQ(s.error().message, read.error().message);
    // An earlier error does not affect the next body.
    EXPECT_TRUE(validator.validate(*later, wrong == 7 ? 8 : 7, 1).ok());
  }
}

TEST(WasmBodies, bytes_of_a_holder_stay_with_it_while_the_module_needs_them) {
  auto holder = std::make_shared<const Bytes>(module_of(many_bodies()));
  std::weak_ptr<const Bytes> held = holder;
  auto read = read_module(ModuleBytes(*holder, holder));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->bytes.data(), holder->data()) << "copied";
  holder.reset();
  EXPECT_FALSE(held.expired());
  {
    ModuleInfo moved = std::move(*read);
    EXPECT_EQ(moved.bytes.data(), held.lock()->data());
  }
  EXPECT_TRUE(held.expired());
}

TEST(WasmBodies, later_still_means_that_the_rest_is_valid_now) {
  EXPECT_FALSE(read_module(assemble("(module (memory 2 1) (func))"), Bodies::kLater).ok());
  Bytes whole = module_of({sum_body(1), sum_body(2)});
  for (size_t n = 0; n < whole.size(); ++n) {
    Bytes cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(n));
    EXPECT_EQ(read_module(cut, Bodies::kLater).ok(), read_module(cut).ok()) << n;
  }
}

// A body that another thread builds meanwhile is validated by that thread, and only once.
TEST(WasmBodies, all_may_be_validated_while_some_are_built) {
  std::vector<Bytes> bodies = many_bodies();
  bodies.resize(600);
  Bytes bytes = module_of(bodies);
  for (int round = 0; round < 3; ++round) {
    World world;
    auto module = Module::load(world.engine(), bytes, Bodies::kLater);
    ASSERT_TRUE(module.ok());
    auto methods = (*module)->methods(Bounds::kGuarded);
    ASSERT_TRUE(methods.ok());
    std::thread other([&] {
      for (size_t m = 0; m < methods->size(); m += 7) {
        EXPECT_TRUE(world.engine().runtime().ir((*methods)[m]).ok()) << m;
      }
    });
    Status all = (*module)->validate_bodies();
    EXPECT_TRUE(all.ok()) << all.error().message;
    other.join();
    EXPECT_TRUE((*module)->validate_bodies().ok());
  }
}

TEST(WasmBodies, what_is_wrong_among_all_is_named_as_by_load) {
  for (size_t wrong : {0, 300, 599}) {
    std::vector<Bytes> bodies = many_bodies();
    bodies.resize(600);
    bodies[wrong] = {0, 0x42, 9, 0x0b};  // an i64
    if (wrong == 300)
      bodies[500] = {0, 0xff, 0x0b};  // no instruction: an error that stops the
                                      // decoding
    Bytes bytes = module_of(bodies);
    World world;
    auto refused = Module::load(world.engine(), bytes);
    auto module = Module::load(world.engine(), bytes, Bodies::kLater);
    ASSERT_TRUE(module.ok() && !refused.ok());
    for (int i = 0; i < 2; ++i) {
      Status all = (*module)->validate_bodies();
      ASSERT_FALSE(all.ok()) << wrong;
      EXPECT_EQ(all.error().message, refused.error().message);
    }
  }
}

class WasmLaterBodies : public testing::TestWithParam<Mode> {};

TEST_P(WasmLaterBodies, invalid_one_traps_when_it_is_called) {
  World world(GetParam());
  Bytes bytes = assemble(R"((module
    (func $bad (export "bad") (result i32) i64.const 1)
    (func (export "good") (result i32) i32.const 7)
    (func (export "calls_bad") (result i32) call $bad)))");
  auto refused = Module::load(world.engine(), bytes);
  ASSERT_FALSE(refused.ok());
  auto module = Module::load(world.engine(), bytes, Bodies::kLater);
  ASSERT_TRUE(module.ok());
  ThreadScope attached(world.engine().runtime());
  Store store(world.engine());
  Linker linker;
  Instantiation made = store.instantiate(**module, linker);
  ASSERT_TRUE(made.ok());
  for (int i = 0; i < 3; ++i) {
    auto good = made.instance->invoke("good");
    ASSERT_TRUE(good.ok() && good->ok());
    EXPECT_EQ(good->results[0].bits, 7u);
    for (const char* name : {"bad", "calls_bad"}) {
      auto bad = made.instance->invoke(name);
      ASSERT_TRUE(bad.ok());
      ASSERT_FALSE(bad->ok());
      EXPECT_EQ(bad->trap.code, TrapCode::kNoCode);
      EXPECT_NE(bad->trap.text().find(refused.error().message), std::string::npos)
          << bad->trap.text();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, WasmLaterBodies, testing::ValuesIn(kModes),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace uptier::wasm::test::wasm_bodies_test
