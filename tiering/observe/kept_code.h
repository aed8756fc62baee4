// KeptCode: images of code that is about to be freed, and whole stack samples, with Options::keep_code.
//
//   version is about to be freed -> keep()     its bytes and rows are copied
//   record of a ring             -> add()      its frames become (version, offset)
//   the end                      -> images()   the code in service is copied as well
//
// A version that moves keeps its serial number, and its rows count in offsets. So samples of all its places
// are of one image, whose address is the last one.
//
//   Thread: the caller holds the state mutex.
#pragma once

#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "jit/code/code_space.h"
#include "jit/code/stubs.h"
#include "sampler/stack_record.h"
#include "tiering/base/state_lock.h"
#include "tiering/model/method_table.h"
#include "uptier/code_image.h"

namespace uptier::tiering {

struct Version;

class KeptCode {
 public:
  // Bytes of code that are kept at most, and different stacks.
  static constexpr uint64_t kMostBytes = uint64_t{256} << 20;
  static constexpr size_t kMostStacks = size_t{1} << 18;

  explicit KeptCode(const MethodTable& methods) : methods_(methods) {}

  // Copies a version. Call it before its code is freed.
  void keep(const Version& v, const jit::CodeSpace& space, const jit::StubTable& stubs) noexcept;
  // Call it before code is freed that the record may name.
  void add(const sampler::StackRecord& r, const jit::CodeSpace& space);
  // Counts a record that was read, and for which there was no memory.
  void note_lost() noexcept { ++lost_samples_; }

  CodeImages images(const jit::CodeSpace& space, const jit::StubTable& stubs)
      UPTIER_REQUIRES(state_lock);

 private:
  using Stack = std::vector<std::pair<uint64_t, uint32_t>>;  // serial and offset, innermost first
  struct Sum {
    uint64_t samples = 0, ns = 0;
  };

  uint32_t number_of(MethodId m);
  uint32_t callee_of(const jit::Code& code, uint32_t returns, uint32_t bytes,
                     const jit::CodeSpace& space, const jit::StubTable& stubs);
  CodeImage image_of(const Version& v, const jit::CodeSpace& space, const jit::StubTable& stubs);
  void add_rows(const jit::Code& code, CodeImage& to, const jit::CodeSpace& space,
                const jit::StubTable& stubs);

  const MethodTable& methods_;
  std::vector<ImagedMethod> named_;
  std::unordered_map<uint32_t, uint32_t> numbers_;  // in named_, by MethodId::number()
  std::map<uint64_t, CodeImage> freed_;             // by serial number
  std::map<Stack, Sum> stacks_;
  uint64_t kept_bytes_ = 0;
  uint64_t elsewhere_ = 0, lost_samples_ = 0, lost_codes_ = 0, cut_ = 0;
};

}  // namespace uptier::tiering
