#include "interpose/presence.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string>

#include "tests/catch.hpp"

using namespace papaya::presence;

TEST_CASE("what Slurm says of the ranks of a node is taken where all nodes have as many") {
  CHECK(tasks_of_each_node("4") == 4);
  CHECK(tasks_of_each_node("16(x3)") == 16);
  for (const char* text : {"", "x", "4,3", "2(x2),1", "2(x2", "99999999"}) CHECK(tasks_of_each_node(text) == 0);
}

TEST_CASE("ranks of a job meet on their node's roster, which leaves nothing behind") {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PMI_FD",
                           "PMIX_RANK", "PMIX_NAMESPACE"})
    unsetenv(name);
  setenv("PMI_PORT", ("test " + std::to_string(getpid())).c_str(), 1);
  setenv("PMI_LOCAL_SIZE", "2", 1);
  setenv("PMI_RANK", "0", 1);
  Node first;
  first.launcher = Launcher::pmi;
  first.build = 7;
  announce(first, Part::takes_part);
  if (first.roster == nullptr) return;  // no /dev/shm here
  CHECK(access(first.path, F_OK) == 0);
  const std::string path = first.path;
  setenv("PMI_RANK", "3", 1);
  Node second;
  second.launcher = Launcher::pmi;
  announce(second, Part::stands_aside);
  announce(second, Part::takes_part);  // it has spoken
  REQUIRE(second.roster != nullptr);
  CHECK(access(path.c_str(), F_OK) != 0);
  CHECK(first.roster->arrived == 2);
  CHECK(first.roster->entries()[0].build == 7);
  CHECK(first.roster->entries()[1].rank == 3);
  CHECK(first.roster->entries()[1].part == Part::stands_aside);
  close(first);
  close(second);
  // Another job of one rank a node needs none.
  setenv("PMI_LOCAL_SIZE", "1", 1);
  Node alone;
  alone.launcher = Launcher::pmi;
  announce(alone, Part::takes_part);
  CHECK(alone.roster == nullptr);
  for (const char* name : {"PMI_PORT", "PMI_LOCAL_SIZE", "PMI_RANK"}) unsetenv(name);
}
