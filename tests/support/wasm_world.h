// wasm_world.h: makes a running instance from WebAssembly text, for tests of the engine.
#pragma once

#include <gtest/gtest.h>
#include <wabt/binary-writer.h>
#include <wabt/stream.h>
#include <wabt/wast-lexer.h>
#include <wabt/wast-parser.h>

#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "embed/wasm/engine.h"

namespace uptier::wasm::test {

using Bytes = std::vector<uint8_t>;

// Assembles a module from text; it must parse but need not be valid.
inline Bytes assemble(std::string_view text) {
  wabt::Errors errors;
  auto lexer = wabt::WastLexer::CreateBufferLexer("test", text.data(), text.size(), &errors);
  wabt::Features features;
  features.enable_multi_memory();
  wabt::WastParseOptions parse_options(features);
  std::unique_ptr<wabt::Module> module;
  wabt::Result parsed = wabt::ParseWatModule(lexer.get(), &module, &errors, &parse_options);
  for (const auto& e : errors) ADD_FAILURE() << e.message;
  if (wabt::Failed(parsed)) return {};
  wabt::MemoryStream stream;
  wabt::WriteBinaryOptions write_options;
  write_options.features = features;
  write_options.write_debug_names = true;
  EXPECT_TRUE(wabt::Succeeded(wabt::WriteBinaryModule(&stream, module.get(), write_options)));
  return stream.output_buffer().data;
}

// The settings with which a test's engine runs code.
struct Mode {
  const char* name;
  TierMode tier;
  bool explicit_bounds;

  friend std::ostream& operator<<(std::ostream& out, const Mode& m) { return out << m.name; }
};
inline constexpr Mode kModes[] = {
    {"baseline", TierMode::kBaseline, false},
    {"baseline_explicit", TierMode::kBaseline, true},
    {"instrumented", TierMode::kInstrumented, false},
    {"optimized", TierMode::kOptimized, false},
    {"optimized_explicit", TierMode::kOptimized, true},
    {"all_tiers", TierMode::kAuto, false},
};

// An engine with one store. Modules outlive the store, as they must.
class World {
 public:
  explicit World(const Mode& mode = kModes[0], EngineOptions options = {},
                 Options runtime_options = {}) {
    runtime_options.tier = mode.tier;
    options.explicit_bounds = mode.explicit_bounds;
    auto made = Engine::create(runtime_options, options);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    engine_ = std::move(*made);
    store_ = std::make_unique<Store>(*engine_);
  }
  ~World() { store_.reset(); }

  Engine& engine() { return *engine_; }
  Store& store() { return *store_; }
  Linker& linker() { return linker_; }

  Module& load(const Bytes& bytes) {
    auto m = Module::load(*engine_, bytes);
    EXPECT_TRUE(m.ok()) << (m.ok() ? "" : m.error().message);
    modules_.push_back(std::move(*m));
    return *modules_.back();
  }
  Module& load(std::string_view text) { return load(assemble(text)); }

  Instantiation try_make(std::string_view text) { return store_->instantiate(load(text), linker_); }
  Instance& make(Module& module) {
    Instantiation made = store_->instantiate(module, linker_);
    EXPECT_TRUE(made.ok()) << (made.error ? made.error->message : made.trap.text());
    return *made.instance;
  }
  Instance& make(std::string_view text) { return make(load(text)); }

  // Makes an instance whose exports other modules can import under `name`.
  Instance& make_as(const std::string& name, std::string_view text) {
    Instance& i = make(text);
    linker_.define_instance(name, i);
    return i;
  }

 private:
  std::unique_ptr<Engine> engine_;
  std::vector<std::unique_ptr<Module>> modules_;
  Linker linker_;
  std::unique_ptr<Store> store_;
};

// Calls an export and returns its results; a trap or an error fails the test.
inline std::vector<Val> call(Instance& i, std::string_view name, std::vector<Val> args = {}) {
  Result<CallResult> r = i.invoke(name, args);
  EXPECT_TRUE(r.ok()) << (r.ok() ? "" : r.error().message);
  if (!r.ok()) return {};
  EXPECT_TRUE(r->ok()) << r->trap.text();
  return r->results;
}

// Calls an export with one result; returns its bits.
inline uint64_t call1(Instance& i, std::string_view name, std::vector<Val> args = {}) {
  std::vector<Val> results = call(i, name, std::move(args));
  EXPECT_EQ(results.size(), 1u);
  return results.empty() ? 0 : results[0].bits;
}

// Calls an export that must trap.
inline TrapReport call_trap(Instance& i, std::string_view name, std::vector<Val> args = {}) {
  Result<CallResult> r = i.invoke(name, args);
  EXPECT_TRUE(r.ok()) << (r.ok() ? "" : r.error().message);
  if (!r.ok()) return {};
  EXPECT_FALSE(r->ok()) << "no trap";
  return r->trap;
}

// A test that runs in every mode.
class WasmModes : public testing::TestWithParam<Mode> {
 protected:
  World world{GetParam()};
};
#define UPTIER_IN_ALL_MODES(suite)                                                      \
  INSTANTIATE_TEST_SUITE_P(modes, suite, testing::ValuesIn(uptier::wasm::test::kModes), \
                           [](const auto& mode) { return mode.param.name; })

}  // namespace uptier::wasm::test
