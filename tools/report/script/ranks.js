// Who is late, and at which calls most.

function fillRanks() {
  const rows = report.late_ranks.filter((rank) => rank.calls > 0);
  if (rows.length === 0) {
    byId("who").hidden = true;
    return;
  }
  const columns = [
    {title: "rank", left: true, cell: (rank) => `${rank.rank}`},
    ...(isAcrossNodes ? [{title: "node", left: true, cell: (rank) => `${rank.node}`}] : []),
    {title: "last", cell: (rank) => count(rank.times_last)},
    {title: "of its calls", cell: (rank) => shareBar(ratio(rank.times_last, rank.calls), true)},
    {title: "lateness", cell: (rank) => time(rank.late_us)},
    {title: "longest wait for it", cell: (rank) => time(rank.longest_delay_us)},
    {title: "it waited", cell: (rank) => seconds(rank.waited_seconds)},
    {title: "began here", cell: (rank) => seconds(rank.began_waiting_seconds)},
    {title: "waiting caused", cell: (rank) => seconds(rank.caused_waiting_seconds)},
    {title: "of all waiting", cell: (rank) => shareBar(ratio(rank.caused_waiting_seconds, report.waiting_seconds))}];
  showMore(byId("ranks-all"), rows.length, RANKS_AT_FIRST, "ranks",
    (most) => fillTable(byId("ranks"), columns, rows.slice(0, most), "Late ranks"));
}

function fillCostlyCalls() {
  const rows = report.costly_calls;
  byId("costly-title").hidden = rows.length === 0;
  if (rows.length === 0) return;
  fillTable(byId("costly"), [
    {title: "call", left: true, cell: (call) => call.name},
    {title: "number", cell: (call) => count(call.call)},
    {title: "at", cell: (call) => seconds(call.at_seconds)},
    {title: "longest wait", cell: (call) => time(call.longest_delay_us)},
    {title: "for rank", cell: (call) => `${call.rank}`},
    {title: "waiting", cell: (call) => seconds(call.waiting_seconds)},
    {title: "of all waiting", cell: (call) => shareBar(ratio(call.waiting_seconds, report.waiting_seconds))},
    {title: "from", left: true, cell: (call) => call.call_site.length > 0 ? frameText(call.call_site[0]) : ""},
    {title: "on", left: true, cell: (call) => call.communicator}], rows, "Costliest calls");
}
