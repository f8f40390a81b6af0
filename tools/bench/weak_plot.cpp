#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tools/bench/output.hpp"
#include "tools/bench/svg.hpp"
#include "tools/bench/weak_output.hpp"

namespace papaya::bench {

namespace {

constexpr double panel_width = 250, panel_height = 230, gap = 84, left = 78, top = 84, bottom = 70, legend_width = 190;

struct Panel {
  std::string title;
  std::function<std::optional<double>(const Row&)> value;
};

std::vector<Panel> panels_of(const Result& result) {
  std::vector<Panel> panels = {
      {"mean time inside a call, us", [](const Row& row) { return std::optional(row.inside_us.mean); }},
      {"waited for others, us",
       [](const Row& row) { return row.weak->waited_us ? std::optional(row.weak->waited_us->mean) : std::nullopt; }}};
  if (result.mode == "free")
    panels.push_back({"calls per second of a rank", [](const Row& row) { return row.weak->calls_per_second; }});
  return panels;
}

// 1, 2 or 5 times a power of ten, so that four to ten of them reach so far.
double step_for(double highest) {
  const double power = std::pow(10.0, std::floor(std::log10(highest / 4)));
  for (const double mantissa : {5.0, 2.0})
    if (highest / (mantissa * power) >= 4) return mantissa * power;
  return power;
}

// The slacks are evenly spaced: 0 and 255 have to be on one axis.
class SlackPanel {
 public:
  SlackPanel(const Panel& panel, const std::vector<const Row*>& rows, const std::vector<int>& slacks, double x,
             double y)
      : panel_(panel), rows_(rows), slacks_(slacks), x_(x), y_(y) {
    for (const Row* row : rows) highest_ = std::max(highest_, panel.value(*row).value_or(0));
    if (highest_ <= 0) highest_ = 1;
    step_ = step_for(highest_);
    highest_ = std::ceil(highest_ / step_) * step_;
  }

  std::string svg(const std::vector<std::string>& names) const {
    std::string text = fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", x_, y_ - 10, panel_.title);
    for (double value = 0; value <= highest_ + step_ / 2; value += step_)
      text += fmt::format(
          "<line class=\"grid\" x1=\"{0}\" y1=\"{2:.1f}\" x2=\"{1}\" y2=\"{2:.1f}\"/>\n"
          "<text class=\"faint\" x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:g}</text>\n",
          x_, x_ + panel_width, of_value(value), x_ - 8, of_value(value) + 4.5, value);
    for (std::size_t i = 0; i < slacks_.size(); ++i)
      text += fmt::format("<text class=\"faint\" x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", of_slack(i),
                          y_ + panel_height + 20, slacks_[i]);
    text += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">slack</text>\n", x_ + panel_width / 2,
                        y_ + panel_height + 40);
    text += fmt::format("<rect class=\"axis\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n", x_, y_, panel_width,
                        panel_height);
    for (std::size_t i = 0; i < names.size(); ++i) text += line(names[i], colour_of(i));
    return text;
  }

 private:
  double of_value(double value) const { return y_ + panel_height * (1 - value / highest_); }
  double of_slack(std::size_t i) const {
    return x_ + panel_width * (static_cast<double>(i) + 0.5) / static_cast<double>(slacks_.size());
  }

  // Native has no slack: a line from side to side.
  std::string line(const std::string& name, const char* colour) const {
    std::string path, dots;
    for (const Row* row : rows_) {
      const std::optional<double> value = panel_.value(*row);
      if (row->algorithm != name || !value) continue;
      const double y = of_value(*value);
      if (!row->weak->slack) {
        path = fmt::format("{},{:.1f} {},{:.1f}", x_, y, x_ + panel_width, y);
        continue;
      }
      const auto at =
          static_cast<std::size_t>(std::find(slacks_.begin(), slacks_.end(), *row->weak->slack) - slacks_.begin());
      path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "" : " ", of_slack(at), y);
      dots += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"><title>{}, slack {}: {}</title></circle>\n",
          of_slack(at), y, colour, escaped(name), *row->weak->slack, short_number(*value));
    }
    if (path.empty()) return "";
    return fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{} points=\"{}\"/>\n{}", colour,
                       dots.empty() ? " stroke-dasharray=\"6 5\"" : "", path, dots);
  }

  const Panel& panel_;
  const std::vector<const Row*>& rows_;
  const std::vector<int>& slacks_;
  double x_, y_;
  double highest_ = 0;
  double step_ = 1;
};

