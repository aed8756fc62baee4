// nearest.h: the known word that an unknown word probably stands for.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace uptier::tools {

// Returns the word of `words` that is at most two letters off (one for words of three letters or
// fewer): changed, inserted, removed or swapped with their neighbour. The nearest if there
// are several; empty if there is none. Cost: words x length squared.
std::string nearest(std::string_view word, std::span<const std::string> words);

// Returns "; did you mean X?", or an empty text.
std::string did_you_mean(std::string_view word, std::span<const std::string> words);

}  // namespace uptier::tools
