#include "profiler/analysis/sites.hpp"

#include <algorithm>

#include "base/mpi_name.hpp"
#include "profiler/analysis/archive.hpp"

namespace papaya::report {
namespace {

constexpr double least_phase = 0.01;  // of the time in phases, for one without calls to be worth a row

}  // namespace

Sites::Sites(const Run& run) : run_(run) {
  std::map<const CallSites*, std::uint32_t> numbers;
  for (const RankFile& file : run.files) {
    const auto [at, is_new] = numbers.try_emplace(file.call_sites.get(), static_cast<std::uint32_t>(numbers.size()));
    if (is_new) own_.emplace_back(file.call_sites->size());
    tables_.push_back(at->second);
  }
}

Sites::Site* Sites::of(std::size_t file, const trace::Event& event) {
  return event.call_site == 0 ? nullptr : &sites_[number_of(file, event.call_site, event.collective, event.form)];
}

// One that is not there yet, without its sums.
void Sites::add(const Key& key, const CallSiteFigures& of) {
  index_.emplace(key, sites_.size());
  CallSiteFigures& figures = sites_.emplace_back().figures;
  figures.number = sites_.size() - 1;
  figures.frames = of.frames;
  figures.collective = of.collective;
  figures.form = of.form;
  figures.name = of.name;
}

void Sites::number_as(const Sites& known) {
  std::vector<const Key*> keys(known.sites_.size());
  for (const auto& [key, number] : known.index_) keys[number] = &key;
  for (std::size_t number = 0; number < keys.size(); ++number) add(*keys[number], known.sites_[number].figures);
  own_ = known.own_;
}

std::vector<std::size_t> Sites::merge(const Sites& next) {
  std::vector<const Key*> keys(next.sites_.size());
  for (const auto& [key, number] : next.index_) keys[number] = &key;
  std::vector<std::size_t> numbers(keys.size());
  for (std::size_t number = 0; number < keys.size(); ++number) {
    if (index_.find(*keys[number]) == index_.end()) add(*keys[number], next.sites_[number].figures);
    numbers[number] = index_.at(*keys[number]);
    Site& own = sites_[numbers[number]];
    const Site& other = next.sites_[number];
    own.figures.calls += other.figures.calls;
    own.figures.bytes += other.figures.bytes;
    own.figures.largest_bytes = std::max(own.figures.largest_bytes, other.figures.largest_bytes);
    own.figures.ns += other.figures.ns;
    own.figures.compared += other.figures.compared;
    own.figures.worst_ns += other.figures.worst_ns;
    own.figures.waiting_ns += other.figures.waiting_ns;
    own.figures.excess_ns += other.figures.excess_ns;
    for (const auto& [rank, times] : other.last) own.last[rank] += times;
    own.means.merge(other.means);
    own.replayed_excess_ns += other.replayed_excess_ns;
  }
  for (std::size_t t = 0; t < own_.size(); ++t)
    for (std::size_t s = 0; s < own_[t].size(); ++s)
      for (const Own& one : next.own_[t][s])
        if (std::none_of(own_[t][s].begin(), own_[t][s].end(), [&](const Own& known) {
              return known.collective == one.collective && known.form == one.form;
            }))
          own_[t][s].push_back({one.collective, one.form, static_cast<std::uint32_t>(numbers[one.number])});
  return numbers;
}

void Sites::Site::pack(Archive& archive) {
  archive(figures.frames, figures.collective, figures.form, figures.name, figures.calls, figures.bytes,
          figures.largest_bytes, figures.ns, figures.compared, figures.worst_ns, figures.waiting_ns, figures.excess_ns,
          figures.number, last, means, replayed_excess_ns);
}

void Sites::pack(Archive& archive) {
  archive(index_, own_, sites_);
}

std::size_t Sites::number_of(std::size_t file, std::uint32_t call_site, std::uint8_t collective, std::uint8_t form) {
  std::vector<Own>& own = own_[tables_[file]][call_site - 1];
  for (const Own& one : own)
    if (one.collective == collective && one.form == form) return one.number;
  const std::vector<Frame>& frames = (*run_.files[file].call_sites)[call_site - 1];
  const auto [entry, is_new] = index_.try_emplace({frames, collective, form}, sites_.size());
  own.push_back({collective, form, static_cast<std::uint32_t>(entry->second)});
  if (!is_new) return entry->second;
  CallSiteFigures& figures = sites_.emplace_back().figures;
  figures.number = entry->second;
  figures.frames = frames_of(run_.files[file], call_site);
  figures.collective = static_cast<Collective>(collective);
  figures.form = static_cast<Form>(form);
  figures.name = mpi_name(figures.collective, figures.form);
  return entry->second;
}

std::vector<CallSiteFigures> Sites::take_figures() {
  std::vector<CallSiteFigures> all;
  for (Site& site : sites_) {
    CallSiteFigures& figures = site.figures;
    if (figures.compared > 0) figures.worst_ns /= static_cast<double>(figures.compared);
    for (const auto& [rank, times] : site.last) figures.last.push_back({rank, times});
    std::stable_sort(figures.last.begin(), figures.last.end(),
                     [](const auto& a, const auto& b) { return a.times > b.times; });
    all.push_back(std::move(figures));
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::tie(a.waiting_ns, a.ns) > std::tie(b.waiting_ns, b.ns);
  });
  return all;
}

