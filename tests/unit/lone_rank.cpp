#include "interpose/lone_rank.hpp"

#include <map>
#include <string>

#include "tests/catch.hpp"

namespace papaya {

TEST_CASE("lone_rank: a launcher of another MPI is told by how many processes it has started") {
  using Environment = std::map<std::string, const char*>;
  const auto said = [](const Environment& environment) {
    return lone_rank::sentence([&](const char* name) {
      const auto found = environment.find(name);
      return found == environment.end() ? nullptr : found->second;
    });
  };
  CHECK(said({}).empty());
  CHECK(said({{"PMI_SIZE", "1"}, {"PMI_RANK", "0"}}).empty());
  CHECK(said({{"PMI_SIZE", "3"}, {"PMI_RANK", "0"}}).find("has started 3 processes") != std::string::npos);
  CHECK(said({{"PMI_SIZE", "3"}, {"PMI_RANK", "1"}}).empty());  // one speaks
  CHECK(said({{"PMI_SIZE", "3"}}).empty());
  CHECK_FALSE(said({{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "0"}}).empty());
  // A job of one rank inside a process of a larger one.
  CHECK(said({{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "0"}, {"PMI_SIZE", "1"}, {"PMI_RANK", "0"}})
            .empty());
  CHECK_FALSE(said({{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "0"}}).empty());
  CHECK(said({{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "3"}}).empty());
  CHECK(said({{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "0"}, {"PMI_SIZE", "1"}, {"PMI_RANK", "0"}}).empty());
}

}  // namespace papaya
