#include "input.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>

#include "../common/free_memory.hpp"
#include "random.hpp"

namespace kmeans {

namespace {

constexpr std::size_t chunk_bytes = 1 << 20;
constexpr std::uint64_t points_between_polls = 4096;
constexpr std::uint64_t hidden_clusters = 64;  // that generated points lie around

struct OpenFile {
  explicit OpenFile(const std::string& path) : number(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat known {};
    if (number < 0 || fstat(number, &known) != 0)
      throw Problem(fmt::format("Cannot read {}: {}.", path, std::strerror(errno)));
    if (!S_ISREG(known.st_mode)) {
      close(number);
      throw Problem(fmt::format("{} is not a regular file.", path));
    }
  }
  ~OpenFile() { close(number); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  const int number;
};

// The lines of a file from a byte on, without their ends.
class Lines {
 public:
  Lines(int file, std::int64_t byte, const std::string& path) : file_(file), next_byte_(byte), path_(path) {}

  // Nothing at the end. Valid until the next call.
  std::optional<std::string_view> next() {
    while (true) {
      const std::size_t end = buffer_.find('\n', at_);
      if (end != std::string::npos) return take(end, end + 1);
      if (is_at_end_) return at_ < buffer_.size() ? take(buffer_.size(), buffer_.size()) : std::nullopt;
      fill();
    }
  }
  // Where the next line begins.
  std::int64_t byte() const noexcept { return next_byte_ - static_cast<std::int64_t>(buffer_.size() - at_); }

 private:
  std::optional<std::string_view> take(std::size_t end, std::size_t next) {
    std::string_view line(buffer_.data() + at_, end - at_);
    at_ = next;
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }
  void fill() {
    buffer_.erase(0, at_);
    at_ = 0;
    const std::size_t kept = buffer_.size();
    buffer_.resize(kept + chunk_bytes);
    const ssize_t got = pread(file_, buffer_.data() + kept, chunk_bytes, next_byte_);
    if (got < 0) throw Problem(fmt::format("Cannot read {}: {}.", path_, std::strerror(errno)));
    buffer_.resize(kept + static_cast<std::size_t>(got));
    next_byte_ += got;
    is_at_end_ = got == 0;
  }

