// Size against p50 excess as SVG, both axes logarithmic. Written as text: no library is needed for lines and
// words.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tools/bench/output.hpp"
#include "tools/bench/svg.hpp"
#include "tools/bench/weak_output.hpp"

namespace papaya::bench {

namespace {

constexpr double width = 860, height = 520;
constexpr double left = 78, right = 200, top = 64, bottom = 62;  // margins; the legend is on the right
constexpr double plot_width = width - left - right, plot_height = height - top - bottom;

struct Point {
  double bytes;
  double us;
};

struct Series {
  std::string name;
  std::vector<Point> points;
};

// The picture's coordinates of sizes and times.
class Axes {
 public:
  explicit Axes(const std::vector<Series>& all) {
    for (const Series& series : all)
      for (const Point& point : series.points) {
        low_x_ = std::min(low_x_, std::log2(point.bytes));
        high_x_ = std::max(high_x_, std::log2(point.bytes));
        low_y_ = std::min(low_y_, std::log10(point.us));
        high_y_ = std::max(high_y_, std::log10(point.us));
      }
    if (high_x_ < low_x_) low_x_ = high_x_ = low_y_ = high_y_ = 0;
    if (high_x_ - low_x_ < 1) low_x_ -= 0.5, high_x_ += 0.5;
    // The next 1, 2 or 5 outside.
    low_y_ = step_below(low_y_ - 0.02);
    high_y_ = -step_below(-high_y_ - 0.02, true);
  }
  double x(double bytes) const { return left + (std::log2(bytes) - low_x_) / (high_x_ - low_x_) * plot_width; }
  double y(double us) const { return top + (high_y_ - std::log10(us)) / (high_y_ - low_y_) * plot_height; }

  std::vector<double> sizes() const {
    std::vector<double> all;
    const int first = static_cast<int>(std::ceil(low_x_ - 1e-9)), last = static_cast<int>(std::floor(high_x_ + 1e-9));
    const int step = (last - first) / 9 + 1;
    for (int power = first; power <= last; power += step) all.push_back(std::exp2(power));
    return all;
  }
  std::vector<double> times() const {
    std::vector<double> all;
    const bool all_steps = high_y_ - low_y_ < 2.5;
    for (int power = static_cast<int>(std::floor(low_y_)) - 1; power <= high_y_ + 1; ++power)
      for (const double mantissa : {1.0, 2.0, 5.0}) {
        const double value = mantissa * std::pow(10.0, power);
        if (!all_steps && mantissa != 1.0) continue;
        if (std::log10(value) > low_y_ - 1e-9 && std::log10(value) < high_y_ + 1e-9) all.push_back(value);
      }
    return all;
  }

 private:
  // The largest logarithm of 1, 2 or 5 times a power of ten that is not above; mirrored, of their inverses.
  static double step_below(double value, bool mirrored = false) {
    const double whole = std::floor(value);
    double best = whole;
    for (const double mantissa : {2.0, 5.0}) {
      const double step = mirrored ? whole + 1 - std::log10(mantissa) : whole + std::log10(mantissa);
      if (step <= value) best = std::max(best, step);
    }
    return best;
  }

  double low_x_ = 1e300, high_x_ = -1e300, low_y_ = 1e300, high_y_ = -1e300;
};

std::string polyline(const Axes& axes, const Series& series, const char* colour, const char* more, bool dots) {
  std::string path, marks;
  for (const Point& point : series.points) {
    path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "" : " ", axes.x(point.bytes), axes.y(point.us));
    if (dots)
      marks += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"><title>{}, {} bytes: {} "
          "us</title></circle>\n",
          axes.x(point.bytes), axes.y(point.us), colour, escaped(series.name),
          short_bytes(static_cast<std::size_t>(point.bytes)), short_number(point.us));
  }
  return fmt::format(
      "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\" stroke-linejoin=\"round\"{} "
      "points=\"{}\"/>\n{}",
      colour, more, path, marks);
}

}  // namespace

