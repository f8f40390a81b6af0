// Matrix factorisation by stochastic gradient descent, data-parallel over the users, as in Faustino 2020: how much
// sooner does the error fall if ranks go on with stale sums while one of them is late?
#include <mpi.h>

#include <cmath>
#include <cstdio>
#include <new>
#include <stdexcept>
#include <string>

#include "distribute.hpp"
#include "mistake.hpp"
#include "options.hpp"
#include "output.hpp"
#include "training.hpp"

namespace {

constexpr const char* mpi_name =
#ifdef OPEN_MPI
    "Open MPI";
#else
    "MPICH";
#endif

std::string sentence_of(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) == nullptr) return error.what();
  return "there is too little memory: take fewer ratings, users or items, lower --factors, or use more nodes.";
}

// What only rank 0 does: if it fails, all ranks throw, and rank 0 knows why.
template <typename F>
void on_first_rank(int rank, MPI_Comm comm, F&& work) {
  std::string problem;
  if (rank == 0) {
    try {
      work();
    } catch (const std::exception& error) {
      problem = sentence_of(error);
    }
  }
  int has_failed = problem.empty() ? 0 : 1;
  MPI_Bcast(&has_failed, 1, MPI_INT, 0, comm);
  if (has_failed) throw Mistake(problem);
}

void run(const Options& options, int rank, MPI_Comm comm) {
  Run run{.mpi = mpi_name};
  MPI_Comm_size(comm, &run.ranks);
  Part part;
  {
    Ratings ratings;
    on_first_rank(rank, comm, [&] {
      if (!options.json.empty()) check_writable(options.json);  // now, not after hours
      ratings = options.file.empty() ? generate_ratings(options.generated) : read_ratings(options.file);
    });
    run.users = ratings.users;
    run.items = ratings.items;
    part = distribute(ratings, options.held_out, options.generated.seed, comm);
  }
  const History history = train(options, part, comm);
  on_first_rank(rank, comm, [&] {
    if (!std::isfinite(history.final_error))
      throw std::runtime_error("the error grows without bound: lower --learning-rate, --batch or --slack.");
    std::fputs(summary(options, part, run, history).c_str(), stdout);
    if (!options.json.empty()) write_json(options, part, run, history);
  });
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  const Parsed parsed = parse(argc, argv, options);
  // With ssp_sharded:thread=1 a thread of papaya's sends and receives, too.
  const bool has_threads = options.algorithm.find("thread=1") != std::string::npos;
  int provided;
  MPI_Init_thread(&argc, &argv, has_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &provided);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int exit_code = parsed.exit_code;
  if (parsed.goes_on) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    try {
      run(options, rank, comm);
    } catch (const Mistake& mistake) {
      if (rank == 0) std::fprintf(stderr, "matrix_factorisation: %s\n", mistake.what());
      exit_code = 1;
    } catch (const std::exception& error) {  // the others know nothing of it, and would wait
      std::fprintf(stderr, "matrix_factorisation: rank %d: %s\n", rank, sentence_of(error).c_str());
      MPI_Abort(comm, 1);
    }
    MPI_Comm_free(&comm);
  } else if (rank == 0) {
    if (exit_code == 0)
      std::fputs(parsed.text.c_str(), stdout);
    else
      std::fprintf(stderr, "matrix_factorisation: %s\n", parsed.text.c_str());
  }
  MPI_Finalize();
  return exit_code;
}