Phases::Phases(const Run& run) : run_(run) {
  std::map<std::pair<const HeaderTexts*, std::uint64_t>, std::uint32_t> numbers;
  for (const RankFile& file : run.files) {
    const auto [at, is_new] =
        numbers.try_emplace({file.texts.get(), file.header.phase_count}, static_cast<std::uint32_t>(numbers.size()));
    tables_.push_back(at->second);
    if (!is_new) continue;
    std::vector<PhaseFigures*>& own = own_.emplace_back();
    for (std::uint64_t i = 0; i < file.header.phase_count; ++i) {
      const std::string name = clean_text(file.texts->phase_names[i]);
      own.push_back(&phases_[name]);
      own.back()->name = name;
    }
  }
}

// Weakly consistent collectives are timed elsewhere, and not by phase; nor is it known in which recording was off.
void Phases::measure(PhaseFigures& phase) const {
  std::vector<Useful> useful;
  bool is_known = true;
  for (std::size_t f = 0; f < run_.files.size(); ++f) {
    const RankFile& file = run_.files[f];
    const std::vector<PhaseFigures*>& own = own_[tables_[f]];
    std::uint64_t ticks = 0;
    double computing_ns = 0;
    // Names that read alike once they are fit to print are one phase.
    for (std::size_t number = 0; number < own.size(); ++number) {
      if (own[number] != &phase) continue;
      ticks += file.header.phase_times[number].ticks;
      phase.entered += file.header.phase_times[number].entered;
      computing_ns += computing_in_phase_ns(file, number);
    }
    if (ticks == 0) continue;
    phase.longest_ns = std::max(phase.longest_ns, static_cast<double>(ticks) * file.header.ns_per_tick);
    useful.push_back({computing_ns, file.header.node});
    is_known = is_known && file.header.timed_count != 0 && file.weak.rows.empty() && !was_switched_off(file.header);
  }
  phase.ranks = useful.size();
  if (is_known) phase.efficiency = efficiency_of(useful, phase.longest_ns);
}

void Phases::merge(const Phases& next) {
  for (const auto& [name, other] : next.phases_) {
    PhaseFigures& own = phases_.at(name);
    own.calls += other.calls;
    own.ns += other.ns;
    own.compared += other.compared;
    own.worst_ns += other.worst_ns;
    own.waiting_ns += other.waiting_ns;
    own.excess_ns += other.excess_ns;
  }
}

// Each process has the same ones.
void Phases::pack(Archive& archive) {
  for (auto& [name, phase] : phases_)
    archive(phase.calls, phase.ns, phase.compared, phase.worst_ns, phase.waiting_ns, phase.excess_ns);
}

std::vector<PhaseFigures> Phases::take_figures() {
  std::vector<PhaseFigures> all;
  double sum_ns = 0;
  for (auto& [name, phase] : phases_) {
    if (phase.compared > 0) phase.worst_ns /= static_cast<double>(phase.compared);
    measure(phase);
    sum_ns += phase.longest_ns;
  }
  for (auto& [name, phase] : phases_)
    if (phases_.size() > 1 && (phase.calls > 0 || phase.longest_ns > least_phase * sum_ns))
      all.push_back(std::move(phase));
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::tie(a.waiting_ns, a.ns) > std::tie(b.waiting_ns, b.ns);
  });
  return all;
}

std::vector<NamedFrame> frames_of(const RankFile& file, const trace::Event& event) {
  return frames_of(file, event.call_site);
}

void count_event(const Clocks& clocks, std::size_t file, const trace::Event& event, Sites& sites, Phases& phases) {
  const NodeClock& clock = clocks.of_file(file);
  const double ns = event.exit_ticks == 0 ? 0 : clock.ns(event.exit_ticks) - clock.ns(event.arrival_ticks);
  if (Sites::Site* const site = sites.of(file, event); site != nullptr) {
    ++site->figures.calls;
    site->figures.bytes += event.bytes;
    site->figures.largest_bytes = std::max(site->figures.largest_bytes, event.bytes);
    site->figures.ns += ns;
  }
  if (static_cast<Form>(event.form) != Form::blocking) return;
  PhaseFigures& phase = phases.of(file, event.phase);
  ++phase.calls;
  phase.ns += ns;
}

}  // namespace papaya::report
