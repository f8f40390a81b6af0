#include "market.hpp"

#include <fmt/format.h>
#include <fmt/os.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

namespace matrix_multiplication {

namespace {

constexpr int root = 0;  // has the file

std::string in_lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return text;
}

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), file_(path) {
    if (!file_) throw Problem(fmt::format("Cannot read {}: {}.", path, std::strerror(errno)));
    if (!std::filesystem::is_regular_file(path)) throw Problem(fmt::format("{} is not a regular file.", path));
    read_header();
    read_size();
  }
  Size size() const noexcept { return size_; }

  double next() {
    ++element_;
    if (!next_line())
      throw Problem(
          fmt::format("{} ends after {} of its {} x {} elements.", path_, element_ - 1, size_.rows, size_.columns));
    double number = 0;
    const std::string_view word = trimmed(line_);
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(number))
      fail(fmt::format("is \"{}\", not a finite number", word.substr(0, 40)));
    return number;
  }
  void expect_end() {
    if (next_line()) fail(fmt::format("follows the last of {} x {} elements", size_.rows, size_.columns));
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Problem(fmt::format("{}: line {} {}.", path_, number_, what));
  }
  static std::string_view trimmed(std::string_view text) {
    constexpr std::string_view spaces = " \t\r";
    const std::size_t first = text.find_first_not_of(spaces);
    if (first == std::string_view::npos) return {};
    text = text.substr(first, text.find_last_not_of(spaces) - first + 1);
    return text.front() == '+' ? text.substr(1) : text;
  }
  // The next that is not empty. Comments may stand before the size only.
  bool next_line() {
    while (std::getline(file_, line_)) {
      ++number_;
      if (!trimmed(line_).empty()) return true;
    }
    if (file_.bad()) throw Problem(fmt::format("Cannot read {}: {}.", path_, std::strerror(errno)));
    return false;
  }
  void read_header() {
    std::string banner;
    std::string object;
    std::string format;
    std::string field;
    std::string symmetry;
    if (next_line()) std::istringstream(in_lower_case(line_)) >> banner >> object >> format >> field >> symmetry;
    if (banner != "%%matrixmarket" || object != "matrix")
      throw Problem(
          fmt::format("{} is not in Matrix Market format: it does not begin with \"%%MatrixMarket matrix\".", path_));
    if (format != "array")
      throw Problem(
          fmt::format("{} has a sparse matrix ({}); the program multiplies dense ones (array).", path_, format));
    if ((field != "real" && field != "integer") || symmetry != "general")
      throw Problem(fmt::format("{} is {} {}; the program reads \"real general\" and \"integer general\".", path_,
                                field, symmetry));
  }
  void read_size() {
    do {
      if (!next_line()) throw Problem(fmt::format("{} ends before the size of its matrix.", path_));
    } while (trimmed(line_).front() == '%');
    std::istringstream words(line_);
    std::string rest;
    if (!(words >> size_.rows >> size_.columns) || words >> rest || size_.rows < 1 || size_.columns < 1)
      fail(fmt::format("is \"{}\", not the numbers of rows and columns", trimmed(line_).substr(0, 40)));
  }

  const std::string path_;
  std::ifstream file_;
  std::string line_;
  std::uint64_t number_ = 0;  // of the line
  std::uint64_t element_ = 0;
  Size size_;
};

int count_of(const Layout& layout, int row, int column) {
  return static_cast<int>(layout.elements(row, column));
}

// The blocks of a column of blocks, from or to one array of whole columns.
class Strip {
 public:
  Strip(const Layout& layout, int column) : layout_(layout), column_(column) {}
  void allocate() {
    data_.resize(static_cast<std::size_t>(layout_.rows.size) *
                 static_cast<std::size_t>(layout_.columns.length(column_)));
  }
  std::vector<double>& data() noexcept { return data_; }

