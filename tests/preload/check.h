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
  long bytes;
} counted[counted_names];

static inline void add_count(const char* name, long calls, long bytes) {
  for (int i = 0; i < counted_names; ++i) {
    if (counted[i].name[0] == '\0') snprintf(counted[i].name, sizeof counted[i].name, "%s", name);
    if (strcmp(counted[i].name, name) == 0) {
      counted[i].calls += calls;
      counted[i].bytes += bytes;
      return;
    }
  }
}

// Counts one call of the MPI function `name` by this rank.
static inline void count_call(const char* name) {
  add_count(name, 1, 0);
}

// What docs/trace_format.md calls the bytes of such a call. Programs that count them do it for all their calls.
static inline void count_bytes(const char* name, long bytes) {
  add_count(name, 0, bytes);
}

// Makes the call and counts it.
#define COUNTED(function, ...) (count_call(#function), function(__VA_ARGS__))

// One line per rank, "counts MPI_Allreduce=12 ...", for the runner to sum up; "MPI_Allreduce=12:96" with the bytes, if
// they were counted. Returns the exit code.
static inline int finish(void) {
  char line[counted_names * 48];
  long bytes = 0;
  for (int i = 0; i < counted_names; ++i) bytes += counted[i].bytes;
  int length = snprintf(line, sizeof line, "counts");
  for (int i = 0; i < counted_names && counted[i].name[0] != '\0'; ++i) {
    length += snprintf(line + length, sizeof line - (size_t)length, " %s=%ld", counted[i].name, counted[i].calls);
    if (bytes > 0) length += snprintf(line + length, sizeof line - (size_t)length, ":%ld", counted[i].bytes);
  }
  printf("%s%s\n", line, failures == 0 ? "" : " FAILED");
  fflush(stdout);
  return failures == 0 ? 0 : 1;
}
