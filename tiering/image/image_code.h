// ImageCode: first code from an image, in place of a description and a compilation.
//
//   open: file --trusted_file--> bytes --checked--> index        place: record --names found--> Code, MethodShape
//
// Law: an image is refused as a whole, with one line in the log, or each of its methods has the code
// that this process would make. A method whose record cannot be used is compiled as without an image.
//
//   Thread: open(): before there are methods. place(): any, one per method: the caller has the
//   method's turn and a LookingAround, and not the state mutex. Everything else: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "profile/image/image_reader.h"
#include "tiering/base/log.h"
#include "tiering/image/symbols.h"
#include "tiering/image/trusted_file.h"
#include "tiering/model/method.h"
#include "uptier/image.h"
#include "uptier/options.h"
#include "uptier/thread_safety.h"

namespace uptier::jit {
class CodeSpace;
}

namespace uptier::tiering {

// Says why runtimes with these options neither use nor make images; kUnsupported.
Status allows_images(const Options& options);
// Returns the key of images that this process can use. `lines`: code has rows of lines. Errors:
// kUnsupported if the library has no build id.
Result<profile::ImageKey> image_key(const Options& options, const jit::CodeSpace& space,
                                    bool lines);

class ImageCode {
 public:
  struct Parts {
    const Options& options;
    const Log& log;
    const MethodTable& methods;
    jit::CodeSpace& space;
    const jit::StubTable& stubs;
    const jit::Helpers& helpers;
    bool lines;
  };
  explicit ImageCode(const Parts& p) : p_(p), values_(p.helpers, p.stubs, p.methods) {}
  ImageCode(const ImageCode&) = delete;
  ImageCode& operator=(const ImageCode&) = delete;

  // Reads and checks Options::image. If it cannot be used, the log says why, and there is no image.
  void open();
  bool is_open() const { return view_ != nullptr; }
  bool has(const ContentHash& content) const;
  ImageReport report() const;

  struct Body {
    std::unique_ptr<jit::Code> code;
    std::unique_ptr<MethodShape> shape;
    std::vector<MethodId> callees;
  };
  // Makes the plain baseline code of a method. Errors: kNotFound if the image does not have it;
  // kResourceExhausted if there is no room for code; others if its record is of no use.
  Result<Body> place(Method& m);

 private:
  Status open_file();
  Result<Body> place_record(Method& m, profile::ByteSpan record);
  void note_refused(const Method& m, const Error& why);

  const Parts p_;
  SymbolValues values_;
  TrustedFile file_;
  std::unique_ptr<profile::ImageView> view_;
  std::string problem_;
  double open_ms_ = 0;
  std::atomic<uint64_t> placed_{0}, refused_{0};
  mutable CheckedLock<std::mutex> mutex_;  // a leaf
  std::string first_refused_ UPTIER_GUARDED_BY(mutex_);
};

}  // namespace uptier::tiering
