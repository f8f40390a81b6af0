// Shared by the programs of this folder: a check that says where it failed, and a count of the calls made,
// which the runner compares with the report. Include it after mpi.h, in one file per program.
#pragma once

#include <stdio.h>
#include <string.h>

static int failures = 0;

// Says where, goes on: a program that stops in the middle would make the other ranks hang instead of fail.
#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition) && ++failures <= 10) {                                   \
      fprintf(stderr, "failed: %s:%d: %s\n", __FILE__, __LINE__, #condition); \
    }                                                                         \
  } while (0)

enum { counted_names = 64 };
static struct {
  char name[32];
  long calls;
} counted[counted_names];

// Counts one call of the MPI function `name` by this rank.
static inline void count_call(const char* name) {
  for (int i = 0; i < counted_names; ++i) {
    if (counted[i].name[0] == '\0') snprintf(counted[i].name, sizeof counted[i].name, "%s", name);
    if (strcmp(counted[i].name, name) == 0) {
      ++counted[i].calls;
      return;
    }
  }
}

// Makes the call and counts it.
#define COUNTED(function, ...) (count_call(#function), function(__VA_ARGS__))

// One line per rank, "counts MPI_Allreduce=12 ...", for the runner to sum up. Returns the exit code.
static inline int finish(void) {
  char line[counted_names * 48];
  int length = snprintf(line, sizeof line, "counts");
  for (int i = 0; i < counted_names && counted[i].name[0] != '\0'; ++i)
    length += snprintf(line + length, sizeof line - (size_t)length, " %s=%ld", counted[i].name, counted[i].calls);
  printf("%s%s\n", line, failures == 0 ? "" : " FAILED");
  fflush(stdout);
  return failures == 0 ? 0 : 1;
}
