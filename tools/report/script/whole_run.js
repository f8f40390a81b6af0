// The whole run, where the record of single calls does not reach back to its beginning.

function fillWholeRun() {
  const whole = report.whole_run;
  if (report.events.kept >= report.events.begun || whole.calls === 0) return;
  byId("whole").hidden = false;
  byId("whole-lead").textContent = `The pictures and tables around show the last ${count(report.events.kept)} of ${count(report.events.begun)} calls ` +
    `(summed over ranks). While the run went on, its ranks compared ${count(whole.calls)} calls, each with the others of ${isAcrossNodes ? "its node" : "the node"}: ` +
    `the longest wait took ${time(whole.worst_us)} on average and ${time(whole.most_us)} at most.` +
    (whole.given_up > 0 ? ` ${count(whole.given_up)} more were not compared: some rank came too long after others, or did not record them.` : "");
  const waited = (row) => shareBar(ratio(row, whole.waiting_seconds));
  showMore(byId("whole-ranks-all"), () => whole.late_ranks, RANKS_AT_FIRST, "ranks",
    (rows) => fillTable(byId("whole-ranks"), [
      {title: "rank", left: true, cell: (rank) => `${rank.rank}`},
      ...(isAcrossNodes ? [{title: "node", left: true, cell: (rank) => `${rank.node}`}] : []),
      {title: "last", cell: (rank) => count(rank.times_last)},
      {title: "of calls", cell: (rank) => shareBar(ratio(rank.times_last, rank.calls), true)},
      {title: "waiting caused", cell: (rank) => seconds(rank.caused_waiting_seconds)},
      {title: "of all waiting", cell: (rank) => waited(rank.caused_waiting_seconds)}],
    rows, "Late ranks over the whole run", (rank) => ({rank: rank.rank})), (rank) => rank.rank === selection.rank);
  if (whole.call_sites.length === 0) {
    byId("whole-sites-title").hidden = true;
    return;
  }
  const lastOf = (site) => site.last.length === 0 ? "" : `rank ${site.last[0].rank}, last ${share(ratio(site.last[0].times_last, site.last[0].calls))}`;
  showMore(byId("whole-sites-all"), () => whole.call_sites, SITES_AT_FIRST, "call sites",
    (rows) => fillTable(byId("whole-sites"), [
      {title: "call", left: true, cell: (site) => site.name},
      {title: "from", left: true, cell: (site) => frameText(site.frames[0])},
      {title: "calls", cell: (site) => count(site.calls)},
      {title: "longest wait", cell: (site) => time(site.worst_us)},
      {title: "at most", cell: (site) => time(site.most_us)},
      {title: "waiting", cell: (site) => seconds(site.waiting_seconds)},
      {title: "of all waiting", cell: (site) => waited(site.waiting_seconds)},
      {title: "most waited for", left: true, cell: lastOf}],
    rows, "Call sites over the whole run", (site) => {
      const number = siteNumbers.get(siteKey(site.name, site.frames));
      return number === undefined ? null : {site: number};
    }));
}
