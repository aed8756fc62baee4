// life_text.h: a method's life in sentences.
#pragma once

#include <string>

#include "tools/event_file.h"
#include "tools/method_life.h"

namespace uptier::tools {

// Returns "it was compiled as baseline code in 66.4 us on thread 31047: version 15, 1,194 bytes".
// Lower case, without a full stop.
std::string step_text(const LifeStep& s, const EventFile& file);

// Returns where the method stands at the end of the file, as one or more sentences.
std::string standing_text(const MethodLife& life, const EventFile& file);

// Returns the whole life, one line for each step, with its time in milliseconds.
std::string life_text(const MethodLife& life, const EventFile& file, const std::string& title);

}  // namespace uptier::tools
