// MPI's predefined types and operations: how an element is filled and compared, and what is defined on what.
#pragma once

#include <mpi.h>

#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

struct Type {
  MPI_Datatype type;
  const char* name;
  std::size_t bytes;
  std::function<void(void*, int seed)> fill;  // one element
  // Only the value bytes of one element are compared: pairs and long double have padding.
  std::function<bool(const void*, const void*)> equal;
  // The bytes of one element that are not part of it: [first, last) each. They are the program's.
  std::vector<std::pair<std::size_t, std::size_t>> gaps = {};
};

template <class T>
Type plain(MPI_Datatype type, const char* name) {
  return {type, name, sizeof(T),
          [](void* at, int seed) {
            const T v = static_cast<T>(seed % 5 + 1);
            std::memcpy(at, &v, sizeof v);
          },
          [](const void* a, const void* b) { return *static_cast<const T*>(a) == *static_cast<const T*>(b); }};
}

template <class V, class I = int>
Type pair(MPI_Datatype type, const char* name) {
  struct Pair {
    V value;
    I index;
  };
  return {type,
          name,
          sizeof(Pair),
          [](void* at, int seed) {
            Pair p;
            p.value = static_cast<V>(seed % 3);
            p.index = static_cast<I>(seed % 11);
            std::memcpy(at, &p, sizeof p);
          },
          [](const void* a, const void* b) {
            const auto &x = *static_cast<const Pair*>(a), &y = *static_cast<const Pair*>(b);
            return x.value == y.value && x.index == y.index;
          },
          {{sizeof(V), offsetof(Pair, index)}, {offsetof(Pair, index) + sizeof(I), sizeof(Pair)}}};
}

inline const std::vector<Type>& types() {
  static const std::vector<Type> all = {
      plain<double>(MPI_DOUBLE, "double"),
      plain<float>(MPI_FLOAT, "float"),
      plain<long double>(MPI_LONG_DOUBLE, "long double"),
      plain<int>(MPI_INT, "int"),
      plain<long>(MPI_LONG, "long"),
      plain<long long>(MPI_LONG_LONG_INT, "long long"),
      plain<short>(MPI_SHORT, "short"),
      plain<unsigned>(MPI_UNSIGNED, "unsigned"),
      plain<unsigned long>(MPI_UNSIGNED_LONG, "unsigned long"),
      plain<unsigned long long>(MPI_UNSIGNED_LONG_LONG, "unsigned long long"),
      plain<unsigned short>(MPI_UNSIGNED_SHORT, "unsigned short"),
      plain<signed char>(MPI_SIGNED_CHAR, "signed char"),
      plain<unsigned char>(MPI_UNSIGNED_CHAR, "unsigned char"),
      plain<std::int8_t>(MPI_INT8_T, "int8"),
      plain<std::int16_t>(MPI_INT16_T, "int16"),
      plain<std::int32_t>(MPI_INT32_T, "int32"),
      plain<std::int64_t>(MPI_INT64_T, "int64"),
      plain<std::uint8_t>(MPI_UINT8_T, "uint8"),
      plain<std::uint16_t>(MPI_UINT16_T, "uint16"),
      plain<std::uint32_t>(MPI_UINT32_T, "uint32"),
      plain<std::uint64_t>(MPI_UINT64_T, "uint64"),
      plain<unsigned char>(MPI_BYTE, "byte"),
      plain<bool>(MPI_C_BOOL, "bool"),
      plain<MPI_Aint>(MPI_AINT, "aint"),
      plain<MPI_Offset>(MPI_OFFSET, "offset"),
      plain<MPI_Count>(MPI_COUNT, "count"),
      plain<std::complex<float>>(MPI_C_FLOAT_COMPLEX, "float complex"),
      plain<std::complex<double>>(MPI_C_DOUBLE_COMPLEX, "double complex"),
      plain<int>(MPI_INTEGER, "INTEGER"),
      plain<float>(MPI_REAL, "REAL"),
      plain<double>(MPI_DOUBLE_PRECISION, "DOUBLE PRECISION"),
      plain<int>(MPI_LOGICAL, "LOGICAL"),
      plain<std::int64_t>(MPI_INTEGER8, "INTEGER*8"),
      pair<float>(MPI_FLOAT_INT, "float int"),
      pair<double>(MPI_DOUBLE_INT, "double int"),
      pair<long>(MPI_LONG_INT, "long int"),
      pair<int>(MPI_2INT, "2int"),
      pair<short>(MPI_SHORT_INT, "short int"),
      pair<long double>(MPI_LONG_DOUBLE_INT, "long double int"),
      pair<float, float>(MPI_2REAL, "2REAL"),
      pair<double, double>(MPI_2DOUBLE_PRECISION, "2DOUBLE PRECISION"),
  };
  return all;
}

struct Operation {
  MPI_Op op;
  const char* name;
};

// Does MPI define the operation on the type? (MPI 4.0, section 6.9.2.)
inline bool is_defined(const Type& type, const Operation& operation) {
  const std::string name = type.name;
  const std::string op = operation.name;
  const bool is_pair = name.find(" int") != name.npos || name[0] == '2';
  const bool is_floating =
      name == "float" || name == "double" || name == "long double" || name == "REAL" || name == "DOUBLE PRECISION";
  const bool is_complex = name.find("complex") != name.npos;
  const bool is_logical = name == "bool" || name == "LOGICAL";
  const bool is_byte = name == "byte";
  const bool is_fortran_integer = name == "INTEGER" || name == "INTEGER*8";
  if (op == "minloc" || op == "maxloc") return is_pair;
  if (is_pair) return false;
  if (op == "sum" || op == "prod") return !is_logical && !is_byte;
  if (op == "min" || op == "max") return !is_logical && !is_byte && !is_complex;
  if (op == "land" || op == "lor" || op == "lxor")
    return !is_floating && !is_complex && !is_byte && !is_fortran_integer;
  return !is_floating && !is_complex && !is_logical;
}
inline const Operation operations[] = {
    {MPI_SUM, "sum"},   {MPI_PROD, "prod"}, {MPI_MIN, "min"},       {MPI_MAX, "max"},
    {MPI_LAND, "land"}, {MPI_LOR, "lor"},   {MPI_LXOR, "lxor"},     {MPI_BAND, "band"},
    {MPI_BOR, "bor"},   {MPI_BXOR, "bxor"}, {MPI_MINLOC, "minloc"}, {MPI_MAXLOC, "maxloc"},
};
