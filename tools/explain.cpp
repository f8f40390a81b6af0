#include "tools/explain.hpp"

#include <fmt/format.h>

#include <vector>

namespace papaya {

namespace {

using tuning::ArrivalClass;
using tuning::Bounds;
using tuning::Condition;
using tuning::Considered;
using tuning::Facts;
using tuning::Measured;
using tuning::Rule;
using tuning::text_of_bytes;

std::string plural(int count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string text_of_bounds(const Bounds& bounds, std::string_view one) {
  if (bounds.highest == Bounds::any) return fmt::format("{} or more {}s", bounds.lowest, one);
  if (bounds.lowest == bounds.highest) return plural(bounds.lowest, one);
  if (bounds.lowest <= 1) return fmt::format("up to {} {}s", bounds.highest, one);
  return fmt::format("{} to {} {}s", bounds.lowest, bounds.highest, one);
}

bool is_limited(const Bounds& bounds) {
  return bounds.lowest > 0 || bounds.highest != Bounds::any;
}

std::string text_of_sizes(const Rule& rule) {
  if (rule.lowest_bytes == rule.highest_bytes) return text_of_bytes(rule.lowest_bytes) + " bytes";
  if (rule.highest_bytes == Rule::any_size)
    return rule.lowest_bytes == 0 ? "" : fmt::format("{} bytes or more", text_of_bytes(rule.lowest_bytes));
  return fmt::format("{} to {} bytes", text_of_bytes(rule.lowest_bytes), text_of_bytes(rule.highest_bytes));
}

// Those of the file, by their bits.
std::string text_of_sites(const tuning::Selection& selection, std::uint64_t bits) {
  std::string text;
  for (std::size_t i = 0; i < selection.sites().size(); ++i)
    if ((bits >> i & 1) != 0) text += (text.empty() ? "" : ", ") + selection.sites()[i];
  return text;
}

std::string conditions_of(const tuning::Selection& selection, const Rule& rule) {
  std::string text;
  const auto add = [&](std::string_view condition) {
    if (!condition.empty()) text += (text.empty() ? "" : ", ") + std::string(condition);
  };
  add(text_of_sizes(rule));
  if (is_limited(rule.ranks)) add(text_of_bounds(rule.ranks, "rank"));
  if (is_limited(rule.nodes)) add(text_of_bounds(rule.nodes, "node"));
  if (is_limited(rule.ranks_per_node)) add(text_of_bounds(rule.ranks_per_node, "rank") + " a node");
  if (rule.oversubscribed) add(*rule.oversubscribed ? "more ranks than cores" : "a core for each rank");
  if (rule.highest_oversubscribed != Rule::any_size)
    add(fmt::format("up to {} bytes where ranks outnumber cores and MPI yields",
                    text_of_bytes(rule.highest_oversubscribed)));
  if (rule.arrivals != ArrivalClass::unknown) add(fmt::format("{} arrivals", tuning::name_of(rule.arrivals)));
  if (rule.site != 0) add("calls from " + text_of_sites(selection, rule.site));
  return text.empty() ? "any call" : text;
}

// Of the call.
std::string fact_against(Condition condition, std::uint64_t bytes, const Facts& facts,
                         const tuning::Selection& selection) {
  switch (condition) {
    case Condition::bytes:
      return fmt::format("the call has {} bytes", text_of_bytes(bytes));
    case Condition::ranks:
      return "the communicator has " + plural(facts.ranks, "rank");
    case Condition::nodes:
      return "it is on " + plural(facts.nodes, "node");
    case Condition::ranks_per_node:
      return fmt::format("it has {} a node", plural(facts.ranks_per_node, "rank"));
    case Condition::oversubscribed:
      return facts.oversubscribed ? "ranks outnumber cores" : "each rank has a core";
    case Condition::arrivals:
      return facts.arrivals == ArrivalClass::unknown
                 ? "its arrivals are not known"
                 : fmt::format("its arrivals are {}", tuning::name_of(facts.arrivals));
    case Condition::site:
      return facts.sites == 0 ? "it is not known to come from there"
                              : "it comes from " + text_of_sites(selection, facts.sites);
    case Condition::none:
      break;
  }
  return "";
}

std::string text_of(const Measured& one) {
  std::string text = "measured";
  if (one.bytes) text += fmt::format(", {} bytes", text_of_bytes(*one.bytes));
  if (!one.pattern.empty()) text += fmt::format(", pattern {}", one.pattern);
  if (one.skew_us) text += fmt::format(" of {:.3g} us", *one.skew_us);
  if (one.excess_us) text += fmt::format(": {:.3g} us", *one.excess_us);
  if (one.native_excess_us) text += fmt::format(", native {:.3g} us", *one.native_excess_us);
  if (one.ratio) text += fmt::format(", ratio {:.2f}", *one.ratio);
  if (one.ratio_interval)
    text += fmt::format(" ({:.2f} to {:.2f})", (*one.ratio_interval)[0], (*one.ratio_interval)[1]);
  if (!one.outcome.empty()) text += ", " + one.outcome;
  if (one.turns) text += fmt::format(", {} turns", *one.turns);
  return text;
}

std::string place_of(const Considered& one, const Settings& settings, std::string_view file, Collective collective) {
  if (one.source == Considered::Source::file) return fmt::format("{}, line {}", file, one.row->line);
  if (one.source == Considered::Source::table) return "built-in table";
  Variable variable{};
  tuning::variable_of(collective, variable);
  return settings.is_default(variable) ? std::string(file)
                                       : fmt::format("{}={}", row_of(variable).name, settings.text(variable));
}

}  // namespace

std::string explain(const tuning::Selection& selection, const Settings& settings, std::string_view file,
                    Collective collective, std::uint64_t bytes, const Facts& facts) {
  std::string text = fmt::format("MPI_{} of {} bytes; {} on {}", name_of(collective), text_of_bytes(bytes),
                                 plural(facts.ranks, "rank"), plural(facts.nodes, "node"));
  if (facts.nodes > 1) text += fmt::format(", up to {} a node", facts.ranks_per_node);
  text += facts.oversubscribed ? "; more ranks than cores" : "; a core for each rank";
  if (facts.oversubscribed) text += facts.native_yields ? ", and MPI yields" : ", and MPI spins";
  text += facts.arrivals == ArrivalClass::unknown ? "; arrivals not known\n"
                                                  : fmt::format("; {} arrivals\n", tuning::name_of(facts.arrivals));
  std::vector<Considered> considered;
  const tuning::Choice choice = selection.choose(collective, bytes, facts, Form::blocking, &considered);
  for (const Considered& one : considered) {
    text += fmt::format("\n{}: {}\n  for {}\n", place_of(one, settings, file, collective),
                        tuning::text_of_algorithm(*one.rule), conditions_of(selection, *one.rule));
    for (const tuning::NativeLibrary& library : tuning::native_libraries)
      if (one.row != nullptr && !(one.row->native.*library.algorithm).empty())
        text += fmt::format("  {}'s {} (papaya export)\n", library.name, one.row->native.*library.algorithm);
    if (one.row != nullptr && !one.row->comment.empty()) text += fmt::format("  {}\n", one.row->comment);
    if (one.row != nullptr)
      for (const Measured& measured : one.row->measured) text += fmt::format("  {}\n", text_of(measured));
    if (one.broken != Condition::none)
      text += fmt::format("  passed over: {}\n", fact_against(one.broken, bytes, facts, selection));
    else if (one.hindrance != Reason::none)
      text += fmt::format("  {}: {}\n", one.source == Considered::Source::file ? "passed over" : "cannot serve",
                          name_of(one.hindrance));
    else
      text += "  applies\n";
  }
  if (choice.rule != nullptr)
    text += fmt::format("\n{}{}\n", tuning::text_of_algorithm(*choice.rule),
                        choice.forced ? ", from the first call on" : ", after the first few calls of a communicator");
  else
    text += fmt::format("\nnative: {}\n", name_of(choice.reason));
  return text;
}

}  // namespace papaya
