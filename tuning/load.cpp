#include "tuning/load.hpp"

#include <filesystem>
#include <fstream>

#include "tuning/rule.hpp"

namespace papaya::tuning {

std::string load(const std::string& path, std::string& problem) {
  std::error_code error;
  std::ifstream file{path};
  std::string text;
  if (!file || !std::filesystem::is_regular_file(path, error)) {
    problem = "cannot be read";
  } else {
    text.resize(largest_file + 1);
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
    if (text.size() > largest_file)
      problem = "is larger than " + text_of_bytes(largest_file);
    else if (text.find_first_not_of(" \t\r\n") == text.npos)
      problem = "is empty";
  }
  if (!problem.empty()) text.clear();
  return text;
}

void Problems::add(const std::string& place, const std::string& problem) {
  if (++count_ <= most) warnings_.push_back("PAPAYA_TUNING, " + place + ": " + problem + ".");
}

void Problems::end() {
  if (count_ > most) warnings_.push_back("PAPAYA_TUNING: " + std::to_string(count_ - most) + " more problems.");
}

std::string warning_naming(const std::string& path, const std::string& warning) {
  constexpr std::string_view variable = "PAPAYA_TUNING";
  return warning.starts_with(variable) ? path + warning.substr(variable.size()) : warning;
}

bool is_json(std::string_view text) noexcept {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != text.npos && (text[begin] == '{' || text[begin] == '[');
}

}  // namespace papaya::tuning
