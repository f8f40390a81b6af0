// A function by its symbol, as its source has it.
#pragma once

#include <string>

namespace papaya {

// "solve(int)" of "_Z5solvei". Only what begins as C++'s symbols do is one: "f" is C's f, though also how float is
// encoded.
std::string function_name(const char* symbol);

}  // namespace papaya