std::string legend(const std::vector<std::string>& names, double x) {
  std::string text;
  double y = top + 12;
  for (std::size_t i = 0; i < names.size(); ++i, y += 22)
    text += fmt::format(
        "<line x1=\"{}\" y1=\"{:.0f}\" x2=\"{}\" y2=\"{:.0f}\" stroke=\"{}\" stroke-width=\"2\"/>\n"
        "<text x=\"{}\" y=\"{:.0f}\">{}</text>\n",
        x, y, x + 28, y, colour_of(i), x + 36, y + 4.5,
        escaped(names[i].size() > 22 ? names[i].substr(0, 20) + ".." : names[i]));
  return text;
}

}  // namespace

std::string series_name(const Row& row) {
  return row.weak->threshold ? fmt::format("{} {:g} %", row.algorithm, *row.weak->threshold * 100) : row.algorithm;
}

bool has_slack(const Result& result) {
  return std::any_of(result.rows.begin(), result.rows.end(),
                     [](const Row& row) { return row.weak->slack.has_value(); });
}

std::string slack_svg(const Result& result) {
  std::vector<std::size_t> sizes;
  std::vector<int> slacks;
  std::vector<std::string> names;
  for (const Row& row : result.rows) {
    if (std::find(sizes.begin(), sizes.end(), row.bytes) == sizes.end()) sizes.push_back(row.bytes);
    if (std::find(names.begin(), names.end(), row.algorithm) == names.end()) names.push_back(row.algorithm);
    if (row.weak->slack && std::find(slacks.begin(), slacks.end(), *row.weak->slack) == slacks.end())
      slacks.push_back(*row.weak->slack);
  }
  std::sort(slacks.begin(), slacks.end());
  const std::vector<Panel> panels = panels_of(result);
  const double width = left + static_cast<double>(panels.size()) * (panel_width + gap) - gap + 24 + legend_width;
  constexpr double row_height = panel_height + bottom + 34;
  const double height = top + static_cast<double>(sizes.size()) * row_height;
  std::string svg = svg_begin(width, height);
  svg += fmt::format("<text x=\"{}\" y=\"26\" font-size=\"17\" font-weight=\"600\">{}</text>\n", left,
                     result.rows.front().weak->collective);
  svg += fmt::format("<text class=\"faint\" x=\"{}\" y=\"46\">{}, {} ranks on {} cores, {}</text>\n", left,
                     escaped(result.mpi), result.ranks, result.cores,
                     escaped(result.mode == "free" ? free_text(result) : "after a barrier"));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    std::vector<const Row*> rows;
    for (const Row& row : result.rows)
      if (row.bytes == sizes[i]) rows.push_back(&row);
    // A polyline goes from left to right.
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Row* a, const Row* b) { return a->weak->slack < b->weak->slack; });
    const double y = top + static_cast<double>(i) * row_height;
    svg += fmt::format("<text class=\"faint\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{} B</text>\n",
                       left + panel_width + (panel_width + gap) * static_cast<double>(panels.size() - 1), y - 10,
                       short_bytes(sizes[i]));
    for (std::size_t p = 0; p < panels.size(); ++p)
      svg += SlackPanel(panels[p], rows, slacks, left + static_cast<double>(p) * (panel_width + gap), y).svg(names);
  }
  svg += legend(names, width - legend_width);
  return svg + "</svg>\n";
}

}  // namespace papaya::bench
