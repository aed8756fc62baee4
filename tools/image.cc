// uptier image: makes an image of a WebAssembly program, and says what images have and whether they
// can be used.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>

#include "embed/wasm/engine.h"
#include "embed/wasm/read_module.h"
#include "profile/image/image_reader.h"
#include "tiering/image/method_record.h"
#include "tiering/image/trusted_file.h"
#include "tools/commands.h"
#include "tools/fail.h"
#include "tools/json_out.h"
#include "tools/profile_commands.h"

namespace uptier::tools {
namespace {

using nlohmann::ordered_json;

// A module and the engine that makes its code.
struct World {
  std::unique_ptr<wasm::Engine> engine;
  std::unique_ptr<wasm::Module> module;
  wasm::Bounds bounds = wasm::Bounds::kGuarded;
};

// As `uptier run` makes them. Errors: of the module; printed.
int make_world(const ImageCommand& c, const std::string& path, wasm::Bodies bodies, World& world) {
  Result<std::vector<uint8_t>> read = read_file(path);
  if (!read) return fail(kRefused, read.error().message);
  Result<wasm::ModuleInfo> info = wasm::read_module(wasm::ModuleBytes(std::move(*read)), bodies);
  if (!info) return fail(kRefused, path + ": " + info.error().message);
  wasm::EngineOptions engine_options;
  engine_options.explicit_bounds = c.explicit_bounds;
  engine_options.blind_constants = false;  // as the options say
  Options options = c.options;
  options.profile.clear();
  if (options.max_methods == Options{}.max_methods) {
    options.max_methods = std::max<uint64_t>(options.max_methods, info->functions.size());
  }
  auto engine = wasm::Engine::create(options, engine_options);
  if (!engine) return fail(kFailed, engine.error().message);
  world.engine = std::move(*engine);
  world.module = wasm::Module::make(*world.engine, std::move(*info));
  const auto wanted = c.explicit_bounds ? wasm::Bounds::kExplicit : wasm::Bounds::kGuarded;
  const wasm::ModuleInfo& m = world.module->info();
  world.bounds = m.memory ? wasm::bounds_of(*m.memory, engine_options.max_pages, wanted) : wanted;
  return kOk;
}

// The methods that a profile has, in the order of their first calls; then those without such an order.
Result<std::vector<MethodId>> called_methods(World& world, const std::string& path) {
  Result<ProfileFile> profile = load_profile(path);
  if (!profile) return profile.error();
  const wasm::ModuleInfo& info = world.module->info();
  std::set<uint32_t> seen;
  std::vector<MethodId> methods;
  const auto add = [&](const MethodKey& key) -> Status {
    const bool own = key.module_key == world.module->key() &&
                     key.function_index >= info.imported_functions &&
                     key.function_index < info.functions.size();
    if (!own || !seen.insert(key.function_index).second) return {};
    Result<MethodId> m = world.module->method(world.bounds, key.function_index);
    if (!m) return m.error();
    methods.push_back(*m);
    return {};
  };
  for (const MethodKey& key : profile->calls.order()) {
    if (Status s = add(key); !s) return s.error();
  }
  for (const auto& [key, method] : profile->profile.methods) {
    if (Status s = add(key); !s) return s.error();
  }
  if (!methods.empty()) return methods;
  return Error{ErrorCode::kInvalidInput, path + ": the profile has no function of this module"};
}

std::string hex(profile::ByteSpan bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte b : bytes) {
    text += kDigits[static_cast<unsigned>(b) >> 4];
    text += kDigits[static_cast<unsigned>(b) & 15];
  }
  return text;
}

}  // namespace

int image_make(const ImageCommand& c) {
  World world;
  if (int code = make_world(c, c.module, wasm::Bodies::kValidated, world); code != kOk) return code;
  Result<std::vector<MethodId>> methods =
      c.profile.empty() ? world.module->methods(world.bounds) : called_methods(world, c.profile);
  if (!methods) return fail(kFailed, methods.error().message);
  if (methods->empty()) return fail(kFailed, c.module + ": the module has no functions of its own");
  Result<ImageMade> made = world.engine->runtime().write_image(c.output, *methods);
  if (!made) return fail(kFailed, made.error().message);
  const size_t module_bytes = std::span<const uint8_t>(world.module->info().bytes).size();
  if (c.json) {
    return print_json({{"methods", made->methods},
                       {"bytes", made->bytes},
                       {"code_bytes", made->code_bytes},
                       {"module_bytes", module_bytes},
                       {"left_out", made->left_out},
                       {"first_left_out", made->first_left_out}});
  }
  std::printf("%s: %llu functions, %llu bytes (%.2f of the module), %llu of them machine code\n",
              c.output.c_str(), static_cast<unsigned long long>(made->methods),
              static_cast<unsigned long long>(made->bytes),
              static_cast<double>(made->bytes) / static_cast<double>(module_bytes),
              static_cast<unsigned long long>(made->code_bytes));
  if (made->left_out != 0) {
    std::printf("%llu functions are not in it, first %s\n",
                static_cast<unsigned long long>(made->left_out), made->first_left_out.c_str());
  }
  return kOk;
}

