// Records as the program gensort makes them, byte for byte: record i has the (i + 1)th number of a linear congruential
// generator modulo 2^128 (L'Ecuyer's multiplier; the increment spells "JimGrayRIP"). Its state can be advanced by any
// number of steps at once, so every rank makes the records of its share, and the same ones for any number of ranks.
#pragma once

#include <cstdint>
#include <span>

#include "record.hpp"

namespace terasort {

class Generator {
 public:
  // `is_ascii`: keys and filler that can be printed. `skew`, of the program's own, not gensort's: of all records that
  // share has one and the same key, chosen by the record's random number; 1: all have it.
  Generator(bool is_ascii, double skew) noexcept : is_ascii_(is_ascii), skew_(skew) {}

  // The records from `first` on.
  void make(std::uint64_t first, std::span<Record> records) const noexcept;

 private:
  __extension__ using Number = unsigned __int128;
  static Number at(std::uint64_t index) noexcept;
  void make_binary(Record& record, Number random, std::uint64_t index) const noexcept;
  void make_ascii(Record& record, Number random, std::uint64_t index) const noexcept;

  const bool is_ascii_;
  const double skew_;
};

}  // namespace terasort
