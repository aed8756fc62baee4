// A program of a user: it knows only the installed headers and the library.
#include <uptier/ids.h>
#include <uptier/result.h>

#include <cstdio>

namespace {

uptier::Result<uptier::Type> parse(char letter) {
  if (letter == 'l') return uptier::Type::kI64;
  return uptier::Error{uptier::ErrorCode::kInvalidInput, "no such type"};
}

}  // namespace

int main() {
  const auto good = parse('l');
  const auto bad = parse('?');
  if (!good || bad) return 1;
  std::printf("%s %s %s %s\n", uptier::type_name(*good), uptier::tier_name(uptier::Tier::kBaseline),
              uptier::copy_name(uptier::Copy::kPlain), uptier::error_code_name(bad.error().code));
  return 0;
}
