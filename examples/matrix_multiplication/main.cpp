// C = A * B over all ranks, by notified one-sided communication and by ScaLAPACK's PDGEMM: README.md.
#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "blas.hpp"
#include "check.hpp"
#include "market.hpp"
#include "notified.hpp"
#include "report.hpp"
#include "scalapack.hpp"

namespace matrix_multiplication {

namespace {

// The others sleep: they are not to disturb it, and there may be more ranks than cores.
double measure_core(const Job& job, int block) {
  MPI_Request request = MPI_REQUEST_NULL;
  double gflops = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (job.rank == 0) gflops = measure_dgemm(block);
  MPI_Ibcast(&gflops, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD, &request);
  for (int is_there = 0; MPI_Test(&request, &is_there, MPI_STATUS_IGNORE), is_there == 0;) usleep(1000);
  return gflops;
}

// From the file, from the option, or the default; Problem: the two differ.
int dimension(std::optional<int> asked, int in_file, const char* option, const std::string& file) {
  constexpr int by_default = 2048;
  if (asked && in_file != 0 && *asked != in_file)
    throw Problem(fmt::format("{} is {}; {} has {}. Leave the option out.", option, *asked, file, in_file));
  return in_file != 0 ? in_file : asked.value_or(by_default);
}

struct Shape {
  int m = 0;
  int n = 0;
  int k = 0;
};

// Collective.
Shape shape_of(const Options& options, const Job& job) {
  Size a;
  Size b;
  if (!options.a.empty()) a = read_size(job, options.a);
  if (!options.b.empty()) b = read_size(job, options.b);
  Shape shape;
  job.together([&] {
    for (const std::string& file : {options.a, options.b})
      if (std::error_code error; !options.out.empty() && std::filesystem::equivalent(options.out, file, error))
        throw Problem(fmt::format("{} is an operand; write C to another file.", options.out));
    if (a.columns != 0 && b.rows != 0 && a.columns != b.rows)
      throw Problem(fmt::format("{} has {} x {} elements and {} has {} x {}: A needs as many columns as B has rows.",
                                options.a, a.rows, a.columns, options.b, b.rows, b.columns));
    shape.m = dimension(options.m, a.rows, "-m", options.a);
    shape.n = dimension(options.n, b.columns, "-n", options.b);
    shape.k = a.columns != 0 ? dimension(options.k, a.columns, "-k", options.a)
                             : dimension(options.k, b.rows, "-k", options.b);
    constexpr int most = 1 << 24;
    if (std::max({shape.m, shape.n, shape.k}) > most) throw Problem("A dimension is more than 2^24.");
  });
  return shape;
}

Grid chosen_grid(const Options& options, const Job& job) {
  if (options.grid.empty()) return grid_of(job.ranks);
  Grid grid;
  char rest = 0;
  if (std::sscanf(options.grid.c_str(), "%dx%d%c", &grid.rows, &grid.columns, &rest) != 2 || grid.rows < 1 ||
      grid.columns < 1 || std::int64_t{grid.rows} * grid.columns != job.ranks)
    throw Problem(fmt::format("--grid {} has not the form ROWSxCOLUMNS with {} rank{} in all.", options.grid, job.ranks,
                              job.ranks == 1 ? "" : "s"));
  return grid;
}

Layout make_layout(const Options& options, const Job& job, Grid grid, Name name, int rows, int columns) {
  const Cut row_cut{rows, options.block};
  const Cut column_cut{columns, options.block};
  if (std::int64_t{row_cut.count()} * column_cut.count() > 1 << 22)
    throw Problem(
        fmt::format("A matrix has more than four million blocks of {}; choose a larger --block.", options.block));
  switch (options.placement) {
    case Placement::cyclic:
      return cyclic_layout(row_cut, column_cut, grid);
    case Placement::rows:
      return row_layout(row_cut, column_cut, job.ranks);
    case Placement::random:
      break;
  }
  return random_layout(row_cut, column_cut, job.ranks, options.seed, name);
}

void fill(const Options& options, const Job& job, const std::string& file, Name name, Matrix& matrix) {
  if (file.empty())
    matrix.generate(options.seed, name);
  else
    read(job, file, matrix);
}

class Run {
 public:
  Run(const Options& options, const Job& job) : options_(options), job_(job), shape_(shape_of(options, job)) {
    job.together([&] {
      grid_ = chosen_grid(options, job);
      layouts_ = {make_layout(options, job, grid_, Name::a, shape_.m, shape_.k),
                  make_layout(options, job, grid_, Name::b, shape_.k, shape_.n),
                  make_layout(options, job, grid_, Name::c, shape_.m, shape_.n)};
    });
    job.need_memory(bytes_of_matrices());
    job.together([&] {
      check_products();
      plan_ = make_plan(layouts_, job.rank, job.ranks, options.assignment, options.order, options.buffers);
    });
    job.need_memory(bytes_of_matrices() + bytes_of_buffers());
    job.together([&] { allocate(); });
    fill(options, job, options.a, Name::a, *a_);
    fill(options, job, options.b, Name::b, *b_);
    job.together([&] {
      if (notified_) notified_->open();
      if (scalapack_) scalapack_->open();
    });
  }

