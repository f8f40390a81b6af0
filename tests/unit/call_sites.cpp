// Where calls come from, of a program with more places than the record holds.
#include "profiler/record/call_sites.hpp"

#include <string>

#include "profiler/record/recorder.hpp"
#include "tests/catch.hpp"
#include "tests/unit/support/record.hpp"

namespace papaya {

TEST_CASE("call sites: those that the table has no room for are told apart up to a bound") {
  const support::Folder folder;
  std::string error;
  Recorder recorder;
  REQUIRE(recorder.open(folder.path() + "/rank-00000.pap", 16, {}, error));
  CallSites sites;
  REQUIRE(sites.open(recorder, 1, nullptr));
  constexpr std::uintptr_t code = 0x100000000000;
  for (std::uintptr_t i = 1; i <= 50'000; ++i) sites.number_of(reinterpret_cast<const void*>(code + 16 * i));
  CHECK(recorder.header().call_site_count == trace::call_site_capacity);
  CHECK(recorder.header().lost_call_sites == 7 * trace::call_site_capacity);
  CHECK(sites.number_of(reinterpret_cast<const void*>(code + 16)) == 1);
}

}  // namespace papaya
