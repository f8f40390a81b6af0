// Who is late, and at which calls most.

// What the others lose waiting for a rank in the part of the run and at the call site in sight, in seconds.
function lostInSight(rank) {
  const row = fileOf.get(rank);
  if (row === undefined || !heatMap.levels.caused) return 0;
  const [first, last] = isZoomed() ? [binOf(selection.from), binOf(selection.to - 1e-9)]
    : selection.at !== null ? [binOf(selection.at), binOf(selection.at)] : [0, heat.bins - 1];
  const {levels, topUs} = lossesInSight();
  let us = 0;
  for (let bin = first; bin <= last; ++bin) {
    const level = levels[row * heat.bins + bin];
    if (level > 1) us += heat.floor_us * (topUs / heat.floor_us) ** ((level - 1) / 254);
  }
  return us / 1e6;
}

function fillRanks() {
  const rows = report.late_ranks.filter((rank) => rank.calls > 0);
  if (rows.length === 0) {
    byId("who").hidden = true;
    return;
  }
  const columns = [
    {title: "rank", left: true, cell: (rank) => `${rank.rank}`},
    ...(isAcrossNodes ? [{title: "node", left: true, cell: (rank) => `${rank.node}`}] : []),
    {title: "waiting caused", cell: (rank) => seconds(rank.caused_waiting_seconds)},
    {title: "of all waiting", cell: (rank) => shareBar(ratio(rank.caused_waiting_seconds, report.waiting_seconds))},
    {title: "began here", cell: (rank) => seconds(rank.began_waiting_seconds)},
    {title: "longest wait for it", cell: (rank) => time(rank.longest_delay_us)},
    {title: "last", cell: (rank) => count(rank.times_last)},
    {title: "of its calls", cell: (rank) => shareBar(ratio(rank.times_last, rank.calls), true)},
    {title: "lateness", cell: (rank) => time(rank.late_us)},
    {title: "it waited", cell: (rank) => seconds(rank.waited_seconds)}];
  const hasSight = () => isZoomed() || selection.at !== null || chosenLosses() !== null;
  const sight = {title: "caused in sight", cell: (rank) => {
    const lost = lostInSight(rank.rank);
    return lost === 0 ? "-" : `about ${seconds(lost)}`;
  }};
  const waitedSo = (rank) => rank.waits[selection.wait] ?? 0;
  const again = showMore(byId("ranks-all"), () => {
    if (!hasSight()) return selection.wait === null ? rows : [...rows].sort((a, b) => waitedSo(b) - waitedSo(a));
    const lost = new Map(rows.map((rank) => [rank, lostInSight(rank.rank)]));
    return [...rows].sort((a, b) => lost.get(b) - lost.get(a));
  }, RANKS_AT_FIRST, "ranks", (shown) => fillTable(byId("ranks"),
    [columns[0], ...(hasSight() ? [sight] : []),
      ...(selection.wait === null ? [] : [{title: `waited ${WAITS[selection.wait]}`, cell: (rank) => seconds(waitedSo(rank))}]), ...columns.slice(1)], shown, "Late ranks", (rank) => ({rank: rank.rank})),
  (rank) => rank.rank === selection.rank);
  follow(again);
}

const siteKey = (name, frames) => frames.length === 0 ? "" : `${name} ${frames[0].module} ${frames[0].offset}`;
const siteNumbers = new Map(report.call_sites.map((site, i) => [siteKey(site.name, site.frames), i]));
siteNumbers.delete("");

function fillCostlyCalls() {
  const rows = report.costly_calls;
  byId("costly-title").hidden = rows.length === 0;
  if (rows.length === 0) return;
  fillTable(byId("costly"), [
    {title: "at", left: true, cell: (call) => seconds(call.at_seconds)},
    {title: "call", left: true, cell: (call) => call.name},
    {title: "waiting", cell: (call) => seconds(call.waiting_seconds)},
    {title: "of all waiting", cell: (call) => shareBar(ratio(call.waiting_seconds, report.waiting_seconds))},
    {title: "longest wait", cell: (call) => time(call.longest_delay_us)},
    {title: "for rank", cell: (call) => `${call.rank}`},
    {title: "from", left: true, cell: (call) => call.call_site.length > 0 ? frameText(call.call_site[0]) : ""},
    {title: "on", left: true, cell: (call) => call.communicator},
    {title: "number", cell: (call) => count(call.call)}], rows, "Costliest calls",
  (call) => ({at: call.at_seconds, rank: call.rank, site: siteNumbers.get(siteKey(call.name, call.call_site)) ?? null}));
}
