// How hierarchical_leaders cuts messages: chunks that travel while others are reduced, slices for the leaders.
#include "algorithms/patterns/leaders.hpp"

#include <cstddef>

#include "tests/catch.hpp"

namespace papaya {

TEST_CASE("from 64 KiB on a message goes in two chunks at least", "[leaders]") {
  constexpr std::size_t most = 256 << 10;
  const auto chunks = [](std::size_t bytes) {
    const std::size_t chunk = patterns::leaders_chunk_bytes(bytes, most);
    return (bytes + chunk - 1) / chunk;
  };
  CHECK(chunks(8) == 1);
  CHECK(chunks((64 << 10) - 8) == 1);
  CHECK(chunks(64 << 10) == 2);
  CHECK(chunks((64 << 10) + 8) == 2);
  CHECK(chunks(512 << 10) == 2);
  CHECK(chunks(1 << 20) == 4);
  CHECK(patterns::leaders_chunk_bytes(100000, most) == 50048);  // whole lines
  CHECK(patterns::leaders_chunk_bytes(100000, 4096) == 4096);   // where there is no memory for more
}

TEST_CASE("as many lead as get 1 KiB of a chunk", "[leaders]") {
  CHECK(patterns::leaders_of(8, 16) == 1);
  CHECK(patterns::leaders_of(4096, 16) == 4);
  CHECK(patterns::leaders_of(32 << 10, 16) == 16);
  CHECK(patterns::leaders_of(32 << 10, 1) == 1);
}

}  // namespace papaya
