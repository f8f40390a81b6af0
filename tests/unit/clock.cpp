#include "base/clock.hpp"

#include "tests/catch.hpp"

using namespace papaya;

TEST_CASE("clock: what a time namespace adds is read from the kernel's text") {
  CHECK(clock::namespace_offset_ns("monotonic           0         0\nboottime            0         0\n") == 0);
  CHECK(clock::namespace_offset_ns("monotonic        3600       250\nboottime           0         0\n") ==
        3'600'000'000'250);
  // A namespace that is behind has fewer seconds, and never fewer nanoseconds.
  CHECK(clock::namespace_offset_ns("boottime 5 0\nmonotonic -2 500000000\n") == -1'500'000'000);
  CHECK(clock::namespace_offset_ns("") == 0);
  CHECK(clock::namespace_offset_ns("monotonic soon") == 0);
}
