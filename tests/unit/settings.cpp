#include "base/settings.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "tests/catch.hpp"

namespace papaya {

namespace {
Settings read(std::vector<const char*> environment, std::vector<std::string>& warnings) {
  environment.push_back(nullptr);
  return Settings::from_environment(environment.data(), warnings);
}
bool mentions(const std::vector<std::string>& warnings, std::string_view word) {
  return std::any_of(warnings.begin(), warnings.end(), [&](auto& w) { return w.find(word) != w.npos; });
}
}  // namespace

TEST_CASE("sizes") {
  std::int64_t bytes = 0;
  CHECK((parse_bytes("0", bytes) && bytes == 0));
  CHECK((parse_bytes("4K", bytes) && bytes == 4096));
  CHECK((parse_bytes("64MiB", bytes) && bytes == 64 << 20));
  CHECK((parse_bytes("1g", bytes) && bytes == 1 << 30));
  for (const char* bad : {"", "K", "4X", "-1", "4 K", "4KK", "99999999999999999999", "9999999999T"})
    CHECK_FALSE(parse_bytes(bad, bytes));
}

TEST_CASE("shares") {
  std::int64_t millionths = -1;
  CHECK((parse_share("off", millionths) && millionths == 0));
  CHECK((parse_share("exact", millionths) && millionths == 10'000));
  CHECK((parse_share("1%", millionths) && millionths == 10'000));
  CHECK((parse_share("0.25%", millionths) && millionths == 2'500));
  CHECK((parse_share("100%", millionths) && millionths == 1'000'000));
  for (const char* bad : {"", "1", "%", "101%", "-1%", "1 %", "nan%", "1%%", "on"})
    CHECK_FALSE(parse_share(bad, millionths));
}

TEST_CASE("lists of ranks") {
  const auto contained = [](std::string_view text) {
    RankList list;
    REQUIRE(list.parse(text));
    std::vector<int> ranks;
    for (int rank = 0; rank < 12; ++rank)
      if (list.contains(rank)) ranks.push_back(rank);
    return ranks;
  };
  CHECK(contained("all").size() == 12);
  CHECK(contained("3") == std::vector<int>{3});
  CHECK(contained("0-2,7,10-99") == std::vector<int>{0, 1, 2, 7, 10, 11});
  CHECK(contained("1-9:4,0-1") == std::vector<int>{0, 1, 5, 9});
  for (const char* bad : {"", "x", "3-", "-3", "4-2", "1,,2", "1,", "0-9:0", "1 2", "99999999999999999999", "all,1"})
    CHECK_FALSE(RankList().parse(bad));
}

TEST_CASE("defaults are valid and survive being sent") {
  std::vector<std::string> warnings;
  std::vector<std::string> entries;
  for (const VariableRow& row : variable_rows())
    entries.push_back(std::string(row.name) + "=" + std::string(row.fallback));
  std::vector<const char*> environment;
  for (const std::string& entry : entries) environment.push_back(entry.c_str());
  const Settings settings = read(environment, warnings);
  CHECK(warnings.empty());
  const Settings copy = Settings::deserialize(settings.serialize());
  for (std::size_t i = 0; i < variable_count; ++i) {
    CHECK(copy.text(static_cast<Variable>(i)) == variable_rows()[i].fallback);
    CHECK(copy.is_default(static_cast<Variable>(i)));
  }
  CHECK(settings.number(Variable::shm_limit) == 64 << 20);
}

TEST_CASE("bad values fall back with one sentence each") {
  std::vector<std::string> warnings;
  const Settings settings = read(
      {"PAPAYA_WAIT=yeild", "PAPAYA_SHM_LIMIT=lots", "PAPAYA_NODE_SIZE=-3", "PAPAYA_DISABLE=yes", "OTHER=1"}, warnings);
  CHECK(warnings.size() == 4);
  CHECK(mentions(warnings, "did you mean yield?"));
  CHECK(settings.text(Variable::wait) == "auto");
  CHECK(settings.number(Variable::shm_limit) == 64 << 20);
  CHECK(settings.number(Variable::node_size) == 0);
  CHECK(settings.number(Variable::disable) == 0);
}

TEST_CASE("an unknown name gets the nearest one") {
  std::vector<std::string> warnings;
  read({"PAPAYA_ALREDUCE=native", "PAPAYA_RUN_PID=12"}, warnings);
  REQUIRE(warnings.size() == 1);
  CHECK(mentions(warnings, "PAPAYA_ALLREDUCE?"));
  warnings.clear();
  read({"PAPAYA_XYZZYQQQQQQQ=1"}, warnings);
  REQUIRE(warnings.size() == 1);
  CHECK(mentions(warnings, "papaya info --env"));
}

TEST_CASE("an empty value means not set") {
  std::vector<std::string> warnings;
  CHECK(read({"PAPAYA_WAIT="}, warnings).is_default(Variable::wait));
  CHECK(warnings.empty());
}

}  // namespace papaya
