#include "tools/tune_plan.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "algorithms/algorithm.hpp"
#include "base/mpi_name.hpp"
#include "profiler/read/units.hpp"
#include "tools/bench/sizes.hpp"
#include "tools/recorded_calls.hpp"
#include "tools/recorded_run.hpp"
#include "tools/tuned_rules.hpp"
#include "tuning/native_algorithms.hpp"
#include "tuning/selection.hpp"

namespace papaya {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* usual_sizes = "8:1M:8";
constexpr const char* usual_patterns[] = {"none", "random", "straggler"};
constexpr std::uint64_t most_replayed = 2000;  // calls of a run
constexpr std::size_t samples_kept = 20;       // of a row: enough to see its turns

std::string lower_name(Collective collective) {
  return tuning::lower(name_of(collective));
}

// Reductions are measured with doubles.
std::size_t whole_elements(std::uint64_t bytes) {
  constexpr std::uint64_t element = sizeof(double);
  return static_cast<std::size_t>(std::max(element, (bytes + element - 1) / element * element));
}

std::vector<Collective> wanted(const TuneOptions& options, std::string& problem) {
  const std::span<const Collective> known = bench::with_algorithms();
  if (options.collectives.empty()) return {known.begin(), known.end()};
  std::vector<std::string> names;
  for (const Collective one : known) names.push_back(lower_name(one));
  std::vector<Collective> found;
  for (const std::string& word : options.collectives) {
    Collective collective{};
    if (!tuning::collective_of(word, collective) || std::find(known.begin(), known.end(), collective) == known.end()) {
      const std::vector<std::string_view> views(names.begin(), names.end());
      problem = bench::unknown(word, "collective that can be tuned", views);
      return {};
    }
    found.push_back(collective);
  }
  return found;
}

Json to_object(const TunePart& part) {
  return {{"collective", part.collective}, {"sizes", part.sizes},       {"pattern", part.pattern},
          {"skew_us", part.skew_us},       {"arrivals", part.arrivals}, {"natives", part.natives}};
}

TunePart part_of(const Json& object) {
  return {object.at("collective").get<std::string>(), object.at("sizes").get<std::vector<std::size_t>>(),
          object.at("pattern").get<std::string>(),    object.at("skew_us").get<double>(),
          object.at("arrivals").get<std::string>(),   object.at("natives").get<bool>()};
}

std::string text_of(const Json& object) {
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// With the launch, by which it is found again.
Json stored(const TunePart& part, const TuneStore::Launch& launch) {
  Json object = to_object(part);
  object["ranks"] = launch.ranks;
  object["nodes"] = launch.nodes;
  return Json::parse(text_of(object));
}

std::vector<std::size_t> sizes_of(const Json& part) {
  return part.at("sizes").get<std::vector<std::size_t>>();
}

}  // namespace

std::vector<TunePart> planned(const TuneOptions& options, std::string& problem) {
  std::vector<TunePart> parts;
  const std::vector<std::string> patterns =
      options.patterns.empty() ? std::vector<std::string>(std::begin(usual_patterns), std::end(usual_patterns))
                               : options.patterns;
  const std::vector<Collective> collectives = wanted(options, problem);
  std::vector<std::size_t> sizes;
  if (!problem.empty() || !bench::parse_sizes(options.sizes.empty() ? usual_sizes : options.sizes, sizes, problem))
    return {};
  // A rule is made of all patterns of a collective: whoever runs out of time has whole rules for the first.
  for (const Collective collective : collectives)
    for (const std::string& pattern : patterns) {
      const bool is_skewed = pattern != "none";
      TunePart part{lower_name(collective), sizes, pattern, is_skewed ? options.skew_us : -1, "", options.natives};
      if (collective == Collective::barrier) part.sizes = {sizeof(double)};
      if (bench::Options checked; pattern == "replay" || pattern.starts_with("replay:") ||
                                  !bench::parse({part.collective, "--pattern", pattern}, checked, problem)) {
        if (problem.empty()) problem = "recorded arrivals are measured by --from FOLDER.";
        return {};
      }
      if (bench::is_reduction(collective))
        for (std::size_t& bytes : part.sizes) bytes = whole_elements(bytes);
      part.sizes.erase(std::unique(part.sizes.begin(), part.sizes.end()), part.sizes.end());
      parts.push_back(std::move(part));
    }
  return parts;
}

std::vector<TunePart> planned_from(const report::Run& run, const TuneOptions& options, std::size_t ranks,
                                   std::vector<std::string>& notes, std::string& problem) {
  std::vector<TunePart> parts;
  for (const Collective collective : wanted(options, problem)) {
    const RecordedCalls calls(run, &collective);
    const RecordedCalls::OnOne found = calls.find("", ranks);
    if (found.calls == 0) {
      if (const RecordedCalls::OnOne other = calls.find("", 0); other.calls > 0)
        notes.push_back(fmt::format("{} was called on communicators of {} ranks, such as {}: launch as many for these",
                                    mpi_name(collective, Form::blocking), other.ranks, other.name));
      continue;
    }
    TunePart part{lower_name(collective), {}, "replay:" + run.folder, -1, "", options.natives};
    for (const auto& [floor, size] : found.sizes)
      part.sizes.push_back(bench::is_reduction(collective) ? whole_elements(size.largest_bytes)
                                                           : std::max<std::size_t>(1, size.largest_bytes));
    std::sort(part.sizes.begin(), part.sizes.end());
    part.sizes.erase(std::unique(part.sizes.begin(), part.sizes.end()), part.sizes.end());
    std::ostringstream arrivals;
    calls.write(arrivals, found, (found.calls + most_replayed - 1) / most_replayed);
    part.arrivals = arrivals.str();
    parts.push_back(std::move(part));
  }
  if (parts.empty() && problem.empty())
    problem = fmt::format("the run has no calls of collectives that can be tuned on communicators of {} ranks.", ranks);
  return parts;
}

std::string to_text(const std::vector<TunePart>& parts) {
  Json all = Json::array();
  for (const TunePart& part : parts) all.push_back(to_object(part));
  return text_of(all);
}

std::vector<TunePart> parts_of(const std::string& text) {
  std::vector<TunePart> parts;
  for (const Json& object : Json::parse(text)) parts.push_back(part_of(object));
  return parts;
}

bench::Options options_for(const TunePart& part, double seconds) {
  std::vector<std::string> words = {part.collective,
                                    "--pattern",
                                    part.pattern,
                                    "--seconds",
                                    fmt::format("{:.3f}", seconds),
                                    "--samples",
                                    fmt::format("{}", samples_kept)};
  if (part.skew_us >= 0) words.insert(words.end(), {"--skew", fmt::format("{}", part.skew_us)});
  bench::Options options;
  std::string problem;
  bench::parse(std::move(words), options, problem);  // planned() has checked it
  options.sizes = part.sizes;
  options.measures_auto = false;
  options.measures_natives = part.natives;
  return options;
}

std::size_t rows_of(const TunePart& part, bool is_on_one_node) {
  Collective collective{};
  tuning::collective_of(part.collective, collective);
  const std::span<const Descriptor* const> all = registry();
  const auto algorithms = std::count_if(all.begin(), all.end(), [&](const Descriptor* one) {
    return one->collective == collective && (is_on_one_node || !one->one_node);
  });
  const std::size_t natives = part.natives ? std::max(tuning::openmpi_alternatives(collective).size(),
                                                      tuning::mpich_algorithms(collective).size())
                                           : 0;
  return part.sizes.size() * (1 + natives + static_cast<std::size_t>(algorithms));
}

bool TuneStore::open(const std::string& output, const Launch& launch, std::string& problem) {
  output_ = output;
  launch_ = launch;
  const std::string folder = std::filesystem::path(output).parent_path().string();
  if (access(folder.empty() ? "." : folder.c_str(), W_OK) != 0) {
    problem = fmt::format("cannot write {}: {}.", output, std::strerror(errno));
    return false;
  }
  const std::string path = output + ".measured";
  std::ifstream file(path);
  if (!file) return true;
  try {
    const Json measured = Json::parse(file);
    for (const Json& one : measured.at("parts")) {
      const Json& result = one.at("result");
      const auto mpi = result.at("mpi").get<std::string>();
      const int cores = result.at("cores").get<int>() / std::max(1, result.at("nodes").get<int>());
      if (mpi != launch.mpi || cores != launch.cores / std::max(1, launch.nodes))
        problem =
            fmt::format("{} was measured with {} on nodes of {} cores: name another file by -o.", path, mpi, cores);
      static_cast<void>(sizes_of(one.at("part")));  // throws what follows if there are none
      all_.push_back({one.at("part").dump(), one.at("name").get<std::string>(), result.dump()});
    }
    return problem.empty();
  } catch (const Json::exception&) {
    problem = path + " is not what papaya tune writes: remove it, or name another file by -o.";
    return false;
  }
}

TunePart TuneStore::rest_of(const TunePart& part) const {
  TunePart rest = part;
  Json wanted = stored(part, launch_);
  for (const Measured& one : all_) {
    const Json other = Json::parse(one.part);
    const std::vector<std::size_t> measured = sizes_of(other);
    wanted["sizes"] = measured;
    if (wanted != other) continue;
    std::erase_if(rest.sizes, [&](std::size_t bytes) {
      return std::find(measured.begin(), measured.end(), bytes) != measured.end();
    });
  }
  return rest;
}

bool TuneStore::add(const TunePart& part, const std::string& result) {
  all_.push_back({text_of(stored(part, launch_)), fmt::format("{}, {} ranks", part.name(), launch_.ranks), result});
  Json measured = {{"papaya_tune", 1}, {"parts", Json::array()}};
  for (const Measured& one : all_)
    measured["parts"].push_back(
        {{"name", one.name}, {"part", Json::parse(one.part)}, {"result", Json::parse(one.result)}});
  std::string problem;
  return write_output("papaya tune", output_ + ".measured",
                      [&](std::ostream& out) { out << measured.dump() << "\n"; }) &&
         make_rules(problem);
}

bool TuneStore::make_rules(std::string& problem) {
  std::vector<std::string> texts;
  std::vector<std::string> names;
  for (const Measured& one : all_) {
    texts.push_back(one.result);
    names.push_back(one.name);
  }
  Tuned tuned;
  if (!tuned_rules(texts, names, tuned, problem)) return false;
  choices_ = tuned.choices;
  return write_output("papaya tune", output_, [&](std::ostream& out) { out << tuned.json; });
}

}  // namespace papaya
