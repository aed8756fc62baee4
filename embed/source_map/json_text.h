// JsonText: reads a JSON text from its beginning, value by value.
//
// Law: nothing outside of the text is read, and nothing recurses. A value that breaks a rule of JSON, or is of
// another kind than the caller expects, makes the reader bad, for good, at that offset. Numbers are only passed
// over, or read as small integers. Texts that are passed over are not checked for UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace uptier::source_map {

class JsonText {
 public:
  explicit JsonText(std::string_view text) : text_(text) {}

  bool bad() const { return bad_; }
  // Where the reader is, or where it became bad.
  size_t at() const { return at_; }

  // Enters an object or an array. Then next_key() or next_item() moves to each of its values, and returns
  // false after the last.
  void open(char bracket);
  // The key is as it stands in the text, with its escapes.
  bool next_key(std::string_view& key);
  bool next_item();
  // Reads a text; a character outside of ASCII is as in the text, or UTF-8 if it is escaped. Takes no more
  // memory than the text as it is written.
  std::string text();
  // Reads a text without escapes, as it stands.
  std::string_view plain_text();
  // Reads an integer from 0 to 2^31 - 1.
  uint32_t integer();
  // Returns whether the next value begins with this character.
  bool starts(char c);
  // Passes over a value.
  void skip();
  // Whether nothing but spaces follows.
  bool ends();

 private:
  void spaces();
  bool take(char c);
  void expect(char c);
  // Moves to the next value of an open bracket. Returns false after the last.
  bool next(char close);
  std::string_view skip_text();
  bool escape(std::string& out);
  uint32_t hex4();
  void stop() { bad_ = true; }

  std::string_view text_;
  size_t at_ = 0;
  bool first_ = false;  // nothing was read since the last open()
  bool bad_ = false;
};

}  // namespace uptier::source_map
