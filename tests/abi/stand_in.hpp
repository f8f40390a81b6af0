// Handles, statuses and special values of the standard ABI (abi::X) and of the MPI beneath (MPI_X), turned into each
// other. A handle that the standard does not fix is the MPI's own, as a number.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "mpi_beneath.hpp"

namespace abi {

using Comm = struct CommOf*;
using Datatype = struct DatatypeOf*;
using Errhandler = struct ErrhandlerOf*;
using File = struct FileOf*;
using Group = struct GroupOf*;
using Info = struct InfoOf*;
using Message = struct MessageOf*;
using Op = struct OpOf*;
using Request = struct RequestOf*;
using Session = struct SessionOf*;
using Win = struct WinOf*;

struct Status {
  int source;
  int tag;
  int error;
  int internal[5];
};

using Comm_copy_attr_function = int(Comm, int, void*, void*, void*, int*);
using Comm_delete_attr_function = int(Comm, int, void*, void*);
using Comm_errhandler_function = void(Comm*, int*, ...);
using Grequest_query_function = int(void*, Status*);
using Grequest_free_function = int(void*);
using Grequest_cancel_function = int(void*, int);
using User_function = void(void*, void*, int*, Datatype*);

inline void* const in_place = reinterpret_cast<void*>(1);
inline const int* const unweighted = reinterpret_cast<const int*>(10);
inline const int* const weights_empty = reinterpret_cast<const int*>(11);
constexpr int tag_ub = 501;
constexpr int type_shared = 221;
constexpr int err_unsupported_operation = 55;

}  // namespace abi

