// libpapaya.so: finds out at the first MPI call which MPI the process has loaded, loads the flavour library
// for it from its own folder and points the trampolines there. It links neither MPI nor the C++ library, has
// nothing to do in a process that never calls MPI, and passes everything through where it does not know the
// MPI.
#pragma once

#include <cstddef>

#include "base/weak_records.hpp"
#include "interpose/preload_module.hpp"

// Of interpose/trampoline.S, and what it calls and reads.
extern "C" {
extern void* papaya_mpi_slots[];
extern void* papaya_pmpi_entry;
extern void* papaya_pmpi_waiting_entry;
extern void* const papaya_sort_pmpi;
extern void* const papaya_straight_pmpi;

__attribute__((visibility("hidden"))) extern papaya_range papaya_flavour_range;
__attribute__((visibility("hidden"))) extern papaya_range papaya_native_range;

__attribute__((visibility("hidden"))) void* papaya_resolve_mpi(std::size_t number, const void* caller);
__attribute__((visibility("hidden"))) void* papaya_resolve_pmpi(std::size_t number, const void* caller);

// For `papaya bench` and include/papaya.h: FlavourSelect of interpose/flavour.hpp. 1 where there is no flavour library.
__attribute__((visibility("default"))) int papaya_select(const char* collective, const char* selection);
// FlavourExplain, for include/papaya.h.
__attribute__((visibility("default"))) int papaya_explain(const char* collective, const void* comm, unsigned long bytes,
                                                          char* text, unsigned long size);
// Of include/papaya.h.
__attribute__((visibility("default"))) void papaya_phase_begin(const char* name);
__attribute__((visibility("default"))) void papaya_phase_end(void);
// FlavourReplaced, for the same. 0 where there is no flavour library.
__attribute__((visibility("default"))) unsigned long papaya_replaced(const char* collective);
// FindWeakRecords, for libpapaya-weak-MPI.so.
__attribute__((visibility("default"))) const papaya::WeakRecords* papaya_weak_records(const char* version);
}
