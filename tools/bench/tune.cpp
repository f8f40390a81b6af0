#include "tools/bench/tune.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "tools/bench/output.hpp"
#include "tools/bench/quiet.hpp"
#include "tools/bench/session.hpp"
#include "tools/command.hpp"
#include "tools/recorded_run.hpp"
#include "tools/tune_plan.hpp"

namespace papaya::bench {

namespace {

// Of a row. An interval takes six turns, however long those are.
constexpr double least_s = 0.02;
constexpr double most_s = 1;
// What warming up, setting up and checking take, at first; then what they took.
constexpr double usual_overhead = 2;

void print_error(const std::string& sentence) {
  std::fprintf(stderr, "papaya tune: %s\n", sentence.c_str());
}

// Rank 0.
std::vector<TunePart> plan(const TuneOptions& options, const Session& session, std::string& problem) {
  if (options.from.empty()) return planned(options, problem);
  report::Run run;
  std::string folder = options.from;
  int exit_code = 0;
  if (!load_recorded_run("papaya tune", folder, run, exit_code) || run.files.empty()) {
    problem = "--from " + options.from + " has no run that can be read.";
    return {};
  }
  std::vector<std::string> notes;
  std::vector<TunePart> parts = planned_from(run, options, static_cast<std::size_t>(session.ranks()), notes, problem);
  for (const std::string& note : notes) print_error(note + ".");
  return parts;
}

class Tuning {
 public:
  Tuning(const TuneOptions& options, Session& session)
      : options_(options), session_(session), is_first_(session.rank() == 0), progress_(is_first_) {}

  int run();

 private:
  double elapsed_s() const { return (session_.clock().now_us() - begin_us_) * 1e-6; }
  double seconds_a_row() const;
  void measure(const TunePart& part, double seconds);
  int tell();

  const TuneOptions& options_;
  Session& session_;
  const bool is_first_;
  Progress progress_;
  double begin_us_ = 0;
  std::vector<TunePart> parts_;  // that are not measured yet
  std::size_t all_rows_ = 0;     // with those that were measured before
  std::size_t done_rows_ = 0;
  double overhead_ = usual_overhead;
  bool has_measured_ = false;  // in this launch
  bool is_wrong_ = false;
  bool is_stored_ = true;
  TuneStore store_;  // rank 0
};

// Rank 0: what the budget leaves for each. A launch measures something, however little time it has.
double Tuning::seconds_a_row() const {
  const double left_s = options_.budget_s - elapsed_s();
  if (left_s <= 0 && has_measured_) return 0;
  return std::clamp(left_s / overhead_ / static_cast<double>(all_rows_ - done_rows_), least_s, most_s);
}

void Tuning::measure(const TunePart& part, double seconds) {
  const Options options = options_for(part, seconds);
  Replay replay;
  std::string problem;
  if (options.pattern == Pattern::replay) parse_replay(part.arrivals, session_.ranks(), replay, problem);
  const double rows = static_cast<double>(rows_of(part, session_.nodes() == 1));
  Show show;
  show.print = [](const std::string&) {};
  show.warn = [&](const std::string& sentence) {
    if (!is_first_) return;
    progress_.clear();
    print_error(sentence);
  };
  show.progress = [&](double share, const std::string& what) {
    if (is_first_)
      progress_.show((static_cast<double>(done_rows_) + share * rows) / static_cast<double>(all_rows_),
                     what + ", " + part.pattern);
  };
  show.pause = [] {};
  const double before_s = elapsed_s();
  const Result result = session_.measure(options, replay, show, [&] { return elapsed_s() < options_.budget_s; });
  if (!is_first_) return;
  TunePart measured = part;
  measured.sizes.resize(static_cast<std::size_t>(
      std::count_if(result.rows.begin(), result.rows.end(), [](const Row& row) { return row.algorithm == "native"; })));
  const std::size_t done = rows_of(measured, session_.nodes() == 1);
  done_rows_ += done;
  has_measured_ = true;
  overhead_ = std::max(1.0, (elapsed_s() - before_s) / (seconds * static_cast<double>(done)));
  progress_.clear();
  for (const Row& row : result.rows)
    if (is_wrong(row)) {
      is_wrong_ = true;
      print_error(fmt::format("{} of {} gave a wrong result at {} bytes; it is not chosen.", row.algorithm,
                              part.collective, row.bytes));
    }
  is_stored_ = store_.add(measured, json_text(result)) && is_stored_;
  const std::size_t sizes = measured.sizes.size();
  std::printf("%s: %zu size%s in %.0f s\n", part.name().c_str(), sizes, sizes == 1 ? "" : "s", elapsed_s() - before_s);
  std::fflush(stdout);
}

// Rank 0, at the end.
int Tuning::tell() {
  std::string problem;
  if (!store_.make_rules(problem)) {
    print_error(problem.empty() ? "nothing was measured." : problem);
    return exit_failed;
  }
  std::printf("\n");
  for (const std::string& choice : store_.choices()) std::printf("%s\n", choice.c_str());
  std::printf("\nwritten to %s: PAPAYA_TUNING=%s\n", options_.output.c_str(), options_.output.c_str());
  if (done_rows_ < all_rows_)
    std::printf("The time is over, and %.0f %% is still to be measured: the same command goes on with that.\n",
                100 * static_cast<double>(all_rows_ - done_rows_) / static_cast<double>(all_rows_));
  return is_wrong_ || !is_stored_ ? exit_failed : exit_fine;
}

int Tuning::run() {
  begin_us_ = session_.clock().now_us();
  std::string problem;
  std::string text;
  if (is_first_) {
    std::vector<TunePart> all = plan(options_, session_, problem);
    const bool is_open =
        problem.empty() &&
        store_.open(options_.output, {session_.ranks(), session_.nodes(), session_.cores(), Session::mpi_name()},
                    problem);
    for (TunePart& part : all) {
      if (!is_open) break;
      TunePart rest = store_.rest_of(part);
      done_rows_ += rows_of(part, session_.nodes() == 1) - rows_of(rest, session_.nodes() == 1);
      part = std::move(rest);
    }
    std::erase_if(all, [](const TunePart& part) { return part.sizes.empty(); });
    text = to_text(all);
  }
  problem = session_.agreed(problem);
  if (!problem.empty()) {
    if (is_first_) print_error(problem);
    return exit_usage;
  }
  parts_ = parts_of(quiet::share(text, session_.world()));
  if (options_.natives && NativeVariants(session_.world()).of(Collective::allreduce, std::size_t{1} << 20).empty() &&
      is_first_)
    print_error("this MPI does not let its algorithms be chosen while it runs, so --natives measures none of them.");
  all_rows_ = done_rows_;
  for (const TunePart& part : parts_) all_rows_ += rows_of(part, session_.nodes() == 1);
  for (const TunePart& part : parts_) {
    const double seconds = quiet::share(is_first_ ? seconds_a_row() : 0, session_.world());
    if (seconds <= 0) break;
    measure(part, seconds);
  }
  int exit_code = is_first_ ? tell() : exit_fine;
  quiet::share(&exit_code, sizeof exit_code, session_.world());
  return exit_code;
}

}  // namespace

int tune(const TuneOptions& options, MPI_Comm world) {
  Session session(world);
  return Tuning(options, session).run();
}

}  // namespace papaya::bench
