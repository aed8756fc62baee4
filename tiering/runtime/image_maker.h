// ImageMaker: makes an image of the code of methods (uptier/image.h).
//
//   Thread: any, without the state mutex. One method at a time has its turn.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "tiering/base/state_lock.h"
#include "uptier/ids.h"
#include "uptier/image.h"

namespace uptier::profile {
class ImageWriter;
}

namespace uptier::tiering {

struct Engine;
struct Method;
class SymbolNames;

class ImageMaker {
 public:
  explicit ImageMaker(Engine& engine) : engine_(engine) {}

  // See Images::write_image.
  Result<ImageMade> write(const std::string& file, std::span<const MethodId> methods);

 private:
  std::vector<MethodId> called() const;
  Status add(MethodId id, SymbolNames& names, profile::ImageWriter& image, ImageMade& made);

  Engine& engine_;
};

}  // namespace uptier::tiering
