// The algorithms that MPI itself has for a collective. Open MPI's coll/tuned takes it from a control variable when a
// communicator is made, with coll_tuned_use_dynamic_rules set in MPI_Init; MPICH looks at two at every call.
#pragma once

#include <mpi.h>

#include <cstddef>
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

  // "native:ring", for messages of so many bytes; none where MPI does not let its algorithms be chosen so. Collective
  // over the world.
  std::vector<std::string> of(Collective collective, std::size_t bytes) const;

  // The calls of the collective that follow are served by it, or by what MPI chooses if it is none of them, on this
  // communicator; MPI_COMM_NULL: on any. Collective over the world.
  MPI_Comm use(Collective collective, const std::string& selection);

 private:
  MPI_Comm world_;
  bool has_tools_ = false;
#ifdef OMPI_MAJOR_VERSION
  std::map<std::pair<Collective, std::string>, MPI_Comm> communicators_;
#else
  bool has_node_communicators_ = false;
  std::map<Collective, int> device_;  // whether MPICH's device chooses first, as it was
#endif
};

}  // namespace papaya::bench
