#include "interpose/trial_sites.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstddef>

#include "interpose/site_names.hpp"
#include "profiler/record/recorder.hpp"

namespace papaya::trials::sites {

namespace {

using tuning::SitePeriod;

// Of the tuning file.
SiteNames& site_names(const Job& job) {
  static auto& names = *new SiteNames([places = job.selection.sites()](const tuning::NamedSite& site) {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < places.size(); ++i)
      if (tuning::is_site(places[i], site)) bits |= std::uint64_t{1} << i;
    return bits;
  });
  return names;  // never destroyed: calls may come from exit handlers
}

// Which call sites that rules for this collective are for a site is.
SitePeriod::Named named_in(const Communicator& state, Collective collective, const CallFacts& facts) {
  const std::uint64_t sites = selection_for(facts.job, state, collective, Form::blocking).sites_of(collective);
  Recorder& recorder = facts.records.recorder;
  if (sites == 0 || !recorder.is_open()) return [](std::uint64_t) { return std::uint64_t{0}; };
  return [sites, &job = facts.job, &recorder](std::uint64_t number) {
    return site_names(job).at(number, recorder.header()) & sites;
  };
}

bool has_several_unnamed(const SitePeriod& sites) noexcept {
  std::uint64_t first = 0;
  for (std::int64_t i = 0; i < sites.period(); ++i) {
    const SitePeriod::Place& place = sites.place_of(i);
    if (place.named != 0) continue;
    if (first != 0 && place.mark != first) return true;
    first = place.mark;
  }
  return false;
}

bool needs_all(const Class& of) noexcept {
  return of.alternates || of.sites.notes_all();
}

// The choice for the last call holds for the next one if another part has made the same.
void go_to(Communicator& state, Class& of, One& next) noexcept {
  next.trial.note_all(needs_all(of));
  if (&next == of.current) return;
  of.others += of.current->trial.calls() - next.trial.calls();
  of.current = &next;
  LastChoice& last = state.last[index_of(of.collective)];
  if (last.trial == nullptr || &last.trial->of != &of) return;
  if (last.plan != nullptr && next.has_choice() && next.candidates[next.trial.candidate()] == last.plan->rule)
    last.trial = &next;
  else
    last = {};
}

One& next_part(const Class& of) noexcept {
  return of.is_split ? *of.by_place[static_cast<std::size_t>(of.calls() % of.sites.period())] : of.whole();
}

}  // namespace

bool have_news(Communicator& state, std::span<Class* const> classes, const CallFacts& facts) {
  return std::any_of(classes.begin(), classes.end(), [&](const Class* one) {
    return one->sites.has_news(one->calls(), named_in(state, one->collective, facts));
  });
}

void exchange(Communicator& state, std::span<Class* const> classes, const Combine& combined, const CallFacts& facts) {
  std::vector<std::uint64_t> mine;
  for (const Class* const one : classes) {
    const std::vector<std::uint64_t> bits = one->sites.bits(one->calls(), named_in(state, one->collective, facts));
    mine.insert(mine.end(), bits.begin(), bits.end());
  }
  const std::vector<std::uint64_t> bits = combined(mine, MPI_BOR);
  const std::size_t share = bits.size() / classes.size();
  const auto bits_of = [&](std::size_t i) { return std::span(bits).subspan(i * share, share); };
  mine.clear();
  std::vector<std::size_t> begins{0};
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const std::vector<std::uint64_t> marks = classes[i]->sites.marks(classes[i]->calls(), bits_of(i), state.rank);
    mine.insert(mine.end(), marks.begin(), marks.end());
    begins.push_back(mine.size());
  }
  const std::vector<std::uint64_t> marks = mine.empty() ? mine : combined(mine, MPI_BXOR);
  for (std::size_t i = 0; i < classes.size(); ++i)
    classes[i]->sites.take(classes[i]->calls(), bits_of(i),
                           std::span(marks).subspan(begins[i], begins[i + 1] - begins[i]),
                           named_in(state, classes[i]->collective, facts));
}

std::vector<One*> follow(Communicator& state, Class& of, const CallFacts& facts) {
  const SitePeriod& sites = of.sites;
  const bool is_divided = of.whole().has_choice() && of.whole().trial.trials() > 0 && has_several_unnamed(sites);
  std::vector<One*> made;
  of.is_split = of.alternates = false;
  for (std::int64_t i = 0; i < sites.period(); ++i) {
    const SitePeriod::Place& place = sites.place_of(i);
    One* part = &of.whole();
    if (place.named != 0 || is_divided) {
      bool is_new = false;
      part = &part_of(state, of, {place.named != 0 ? 0 : place.mark, place.named}, facts.job, is_new);
      if (is_new) made.push_back(part);
      if (part != &of.whole()) part->call_site = sites.site_of(i);
    }
    of.by_place[static_cast<std::size_t>(i)] = part;
    of.is_split = of.is_split || part != &of.whole();
    of.alternates = of.alternates || part != of.by_place[0];
  }
  go_to(state, of, next_part(of));
  return made;
}

bool note(Class& of, std::uint64_t call_site) noexcept {
  const std::int64_t call = of.calls();
  of.sites.note(call, call_site);
  return !of.is_split || of.sites.site_of(call) == call_site;
}

void move_on(Communicator& state, Class& of) noexcept {
  go_to(state, of, next_part(of));
}

}  // namespace papaya::trials::sites
