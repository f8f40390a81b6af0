// The whole run, where the record of single calls does not reach back to its beginning.
#include "base/mpi_name.hpp"
#include "profiler/report/json/values.hpp"

namespace papaya::report {
namespace {

Json to_object(const NodeTally& tally) {
  return {{"calls", tally.calls},
          {"worst_us", microseconds(tally.worst_ns)},
          {"most_us", microseconds(tally.most_ns)},
          {"waiting_seconds", seconds(tally.waiting_ns)}};
}

Json to_array(const std::vector<WholeRun::Last>& ranks, std::size_t most) {
  Json array = Json::array();
  for (const WholeRun::Last& last : ranks) {
    if (array.size() == most) break;
    array.push_back({{"rank", last.rank},
                     {"node", last.node},
                     {"times_last", last.times_last},
                     {"calls", last.calls},
                     {"caused_waiting_seconds", seconds(last.caused_ns)}});
  }
  return array;
}

}  // namespace

Json to_object(const WholeRun& whole, double share) {
  Json object = to_object(whole.all);
  object["given_up"] = whole.given_up;
  object["waiting_share"] = number(share);
  object["late_ranks"] = to_array(whole.last, whole.last.size());
  const auto list = [&](const char* name, const auto& items, auto&& describe) {
    Json array = Json::array();
    for (const auto& item : items) {
      array.push_back(to_object(item.tally));
      describe(array.back(), item);
    }
    object[name] = std::move(array);
  };
  list("call_sites", whole.sites, [](Json& row, const WholeRun::Site& site) {
    row["name"] = mpi_name(site.collective, Form::blocking);
    row["frames"] = to_array(site.frames);
    row["last"] = to_array(site.last, most_last_ranks);
  });
  list("sizes", whole.sizes, [](Json& row, const WholeRun::Size& size) {
    row["name"] = mpi_name(size.collective, Form::blocking);
    row["size"] = size_names[static_cast<std::size_t>(size.size_class)];
  });
  list("communicators", whole.communicators,
       [](Json& row, const WholeRun::Communicator& one) { row["name"] = one.name; });
  return object;
}

}  // namespace papaya::report
