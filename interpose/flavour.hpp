// The handshake between libpapaya.so, which knows no MPI, and a flavour library, which knows one.
#pragma once

#include "base/weak_records.hpp"
#include "interpose/presence.hpp"

namespace papaya {

// What libpapaya.so offers a flavour.
struct Preload {
  const char* folder;           // where the libraries lie
  void* const* next;            // by number: where a call that the program made goes on, to another tool or MPI
  void (*pass_through)();       // from now on every call goes straight to MPI (disabled, or a forked child)
  void (*intercept_waiting)();  // from now on functions that only wait (PAPAYA_WAITING) go to their wrappers
  void (*time_calls)(
      void* const* wrappers);  // from now on functions go to these; in the order of symbols.def, or nullptr
  bool (*is_fortran)(const void* address);
  presence::Node* node;
  void (*announce)(presence::Node& node, presence::Part part);
  void (*remove_name)(presence::Node& node);
  void (*close)(presence::Node& node);
};

// What a flavour exports besides its wrappers papaya_MPI_X, both under these names.
using FlavourVersion = const char*;                     // papaya_flavour_version: must equal libpapaya.so's
using FlavourStart = void (*)(const Preload* preload);  // papaya_flavour_start: called once, before any wrapper
// papaya_flavour_select: what libpapaya.so exports as papaya_select. Collective over the job in that every
// rank calls it alike while no collective runs: `collective` ("allreduce") is from now on run by `selection`,
// as its variable would say. 0, or 1 if that cannot be.
using FlavourSelect = int (*)(const char* collective, const char* selection);
// papaya_flavour_explain: what libpapaya.so exports as papaya_explain. Which algorithm serves calls of `collective`
// with messages of `bytes` on `*comm`, an MPI_Comm, now: into `text`, of `size` bytes. Local. 0, or 1 if that is not
// known.
using FlavourExplain = int (*)(const char* collective, const void* comm, unsigned long bytes, char* text,
                               unsigned long size);
// papaya_flavour_replaced: how many calls of `collective` this process has given to an algorithm of papaya's. From then
// on no sentence tells of calls that go to MPI: the program finds out.
using FlavourReplaced = unsigned long (*)(const char* collective);
// papaya_flavour_phase: what include/papaya.h says; null ends a phase.
using FlavourPhase = void (*)(const char* name);
// papaya_flavour_weak_records: what libpapaya.so exports as papaya_weak_records, to a library of its version.
using FlavourWeakRecords = const WeakRecords* (*)();

}  // namespace papaya
