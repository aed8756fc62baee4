#include "profile/image/image_key.h"

namespace uptier::profile {

std::string difference(const ImageKey& image, const ImageKey& here) {
  if (image.build != here.build) return "it was made by another build of the library";
  if (image.processor != here.processor) {
    return "it was made on a processor with other features";
  }
  if (image.layout != here.layout) return "it was made for other layouts of structures";
  if (image.options != here.options) {
    return "it was made with options \"" + image.options + "\", and this process has \"" +
           here.options + "\"";
  }
  return "";
}

}  // namespace uptier::profile
