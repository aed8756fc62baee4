// compile_world.h: what the two compilers need around them to make code that is looked at and never
// run: the functions of a file, and a code space with stubs for their calls.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "jit/code/routines.h"
#include "jit/code/stubs.h"
#include "jit/compile/compile.h"
#include "jit/ir/module.h"
#include "jit/opt/inlinee.h"
#include "uptier/profile.h"
#include "uptier/result.h"

namespace uptier::tools {

// The code space for whole modules; listings of one function need a fraction of it.
constexpr uint64_t kCodeBudget = uint64_t{1} << 30;

// The functions of a WebAssembly module past its imports, or of a file of IR text. MethodId i is
// functions[i].
struct Functions {
  jit::Module module;
  std::vector<MethodKey> keys;   // by function; empty for IR text, whose methods are known by name
  std::vector<uint32_t> bytes;   // of the body in the file, by function; empty for IR text
  std::vector<uint32_t> begins;  // where it begins, at its locals; likewise
  std::vector<uint32_t> inverted;  // locations of branches that test the opposite, ascending
  uint32_t first = 0;              // the file's number of functions[0]
  // Time before the first compiler ran.
  double read_seconds = 0;      // the file's form; of a module, its validation too
  double describe_seconds = 0;  // the functions' IR
  double verify_seconds = 0;

  double seconds() const { return read_seconds + describe_seconds + verify_seconds; }
};

// Reads a file of either kind, told apart by their first bytes. Errors: kCorruptInput: the
// file's name and the message of wasm::read_module, jit::parse_module or jit::verify.
Result<Functions> read_functions(const std::string& file, const std::vector<uint8_t>& bytes);

// Gives functions the probes that a runtime places by itself, so that their sites are those of a
// profile, and notes what the profile has seen of their selections, and of the counters that they ask
// for in one of the `runs` that it stands for.
void note_own_probes(Functions& fs, const Profile& profile, double runs = 1);

// Returns the function of that name or number in the file, none when there is no such function.
MethodId find_function(const Functions& f, const std::string& name);
// Returns what to say of a name that find_function does not know: "no function ...", with the name
// that was probably meant, or how to list all.
std::string no_function(const Functions& f, const std::string& name);

// Returns a profile's counts of a function's blocks and indirect calls; empty if it has none. Fails if
// the profile is of other code.
Result<jit::BodyProfile> body_profile(const Functions& fs, MethodId m, const Profile& profile);

// A code space that nothing runs in.
class CompileWorld final : private jit::CallResolver, private jit::InlineeSource {
 public:
  // `profile` may be null; it is of callees. Both must outlive the world. `packed`: bodies share
  // pages, as they do in a runtime.
  static Result<std::unique_ptr<CompileWorld>> create(const Functions& functions,
                                                      const Profile* profile, uint64_t code_budget,
                                                      bool packed = false);

  // Whether code has rows for its lines, as with the option line_rows.
  bool lines = false;

  Result<std::unique_ptr<jit::Code>> baseline(MethodId m, const jit::BaselineRequest& r);
  // `r` need not name targets' addresses, nor the source of inlined bodies: that is all functions,
  // unless `inlining` is off.
  Result<std::unique_ptr<jit::Code>> optimized(MethodId m, jit::OptimizeRequest r, bool inlining);

  std::string name(MethodId m) const { return "@" + module_.functions[m.index()].name; }
  // Returns the name of the method or routine at an address outside of the code, or "".
  std::string name_of(const void* address) const;

 private:
  CompileWorld(const Functions& functions, const Profile* profile)
      : functions_(functions), module_(functions.module), profile_(profile) {}
  jit::CallTarget target(MethodId callee) override;
  const jit::Inlinee* find(MethodId m) override;
  void give_addresses(std::vector<jit::SiteTargets>& sites) const;
  jit::CompileInput input(MethodId m);

  const Functions& functions_;
  const jit::Module& module_;
  const Profile* profile_;
  std::map<uint32_t, jit::Inlinee> inlinees_;
  std::unique_ptr<jit::CodeSpace> space_;
  std::optional<jit::Routines> routines_;
  std::unique_ptr<jit::StubTable> stubs_;
  jit::Helpers helpers_;
};

}  // namespace uptier::tools
