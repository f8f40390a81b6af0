#include "tools/report_page.hpp"

#include <string_view>

#include "profiler/report/report.hpp"

namespace papaya {

// With <!--papaya:NAME--> where the data belong. Made by tools/report/join.py; empty where there was no chart library.
extern const char* const report_page_template;

namespace {

// As the text of an element.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// As the text of a script element, which a `<` in a string could end or change. In JSON they stand in strings only;
// line ends and indents stand outside of them.
std::string inside_script(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (json[i] == '<') {
      out += "\\u003c";
    } else if (json[i] == '\n') {
      while (i + 1 < json.size() && json[i + 1] == ' ') ++i;
    } else {
      out += json[i];
    }
  }
  return out;
}

// What a reader must not overlook stands before all else.
std::string approximate(const report::Report& analysis) {
  std::string html;
  for (const report::ApproxFigures& figures : analysis.approx)
    html += "<p class=\"approximate\">PAPAYA_APPROX: " + escaped(figures.sentence()) + ".</p>\n";
  for (const report::WrongResult& one : analysis.wrong_results)
    html += "<p class=\"approximate\">PAPAYA_VERIFY: " + escaped(one.sentence()) + ".</p>\n";
  return html;
}

}  // namespace

bool has_report_page() {
  return *report_page_template != '\0';
}

std::string to_report_page(const report::Report& analysis, const report::Pictures& pictures) {
  const std::string report = report::to_json(analysis);
  const std::string drawn = report::to_json(pictures, analysis);
  if (!has_report_page() || report.empty() || drawn.empty()) return {};
  const auto text_of = [&](std::string_view name) {
    if (name == "title") return escaped(analysis.program);
    if (name == "verdict") return escaped(analysis.verdict);
    if (name == "approximate") return approximate(analysis);
    return inside_script(name == "report" ? report : drawn);
  };
  constexpr std::string_view begin = "<!--papaya:";
  constexpr std::string_view end = "-->";
  std::string page;
  std::string_view rest = report_page_template;
  for (std::size_t at = rest.find(begin); at != std::string_view::npos; at = rest.find(begin)) {
    page += rest.substr(0, at);
    rest.remove_prefix(at + begin.size());
    const std::size_t length = rest.find(end);
    page += text_of(rest.substr(0, length));
    rest.remove_prefix(length + end.size());
  }
  page += rest;
  return page;
}

}  // namespace papaya
