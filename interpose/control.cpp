// What the program says of recording: MPI_Pcontrol and the phases of include/papaya.h.
#include <mpi.h>

#include "interpose/runtime.hpp"

extern "C" {
__attribute__((visibility("default"))) int papaya_MPI_Pcontrol(int level, ...);
__attribute__((visibility("default"))) void papaya_flavour_phase(const char* name);
}

// The standard leaves what else may be passed to the tool: nothing is asked for here.
int papaya_MPI_Pcontrol(int level, ...) {
  papaya::runtime().recording.store(level != 0, std::memory_order_relaxed);
  return PMPI_Pcontrol(level);
}

void papaya_flavour_phase(const char* name) {
  papaya::Runtime& process = papaya::runtime();
  if (!process.active.load(std::memory_order_acquire) || !process.recorder.is_open()) return;
  if (name != nullptr)
    process.recorder.begin_phase(name);
  else
    process.recorder.end_phase();
}
