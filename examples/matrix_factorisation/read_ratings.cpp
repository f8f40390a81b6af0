#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

#include "ratings.hpp"

namespace {

constexpr std::string_view csv_header = "userId,movieId,rating,timestamp";

struct Format {
  std::string_view separator;
  std::string_view separated_by;
};

class Reader {
 public:
  explicit Reader(const std::string& file) : name_(file), stream_(file) {
    if (!stream_) throw std::runtime_error(name_ + " cannot be read: name a file of ratings as MovieLens has them.");
  }

  Ratings read() {
    std::string line;
    Format format{};
    Ratings ratings;
    while (std::getline(stream_, line)) {
      ++line_;
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (line_ == 1) {
        format = format_of(line);
        if (line == csv_header) continue;
      }
      if (!line.empty()) ratings.all.push_back(rating_in(line, format));
    }
    if (!stream_.eof()) throw std::runtime_error(name_ + " cannot be read: name a file, not a folder.");
    if (ratings.all.empty()) throw std::runtime_error(name_ + " holds no ratings.");
    ratings.users = static_cast<int>(users_.size());
    ratings.items = static_cast<int>(items_.size());
    return ratings;
  }

 private:
  Format format_of(std::string_view line) const {
    if (line == csv_header) return {",", "commas"};
    if (line.find("::") != line.npos) return {"::", "\"::\""};
    if (line.find('\t') != line.npos) return {"\t", "tabs"};
    fail(
        "is in none of MovieLens' formats: fields separated by tabs (u.data), by \"::\" (ratings.dat), or by commas "
        "below the header " +
        std::string(csv_header) + " (ratings.csv)");
  }

  Rating rating_in(std::string_view line, const Format& format) {
    std::string_view rest = line;
    const auto field = [&]() -> std::string_view {
      const std::size_t end = std::min(rest.find(format.separator), rest.size());
      const std::string_view found = rest.substr(0, end);
      rest.remove_prefix(std::min(end + format.separator.size(), rest.size()));
      return found;
    };
    std::int64_t user = 0, item = 0, when = 0;
    float value = 0;
    const bool is_complete = parse(field(), user) && parse(field(), item) && parse(field(), value) &&
                             parse(field(), when) && rest.empty() && std::isfinite(value);
    if (!is_complete)
      fail("should have a user, an item, a rating and a time, separated by " + std::string(format.separated_by));
    return {number(users_, user), number(items_, item), value};
  }

  template <typename T>
  static bool parse(std::string_view text, T& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
  }

  static std::int32_t number(std::unordered_map<std::int64_t, std::int32_t>& known, std::int64_t name) {
    return known.try_emplace(name, static_cast<std::int32_t>(known.size())).first->second;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(name_ + ", line " + std::to_string(line_) + ", " + what + ".");
  }

  std::string name_;
  std::ifstream stream_;
  long long line_ = 0;
  std::unordered_map<std::int64_t, std::int32_t> users_;
  std::unordered_map<std::int64_t, std::int32_t> items_;
};

}  // namespace

Ratings read_ratings(const std::string& file) {
  return Reader(file).read();
}
