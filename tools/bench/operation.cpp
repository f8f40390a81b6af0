#include "tools/bench/operation.hpp"

#include <algorithm>
#include <array>

namespace papaya::bench {

namespace {

constexpr std::array<Collective, 10> replaceable = {Collective::allreduce,      Collective::reduce,
                                                    Collective::bcast,          Collective::alltoall,
                                                    Collective::allgather,      Collective::barrier,
                                                    Collective::gather,         Collective::scatter,
                                                    Collective::reduce_scatter, Collective::reduce_scatter_block};
constexpr std::array<Collective, 4> others = {Collective::gatherv, Collective::scatterv, Collective::allgatherv,
                                              Collective::alltoallv};

char lower(char c) {
  return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

}  // namespace

std::string name_of(const Operation& operation) {
  std::string name(name_of(operation.collective));
  name[0] = lower(name[0]);
  return operation.form == Form::blocking ? name : "i" + name;
}

std::optional<Operation> operation_called(std::string_view word) {
  std::string name(word);
  std::transform(name.begin(), name.end(), name.begin(), lower);
  if (name.rfind("mpi_", 0) == 0) name.erase(0, 4);
  for (const Operation& one : benchmarked())
    if (name_of(one) == name) return one;
  return std::nullopt;
}

std::span<const Collective> with_algorithms() noexcept {
  return replaceable;
}

std::vector<Operation> benchmarked() {
  std::vector<Operation> all;
  for (const Form form : {Form::blocking, Form::nonblocking}) {
    for (const Collective one : replaceable) all.push_back({one, form});
    for (const Collective one : others) all.push_back({one, form});
  }
  return all;
}

}  // namespace papaya::bench
