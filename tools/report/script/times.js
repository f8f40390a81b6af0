// Where does the time of each rank go?

// Parts of a rank's time, in the order of its bar; they sum to the run.
const TIME_PARTS = [
  ["before", "MPI_Init", (rank) => rank.time.before_seconds],
  ["computing", "computing", (rank) => rank.time.computing_seconds],
  ["waiting", "waiting for late ranks", (rank) => Math.min(rank.waited_seconds, rank.time.collectives_seconds)],
  ["collectives", "rest of blocking collectives", (rank) => Math.max(0, rank.time.collectives_seconds - rank.waited_seconds)],
  ["messages", "messages and their completion", (rank) => rank.time.point_to_point_seconds + rank.time.completion_seconds],
  ["other", "other MPI", (rank) => rank.time.starting_seconds + rank.time.one_sided_seconds + rank.time.management_seconds +
    rank.time.io_seconds + rank.time.neighbourhood_seconds],
  ["finalize", "MPI_Finalize", (rank) => rank.time.finalize_seconds]];

function fillTimes() {
  const ranks = report.late_ranks.filter((rank) => rank.time !== null);
  if (ranks.length === 0) return;
  byId("time").hidden = false;
  const parts = TIME_PARTS.filter(([, , of]) => ranks.some((rank) => of(rank) >= 0.0005 * report.run_seconds));
  byId("time-key").replaceChildren(...parts.map(([kind, name]) =>
    element("li", {}, element("i", {class: kind, "aria-hidden": "true"}), name)));
  const efficiency = report.efficiency;
  if (efficiency !== null)
    byId("efficiency").textContent = `Parallel efficiency ${efficiency.parallel.toFixed(2)} = load balance ` +
      `${efficiency.load_balance.toFixed(2)} × communication efficiency ${efficiency.communication.toFixed(2)}.`;
  const bar = (rank) => element("div", {class: "parts", role: "img",
    "aria-label": parts.map(([, name, of]) => `${name} ${share(ratio(of(rank), report.run_seconds))}`).join(", ")},
  parts.map(([kind, name, of]) => element("i", {class: kind, part: ratio(of(rank), report.run_seconds),
    title: `${name}: ${seconds(of(rank))}`})));
  const columns = [
    {title: "rank", left: true, cell: (rank) => `${rank.rank}`},
    ...(isAcrossNodes ? [{title: "node", left: true, cell: (rank) => `${rank.node}`}] : []),
    {title: `of ${seconds(report.run_seconds)}`, left: true, isWide: true, cell: bar},
    ...parts.map(([kind, , of]) => ({title: kind === "before" ? "Init" : kind === "finalize" ? "Finalize" : kind, cell: (rank) => seconds(of(rank))}))];
  const order = () => document.querySelector("input[name=times]:checked").value;
  const sorted = () => [...ranks].sort((a, b) => order() === "rank" ? a.rank - b.rank
    : b.time.computing_seconds - a.time.computing_seconds);
  let shown = RANKS_AT_FIRST;
  const show = (most) => {
    shown = most;
    fillTable(byId("times"), columns, sorted().slice(0, most), "Time of each rank");
  };
  showMore(byId("times-all"), ranks.length, RANKS_AT_FIRST, "ranks", show);
  for (const input of document.querySelectorAll("input[name=times]")) input.addEventListener("change", () => show(shown));
  byId("functions-title").hidden = report.functions.length === 0;
  if (report.functions.length > 0)
    fillTable(byId("functions"), [
      {title: "function", left: true, cell: (one) => one.name},
      {title: "calls", cell: (one) => count(one.calls)},
      {title: "time", cell: (one) => seconds(one.seconds)},
      {title: "per call", cell: (one) => seconds(one.seconds / one.calls)},
      {title: "most on rank", cell: (one) => `${one.most_rank}`},
      {title: "there", cell: (one) => seconds(one.most_seconds)}],
    report.functions, "Functions other than blocking collectives");
}
