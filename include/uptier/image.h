// image.h: images: code made ahead of time, for the next processes that run the same program.
//
//   write_image(file, methods)  --file-->  Options::image: a method's first call takes its code from there
//
// A first call that finds its method in an image neither asks the host for a description nor compiles:
// it copies the code and fills in the addresses of this process. The method is then like any other:
// counted, observed, and optimized, for which the host describes it. See docs/images.md.
//
// An image is as trusted as the executable: whoever can write it decides what the process runs. It is
// used only if no other user can have written it, and if it was made by the same build of the library,
// on a processor with the same features, with the same options that change code. Otherwise the log says
// once why not (LogLevel::kWarning), and the runtime goes on without.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "uptier/ids.h"
#include "uptier/result.h"

namespace uptier {

// A cryptographic hash (SHA-256) of everything that a host's descriptions depend on. All 0: unknown.
struct ContentHash {
  std::array<uint8_t, 32> bytes{};

  bool known() const { return *this != ContentHash(); }
  friend bool operator==(const ContentHash&, const ContentHash&) = default;
};

// Returns the hash of pieces of content, one after the other. Put lengths between pieces where the
// borders matter. Cost: 1 to 4 ns per byte.
ContentHash content_hash(std::span<const std::span<const uint8_t>> pieces);

// What became of Options::image, so far.
struct ImageReport {
  std::string file;           // empty: there is none
  std::string problem;        // why the file is not used; empty: it is
  uint64_t bytes = 0;         // of the file
  uint64_t methods = 0;       // in the image, of all contents
  uint64_t placed = 0;        // methods whose first code came from the image
  uint64_t refused = 0;       // methods that were in it and were compiled nevertheless
  std::string first_refused;  // why the first of them was
  double open_ms = 0;         // time to read and check the file
};

// What write_image has written.
struct ImageMade {
  uint64_t methods = 0;
  uint64_t bytes = 0;          // of the file
  uint64_t code_bytes = 0;     // of machine code in it
  uint64_t left_out = 0;       // methods that no image can have
  std::string first_left_out;  // the name of the first of them, and why
};

class Images {
 public:
  virtual ~Images() = default;

  // Describes the given methods, compiles them, and writes an image with their baseline code; nothing
  // is installed. Methods whose host does not know its content (Host::content), that call methods
  // of other hosts, or whose code holds something of this process that has no name, are left out. No
  // methods: all that have code by now, in the order of their first calls.
  //
  // The file is replaced at once, and has mode 0600. Thread: any, attached or not, not in Host::build.
  // Errors: kUnsupported if the options of the runtime rule images out (the message says which);
  // kIo; kResourceExhausted. Cost: that of the first calls of all these methods.
  virtual Result<ImageMade> write_image(const std::string& file,
                                        std::span<const MethodId> methods) {
    (void)file, (void)methods;
    return Error{ErrorCode::kUnsupported, "write_image: this runtime makes no images"};
  }
  // Says what became of Options::image. Thread: any.
  virtual ImageReport image_report() const { return {}; }
  // Says whether the image has code of this content. Thread: any.
  virtual bool image_has(const ContentHash& content) const {
    (void)content;
    return false;
  }
};

}  // namespace uptier
