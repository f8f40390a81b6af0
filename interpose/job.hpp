// What is the same for the whole job or node, and this rank's position in it: agreed on in MPI_Init.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "algorithms/transport/out_of_band.hpp"
#include "base/clock.hpp"
#include "base/settings.hpp"
#include "base/topology.hpp"
#include "interpose/presence.hpp"
#include "tuning/selection.hpp"

namespace papaya {

struct Job {
  Settings settings;  // rank 0's
  tuning::Selection selection;
  std::array<bool, collective_count> is_set_by_program{};  // by papaya_set_algorithm, now
  bool program_counts_replaced = false;  // as papaya bench does, which finds out by itself what goes to MPI
  bool arrival_order = false;            // PAPAYA_ORDER=arrival
  bool approximates = false;             // PAPAYA_APPROX
  std::uint64_t verify_every = 0;        // PAPAYA_VERIFY
  std::int64_t adapt_share = 0;          // PAPAYA_ADAPT, in millionths; 0: off
  bool adapt_exactly = true;             // only where no bit of a result depends on who serves
  std::size_t shm_limit = 0;             // PAPAYA_SHM_LIMIT, or less where less is to be had

  int rank = 0;
  int ranks = 1;
  int node = 0;
  int nodes = 1;
  std::vector<int> node_of;              // by rank
  MPI_Comm world_comm = MPI_COMM_NULL;   // papaya's own of all processes (world.hpp), on which the program does nothing
  MPI_Comm node_comm = MPI_COMM_NULL;    // this job's ranks on this node
  MPI_Comm leader_comm = MPI_COMM_NULL;  // one rank per node, on those ranks; none if there is one node
  MPI_Comm follower_comm = MPI_COMM_NULL;  // a placeholder, on the others
  int thread_level = MPI_THREAD_SINGLE;

  std::shared_ptr<OutOfBand> oob_of_node;  // out-of-band collectives of this job's ranks on this node
  std::shared_ptr<OutOfBand> oob;          // and of all ranks of the job; the same where they are the same
  bool is_one_node = false;                // by the roster
  bool leads() const noexcept { return rank_on_node == 0; }  // its node

  int rank_on_node = 0;
  int ranks_on_node = 1;
  int cores = 1;                              // of the node
  bool oversubscribed = false;                // some node has more ranks than cores
  std::vector<topology::Location> locations;  // by rank, this node's are set; empty if they are all the same

  std::uint64_t load_ticks = 0;  // when this process loaded the library
  clock::Pair origin{};          // the node's first rank's, as is the rate
  std::int64_t origin_unix_ns = 0;
  double ns_per_tick = 1;
};

namespace job {

// When the library is loaded, which is before MPI_Init: the first of the two readings that give the counter's rate
// without waiting for it.
void note_clock() noexcept;

// All ranks have papaya: how they agree on what follows. `node`: the roster, if it holds all ranks of the job.
void open_out_of_band(Job& job, const presence::Node& node, void (*progress)());

// Collective over the job, in this order. Settings and the tuning file are rank 0's on every rank; warnings come
// from rank 0 alone.
void agree_on_settings(Job& job);
// Papaya's communicators, which ranks share a node, its clock, its cores.
void find_nodes(Job& job);
// Where less shared memory is to be had than PAPAYA_SHM_LIMIT, algorithms share the least of all nodes, since messages
// are cut alike on all ranks. `here`: this node's.
void lower_limit(Job& job, std::uint64_t here);

void free_communicators(Job& job) noexcept;

}  // namespace job

}  // namespace papaya
