// Who works on which ratings.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "model.hpp"
#include "ratings.hpp"

// Rank 0's ratings, divided among the ranks by user: each has about as many, and all of a user's. A share of them is
// held out. Collective; the others' `ratings` may be empty. Throws Mistake where there are too few.
Part distribute(const Ratings& ratings, double held_out, std::uint64_t seed, MPI_Comm comm);