  void scatter(Matrix& matrix) {
    each([&](int row, int owner, int tag) {
      if (matrix.rank() == owner && owner == root) copy_from(row, matrix.block(row, column_).data);
      if (owner == root) return;
      const int count = count_of(layout_, row, column_);
      if (matrix.rank() == owner)
        MPI_Recv(matrix.block(row, column_).data, count, MPI_DOUBLE, root, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (matrix.rank() != root) return;
      std::vector<double> block(static_cast<std::size_t>(count));
      copy_from(row, block.data());
      MPI_Send(block.data(), count, MPI_DOUBLE, owner, tag, MPI_COMM_WORLD);
    });
  }
  void gather(Matrix& matrix) {
    each([&](int row, int owner, int tag) {
      if (matrix.rank() == owner && owner == root) copy_to(row, matrix.block(row, column_).data);
      if (owner == root) return;
      const int count = count_of(layout_, row, column_);
      if (matrix.rank() == owner)
        MPI_Send(matrix.block(row, column_).data, count, MPI_DOUBLE, root, tag, MPI_COMM_WORLD);
      if (matrix.rank() != root) return;
      std::vector<double> block(static_cast<std::size_t>(count));
      MPI_Recv(block.data(), count, MPI_DOUBLE, owner, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      copy_to(row, block.data());
    });
  }

 private:
  template <class Act>
  void each(Act&& act) {
    constexpr int tags = 1 << 14;
    for (int row = 0; row < layout_.rows.count(); ++row) act(row, layout_.owner(row, column_), row % tags);
  }
  double* at(int row, int column) {
    return data_.data() + static_cast<std::size_t>(column) * static_cast<std::size_t>(layout_.rows.size) +
           layout_.rows.begin(row);
  }
  void copy_from(int row, double* block) {
    const int height = layout_.rows.length(row);
    for (int column = 0; column < layout_.columns.length(column_); ++column, block += height)
      std::copy_n(at(row, column), height, block);
  }
  void copy_to(int row, const double* block) {
    const int height = layout_.rows.length(row);
    for (int column = 0; column < layout_.columns.length(column_); ++column, block += height)
      std::copy_n(block, height, at(row, column));
  }

  const Layout& layout_;
  const int column_;
  std::vector<double> data_;
};

}  // namespace

Size read_size(const Job& job, const std::string& path) {
  Size size;
  job.together([&] {
    if (job.rank == root) size = Reader(path).size();
  });
  MPI_Bcast(&size, 2, MPI_INT, root, MPI_COMM_WORLD);
  return size;
}

void read(const Job& job, const std::string& path, Matrix& matrix) {
  const Layout layout = matrix.layout();
  std::optional<Reader> reader;
  job.together([&] {
    if (job.rank == root) reader.emplace(path);
  });
  for (int column = 0; column < layout.columns.count(); ++column) {
    Strip strip(layout, column);
    job.together([&] {
      if (job.rank != root) return;
      strip.allocate();
      for (double& element : strip.data()) element = reader->next();
      if (column + 1 == layout.columns.count()) reader->expect_end();
    });
    strip.scatter(matrix);
  }
}

void write(const Job& job, const std::string& path, Matrix& matrix) {
  const Layout layout = matrix.layout();
  std::ofstream file;
  const auto check = [&] {
    if (!file) throw Problem(fmt::format("Cannot write {}: {}.", path, std::strerror(errno)));
  };
  job.together([&] {
    if (job.rank != root) return;
    file.open(path);
    check();
    file << "%%MatrixMarket matrix array real general\n" << layout.rows.size << ' ' << layout.columns.size << '\n';
  });
  for (int column = 0; column < layout.columns.count(); ++column) {
    Strip strip(layout, column);
    job.together([&] {
      if (job.rank == root) strip.allocate();
    });
    strip.gather(matrix);
    job.together([&] {
      if (job.rank != root) return;
      fmt::memory_buffer text;
      for (const double element : strip.data()) fmt::format_to(std::back_inserter(text), "{}\n", element);
      file.write(text.data(), static_cast<std::streamsize>(text.size())).flush();
      check();
    });
  }
}

}  // namespace matrix_multiplication
