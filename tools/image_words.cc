#include "tools/image_words.h"

#include "tools/fail.h"

namespace uptier::tools {

void ImageWords::add_to(CLI::App& image, RuntimeWords& words, int& code) {
  image.footer(
      "  uptier image prog.wasm -o prog.img   compiles the program ahead of time\n"
      "  uptier image show FILE               prints what an image has in it\n"
      "  uptier image check FILE [prog.wasm]  says whether `uptier run --image FILE` would use it "
      "here\n\nThe options are those of the runs that use the image. Exit codes: 0; 1 if the image "
      "cannot be\n"
      "written or would not be used; 3 if the module was refused.");
  image.add_option("WHAT", what_, "prog.wasm; or show FILE; or check FILE [prog.wasm]")
      ->required()
      ->expected(1, 3);
  image.add_option("-o,--output", command_.output, "writes the image to this file")
      ->type_name("FILE");
  image
      .add_option("--called-by", command_.profile,
                  "only functions that this profile has, in the order of their first calls")
      ->type_name("FILE");
  image.add_flag("--explicit-bounds", command_.explicit_bounds,
                 "for runs with the same option: code checks memory bounds");
  image.add_flag("--json", command_.json, "prints results as JSON");
  words.add_to(image);
  image.callback([this, &words, &code] { code = call(words); });
}

int ImageWords::call(RuntimeWords& words) {
  Result<Options> o = words.options(true);
  if (!o) return fail(kUsage, o.error().message);
  command_.options = *o;
  const bool show = what_[0] == "show", check = what_[0] == "check";
  const size_t most = check ? 3 : show ? 2 : 1;
  if (what_.size() > most || ((show || check) && what_.size() < 2)) {
    return fail(kUsage, "image takes prog.wasm, or show FILE, or check FILE [prog.wasm]");
  }
  if (show) return image_show(what_[1], command_.json);
  if (check) return image_check(what_[1], what_.size() > 2 ? what_[2] : "", command_);
  if (command_.output.empty()) return fail(kUsage, "image: -o FILE is missing");
  command_.module = what_[0];
  return image_make(command_);
}

}  // namespace uptier::tools
