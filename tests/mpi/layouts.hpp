// How a message lies in memory: MPI's type, and where each byte of the message is, so that what a collective
// must write, and what it must leave alone, is known without asking an MPI.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/mpi/check.hpp"

// One unit of a message, at an address called the origin.
struct Layout {
  struct Segment {
    std::ptrdiff_t offset;
    std::size_t bytes;
  };
  std::string name;
  MPI_Datatype type;
  int per_unit;                   // elements of `type` in a unit
  std::ptrdiff_t extent;          // from one unit to the next
  std::vector<Segment> segments;  // in the order of the signature
  bool is_absolute = false;       // passed as MPI_BOTTOM

  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const Segment& s : segments) sum += s.bytes;
    return sum;
  }
  std::ptrdiff_t lowest() const {
    std::ptrdiff_t low = 0;
    for (const Segment& s : segments) low = s.offset < low ? s.offset : low;
    return low;
  }
  std::ptrdiff_t highest() const {
    std::ptrdiff_t high = extent;
    for (const Segment& s : segments) {
      const std::ptrdiff_t end = s.offset + static_cast<std::ptrdiff_t>(s.bytes);
      high = end > high ? end : high;
    }
    return high;
  }
};

// Two elements of a predefined type that has no name and that nobody may free; made once.
inline MPI_Datatype two_f90_reals() {
  static const MPI_Datatype two = [] {
    MPI_Datatype real;
    MPI_Datatype type;
    MPI_Type_create_f90_real(15, MPI_UNDEFINED, &real);
    MPI_Type_contiguous(2, real, &type);
    MPI_Type_commit(&type);
    return type;
  }();
  return two;
}

// Predefined types, and one that is as flat: a unit is one element.
inline std::vector<Layout> plain_layouts() {
  return {
      {"char", MPI_CHAR, 1, 1, {{0, 1}}},
      {"short", MPI_SHORT, 1, 2, {{0, 2}}},
      {"int", MPI_INT, 1, 4, {{0, 4}}},
      {"double", MPI_DOUBLE, 1, 8, {{0, 8}}},
      {"double complex", MPI_C_DOUBLE_COMPLEX, 1, 16, {{0, 16}}},
      {"two Fortran reals by precision", two_f90_reals(), 1, 16, {{0, 16}}},
      {"double int", MPI_DOUBLE_INT, 1, 16, {{0, 12}}},
  };
}

// All with the signature of three ints a unit, so that any may send to any. The types live until
// free_layouts().
inline std::vector<Layout> derived_layouts() {
  std::vector<Layout> all;
  all.push_back({"flat", MPI_INT, 3, 12, {{0, 12}}});
  MPI_Datatype type;
  MPI_Type_contiguous(3, MPI_INT, &type);
  all.push_back({"contiguous", type, 1, 12, {{0, 12}}});
  MPI_Type_vector(3, 1, 2, MPI_INT, &type);
  all.push_back({"vector with holes", type, 1, 20, {{0, 4}, {8, 4}, {16, 4}}});

  const auto structure = [&](const char* name, std::vector<MPI_Aint> at, MPI_Aint lower, MPI_Aint extent,
                             bool is_absolute) {
    const int lengths[] = {1, 1, 1};
    const MPI_Datatype parts[] = {MPI_INT, MPI_INT, MPI_INT};
    MPI_Datatype bare;
    MPI_Datatype resized;
    MPI_Type_create_struct(3, lengths, at.data(), parts, &bare);
    MPI_Type_create_resized(bare, lower, extent, &resized);
    MPI_Type_free(&bare);
    all.push_back({name, resized, 1, extent, {{at[0], 4}, {at[1], 4}, {at[2], 4}}, is_absolute});
  };
  structure("parts in another order", {8, 0, 4}, 0, 16, false);
  structure("negative lower bound", {4, -8, 0}, -8, 24, false);
  structure("absolute addresses", {0, 12, 4}, 0, 16, true);
  for (std::size_t i = 1; i < all.size(); ++i) MPI_Type_commit(&all[i].type);
  return all;
}

inline void free_layouts(std::vector<Layout>& layouts) {
  for (std::size_t i = 1; i < layouts.size(); ++i) MPI_Type_free(&layouts[i].type);
  layouts.clear();
}

// A buffer of some units between guard bytes, and what it should look like.
class Buffer {
 public:
  Buffer(const Layout& layout, std::size_t units, std::size_t shift = 0) : layout_(layout), type_(layout.type) {
    const auto span = static_cast<std::ptrdiff_t>(units == 0 ? 0 : units - 1) * layout.extent;
    const auto below = static_cast<std::size_t>(-layout.lowest()) + guard;
    storage_.assign(below + static_cast<std::size_t>(span + layout.highest()) + guard + 32, 0xa5);
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data() + below);
    origin_ = below + (16 - address % 16) % 16 + shift;
    expected_ = storage_;
    if (!layout.is_absolute) return;
    const int one = 1;
    MPI_Aint at;
    MPI_Get_address(storage_.data() + origin_, &at);
    MPI_Type_create_hindexed(1, &one, &at, layout.type, &type_);
    MPI_Type_commit(&type_);
  }
  ~Buffer() {
    if (layout_.is_absolute) MPI_Type_free(&type_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  void* argument() { return layout_.is_absolute ? MPI_BOTTOM : storage_.data() + origin_; }
  MPI_Datatype type() const { return type_; }
  int count(std::size_t units) const { return static_cast<int>(units) * layout_.per_unit; }

  // Content before the call, and expected afterwards.
  void fill(std::size_t first, std::size_t units, unsigned stream) {
    put(storage_, first, units, stream);
    put(expected_, first, units, stream);
  }
  void expect(std::size_t first, std::size_t units, unsigned stream) { put(expected_, first, units, stream); }

  void check(const char* what, const std::string& detail) {
    ++comparisons;
    if (storage_ == expected_) return;
    std::size_t i = 0;
    while (storage_[i] == expected_[i]) ++i;
    report(what, detail + ", " + layout_.name + ", byte " + std::to_string(static_cast<std::ptrdiff_t>(i - origin_)) +
                     (expected_[i] == 0xa5 ? ", not to be written" : ""));
  }

 private:
  static constexpr std::size_t guard = 64;

  void put(std::vector<unsigned char>& image, std::size_t first, std::size_t units, unsigned stream) const {
    unsigned k = stream * 40503u;
    for (std::size_t u = first; u < first + units; ++u) {
      unsigned char* const unit = image.data() + origin_ + static_cast<std::ptrdiff_t>(u) * layout_.extent;
      for (const Layout::Segment& s : layout_.segments)
        for (std::size_t i = 0; i < s.bytes; ++i)
          unit[s.offset + static_cast<std::ptrdiff_t>(i)] = static_cast<unsigned char>((++k * 2654435761u) >> 23);
    }
  }

  const Layout& layout_;
  MPI_Datatype type_;
  std::vector<unsigned char> storage_;
  std::vector<unsigned char> expected_;
  std::size_t origin_ = 0;
};