std::string plot_svg(const Result& result) {
  const bool is_weak = !result.rows.empty() && result.rows.front().weak;
  if (is_weak && has_slack(result)) return slack_svg(result);
  std::vector<Series> all;
  Series limit{"limit", {}};
  for (const Row& row : result.rows) {
    const std::string name = row.weak ? series_name(row) : row.algorithm;
    auto own = std::find_if(all.begin(), all.end(), [&](const Series& series) { return series.name == name; });
    if (own == all.end()) own = all.insert(all.end(), Series{name, {}});
    // A logarithmic axis cannot show what is not above 0.
    if (row.bytes > 0 && row.excess_us.p50 > 0)
      own->points.push_back({static_cast<double>(row.bytes), row.excess_us.p50});
    if (row.algorithm == "native" && row.limit_us.value_or(0) > 0)
      limit.points.push_back({static_cast<double>(row.bytes), *row.limit_us});
  }
  std::vector<Series> everything = all;
  everything.push_back(limit);
  const Axes axes(everything);

  std::string svg = svg_begin(width, height);
  const std::string collective(result.rows.empty() ? "" : name_of(result.rows.front().collective));
  const std::string title = is_weak ? result.rows.front().weak->collective : "MPI_" + collective;
  std::string how = result.mode == "tight"      ? "calls back to back"
                    : result.mode == "balanced" ? "after a barrier"
                    : result.mode == "free"     ? free_text(result)
                                                : "arrivals " + result.pattern;
  if (result.mode != "tight" && result.mode != "balanced" && result.mode != "free" && result.pattern != "none")
    how += result.mif ? fmt::format(" within {:g} message times", *result.mif)
                      : fmt::format(" within {} us", short_number(result.skew_us));
  svg += fmt::format("<text x=\"{}\" y=\"26\" font-size=\"17\" font-weight=\"600\">{}</text>\n", left, title);
  svg += fmt::format("<text class=\"faint\" x=\"{}\" y=\"46\">{}, {} ranks on {} cores, {}</text>\n", left,
                     escaped(result.mpi), result.ranks, result.cores, escaped(how));
  for (const double bytes : axes.sizes())
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{0:.1f}\" y1=\"{1}\" x2=\"{0:.1f}\" y2=\"{2}\"/>\n"
        "<text class=\"faint\" x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4}</text>\n",
        axes.x(bytes), top, height - bottom, height - bottom + 20, short_bytes(static_cast<std::size_t>(bytes)));
  for (const double us : axes.times())
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{1}\" y1=\"{0:.1f}\" x2=\"{2}\" y2=\"{0:.1f}\"/>\n"
        "<text class=\"faint\" x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:g}</text>\n",
        axes.y(us), left, width - right, left - 8, axes.y(us) + 4.5, us);
  svg += fmt::format("<rect class=\"axis\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", left, top, plot_width,
                     plot_height);
  const bool blocks = collective == "Alltoall" || collective == "Allgather";
  svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{} size in bytes</text>\n", left + plot_width / 2,
                     height - 16, blocks ? "block" : "message");
  svg += fmt::format("<text transform=\"translate(22 {}) rotate(-90)\" text-anchor=\"middle\">{} in us</text>\n",
                     top + plot_height / 2,
                     is_weak                  ? "median time inside a call"
                     : result.mode == "tight" ? "median time per call"
                                              : "median excess");
  double y = top + 12;
  const auto legend = [&](const std::string& name, const char* colour, const char* more, bool dot) {
    svg += fmt::format("<line x1=\"{}\" y1=\"{:.0f}\" x2=\"{}\" y2=\"{:.0f}\" stroke=\"{}\" stroke-width=\"2\"{}/>\n",
                       width - right + 16, y, width - right + 44, y, colour, more);
    if (dot)
      svg += fmt::format("<circle cx=\"{}\" cy=\"{:.0f}\" r=\"3\" fill=\"{}\"/>\n", width - right + 30, y, colour);
    svg += fmt::format("<text x=\"{}\" y=\"{:.0f}\">{}</text>\n", width - right + 52, y + 4.5,
                       escaped(name.size() > 20 ? name.substr(0, 18) + ".." : name));
    y += 22;
  };
  if (!limit.points.empty()) svg += polyline(axes, limit, "#999999", " stroke-dasharray=\"6 5\"", false);
  // Native last, so that it lies on top where lines meet; in the legend it comes first.
  for (std::size_t i = all.size(); i-- > 0;) svg += polyline(axes, all[i], colour_of(i), "", true);
  for (std::size_t i = 0; i < all.size(); ++i) legend(all[i].name, colour_of(i), "", true);
  if (!limit.points.empty()) legend("limit", "#999999", " stroke-dasharray=\"6 5\"", false);
  return svg + "</svg>\n";
}

}  // namespace papaya::bench