  int run() {
    Outcome outcome{.m = shape_.m, .n = shape_.n, .k = shape_.k, .grid = grid_};
    outcome.core_gflops = measure_core(job_, options_.block);
    for (int round = 0; round <= options_.rounds; ++round) {  // the first is not counted
      if (has_notified()) run_notified(round != 0);
      if (has_pdgemm()) run_pdgemm(round != 0);
    }
    if (has_notified()) {
      outcome.carrier = notified_->carrier();
      outcome.assignment = plan_.assignment;
      outcome.balance = plan_.balance;
      outcome.results.push_back(result("notified", notified_rounds_, static_cast<double>(plan_.bytes), *c_));
    }
    if (has_pdgemm()) {
      const bool counts = options_.placement != Placement::cyclic;
      outcome.results.push_back(result("pdgemm", pdgemm_rounds_,
                                       counts ? job_.sum(static_cast<double>(scalapack_->bytes_sent())) : 0,
                                       c_of_pdgemm()));
    }
    if (other_c_) outcome.difference = difference(job_, *a_, *b_, *c_, *other_c_);
    job_.together([&] { report(outcome, options_, job_); });
    if (!options_.out.empty()) write(job_, options_.out, *c_);
    return is_right(outcome, job_) ? 0 : 1;
  }

 private:
  struct Rounds {
    std::vector<double> seconds;
    std::vector<double> dgemm;
    std::vector<double> waiting;
    std::vector<double> redistribution;
  };

  void check_products() const {
    constexpr std::int64_t most = 1 << 23;
    const std::int64_t all =
        std::int64_t{layouts_.c.rows.count()} * layouts_.c.columns.count() * layouts_.a.columns.count();
    if (all > most)
      throw Problem(fmt::format("Blocks of {} make {} products; choose a --block that makes at most {}.",
                                options_.block, all, most));
  }
  void allocate() {
    a_ = std::make_unique<Matrix>(layouts_.a, job_.rank);
    b_ = std::make_unique<Matrix>(layouts_.b, job_.rank);
    c_ = std::make_unique<Matrix>(layouts_.c, job_.rank);
    if (options_.variant == Variant::both) other_c_ = std::make_unique<Matrix>(layouts_.c, job_.rank);
    if (has_notified()) notified_ = std::make_unique<Notified>(job_, plan_, *a_, *b_, *c_, options_.plants_error);
    if (has_pdgemm())
      scalapack_ = std::make_unique<Scalapack>(job_, layouts_, grid_, options_.pdgemm_block, options_.panel);
  }
  bool has_notified() const noexcept { return options_.variant != Variant::pdgemm; }
  bool has_pdgemm() const noexcept { return options_.variant != Variant::notified; }
  Matrix& c_of_pdgemm() noexcept { return other_c_ ? *other_c_ : *c_; }

