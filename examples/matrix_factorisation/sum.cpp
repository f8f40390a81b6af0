#include "sum.hpp"

#include <papaya.h>

#include <array>
#include <limits>
#include <stdexcept>
#include <vector>

#include "mistake.hpp"

namespace {

// Stale synchronous parallel: a rank goes on with what others contributed at most `slack` calls ago.
class StaleSum : public Sum {
 public:
  StaleSum(const Options& options, MPI_Comm comm, std::size_t count) {
    const char* algorithm = options.algorithm.empty() ? nullptr : options.algorithm.c_str();
    // Updates add up, none may be lost; of models the newest of each rank counts.
    const auto create =
        options.exchange == Exchange::updates ? papaya_ssp_accumulate_create : papaya_ssp_allreduce_create;
    const int error =
        create(comm, static_cast<MPI_Count>(count), MPI_DOUBLE, MPI_SUM, options.slack, algorithm, &collective_);
    if (error != MPI_SUCCESS) throw Mistake(papaya_error());  // the same on all ranks
    std::array<char, 256> text{};
    check(papaya_weak_get_info(collective_, text.data(), static_cast<int>(text.size())));
    info_ = text.data();
  }

  SumCall call(std::span<const double> contribution, std::span<double> result) override {
    papaya_weak_status status;
    const double begin = MPI_Wtime();
    check(papaya_weak_call(collective_, contribution.data(), result.data(), &status));
    return {MPI_Wtime() - begin, status.waited, status.clock - status.oldest};
  }

  std::string info() const override { return info_; }

  void end() override { check(papaya_weak_free(&collective_)); }

 private:
  static void check(int error) {
    if (error != MPI_SUCCESS) throw std::runtime_error(papaya_error());
  }

  papaya_weak collective_ = PAPAYA_WEAK_NULL;
  std::string info_;
};

// MPI_Allreduce: of the MPI itself, or of papaya where it is preloaded.
class ConsistentSum : public Sum {
 public:
  ConsistentSum(const Options& options, MPI_Comm comm, std::size_t count)
      : is_native_(options.allreduce == Allreduce::native),
        adds_up_(options.exchange == Exchange::updates),
        comm_(comm),
        sum_(count) {
    if (is_native_) return;
    if (algorithm_in_force().empty())
      throw Mistake("papaya is not loaded: put \"papaya run\" before the program, after mpirun and its options.");
    if (!options.algorithm.empty() && papaya_set_algorithm("allreduce", options.algorithm.c_str()) != 0)
      throw Mistake("papaya cannot take --algorithm " + options.algorithm + " for MPI_Allreduce.");
  }

  SumCall call(std::span<const double> contribution, std::span<double> result) override {
    const auto allreduce = is_native_ ? PMPI_Allreduce : MPI_Allreduce;
    double* sum = adds_up_ ? sum_.data() : result.data();
    const double begin = MPI_Wtime();
    if (allreduce(contribution.data(), sum, static_cast<int>(contribution.size()), MPI_DOUBLE, MPI_SUM, comm_) !=
        MPI_SUCCESS)
      throw std::runtime_error("MPI_Allreduce failed.");
    const double seconds = MPI_Wtime() - begin;
    if (adds_up_)
      for (std::size_t i = 0; i < result.size(); ++i) result[i] += sum[i];
    return {seconds, std::numeric_limits<double>::quiet_NaN(), 0};
  }

  std::string info() const override { return is_native_ ? "MPI's own MPI_Allreduce" : algorithm_in_force(); }

 private:
  // Empty where papaya is not preloaded. Another algorithm may be in force after the first few calls.
  std::string algorithm_in_force() const {
    std::array<char, 256> text{};
    papaya_get_algorithm("allreduce", comm_, sum_.size() * sizeof(double), text.data(), text.size());
    return text.data();
  }

  bool is_native_;
  bool adds_up_;
  MPI_Comm comm_;
  std::vector<double> sum_;
};

}  // namespace

std::unique_ptr<Sum> make_sum(const Options& options, MPI_Comm comm, std::size_t count) {
  if (options.allreduce == Allreduce::ssp) return std::make_unique<StaleSum>(options, comm, count);
  return std::make_unique<ConsistentSum>(options, comm, count);
}
