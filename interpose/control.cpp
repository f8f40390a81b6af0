#include "interpose/control.hpp"

#include <mpi.h>

#include <string>

#include "base/log.hpp"
#include "interpose/communicator.hpp"
#include "interpose/peers.hpp"
#include "interpose/runtime.hpp"

// The standard leaves what else may be passed to the tool: nothing is asked for here.
int papaya_MPI_Pcontrol(int level, ...) {
  papaya::runtime().records.recording.store(level != 0, std::memory_order_relaxed);
  if (level == 0) papaya::peers::forget_requests();
  return PMPI_Pcontrol(level);
}

void papaya_flavour_phase(const char* name) {
  papaya::Runtime& process = papaya::runtime();
  if (!process.active.load(std::memory_order_acquire) || !process.records.recorder.is_open()) return;
  if (name != nullptr)
    process.records.recorder.begin_phase(name);
  else
    process.records.recorder.end_phase();
}

int papaya_flavour_select(const char* collective, const char* selection) {
  using namespace papaya;
  Runtime& process = runtime();
  Collective which{};
  if (collective == nullptr || selection == nullptr || !process.active.load(std::memory_order_acquire)) return 1;
  std::string problem = "no such collective";
  if (!tuning::collective_of(collective, which) || !process.job.selection.select(which, selection, problem)) {
    if (process.job.rank == 0)
      log::warn("papaya_select(" + std::string(collective) + ", " + selection + "): " + problem);
    return 1;
  }
  const std::string old_names = process.job.selection.old_names_warning();
  if (process.job.rank == 0 && !old_names.empty()) log::warn(old_names);
  communicators::forget_choices();
  return 0;
}

unsigned long papaya_flavour_replaced(const char* collective) {
  using namespace papaya;
  Collective which{};
  if (collective == nullptr || !tuning::collective_of(collective, which)) return 0;
  return communicators::replaced_calls(which);
}
