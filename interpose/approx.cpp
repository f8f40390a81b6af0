#include "interpose/approx.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "base/log.hpp"
#include "base/mpi_name.hpp"
#include "base/version.hpp"
#include "interpose/approx_call.hpp"
#include "interpose/approx_sites.hpp"
#include "interpose/implementation.hpp"
#include "interpose/nonblocking.hpp"
#include "interpose/output.hpp"
#include "interpose/scratch.hpp"
#include "interpose/site_names.hpp"
#include "interpose/weak_service.hpp"
#include "tuning/approx_rules.hpp"

namespace papaya::approx {

namespace {

constexpr std::size_t most_met = 8;

struct Process {
  const WeakService* service = nullptr;
  std::vector<tuning::ApproxRule> rules;
  SiteNames names{[this](const tuning::NamedSite& site) {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < rules.size(); ++i)
      for (const std::string& place : rules[i].sites)
        if (tuning::is_site(place, site)) bits |= std::uint64_t{1} << i;
    return bits;
  }};
  std::mutex mutex;                                  // guards what follows
  std::vector<std::unique_ptr<SiteAgreement>> left;  // of communicators that are gone
  std::set<std::string> met;                         // names of communicators with calls that a rule may be for
  std::array<std::atomic<bool>, collective_count> has_calls{};  // relaxed: on such communicators

  void note(const char* name) {
    const std::lock_guard lock(mutex);
    if (met.size() < most_met) met.insert(name);
  }

  // False: some ranks have not come to all calls yet.
  bool end_some() {
    const std::lock_guard lock(mutex);
    std::erase_if(left, [](const auto& one) { return one->end(); });
    return left.empty();
  }
};
Process& process() noexcept {
  static auto& one = *new Process;  // never destroyed, as the states of communicators
  return one;
}

const WeakService* load(const Preload& preload, std::string& problem) {
  const std::string name = fmt::format("libpapaya-weak-{}.so.{}", own_flavour, PAPAYA_VERSION);
  // Beside libpapaya.so in a build folder. Programs link to it, so an installation has it in the folder above.
  void* library = nullptr;
  for (const char* folder : {"", "/.."})
    if (library == nullptr)
      library = dlopen(fmt::format("{}{}/{}", preload.folder, folder, name).c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto find =
      library == nullptr ? nullptr : reinterpret_cast<FindWeakService>(dlsym(library, "papaya_weak_service"));
  const WeakService* const service = find == nullptr ? nullptr : find(PAPAYA_VERSION);
  if (service == nullptr) problem = fmt::format("{} cannot be loaded; install it as meson install does", name);
  return service;
}

}  // namespace

class OnCommunicator {
 public:
  // Collective over the communicator.
  explicit OnCommunicator(Communicator& state);
  ~OnCommunicator();
  OnCommunicator(const OnCommunicator&) = delete;
  OnCommunicator& operator=(const OnCommunicator&) = delete;
  // Null: calls of the collective are exact.
  const tuning::ApproxRule* rule_of(Collective collective) const noexcept { return by_name_[index_of(collective)]; }
  // Null: no call site is named.
  const tuning::ApproxRule* rule_with_sites(Collective collective) const noexcept;
  SiteAgreement& sites() noexcept { return *sites_; }
  Series& series_of(const Kind& kind) { return series_[kind]; }

