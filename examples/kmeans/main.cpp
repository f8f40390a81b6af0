// K-means that survives the death of ranks, and one that does not, to compare with: README.md.
#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "guard.hpp"
#include "report.hpp"

namespace kmeans {

namespace {

constexpr unsigned seconds_for_finalize = 10;

void say(const std::string& sentence) {
  fmt::print(stderr, "kmeans: {}\n", sentence);
  std::fflush(stderr);
}

// MPI_Finalize waits for all ranks, so it is not called where one is dead; and should one die in it, this does not
// wait for long.
[[noreturn]] void end(int code, Mailbox& mailbox, bool do_all_live) {
  mailbox.discard();
  std::fflush(stdout);
  std::fflush(stderr);
  if (do_all_live) {
    std::signal(SIGALRM, [](int) { _exit(0); });
    alarm(seconds_for_finalize);
    MPI_Finalize();
  }
  _exit(code);
}

struct Start {
  Shape shape;
  Points points;
  Numbers centroids;
};

// Collective.
Start prepare(const Options& options, const Input& input, int part, const Job& job) {
  Start start{{options.clusters, input.dimensions()}, {}, {}};
  job.together([&] {
    if (static_cast<double>(start.shape.centroids()) > 1e8)
      throw Problem("Centroids have at most 100 million coordinates together; choose fewer --clusters.");
    if (job.rank == 0) try_files(options);
    if (part >= 0) start.points = input.load(part, [] {});
  });
  start.centroids = choose_centroids(input, start.points, part, start.shape, options.seed, job);
  job.together([&] {
    if (job.rank == 0 && !options.initial.empty()) write_centroids(options.initial, start.centroids, start.shape);
  });
  return start;
}

void say_what_begins(const Input& input, const Shape& shape, int parts, int spares, const std::string& place) {
  fmt::print("{} points, {} dimensions, {} clusters on {} rank{}", input.count(), shape.dimensions, shape.clusters,
             parts, parts == 1 ? "" : "s");
  if (!place.empty()) fmt::print(" and {} spare{} over {}", spares, spares == 1 ? "" : "s", place);
  fmt::print("\n");
  std::fflush(stdout);
}

int cluster_plainly(const Options& options, const Job& job) {
  const Input input(options, job.ranks, job);
  const Start start = prepare(options, input, job.rank, job);
  if (job.rank == 0) say_what_begins(input, start.shape, job.ranks, 0, "");
  const Outcome outcome = run_plainly(options, start.points, start.shape, start.centroids);
  job.together([&] {
    if (job.rank == 0) report(options, outcome, {job.ranks, job.ranks, 0, "MPI_Allreduce", input.count(), start.shape});
  });
  return 0;
}

[[noreturn]] void cluster_resiliently(const Options& options, const Job& job) {
  const int parts = job.ranks - options.spares;
  job.together([&] {
    if (parts < 1)
      throw Problem(fmt::format("{} rank{} too few for {} spares, since at least one has to work; start {} or more.",
                                job.ranks, job.ranks == 1 ? " is" : "s are", options.spares, options.spares + 1));
  });
  const Input input(options, parts, job);
  Start start = prepare(options, input, job.rank < parts ? job.rank : -1, job);
  Mailbox mailbox(job, start.shape, view_numbers(parts, job.ranks, start.shape));
  Fate fate(job.rank, job.ranks, options.kills, options.iterations, options.kill_seed);
  Team team(job, parts, start.shape, options.timeout, mailbox, fate);
  MPI_Barrier(MPI_COMM_WORLD);
  // From here on no call of MPI's. Rank 0 knows that the others have left the barrier before it says so.
  team.begin(std::move(start.centroids));
  if (job.rank == 0) say_what_begins(input, start.shape, parts, options.spares, mailbox.place());
  Run run(options, input, start.shape, std::move(start.points), team, fate);
  bool is_writer = false;
  try {
    is_writer = run.work();
  } catch (const Replaced&) {
    say(fmt::format("Rank {} was silent for too long and has been replaced; the others go on without it.", job.rank));
    end(0, mailbox, false);
  } catch (const Hopeless& hopeless) {
    if (team.is_first_alive()) say(hopeless.what());
    team.linger(options.timeout);
    end(3, mailbox, false);
  } catch (const Problem& problem) {
    // To the others it is dead.
    say(fmt::format("Rank {} ends: {}", job.rank, problem.what()));
    end(1, mailbox, false);
  } catch (const std::bad_alloc&) {
    say(fmt::format("Rank {} ends: it has too little memory for what it takes over.", job.rank));
    end(1, mailbox, false);
  }
  int code = 0;
  try {
    if (is_writer)
      report(options, run.outcome(), {job.ranks, parts, team.deaths(), mailbox.place(), input.count(), start.shape});
  } catch (const Problem& problem) {
    say(problem.what());
    code = 1;
  }
  team.tell_done();
  team.linger(options.timeout);
  end(code, mailbox, team.deaths() == 0);
}

int run(int argc, char** argv) {
  const Job job = Job::world();
  int code = 0;
  const std::optional<Options> options = parse(argc, argv, job.rank, code);
  if (!options) return code;
  try {
    if (options->is_plain) return cluster_plainly(*options, job);
    cluster_resiliently(*options, job);
  } catch (const CommonProblem& problem) {
    if (job.rank == 0) say(problem.what());
    return 1;
  }
}

}  // namespace

}  // namespace kmeans

int main(int argc, char** argv) {
  if (const std::optional<int> code = kmeans::guard(argv)) return *code;
  MPI_Init(&argc, &argv);
  const int code = kmeans::run(argc, argv);
  MPI_Finalize();
  return code;
}
