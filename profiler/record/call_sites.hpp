// Where in the program calls come from. A call site is a list of frames, innermost first, each the place in a module
// (the program or a library) that a call returns to. Sites, frames and modules are tables of the rank's file; events
// name a site by its number. Nothing is symbolised here: `papaya report` does that from the modules' files.
//
// With one frame a site is found by the return address alone, through a cache of one atomic word an entry: a load and a
// compare. With more, and for calls out of a library that only passes them on (Fortran's bindings), the stack is
// unwound at each call by libunwind, if it can be loaded. Where a module written for Python calls, the place is that in
// the Python program: it is read from the interpreter's frames at each call, and found by the instruction it is at.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

#include "profiler/record/format.hpp"
#include "profiler/record/python_frames.hpp"

namespace papaya {

class Recorder;

class CallSites {
 public:
  // Whether an address lies in a library that only passes the program's calls on.
  using IsBinding = bool (*)(const void* address);

  // `frames` are kept of each call, up to trace::most_frames; 0: none. False if more than one is asked for and the
  // stack cannot be unwound here: then one is kept.
  bool open(Recorder& recorder, int frames, IsBinding is_binding) noexcept;
  void close() noexcept { frames_ = 0; }

  // For who takes stacks of other threads: how this one's is unwound, null where it cannot be; which Python it runs;
  // and places as frames of the record. These take a lock and look at the process's modules.
  using Backtrace = int (*)(void** addresses, int most);
  Backtrace backtrace() const noexcept { return backtrace_; }
  const PythonFrames& python() const noexcept { return python_; }
  trace::Frame frame_at(const void* address);
  trace::Frame frame_at(const PythonFrames::Line& line);

  // Its number, from 1, for Event::call_site; 0 if it is not kept. May be called by any thread, from where
  // `return_address` is on the stack.
  std::uint64_t number_of(const void* return_address) noexcept {
    if (frames_ == 0) return 0;
    const auto address = reinterpret_cast<std::uintptr_t>(return_address);
    // Relaxed: the word is all there is to know.
    const std::uint64_t cached = cache_[slot_of(address)].load(std::memory_order_relaxed);
    return (cached & address_mask) == address ? cached >> address_bits : find(return_address);
  }

 private:
  static constexpr int address_bits = 48;
  static constexpr std::uint64_t address_mask = (std::uint64_t{1} << address_bits) - 1;
  static_assert(trace::call_site_capacity < (1u << (64 - address_bits)));
  static std::size_t slot_of(std::uintptr_t address) noexcept { return (address * 0x9e3779b97f4a7c15u) >> 56; }

  std::uint64_t find(const void* return_address) noexcept;
  // The number of a place in a Python program; false if the call comes from no such place.
  bool find_python(const void* return_address, std::uint64_t& number);
  bool is_python_module(const void* address) noexcept;
  // Whether it is in papaya.py, which only passes calls on.
  bool is_own_module(const PythonFrames::Position& position);
  // `python`: what the frames are, if they are Python's, and null otherwise.
  std::uint64_t number_of_frames(const std::vector<const void*>& frames, const PythonFrames::Position* python);
  std::uint32_t module_of(const void* address, std::uint64_t& offset);
  std::uint32_t function_of(const PythonFrames::Position& position, std::uint64_t& line);
  std::uint32_t row_of_function(std::string_view file, std::string_view function);  // 0: the table is full
  void remember(const void* address, std::uint64_t number) noexcept;

  int frames_ = 0;
  IsBinding is_binding_ = nullptr;
  Backtrace backtrace_ = nullptr;
  trace::Header* header_ = nullptr;
  PythonFrames python_;
  std::array<std::atomic<std::uint64_t>, 64>
      callers_{};  // return address, and above it whether it is in a module for Python
  std::array<std::atomic<std::uint64_t>, 64> codes_{};   // code object, and above it whether it is papaya.py's
  std::array<std::atomic<std::uint64_t>, 256> cache_{};  // address, and above it the site's number

  std::mutex mutex_;  // guards what follows, and the tables
  std::map<std::vector<const void*>, std::uint64_t> numbers_;
};

}  // namespace papaya
