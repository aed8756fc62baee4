// Images in memory: what is written is read, and what is damaged is refused.
#include <gtest/gtest.h>

#include <string>

#include "profile/image/image_reader.h"
#include "profile/image/image_writer.h"

namespace uptier::profile {
namespace {

Bytes bytes_of(const std::string& text) {
  const ByteSpan span = std::as_bytes(std::span(text));
  return {span.begin(), span.end()};
}

ImageKey some_key() { return {bytes_of("build"), bytes_of("cpu"), 77, "packed=on"}; }

constexpr Sha256 kOne{1}, kTwo{2};

Bytes some_image() {
  ImageWriter writer(some_key());
  writer.add(kTwo, 9, bytes_of("nine"));
  writer.add(kOne, 5, bytes_of("five"));
  writer.add(kOne, 3, bytes_of("three"));
  writer.add(kOne, 3, bytes_of("again"));
  return writer.finish({bytes_of("object")}, {});
}

TEST(ImageFile, has_what_was_added) {
  const Bytes file = some_image();
  Result<ImageView> view = ImageView::open(file);
  ASSERT_TRUE(view.ok()) << view.error().message;
  EXPECT_EQ(view->key(), some_key());
  EXPECT_EQ(view->methods(), 3u);
  ASSERT_EQ(view->contents().size(), 2u);
  ASSERT_EQ(view->objects().size(), 1u);
  EXPECT_EQ(view->objects()[0], bytes_of("object"));
  EXPECT_TRUE(view->profile().empty());
  const ImageView::Content* one = view->find(kOne);
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(view->find(Sha256{3}), nullptr);
  EXPECT_TRUE(std::ranges::equal(view->find(*one, 3), bytes_of("three")));
  EXPECT_TRUE(std::ranges::equal(view->find(*one, 5), bytes_of("five")));
  EXPECT_TRUE(view->find(*one, 4).empty());
  EXPECT_TRUE(view->find(*one, 9).empty());
}

TEST(ImageFile, is_refused_when_any_bit_is_flipped) {
  const Bytes file = some_image();
  for (size_t bit = 0; bit < file.size() * 8; ++bit) {
    Bytes damaged = file;
    damaged[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    EXPECT_FALSE(ImageView::open(damaged).ok()) << "bit " << bit;
  }
}

TEST(ImageFile, is_refused_when_it_is_cut_off_or_longer) {
  Bytes file = some_image();
  for (size_t length = 0; length < file.size(); ++length) {
    EXPECT_FALSE(ImageView::open(ByteSpan(file).first(length)).ok()) << length;
  }
  file.push_back(std::byte{0});
  EXPECT_FALSE(ImageView::open(file).ok());
}

TEST(ImageFile, two_images_in_a_row_are_no_image) {
  Bytes file = some_image(), more = some_image();
  file.insert(file.end(), more.begin(), more.end());
  EXPECT_FALSE(ImageView::open(file).ok());
}

TEST(ImageKey, names_the_first_difference) {
  const ImageKey here = some_key();
  EXPECT_EQ(difference(here, here), "");
  ImageKey other = here;
  other.options = "packed=off";
  EXPECT_EQ(difference(other, here),
            "it was made with options \"packed=off\", and this process has \"packed=on\"");
  other.layout = 78;
  EXPECT_EQ(difference(other, here), "it was made for other layouts of structures");
  other.processor = bytes_of("CPU");
  EXPECT_EQ(difference(other, here), "it was made on a processor with other features");
  other.build = bytes_of("Build");
  EXPECT_EQ(difference(other, here), "it was made by another build of the library");
}

}  // namespace
}  // namespace uptier::profile