int image_show(const std::string& path, bool json) {
  Result<tiering::TrustedFile> file = tiering::TrustedFile::read(path, profile::kMostImageBytes);
  if (!file) return fail(kFailed, file.error().message);
  Result<profile::ImageView> view = profile::ImageView::open(file->bytes());
  if (!view) return fail(kFailed, path + ": " + view.error().message);
  ordered_json contents = ordered_json::array();
  uint64_t code = 0;
  for (const profile::ImageView::Content& c : view->contents()) {
    ordered_json methods = ordered_json::array();
    for (uint64_t n = 0; n < c.methods; ++n) {
      const profile::ImageView::Row row = c.row(n);
      Result<tiering::MethodRecord> r = tiering::read_record(view->record_at(row));
      if (!r)
        return fail(kFailed,
                    path + ": function " + std::to_string(row.function) + ": " + r.error().message);
      code += r->bytes.size();
      methods.push_back({{"function", row.function},
                         {"bytes", row.size},
                         {"code_bytes", r->bytes.size()},
                         {"blocks", r->block_weights.size()},
                         {"loops", r->loop_count},
                         {"fields", r->refs.size()}});
    }
    contents.push_back({{"content", hex(std::as_bytes(std::span(c.hash)))}, {"methods", methods}});
  }
  const profile::ImageKey& key = view->key();
  if (json) {
    return print_json({{"bytes", view->bytes()},
                       {"build", hex(key.build)},
                       {"processor", hex(key.processor)},
                       {"options", key.options},
                       {"code_bytes", code},
                       {"contents", contents}});
  }
  std::printf("%llu bytes, %llu functions, %llu bytes of machine code\nbuild %s\noptions %s\n",
              static_cast<unsigned long long>(view->bytes()),
              static_cast<unsigned long long>(view->methods()),
              static_cast<unsigned long long>(code), hex(key.build).c_str(), key.options.c_str());
  for (const ordered_json& c : contents) {
    std::printf("content %s\n  function    bytes     code  blocks  loops  fields\n",
                c["content"].get<std::string>().c_str());
    for (const ordered_json& m : c["methods"]) {
      std::printf("  %8llu %8llu %8llu %7llu %6llu %7llu\n",
                  m["function"].get<unsigned long long>(), m["bytes"].get<unsigned long long>(),
                  m["code_bytes"].get<unsigned long long>(), m["blocks"].get<unsigned long long>(),
                  m["loops"].get<unsigned long long>(), m["fields"].get<unsigned long long>());
    }
  }
  return kOk;
}

// The library's log says why an image is not used.
int image_check(const std::string& path, const std::string& module, const ImageCommand& c) {
  ImageCommand with = c;
  with.options.image = path;
  World world;
  std::unique_ptr<Runtime> alone;
  if (module.empty()) {
    auto runtime = Runtime::create(with.options);
    if (!runtime) return fail(kFailed, runtime.error().message);
    alone = std::move(*runtime);
  } else if (int code = make_world(with, module, wasm::Bodies::kLater, world); code != kOk) {
    return code;
  }
  Runtime& runtime = alone != nullptr ? *alone : world.engine->runtime();
  const ImageReport r = runtime.image_report();
  if (!r.problem.empty()) return kFailed;
  if (!module.empty() && !runtime.image_has(world.module->content(world.bounds))) {
    return fail(kFailed, path + ": the image is not of " + module);
  }
  std::printf("%s: %llu functions can be used; read and checked in %.1f ms\n", path.c_str(),
              static_cast<unsigned long long>(r.methods), r.open_ms);
  return kOk;
}

}  // namespace uptier::tools
