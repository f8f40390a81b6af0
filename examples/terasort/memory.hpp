// Memory for records, which is not cleared before it is written: a page costs the kernel as much as the shuffle of what
// it holds, and clearing would be one more pass over it.
#pragma once

#include <memory>
#include <new>
#include <vector>

#include "record.hpp"

namespace terasort {

// What a vector adds without a value has none.
template <class T>
struct Uncleared : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = Uncleared<U>;
  };
  template <class U>
  void construct(U* place) noexcept {
    ::new (static_cast<void*>(place)) U;
  }
};

using Records = std::vector<Record, Uncleared<Record>>;

}  // namespace terasort
