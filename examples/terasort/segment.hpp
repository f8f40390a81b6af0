// A segment of papaya, which lives until this rank has nothing to do that others need not wait for.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <exception>
#include <string>

#include "papaya.h"

namespace terasort {

class Segment {
 public:
  // Collective.
  Segment(std::size_t bytes, int notifications) {
    papaya_segment_create(MPI_COMM_WORLD, bytes, notifications, &handle);
    papaya_segment_address(handle, &address_);
  }
  // Waits for all ranks. After a mistake of this rank alone they may not come.
  ~Segment() {
    if (std::uncaught_exceptions() == 0) papaya_segment_free(&handle);
  }
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  const unsigned char* memory() const noexcept { return static_cast<const unsigned char*>(address_); }
  std::string place() const {
    char text[64] = "";
    papaya_segment_get_info(handle, text, sizeof text);
    return text;
  }

  papaya_segment handle = PAPAYA_SEGMENT_NULL;

 private:
  void* address_ = nullptr;
};

}  // namespace terasort
