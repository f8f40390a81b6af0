// Symbols of C, C++ and Fortran.
#include "base/function_name.hpp"

#include "tests/catch.hpp"

namespace papaya {
namespace {

TEST_CASE("functions by their symbols: only C++'s are decoded") {
  CHECK(function_name("_Z5solvei") == "solve(int)");
  CHECK(function_name("_ZN5model4stepEv") == "model::step()");
  // As encodings of types they are unsigned short, float, double and std::string.
  for (const char* const name : {"t", "f", "d", "Ss", "main", "solve_", "__grid_MOD_step", "_Z", "_Zwrong", ""})
    CHECK(function_name(name) == name);
}

}  // namespace
}  // namespace papaya
