#include "profiler/analysis/call_sums.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "profiler/analysis/archive.hpp"
#include "profiler/record/waits.hpp"

namespace papaya::report {
namespace {

constexpr std::size_t most_pending = 32;

// Below this the clocks do not tell which of two arrivals, the later one at `time_ns`, was first.
double resolution_ns(const Clocks& clocks, std::size_t one_file, std::size_t other_file, double time_ns) {
  return std::max(tie_ns, clocks.error_between_ns(one_file, other_file, time_ns));
}

}  // namespace

CallOfSite call_of_site(const Run& run, const Clocks& clocks, const GroupCall& call, const Arrivals& arrivals,
                        Alpha& alpha) {
  const std::size_t late = arrivals.most_waited_for();
  const double alpha_ns = alpha.ns(arrivals.bytes, arrivals.is_across_nodes);
  return {call.group->id,
          call.group->size,
          call.group->members[call.sightings[late].member].rank,
          run.files[arrivals.files[late]].header.rank,
          arrivals.cluster.worst_ns,
          std::max(imbalanced_factor * alpha_ns, resolution_ns(clocks, arrivals.files[arrivals.order.first],
                                                               arrivals.files[late], arrivals.arrivals_ns[late]))};
}

CallSums::CallSums(const Run& run, const Clocks& clocks, std::size_t groups, const CallObserver& observe)
    : ranks(run.files.size()),
      communicators(groups),
      sites(run),
      phases(run),
      origins(run),
      waits(run.files.size()),
      path(run),
      alpha(run.files),
      run_(run),
      clocks_(clocks),
      observe_(observe) {}

void CallSums::add(const GroupCall& call) {
  not_compared.add(call);
  if (call.is_inside) {
    if (unfinished.size() < most_pending)
      unfinished.push_back(unfinished_call(run_, clocks_, call));
    else
      ++pending_left_out;
  }
  // Ranks that PAPAYA_RANKS leaves out are not missed.
  const std::uint64_t unknown = static_cast<std::uint64_t>(call.group->size) - call.group->members.size();
  if (call.match == Match::partial && unknown > run_.unwanted_ranks) ++partial_calls;
  if (call.is_compared()) add_arrivals(call);
}

void CallSums::add_arrivals(const GroupCall& call) {
  arrivals_.take(run_, call);
  const Arrivals& in = arrivals_;
  const Sighting& first = call.sightings.front();
  const std::size_t collective = index_of(static_cast<Collective>(first.collective));
  const auto size_class = static_cast<std::size_t>(size_class_of(in.bytes));
  CollectiveSums& sums = collectives[collective];
  CommunicatorSums& communicator = communicators[call.group_number];
  const double alpha_ns = alpha.ns(in.bytes, in.is_across_nodes);
  sums.cluster.add(in.cluster, alpha_ns);
  sums.cluster_by_size[size_class].add(in.cluster, alpha_ns);
  if (in.nodes_compared > 0) {
    const double node_alpha = alpha.ns(in.bytes, false);
    sums.node.add(in.node, node_alpha);
    sums.node_by_size[size_class].add(in.node, node_alpha);
  }
  ++compared_calls;
  ++communicator.compared;
  communicator.worst_ns += in.cluster.worst_ns;
  find_places(call);
  add_imbalance(call);
  add_last(collective);
  add_waits(sums, communicator);
  Sites::Site* const site = site_of(0);
  if (call.match == Match::complete && !call.is_inside) {
    replayed_parts += in.size();
    if (site != nullptr) site->replayed_excess_ns += in.excess_ns();
  }
  add_causes(collective);
  costly.add(run_, call, in);
  origins.add(call, in, is_left_);
  waits.add(static_cast<Collective>(first.collective), in);
  if (!is_left_) {
    path.add(call);
    relief.add(call, site != nullptr ? site->figures.number : ComparedCall::no_site, in.median_computed_ns);
  }
  if (observe_) observe(call, site);
}

// From where each rank makes the call: mostly all from one place.
void CallSums::find_places(const GroupCall& call) {
  sites_of_.clear();
  phases_of_.clear();
  all_sites_.clear();
  all_phases_.clear();
  const auto note = [](auto& all, auto one) {
    if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
  };
  for (const Sighting& sighting : call.sightings) {
    sites_of_.push_back(sites.number_of(sighting.file, sighting));
    phases_of_.push_back(&phases.of(sighting.file, sighting.phase));
    note(all_phases_, phases_of_.back());
    if (sites_of_.back() != ComparedCall::no_site) note(all_sites_, sites_of_.back());
  }
}

// Of each place from where a rank makes the call.
void CallSums::add_imbalance(const GroupCall& call) {
  const double worst_ns = arrivals_.cluster.worst_ns;
  for (PhaseFigures* const phase : all_phases_) {
    ++phase->compared;
    phase->worst_ns += worst_ns;
  }
  if (all_sites_.empty()) return;
  const CallOfSite of_site = call_of_site(run_, clocks_, call, arrivals_, alpha);
  for (const std::size_t number : all_sites_) {
    Sites::Site& site = sites.at(number);
    ++site.figures.compared;
    site.figures.worst_ns += worst_ns;
    site.means.add(of_site);
  }
}

// Who was last. A margin within the clocks' error decides nothing.
void CallSums::add_last(std::size_t collective) {
  const Arrivals& in = arrivals_;
  const auto [earliest, last, second] = in.order;
  for (std::size_t i = 0; i < in.size(); ++i) {
    RankSums& rank = ranks[in.files[i]];
    ++rank.compared;
    ++rank.compared_in[collective];
    rank.late_ns += in.arrivals_ns[i] - in.arrivals_ns[earliest];
  }
  const double last_ns = in.arrivals_ns[last];
  if (last_ns - in.arrivals_ns[second] > resolution_ns(clocks_, in.files[last], in.files[second], last_ns)) {
    ++ranks[in.files[last]].times_last;
    ++ranks[in.files[last]].times_last_in[collective];
    if (Sites::Site* const site = site_of(last); site != nullptr) ++site->last[run_.files[in.files[last]].header.rank];
  }
}

void CallSums::add_waits(CollectiveSums& sums, CommunicatorSums& communicator) {
  const Arrivals& in = arrivals_;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const double wait = in.waits_ns[i];
    PhaseFigures& phase = *phases_of_[i];
    Sites::Site* const site = site_of(i);
    ranks[in.files[i]].waited_ns += wait;
    sums.waiting_ns += wait;
    communicator.waiting_ns += wait;
    waiting_ns += wait;
    phase.waiting_ns += wait;
    if (site != nullptr) site->figures.waiting_ns += wait;
    if (std::isnan(in.exits_ns[i])) continue;
    const double inside = in.exits_ns[i] - in.arrivals_ns[i];
    sums.inside_ns.add(inside);
    sums.excess_ns.add(inside - wait);
    phase.excess_ns += inside - wait;
    if (site != nullptr) site->figures.excess_ns += inside - wait;
  }
}