  const int file_;
  std::int64_t next_byte_;  // of the file, that is not in the buffer yet
  const std::string& path_;
  std::string buffer_;
  std::size_t at_ = 0;
  bool is_at_end_ = false;
};

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t") == std::string_view::npos;
}

std::string_view trim(std::string_view field) {
  const std::size_t first = field.find_first_not_of(" \t\"");
  if (first == std::string_view::npos) return {};
  return field.substr(first, field.find_last_not_of(" \t\"") - first + 1);
}

std::optional<double> number_in(std::string_view field) {
  field = trim(field);
  if (field.starts_with('+')) field.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc() || end != field.data() + field.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

char separator_of(std::string_view line) {
  for (const char one : {',', ';', '\t'})
    if (line.find(one) != std::string_view::npos) return one;
  return trim(line).find(' ') == std::string_view::npos ? ',' : ' ';
}

std::vector<std::string_view> fields_of(std::string_view line) {
  const char separator = separator_of(line);
  std::vector<std::string_view> fields;
  if (separator == ' ') line = trim(line);
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find(separator, at), line.size());
    if (separator != ' ' || end > at) fields.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return fields;
}

}  // namespace

Input::Input(const Options& options, int parts, const Job& job) : options_(options), parts_(parts) {
  job.together([&] {
    count_ = options.points;
    dimensions_ = options.dimensions;
    if (!options.input.empty() && job.rank == 0) look_at_file();
  });
  if (!options.input.empty()) {
    MPI_Bcast(&count_, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    MPI_Bcast(&dimensions_, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    places_.resize(static_cast<std::size_t>(parts));
    MPI_Bcast(places_.data(), 2 * parts, MPI_INT64_T, 0, MPI_COMM_WORLD);
  }
  job.together([&] {
    const double needed = 8.0 * static_cast<double>(count_) * static_cast<double>(dimensions_) / parts *
                          std::min(parts, job.ranks_of_node);
    const std::optional<std::uint64_t> known = examples::free_memory();
    if (const double free = known ? static_cast<double>(*known) : HUGE_VAL; needed > 0.9 * free)
      throw Problem(
          fmt::format("The points need {:.0f} MB of a node that has {:.0f} MB free; take more nodes or fewer "
                      "points.",
                      needed / 1e6, free / 1e6));
    if (count_ < options.clusters)
      throw Problem(fmt::format("{} clusters of {} points are not possible; choose --clusters {} at most.",
                                options.clusters, count_, count_));
  });
}

// The first `count % parts` have one more.
std::uint64_t Input::first_of(int part) const noexcept {
  const auto place = static_cast<std::uint64_t>(part);
  const auto parts = static_cast<std::uint64_t>(parts_);
  return place * (count_ / parts) + std::min(place, count_ % parts);
}

void Input::look_at_file() {
  const OpenFile file(options_.input);
  Lines lines(file.number, 0, options_.input);
  std::int64_t line = 0;
  std::int64_t byte = 0;
  std::optional<std::string_view> text;
  const auto advance = [&] {
    do {
      byte = lines.byte();
      text = lines.next();
      ++line;
    } while (text && is_blank(*text));
  };
  advance();
  if (!text) throw Problem(fmt::format("{} has no points.", options_.input));
  const std::size_t columns = fields_of(*text).size();
  const std::size_t last = options_.last_column == 0 ? columns : options_.last_column;
  if (last > columns || options_.first_column > last)
    throw Problem(fmt::format("{} has {} column{}, no column {}; see --columns.", options_.input, columns,
                              columns == 1 ? "" : "s", std::max(last, options_.first_column)));
  dimensions_ = last - options_.first_column + 1;
  // Names stand above the columns if none of them is a number.
  std::vector<std::string_view> fields = fields_of(*text);
  if (std::none_of(fields.begin(), fields.end(), [](std::string_view field) { return number_in(field).has_value(); }))
    advance();
  const Place first{byte, line};
  for (count_ = 0; text; advance()) ++count_;
  places_.assign(static_cast<std::size_t>(parts_), first);
  find_parts(file.number);
}

void Input::find_parts(int file) {
  Lines lines(file, places_[0].byte, options_.input);
  std::int64_t line = places_[0].line;
  std::uint64_t index = 0;
  for (int part = 1; part < parts_; ++part) {
    for (; index < first_of(part); ++line)
      if (!is_blank(*lines.next())) ++index;
    places_[static_cast<std::size_t>(part)] = {lines.byte(), line};
  }
}

void Input::generate(std::uint64_t index, double* point) const {
  Random random(options_.seed, index + 1);
  Random centre(options_.seed ^ 0xC0FFEE, random.below(hidden_clusters) + 1);
  for (std::size_t i = 0; i < dimensions_; ++i) point[i] = 10 * centre.uniform() + 2 * random.normal();
}

void Input::read(int part, const std::function<void()>& poll, Points& points) const {
  const OpenFile file(options_.input);
  const Place& place = places_[static_cast<std::size_t>(part)];
  Lines lines(file.number, place.byte, options_.input);
  std::int64_t line = place.line - 1;
  const std::size_t last = options_.first_column - 1 + dimensions_;
  for (std::uint64_t index = first_of(part); index < first_of(part + 1);) {
    const std::optional<std::string_view> text = lines.next();
    if (!text) throw Problem(fmt::format("{} has become shorter.", options_.input));
    ++line;
    if (is_blank(*text)) continue;
    const std::vector<std::string_view> fields = fields_of(*text);
    if (fields.size() < last || (options_.last_column == 0 && fields.size() != last))
      throw Problem(fmt::format("{}, line {}: it has {} fields; the first line has {}.", options_.input, line,
                                fields.size(), last));
    for (std::size_t i = options_.first_column - 1; i < last; ++i) {
      const std::optional<double> value = number_in(fields[i]);
      if (!value)
        throw Problem(fmt::format("{}, line {}: field {}, \"{}\", is no number.", options_.input, line, i + 1,
                                  trim(fields[i]).substr(0, 40)));
      points.coordinates.push_back(*value);
    }
    if (++index % points_between_polls == 0) poll();
  }
}

Points Input::load(int part, const std::function<void()>& poll) const {
  Points points{dimensions_, {}};
  const std::uint64_t first = first_of(part);
  const std::uint64_t count = first_of(part + 1) - first;
  points.coordinates.reserve(count * dimensions_);
  if (!options_.input.empty()) {
    read(part, poll, points);
    return points;
  }
  points.coordinates.resize(count * dimensions_);
  for (std::uint64_t i = 0; i < count; ++i) {
    generate(first + i, &points.coordinates[i * dimensions_]);
    if (i % points_between_polls == 0) poll();
  }
  return points;
}

}  // namespace kmeans
