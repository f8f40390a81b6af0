// The functions of papaya_weak.h that take handles of MPI's, with Fortran's: for bindings of other languages, which
// know those by number whatever the MPI.
#include <array>
#include <string_view>

#include "include/papaya_weak.h"

#define PAPAYA_PUBLIC __attribute__((visibility("default")))

extern "C" {

PAPAYA_PUBLIC int papaya_ssp_allreduce_create_f(MPI_Fint comm, MPI_Count count, MPI_Fint type, MPI_Fint op, int slack,
                                                const char* algorithm, papaya_weak* collective) {
  return papaya_ssp_allreduce_create(MPI_Comm_f2c(comm), count, MPI_Type_f2c(type), MPI_Op_f2c(op), slack, algorithm,
                                     collective);
}

PAPAYA_PUBLIC int papaya_ssp_accumulate_create_f(MPI_Fint comm, MPI_Count count, MPI_Fint type, MPI_Fint op, int slack,
                                                 const char* algorithm, papaya_weak* collective) {
  return papaya_ssp_accumulate_create(MPI_Comm_f2c(comm), count, MPI_Type_f2c(type), MPI_Op_f2c(op), slack, algorithm,
                                      collective);
}

PAPAYA_PUBLIC int papaya_threshold_bcast_create_f(MPI_Fint comm, MPI_Count count, MPI_Fint type, double threshold,
                                                  int of, int root, papaya_weak* collective) {
  return papaya_threshold_bcast_create(MPI_Comm_f2c(comm), count, MPI_Type_f2c(type), threshold, of, root, collective);
}

PAPAYA_PUBLIC int papaya_threshold_reduce_create_f(MPI_Fint comm, MPI_Count count, MPI_Fint type, MPI_Fint op,
                                                   double threshold, int of, int root, papaya_weak* collective) {
  return papaya_threshold_reduce_create(MPI_Comm_f2c(comm), count, MPI_Type_f2c(type), MPI_Op_f2c(op), threshold, of,
                                        root, collective);
}

PAPAYA_PUBLIC int papaya_sparse_allreduce_create_f(MPI_Fint comm, MPI_Count count, MPI_Fint type, double share,
                                                   papaya_weak* collective) {
  return papaya_sparse_allreduce_create(MPI_Comm_f2c(comm), count, MPI_Type_f2c(type), share, collective);
}

PAPAYA_PUBLIC int papaya_partial_allreduce_create_f(MPI_Fint comm, MPI_Count count, MPI_Fint type, MPI_Fint op,
                                                    const char* algorithm, papaya_weak* collective) {
  return papaya_partial_allreduce_create(MPI_Comm_f2c(comm), count, MPI_Type_f2c(type), MPI_Op_f2c(op), algorithm,
                                         collective);
}

PAPAYA_PUBLIC int papaya_group_allreduce_create_f(MPI_Fint comm, MPI_Count count, MPI_Fint type, MPI_Fint op, int group,
                                                  int period, papaya_weak* collective) {
  return papaya_group_allreduce_create(MPI_Comm_f2c(comm), count, MPI_Type_f2c(type), MPI_Op_f2c(op), group, period,
                                       collective);
}

PAPAYA_PUBLIC MPI_Fint papaya_handle_f(const char* name) {
  if (name == std::string_view("world")) return MPI_Comm_c2f(MPI_COMM_WORLD);
  struct Type {
    std::string_view name;
    MPI_Datatype type;
  };
  for (const Type& one : std::array{Type{"float32", MPI_FLOAT}, Type{"float64", MPI_DOUBLE}, Type{"int8", MPI_INT8_T},
                                    Type{"int16", MPI_INT16_T}, Type{"int32", MPI_INT32_T}, Type{"int64", MPI_INT64_T},
                                    Type{"uint8", MPI_UINT8_T}, Type{"uint16", MPI_UINT16_T},
                                    Type{"uint32", MPI_UINT32_T}, Type{"uint64", MPI_UINT64_T}})
    if (name == one.name) return MPI_Type_c2f(one.type);
  struct Op {
    std::string_view name;
    MPI_Op op;
  };
  for (const Op& one : std::array{Op{"sum", MPI_SUM}, Op{"prod", MPI_PROD}, Op{"min", MPI_MIN}, Op{"max", MPI_MAX}})
    if (name == one.name) return MPI_Op_c2f(one.op);
  return -1;
}

}  // extern "C"
