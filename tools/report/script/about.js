// Algorithms, and the run.

function fillAlgorithms() {
  if (report.algorithms.length === 0) {
    byId("algorithms").hidden = true;
    return;
  }
  const totals = new Map();
  for (const row of report.algorithms) totals.set(row.collective, (totals.get(row.collective) ?? 0) + row.calls);
  fillTable(byId("algorithm-table"), [
    {title: "call", left: true, cell: (row) => row.collective},
    {title: "algorithm", left: true, cell: (row) => element("code", {}, row.algorithm)},
    {title: "calls", cell: (row) => count(row.calls)},
    {title: "of its calls", cell: (row) => shareBar(ratio(row.calls, totals.get(row.collective)), true)},
    {title: "why native", left: true, words: true, cell: (row) => row.reason}], report.algorithms, "Algorithms, calls summed over ranks");
}

function fillAbout() {
  const facts = [["Program", report.program], ["Command", report.command], ["MPI", report.mpi], ["papaya", report.papaya],
    ["Nodes", report.hosts.slice(0, 32).map((host) => `${host.host} (${ranksText(host.ranks)})`).join("; ") +
      (report.hosts.length > 32 ? `; and ${report.hosts.length - 32} more` : "")],
    ["Clocks", !isAcrossNodes ? "one node, one clock" : report.clock_error_us === null ? "those of the nodes were not compared"
      : `those of the nodes are known to within ${time(report.clock_error_us)}`],
    ["Events", `${count(report.events.kept)} of ${count(report.events.begun)} in the record`]];
  byId("facts").replaceChildren(...facts.filter(([, value]) => value).flatMap(([name, value]) =>
    [element("dt", {}, name), element("dd", {}, value)]));
  const communicators = report.communicators.filter((one) => one.calls > 0);
  byId("communicators-box").hidden = communicators.length === 0;
  fillTable(byId("communicators"), [
    {title: "name", left: true, words: true, cell: (one) => one.name}, {title: "ranks", cell: (one) => count(one.size)},
    {title: "calls", cell: (one) => count(one.calls)}, {title: "worst-case", cell: (one) => time(one.worst_us)},
    {title: "waiting", cell: (one) => one.compared_calls > 0 ? seconds(one.waiting_seconds) : "-"}], communicators.slice(0, 100),
    "Communicators, most waiting first");
  const settings = Object.entries(report.settings);
  byId("settings-box").hidden = settings.length === 0;
  fillTable(byId("settings"), [{title: "name", left: true, cell: ([name]) => element("code", {}, name)},
    {title: "value", left: true, words: true, cell: ([, value]) => element("code", {}, value)}], settings, "Settings");
}
