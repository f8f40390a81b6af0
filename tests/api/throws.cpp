// An error handler that throws a C++ exception: it comes out of the papaya_ function, and all goes on afterwards.
#include <mpi.h>

#include <cstring>
#include <string>

#include "check.h"
#include "papaya.h"

namespace {

struct Thrown {
  int code;
  std::string sentence;
};

[[noreturn]] void throwing(MPI_Comm*, int* code, ...) {
  throw Thrown{*code, papaya_error()};
}

template <class Call>
void check_throws(int line, Call call, int code, const char* words) {
  try {
    call();
    CHECK(!"the handler was not called");
  } catch (const Thrown& thrown) {
    if (thrown.code != code || thrown.sentence.find(words) == std::string::npos)
      std::printf("rank %d, line %d: %d, %s\n", rank, line, thrown.code, thrown.sentence.c_str()), ++failures;
  }
}

}  // namespace

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(throwing, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  papaya_weak sum = PAPAYA_WEAK_NULL;
  check_throws(
      __LINE__, [&] { papaya_ssp_allreduce_create(comm, -1, MPI_LONG, MPI_SUM, 0, nullptr, &sum); }, MPI_ERR_COUNT,
      "count is -1");
  CHECK(papaya_ssp_allreduce_create(comm, 1, MPI_LONG, MPI_SUM, 0, nullptr, &sum) == MPI_SUCCESS);
  for (int call = 1; call <= 20; ++call) {
    long one = 1;
    check_throws(
        __LINE__, [&] { papaya_weak_call(sum, nullptr, &one, nullptr); }, MPI_ERR_BUFFER, "null");
    CHECK(papaya_weak_call(sum, MPI_IN_PLACE, &one, nullptr) == MPI_SUCCESS && one == ranks);
  }
  papaya_weak freed = sum;
  CHECK(papaya_weak_free(&sum) == MPI_SUCCESS);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  check_throws(
      __LINE__, [&] { papaya_weak_free(&freed); }, MPI_ERR_ARG, "freed");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&comm);
  return end();
}