 private:
  std::unique_ptr<SiteAgreement> sites_;  // if a rule names call sites
  std::array<const tuning::ApproxRule*, collective_count> by_name_{};
  std::map<Kind, Series> series_;
};

const tuning::ApproxRule* OnCommunicator::rule_with_sites(Collective collective) const noexcept {
  if (sites_ == nullptr) return nullptr;
  for (const tuning::ApproxRule& rule : process().rules)
    if (rule.collective == collective && !rule.sites.empty()) return &rule;
  return nullptr;
}

// MPI_Comm_free waits for nobody, and others may still need an answer: the agreement ends where the next one begins, or
// in MPI_Finalize.
OnCommunicator::~OnCommunicator() {
  if (sites_ == nullptr) return;
  Process& self = process();
  const std::lock_guard lock(self.mutex);
  self.left.push_back(std::move(sites_));
}

OnCommunicator::OnCommunicator(Communicator& state) {
  const std::vector<tuning::ApproxRule>& rules = process().rules;
  char name[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  PMPI_Comm_get_name(state.handle, name, &length);
  process().note(name);
  // Rules that mean it on all ranks, and rules that do on none.
  std::array<std::uint64_t, 2> mine{};
  for (std::size_t i = 0; i < rules.size(); ++i)
    if (std::find(rules[i].names.begin(), rules[i].names.end(), name) != rules[i].names.end())
      mine[0] |= std::uint64_t{1} << i;
  mine[1] = ~mine[0];
  std::array<std::uint64_t, 2> all{};
  const nonblocking::InsideMpi inside_mpi;
  if (PMPI_Allreduce(mine.data(), all.data(), 2, MPI_UINT64_T, MPI_BAND, state.handle) != MPI_SUCCESS) return;
  bool is_disputed = false;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const std::uint64_t bit = std::uint64_t{1} << i;
    if ((all[0] & bit) != 0)
      by_name_[index_of(rules[i].collective)] = &rules[i];
    else if ((all[1] & bit) == 0)
      is_disputed = true;
  }
  static std::atomic<bool> has_warned{false};
  if (is_disputed && state.rank == 0 && !has_warned.exchange(true))
    log::warn(
        fmt::format("PAPAYA_APPROX: ranks of a communicator call it by different names, \"{}\" on its rank 0; "
                    "calls on it, and on others that this is true of, stay exact. Give each the same name on all ranks "
                    "before its first call.",
                    name));
  if (std::none_of(rules.begin(), rules.end(), [](const auto& rule) { return !rule.sites.empty(); })) return;
  process().end_some();
  sites_ = std::make_unique<SiteAgreement>(state.handle);
  int is_good = sites_->is_good() ? 1 : 0;
  PMPI_Allreduce(MPI_IN_PLACE, &is_good, 1, MPI_INT, MPI_MIN, state.handle);
  if (is_good == 0) sites_.reset();
}

namespace {

// Collective; the same sentence on rank 0 whichever rank has found it.
std::string prepare(const Job& job, const Preload& preload) {
  Process& self = process();
  const std::string_view text = job.settings.text(Variable::approx);
  const char* const own = std::getenv(row_of(Variable::approx).name.data());
  std::string problem;
  self.service = load(preload, problem);
  // Rank 0's value holds for all; but what makes results wrong has to be wanted by all.
  const bool is_wanted = job.oob->least(own != nullptr && own == text ? 1 : 0) != 0;
  const bool is_there = job.oob->least(self.service != nullptr ? 1 : 0) != 0;
  if (!is_wanted) return "its value differs between the ranks; set the same for all, or for none";
  if (!is_there) return problem.empty() ? "libpapaya-weak cannot be loaded on a rank" : problem;
  if (!tuning::parse_approx(text, self.service->algorithms(), self.rules, problem)) return problem;
  const bool has_sites =
      std::any_of(self.rules.begin(), self.rules.end(), [](const auto& rule) { return !rule.sites.empty(); });
  if (has_sites && (job.settings.text(Variable::profile) == "off" || job.settings.number(Variable::callsites) == 0))
    return "call sites are known only where they are recorded, which PAPAYA_PROFILE=off or PAPAYA_CALLSITES=0 forbids";
  return "";
}

}  // namespace

void start(Job& job, const Preload& preload) noexcept {
  if (job.settings.is_default(Variable::approx)) return;
  try {
    if (const std::string problem = prepare(job, preload); !problem.empty()) {
      if (job.rank == 0) log::warn(tuning::without_effect(job.settings.text(Variable::approx), problem));
      job.settings.reset(Variable::approx);
      return;
    }
    job.approximates = true;
  } catch (const std::bad_alloc&) {
    end_for_lack_of_memory(0);
  }
}

void open(const Job& job, Records& records) noexcept {
  if (!job.approximates) return;
  try {
    const Process& self = process();
    const bool is_recorded = records.recorder.is_open();
    records.approx.open(is_recorded ? output::approx_file(records.folder.path(), job.rank) : "",
                        is_recorded ? &records.recorder.header() : nullptr, self.rules.size());
    for (std::size_t i = 0; i < self.rules.size(); ++i) {
      const tuning::ApproxRule& rule = self.rules[i];
      records.approx.describe(i, rule.collective, rule.places(), rule.bound());
      if (job.rank == 0)
        log::warn(fmt::format("PAPAYA_APPROX: {} for {} returns approximate results ({}).",
                              mpi_name(rule.collective, Form::blocking), rule.places(), rule.bound()));
    }
  } catch (const std::bad_alloc&) {
    end_for_lack_of_memory(0);
  }
}

namespace {

std::string where(const tuning::ApproxRule& rule) {
  return (rule.names.empty() ? "at " : "on ") + rule.places();
}

// For a rule that no call met.
std::string what_there_was(const tuning::ApproxRule& rule) {
  if (!process().has_calls[index_of(rule.collective)].load(std::memory_order_relaxed))
    return "rank 0 made no such call on a communicator of several ranks";
  if (rule.names.empty()) return "`papaya report` lists call sites with their lines, as they are to be written";
  const std::set<std::string>& met = process().met;
  return fmt::format("rank 0 made calls of the rules' collectives on \"{}\"{}", fmt::join(met, "\", \""),
                     met.size() == most_met ? " and maybe others" : "");
}

}  // namespace

void stop(const Job& job, Records& records) noexcept {
  if (!job.approximates) return;
  const std::vector<tuning::ApproxRule>& rules = process().rules;
  // In any order: ranks may have freed communicators in different ones.
  while (!process().end_some()) sched_yield();
  std::array<std::uint64_t, tuning::most_approx_rules> calls{};
  for (std::size_t i = 0; i < rules.size(); ++i) calls[i] = records.approx.calls(i);
  std::array<std::uint64_t, tuning::most_approx_rules> all{};
  PMPI_Reduce(calls.data(), all.data(), static_cast<int>(calls.size()), MPI_UINT64_T, MPI_MAX, 0, job.world_comm);
  if (job.rank != 0) return;
  for (std::size_t i = 0; i < rules.size(); ++i)
    if (all[i] == 0)
      log::warn(fmt::format("PAPAYA_APPROX: no call of {} was {}; {}.", mpi_name(rules[i].collective, Form::blocking),
                            where(rules[i]), what_there_was(rules[i])));
}

bool run(Communicator& state, const Arguments& a, const CallFacts& facts, Outcome& outcome) noexcept {
  if (state.inter || state.outside || state.size == 1) return false;
  Process& self = process();
  if (std::none_of(self.rules.begin(), self.rules.end(),
                   [&](const auto& one) { return one.collective == a.collective; }) ||
      has_errors(state, a))
    return false;
  self.has_calls[index_of(a.collective)].store(true, std::memory_order_relaxed);
  try {
    if (state.approx == nullptr) state.approx = std::make_shared<OnCommunicator>(state);
    const tuning::ApproxRule* rule = state.approx->rule_of(a.collective);
    const bool is_by_site = rule == nullptr;
    if (is_by_site) rule = state.approx->rule_with_sites(a.collective);
    if (rule == nullptr) return false;
    Call call(state, a, facts, *rule, static_cast<std::size_t>(rule - self.rules.data()), *self.service);
    const auto is_named = [&] {
      if (!facts.records.recorder.is_open()) return false;
      const std::uint64_t named =
          self.names.at(facts.records.call_sites.number_of(facts.site), facts.records.recorder.header());
      return (named >> (rule - self.rules.data()) & 1) != 0;
    };
    const char* const why = call.why_exact();
    if (is_by_site) {
      call.agree_by(state.approx->sites());
      const bool is_meant = is_named();
      if (why != nullptr) return is_meant && call.is_exact(why);
      if (!call.is_agreed(is_meant)) return false;
    }
    if (why != nullptr) return call.is_exact(why);
    outcome.is_approximate = call.run(state.approx->series_of(call.kind()));
    return outcome.is_approximate;
  } catch (const std::bad_alloc&) {
    end_for_lack_of_memory(0);
  }
}

}  // namespace papaya::approx