namespace stand_in {

template <class Native>
using Fixed = std::initializer_list<std::pair<std::uintptr_t, Native>>;

// What the standard fixes, by type.
template <class Act>
auto with_fixed(abi::Comm, Act act) {
  const Fixed<MPI_Comm> all = {{256, MPI_COMM_NULL}, {257, MPI_COMM_WORLD}, {258, MPI_COMM_SELF}};
  return act(all);
}
template <class Act>
auto with_fixed(abi::Errhandler, Act act) {
  const Fixed<MPI_Errhandler> all = {{320, MPI_ERRHANDLER_NULL}, {321, MPI_ERRORS_ARE_FATAL}, {323, MPI_ERRORS_RETURN}};
  return act(all);
}
template <class Act>
auto with_fixed(abi::File, Act act) {
  const Fixed<MPI_File> all = {{280, MPI_FILE_NULL}};
  return act(all);
}
template <class Act>
auto with_fixed(abi::Group, Act act) {
  const Fixed<MPI_Group> all = {{264, MPI_GROUP_NULL}, {265, MPI_GROUP_EMPTY}};
  return act(all);
}
template <class Act>
auto with_fixed(abi::Info, Act act) {
  const Fixed<MPI_Info> all = {{304, MPI_INFO_NULL}, {305, MPI_INFO_ENV}};
  return act(all);
}
template <class Act>
auto with_fixed(abi::Message, Act act) {
  const Fixed<MPI_Message> all = {{296, MPI_MESSAGE_NULL}, {297, MPI_MESSAGE_NO_PROC}};
  return act(all);
}
template <class Act>
auto with_fixed(abi::Request, Act act) {
  const Fixed<MPI_Request> all = {{384, MPI_REQUEST_NULL}};
  return act(all);
}
template <class Act>
auto with_fixed(abi::Session, Act act) {
  const Fixed<MPI_Session> all = {{288, MPI_SESSION_NULL}};
  return act(all);
}
template <class Act>
auto with_fixed(abi::Win, Act act) {
  const Fixed<MPI_Win> all = {{272, MPI_WIN_NULL}};
  return act(all);
}
template <class Act>
auto with_fixed(abi::Op, Act act) {
  const Fixed<MPI_Op> all = {{32, MPI_OP_NULL}, {33, MPI_SUM},    {34, MPI_MIN},    {35, MPI_MAX},     {36, MPI_PROD},
                             {40, MPI_BAND},    {41, MPI_BOR},    {42, MPI_BXOR},   {48, MPI_LAND},    {49, MPI_LOR},
                             {50, MPI_LXOR},    {56, MPI_MINLOC}, {57, MPI_MAXLOC}, {60, MPI_REPLACE}, {61, MPI_NO_OP}};
  return act(all);
}
template <class Act>
auto with_fixed(abi::Datatype, Act act) {
  const Fixed<MPI_Datatype> all = {{512, MPI_DATATYPE_NULL},
                                   {513, MPI_AINT},
                                   {514, MPI_COUNT},
                                   {515, MPI_OFFSET},
                                   {519, MPI_PACKED},
                                   {520, MPI_SHORT},
                                   {521, MPI_INT},
                                   {522, MPI_LONG},
                                   {523, MPI_LONG_LONG_INT},
                                   {524, MPI_UNSIGNED_SHORT},
                                   {525, MPI_UNSIGNED},
                                   {526, MPI_UNSIGNED_LONG},
                                   {527, MPI_UNSIGNED_LONG_LONG},
                                   {528, MPI_FLOAT},
                                   {530, MPI_C_FLOAT_COMPLEX},
                                   {531, MPI_CXX_FLOAT_COMPLEX},
                                   {532, MPI_DOUBLE},
                                   {534, MPI_C_DOUBLE_COMPLEX},
                                   {535, MPI_CXX_DOUBLE_COMPLEX},
                                   {536, MPI_LOGICAL},
                                   {537, MPI_INTEGER},
                                   {538, MPI_REAL},
                                   {539, MPI_COMPLEX},
                                   {540, MPI_DOUBLE_PRECISION},
                                   {541, MPI_DOUBLE_COMPLEX},
                                   {542, MPI_CHARACTER},
                                   {544, MPI_LONG_DOUBLE},
                                   {548, MPI_C_LONG_DOUBLE_COMPLEX},
                                   {549, MPI_CXX_LONG_DOUBLE_COMPLEX},
                                   {552, MPI_FLOAT_INT},
                                   {553, MPI_DOUBLE_INT},
                                   {554, MPI_LONG_INT},
                                   {555, MPI_2INT},
                                   {556, MPI_SHORT_INT},
                                   {557, MPI_LONG_DOUBLE_INT},
                                   {560, MPI_2REAL},
                                   {561, MPI_2DOUBLE_PRECISION},
                                   {562, MPI_2INTEGER},
                                   {568, MPI_C_BOOL},
                                   {569, MPI_CXX_BOOL},
                                   {572, MPI_WCHAR},
                                   {576, MPI_INT8_T},
                                   {577, MPI_UINT8_T},
                                   {579, MPI_CHAR},
                                   {580, MPI_SIGNED_CHAR},
                                   {581, MPI_UNSIGNED_CHAR},
                                   {583, MPI_BYTE},
                                   {584, MPI_INT16_T},
                                   {585, MPI_UINT16_T},
                                   {592, MPI_INT32_T},
                                   {593, MPI_UINT32_T},
                                   {600, MPI_INT64_T},
                                   {601, MPI_UINT64_T},
                                   {705, MPI_INTEGER1},
                                   {713, MPI_INTEGER2},
                                   {721, MPI_INTEGER4},
                                   {722, MPI_REAL4},
                                   {729, MPI_INTEGER8},
                                   {730, MPI_REAL8},
                                   {731, MPI_COMPLEX8},
                                   {739, MPI_COMPLEX16}};
  return act(all);
}

template <class A>
concept Handle = requires(A handle) {
  with_fixed(handle, [](auto&) {});
};

template <Handle A>
auto to_native(A handle) {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  return with_fixed(handle, [&](auto& all) {
    for (const auto& [fixed, native] : all)
      if (fixed == number) return native;
    using Native = decltype(all.begin()->second);
    if constexpr (std::is_pointer_v<std::remove_cv_t<Native>>)
      return reinterpret_cast<std::remove_cv_t<Native>>(number);
    else
      return static_cast<std::remove_cv_t<Native>>(static_cast<unsigned>(number));
  });
}

template <Handle A, class Native>
A to_abi(Native handle) {
  return with_fixed(A{}, [&](auto& all) {
    for (const auto& [fixed, native] : all)
      if (native == handle) return reinterpret_cast<A>(fixed);
    if constexpr (std::is_pointer_v<Native>)
      return reinterpret_cast<A>(handle);
    else
      return reinterpret_cast<A>(static_cast<std::uintptr_t>(static_cast<unsigned>(handle)));
  });
}

// No two special values are equal in the standard, so one is known by itself.
constexpr std::pair<int, int> special_values[] = {
    {-1, MPI_ANY_SOURCE}, {-2, MPI_ANY_TAG}, {-3, MPI_PROC_NULL}, {-4, MPI_ROOT}, {-32766, MPI_UNDEFINED}};
constexpr int to_native(int value) {
  for (const auto& [of_standard, native] : special_values)
    if (value == of_standard) return native;
  return value;
}

constexpr std::pair<int, int> thread_levels[] = {
    {0, MPI_THREAD_SINGLE}, {1024, MPI_THREAD_FUNNELED}, {2048, MPI_THREAD_SERIALIZED}, {4096, MPI_THREAD_MULTIPLE}};
constexpr std::pair<int, int> comparisons[] = {
    {201, MPI_IDENT}, {202, MPI_CONGRUENT}, {203, MPI_SIMILAR}, {204, MPI_UNEQUAL}};
constexpr std::pair<int, int> topologies[] = {{211, MPI_CART}, {212, MPI_GRAPH}, {213, MPI_DIST_GRAPH}};
constexpr std::pair<int, int> combiners[] = {
    {101, MPI_COMBINER_NAMED},       {102, MPI_COMBINER_DUP},         {103, MPI_COMBINER_CONTIGUOUS},
    {104, MPI_COMBINER_VECTOR},      {105, MPI_COMBINER_HVECTOR},     {106, MPI_COMBINER_INDEXED},
    {107, MPI_COMBINER_HINDEXED},    {110, MPI_COMBINER_STRUCT},      {113, MPI_COMBINER_F90_REAL},
    {114, MPI_COMBINER_F90_COMPLEX}, {115, MPI_COMBINER_F90_INTEGER}, {116, MPI_COMBINER_RESIZED}};
constexpr std::pair<int, int> error_classes[] = {
    {0, MPI_SUCCESS},     {1, MPI_ERR_BUFFER},   {2, MPI_ERR_COUNT},      {3, MPI_ERR_TYPE},      {4, MPI_ERR_TAG},
    {5, MPI_ERR_COMM},    {6, MPI_ERR_RANK},     {7, MPI_ERR_REQUEST},    {8, MPI_ERR_ROOT},      {9, MPI_ERR_GROUP},
    {10, MPI_ERR_OP},     {13, MPI_ERR_ARG},     {14, MPI_ERR_UNKNOWN},   {15, MPI_ERR_TRUNCATE}, {16, MPI_ERR_OTHER},
    {17, MPI_ERR_INTERN}, {18, MPI_ERR_PENDING}, {19, MPI_ERR_IN_STATUS}, {39, MPI_ERR_NO_MEM}};

// By one of the tables.
template <class Table>
int native_of(const Table& table, int value) {
  for (const auto& [of_standard, native] : table)
    if (value == of_standard) return native;
  return value;
}
template <class Table>
int abi_of(const Table& table, int value) {
  for (const auto& [of_standard, native] : table)
    if (value == native) return of_standard;
  return value;
}

// What only the MPI reads of a status lies in the standard's spare words.
inline MPI_Status to_native(const abi::Status& status) {
  MPI_Status native;
  std::memset(&native, 0, sizeof native);
  native.MPI_SOURCE = to_native(status.source);
  native.MPI_TAG = to_native(status.tag);
  native.MPI_ERROR = status.error;
#if defined(OPEN_MPI)
  native._cancelled = status.internal[0];
  std::memcpy(&native._ucount, &status.internal[1], sizeof native._ucount);
#else
  native.count_lo = status.internal[0];
  native.count_hi_and_cancelled = status.internal[1];
#endif
  return native;
}
inline abi::Status to_abi(const MPI_Status& native) {
  abi::Status status{};
  status.source = native.MPI_SOURCE == MPI_ANY_SOURCE  ? -1
                  : native.MPI_SOURCE == MPI_PROC_NULL ? -3
                                                       : native.MPI_SOURCE;
  status.tag = native.MPI_TAG == MPI_ANY_TAG ? -2 : native.MPI_TAG;
  status.error = native.MPI_ERROR;
#if defined(OPEN_MPI)
  status.internal[0] = native._cancelled;
  std::memcpy(&status.internal[1], &native._ucount, sizeof native._ucount);
#else
  status.internal[0] = native.count_lo;
  status.internal[1] = native.count_hi_and_cancelled;
#endif
  return status;
}

}  // namespace stand_in