  std::uint64_t bytes_of_matrices() const {
    std::uint64_t bytes = options_.variant == Variant::both ? layouts_.c.bytes_of(job_.rank) : 0;
    for (const Name name : {Name::a, Name::b, Name::c}) bytes += layouts_.of(name).bytes_of(job_.rank);
    return bytes;
  }
  std::uint64_t bytes_of_buffers() const {
    const std::uint64_t bytes = has_notified() ? Notified::bytes(plan_, layouts_, job_.rank) : 0;
    return has_pdgemm() ? bytes + Scalapack::bytes_of(layouts_, grid_, options_.pdgemm_block, job_.rank) : bytes;
  }

  void run_notified(bool counts) {
    MPI_Barrier(MPI_COMM_WORLD);
    const Times times = notified_->run();
    add(notified_rounds_, counts, times.seconds, times.dgemm, times.waiting, 0);
  }
  void run_pdgemm(bool counts) {
    MPI_Barrier(MPI_COMM_WORLD);
    const Baseline baseline = scalapack_->run(*a_, *b_, c_of_pdgemm(), options_.placement != Placement::cyclic);
    add(pdgemm_rounds_, counts, baseline.seconds, baseline.dgemm, 0, baseline.redistribution);
  }
  void add(Rounds& rounds, bool counts, double seconds, double dgemm, double waiting, double redistribution) const {
    const double slowest = job_.largest(seconds);
    const double mean_dgemm = job_.sum(dgemm) / job_.ranks;
    const double mean_waiting = job_.sum(waiting) / job_.ranks;
    const double mean_redistribution = job_.sum(redistribution) / job_.ranks;
    if (!counts) return;
    rounds.seconds.push_back(slowest);
    rounds.dgemm.push_back(mean_dgemm);
    rounds.waiting.push_back(mean_waiting);
    rounds.redistribution.push_back(mean_redistribution);
  }
  Result result(const char* variant, const Rounds& rounds, double bytes, Matrix& c) const {
    return {variant,
            median(rounds.seconds),
            median(rounds.dgemm),
            median(rounds.waiting),
            median(rounds.redistribution),
            bytes / 1e6,
            residual(*a_, *b_, c, options_.seed)};
  }

  const Options& options_;
  const Job& job_;
  const Shape shape_;
  Grid grid_;
  Layouts layouts_;
  Plan plan_;
  std::unique_ptr<Matrix> a_;
  std::unique_ptr<Matrix> b_;
  std::unique_ptr<Matrix> c_;
  std::unique_ptr<Matrix> other_c_;  // of PDGEMM, where both are run
  std::unique_ptr<Notified> notified_;
  std::unique_ptr<Scalapack> scalapack_;
  Rounds notified_rounds_;
  Rounds pdgemm_rounds_;
};

int run(const Options& options, const Job& job) {
  try {
    return Run(options, job).run();
  } catch (const CommonProblem& problem) {
    if (job.rank == 0) fmt::print(stderr, "matrix_multiplication: {}\n", problem.what());
    return 1;
  } catch (const std::bad_alloc&) {
    abort_job("There is too little memory; multiply smaller matrices.");
  } catch (const std::exception& problem) {
    abort_job(problem.what());
  }
}

}  // namespace

}  // namespace matrix_multiplication

int main(int argc, char** argv) {
  matrix_multiplication::use_one_thread(argv);
  MPI_Init(&argc, &argv);
  const matrix_multiplication::Job job = matrix_multiplication::Job::world();
  int code = 0;
  if (const auto options = matrix_multiplication::parse(argc, argv, job.rank, code))
    code = matrix_multiplication::run(*options, job);
  MPI_Finalize();
  return code;
}
