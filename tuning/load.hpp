// The text of a tuning file, of either format.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace papaya::tuning {

inline constexpr std::size_t largest_file = std::size_t{8} << 20;

// Empty, with the reason in `problem`, if the file cannot be used.
std::string load(const std::string& path, std::string& problem);

// A warning of the file that PAPAYA_TUNING names, where that is this one.
std::string warning_naming(const std::string& path, const std::string& warning);

// Problems of the file as warnings: as many as a reader can use, and how many more there are.
class Problems {
 public:
  static constexpr std::size_t most = 16;
  explicit Problems(std::vector<std::string>& warnings) : warnings_(warnings) {}
  // `place`: "line 4, column 7".
  void add(const std::string& place, const std::string& problem);
  // After the last.
  void end();

 private:
  std::vector<std::string>& warnings_;
  std::size_t count_ = 0;
};

bool is_json(std::string_view text) noexcept;

}  // namespace papaya::tuning