void CallSums::add_causes(std::size_t collective) {
  const Arrivals& in = arrivals_;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in.waiters[i] == 0) continue;
    RankSums& rank = ranks[in.files[i]];
    rank.caused_ns += in.caused_ns[i];
    rank.caused_ns_in[collective] += in.caused_ns[i];
    delays.add(in.files[i], collective, in.longest_ns[i]);
  }
}

void CallSums::observe(const GroupCall& call, const Sites::Site* site) {
  const Arrivals& in = arrivals_;
  const Sighting& first = call.sightings.front();
  ComparedCall compared{.communicator_id = call.group->id,
                        .call = call.call,
                        .collective = static_cast<Collective>(first.collective),
                        .algorithm = first.algorithm,
                        .bytes = in.bytes,
                        .communicator = call.group->name,
                        .phase = phases.of(in.files[0], first.phase).name,
                        .site = site != nullptr ? site->figures.number : ComparedCall::no_site,
                        .files = in.files,
                        .arrivals_ns = in.arrivals_ns,
                        .waits_ns = in.waits_ns,
                        .caused_ns = in.caused_ns,
                        .exits_ns = in.exits_ns,
                        .first_ns = in.arrivals_ns[in.order.first],
                        .last = in.order.last,
                        .cluster = in.cluster,
                        .cluster_alpha_ns = alpha.ns(in.bytes, in.is_across_nodes),
                        .has_node = in.nodes_compared > 0,
                        .node = in.node};
  if (compared.has_node) compared.node_alpha_ns = alpha.ns(in.bytes, false);
  observe_(compared);
}

void CallSums::merge(CallSums&& next) {
  compared_calls += next.compared_calls;
  replayed_parts += next.replayed_parts;
  waiting_ns += next.waiting_ns;
  for (std::size_t c = 0; c < collectives.size(); ++c) collectives[c].merge(next.collectives[c]);
  for (std::size_t f = 0; f < ranks.size(); ++f) {
    RankSums& own = ranks[f];
    const RankSums& other = next.ranks[f];
    own.compared += other.compared;
    own.times_last += other.times_last;
    own.late_ns += other.late_ns;
    own.waited_ns += other.waited_ns;
    own.caused_ns += other.caused_ns;
    for (std::size_t c = 0; c < collective_count; ++c) {
      own.compared_in[c] += other.compared_in[c];
      own.times_last_in[c] += other.times_last_in[c];
      own.caused_ns_in[c] += other.caused_ns_in[c];
    }
  }
  for (std::size_t g = 0; g < communicators.size(); ++g) {
    communicators[g].compared += next.communicators[g].compared;
    communicators[g].worst_ns += next.communicators[g].worst_ns;
    communicators[g].waiting_ns += next.communicators[g].waiting_ns;
  }
  relief.merge(next.relief, sites.merge(next.sites));
  phases.merge(next.phases);
  delays.merge(next.delays);
  costly.merge(std::move(next.costly));
  origins.merge(next.origins);
  waits.merge(next.waits);
  path.merge(next.path);
  alpha.merge(next.alpha);
  std::move(next.unfinished.begin(), next.unfinished.end(), std::back_inserter(unfinished));
  partial_calls += next.partial_calls;
  not_compared.merge(next.not_compared);
  pending_left_out += next.pending_left_out;
}

void CallSums::pack(Archive& archive) {
  archive(compared_calls, replayed_parts, waiting_ns, collectives, ranks, communicators, sites, phases, delays, costly,
          origins, waits, path, relief, alpha, unfinished, partial_calls, not_compared, pending_left_out);
}

}  // namespace papaya::report
