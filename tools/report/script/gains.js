// What would make the run shorter: quicker ranks, better algorithms. And the phases of the program.

// What the run would be shorter by, beside a bar: that part of the run.
const gainColumns = (gain) => [
  {title: "shorter by", cell: (row) => gain(row) === null ? "-" : seconds(gain(row))},
  {title: "of the run", cell: (row) => gain(row) === null || gain(row) < 0 ? "-" : shareBar(ratio(gain(row), report.run_seconds), true)},
  {title: "would take", cell: (row) => gain(row) === null ? "-" : seconds(report.run_seconds - gain(row))}];

// Lateness that costs less than this part of itself relieves the others.
const STRONG_RELIEF = 0.4;

function fillWhatIf() {
  const whatIf = report.what_if;
  const unknown = report.ranks_share_cores && report.waiting_share >= 0.01 ? report.what_if_unknown : "";
  byId("what-if-box").hidden = whatIf === null && unknown === "";
  byId("what-if-unknown").textContent = unknown === "" ? "" : `Not foretold: ${unknown}`;
  byId("what-if-relieved").textContent = "";
  if (whatIf === null) return unknown !== "";
  const rows = [{text: "all ranks", chosen: null, run_seconds: whatIf.all_run_seconds, served: whatIf.all_with_algorithm},
    ...whatIf.ranks.map((one) => ({text: `rank ${one.rank} alone`, chosen: {rank: one.rank}, run_seconds: one.run_seconds})),
    ...whatIf.call_sites.map((one) => ({text: `all, before ${siteText(report.call_sites[one.call_site])}`, chosen: {site: one.call_site},
      run_seconds: one.run_seconds, served: one.with_algorithm}))];
  const isBetter = (row) => row.served !== undefined && row.served.algorithm !== "native";
  fillTable(byId("what-if"), [{title: "quicker", left: true, words: true, cell: (row) => row.text}, ...gainColumns((row) => row.run_seconds),
    {title: "with an algorithm", cell: (row) => isBetter(row) ? seconds(report.run_seconds - row.served.run_seconds) : "-"},
    {title: "which", left: true, cell: (row) => isBetter(row) ? element("code", {}, row.served.algorithm) : row.served ? "native" : "-"}],
  rows, "What quicker ranks would bring", (row) => row.chosen);
  byId("what-if-relieved").textContent = whatIf.relieved.filter((one) => one.cost_share < STRONG_RELIEF).map((one) =>
    `Before ${siteText(report.call_sites[one.call_site])} a rank computes ${time(one.lateness_us)} longer than the others ${count(one.late_calls)} times, ` +
    `but only ${Math.round(100 * one.cost_share)} % of that makes these calls later: the others compute shorter then.`).join(" ");
  return true;
}

const bestOf = (savings) => savings.candidates.find((one) => one.algorithm === savings.best);

function fillSavings() {
  const {savings} = report;
  const sites = report.call_sites.map((site, number) => ({site, number, savings: site.savings}))
    .filter((row) => row.savings !== null && row.savings !== undefined && row.savings.no_excess.rank_seconds > 0);
  byId("savings-box").hidden = savings === null;
  if (savings === null) return false;
  const rows = [{text: "no excess at all, the limit", ...savings.no_excess},
    ...savings.candidates.map((one) => ({text: one.algorithm, ...one}))];
  fillTable(byId("savings"), [{title: "algorithm", left: true, cell: (row) => row.text}, ...gainColumns((row) => row.run_seconds),
    {title: "rank time saved", cell: (row) => seconds(row.rank_seconds)}], rows, "What better algorithms would bring");
  byId("savings-lead").textContent = `Of ${plural(savings.calls, "call", "calls")} replayed, ${count(savings.open_calls)} are MPI's own though papaya has ` +
    `an algorithm.${savings.best === "native" ? " None of papaya's saves anything: MPI's own is best here." : ""}`;
  byId("site-savings-box").hidden = sites.length === 0;
  showMore(byId("site-savings-all"), () => sites, SITES_AT_FIRST, "call sites", (shown) => fillTable(byId("site-savings"), [
    {title: "call site", left: true, words: true, cell: (row) => siteText(row.site)},
    {title: "best algorithm", left: true, cell: (row) => row.savings.best === null ? "-" : element("code", {}, row.savings.best)},
    ...gainColumns((row) => bestOf(row.savings)?.run_seconds ?? null).slice(0, 2),
    {title: "rank time saved", cell: (row) => bestOf(row.savings) ? seconds(bestOf(row.savings).rank_seconds) : "-"},
    {title: "with no excess", cell: (row) => seconds(row.savings.no_excess.rank_seconds)}], shown, "What better algorithms would bring, by call site",
  (row) => ({site: row.number})), (row) => row.number === selection.site);
  return true;
}

function fillGains() {
  const has = [fillWhatIf(), fillSavings()];
  byId("gains").hidden = !has.includes(true);
}

function fillPhases() {
  byId("phases").hidden = report.phases.length === 0;
  fillTable(byId("phase-table"), [
    {title: "phase", left: true, words: true, cell: (phase) => phase.name || "(none)"},
    {title: "waiting", cell: (phase) => seconds(phase.waiting_seconds)},
    {title: "of all waiting", cell: (phase) => shareBar(ratio(phase.waiting_seconds ?? 0, report.waiting_seconds))},
    {title: "in collectives", cell: (phase) => seconds(phase.seconds)},
    {title: "excess", cell: (phase) => seconds(phase.excess_seconds)},
    {title: "calls", cell: (phase) => count(phase.calls)},
    {title: "longest wait", cell: (phase) => time(phase.worst_us)}], report.phases, "Phases of the program, most waiting first",
  (phase) => ({phase: phase.name}));
}
