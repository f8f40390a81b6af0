// An MPI that nobody has heard of: libmpi.so.99 with a handful of functions, for one process. No PMPI_Iprobe,
// no attributes, no windows: what is not here must not be needed to pass calls through.
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static int initialized = 0, finalized = 0;

EXPORT int PMPI_Init(int* argc, char*** argv);
int PMPI_Init(int* argc, char*** argv) {
  (void)argc;
  (void)argv;
  initialized = 1;
  return 0;
}
EXPORT int MPI_Init(int* argc, char*** argv) __attribute__((weak, alias("PMPI_Init")));

EXPORT int PMPI_Finalize(void);
int PMPI_Finalize(void) {
  finalized = 1;
  return 0;
}
EXPORT int MPI_Finalize(void) __attribute__((weak, alias("PMPI_Finalize")));

EXPORT int PMPI_Comm_rank(int comm, int* rank);
int PMPI_Comm_rank(int comm, int* rank) {
  (void)comm;
  *rank = 0;
  return 0;
}
EXPORT int MPI_Comm_rank(int comm, int* rank) __attribute__((weak, alias("PMPI_Comm_rank")));

// Returns a number of its own, so that a test sees who answered.
EXPORT int PMPI_Allreduce(const void* in, void* out, int count, int type, int op, int comm);
int PMPI_Allreduce(const void* in, void* out, int count, int type, int op, int comm) {
  if (!initialized || finalized) return 13;
  memcpy(out, in, (size_t)count * sizeof(int));
  return 9000 + type + op + comm;
}
EXPORT int MPI_Allreduce(const void* in, void* out, int count, int type, int op, int comm)
    __attribute__((weak, alias("PMPI_Allreduce")));

EXPORT int PMPI_Get_library_version(char* version, int* length);
int PMPI_Get_library_version(char* version, int* length) {
  static const char text[] = "Fake MPI 1";
  memcpy(version, text, sizeof text);
  *length = (int)sizeof text - 1;
  return 0;
}
EXPORT int MPI_Get_library_version(char* version, int* length) __attribute__((weak, alias("PMPI_Get_library_version")));
