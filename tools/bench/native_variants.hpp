// The algorithms that MPI itself has for a collective, each on a communicator for which it was chosen. Of Open MPI,
// whose coll/tuned takes it from a control variable when a communicator is made, with coll_tuned_use_dynamic_rules set
// in MPI_Init.
#pragma once

#include <mpi.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/collective.hpp"

namespace papaya::bench {

class NativeVariants {
 public:
  explicit NativeVariants(MPI_Comm world);
  ~NativeVariants();
  NativeVariants(const NativeVariants&) = delete;
  NativeVariants& operator=(const NativeVariants&) = delete;

  // "native:ring"; none where MPI does not let its algorithms be chosen so.
  std::vector<std::string> of(Collective collective) const;

  // Collective over the world. MPI_COMM_NULL for what is not one of them.
  MPI_Comm communicator(Collective collective, const std::string& selection);

 private:
  bool choose(Collective collective, int number) const;

  MPI_Comm world_;
  bool has_tools_ = false;
  std::map<std::pair<Collective, std::string>, MPI_Comm> communicators_;
};

}  // namespace papaya::bench
