// How old are results of weakly consistent collectives, and what do they save?

const chosenWeak = () => report.weak_collectives[Number(byId("weak-choice").value)];
const weakText = (one) => `${one.name}, ${one.algorithm}${one.parameters ? `, ${one.parameters}` : ""}`;
const weakColumns = [
  {title: "calls", cell: (one) => count(one.calls)},
  {title: "time", cell: (one) => seconds(one.seconds)},
  {title: "waited", cell: (one) => seconds(one.waited_seconds)},
  {title: "calls old", cell: (one) => one.staleness === null ? "-" : one.staleness.toFixed(2)},
  {title: "at most", cell: (one) => one.staleness === null ? "-" : count(one.most_staleness)},
  {title: "took part", cell: (one) => share(one.share)},
  {title: "saved", cell: (one) => seconds(one.saved_seconds)}];

function drawWeakAges(one) {
  const total = one.ages.reduce((sum, age) => sum + age.calls, 0);
  draw("weak-ages", `Age of the results of ${weakText(one)}: ${plural(total, "call", "calls")} in the record`, {
    type: "bar",
    data: {labels: one.ages.map((age) => age.from === age.to ? `${age.from}` : `${age.from}-${age.to}`),
      datasets: [{label: "calls", data: one.ages.map((age) => age.calls), backgroundColor: colour("excess"), maxBarThickness: 48}]},
    options: {
      scales: {x: axis("calls that the oldest contribution is behind", {grid: {display: false}}), y: axis("calls", {ticks: {precision: 0}})},
      plugins: {legend: {display: false},
        tooltip: {callbacks: {title: ([item]) => `${item.label} behind`, label: (item) => `${plural(item.raw, "call", "calls")}, ${share(ratio(item.raw, total))}`}}},
    },
  });
}

function drawWeakWaits(one) {
  const isCompared = one.compared_calls > 0;
  const text = (value) => value === 0 ? "0" : seconds(value);
  const waits = (label, value, name) => ({label, data: one.ranks.map(value), backgroundColor: colour(name), maxBarThickness: 26});
  draw("weak-waits", `What each rank waited in ${weakText(one)}`, {
    type: "bar",
    data: {labels: one.ranks.map((rank) => rank.rank), datasets: isCompared
      ? [waits("waited", (rank) => rank.compared_waited_seconds ?? 0, "late"),
        waits("in consistent collectives", (rank) => rank.consistent_waiting_seconds ?? 0, "wait")]
      : [waits("waited", (rank) => rank.waited_seconds, "late")]},
    options: {
      interaction: {mode: "index", intersect: false},
      scales: {x: axis("rank", {grid: {display: false}, ticks: {autoSkipPadding: 6}}), y: axis("", {ticks: {maxTicksLimit: 6, callback: text}})},
      plugins: {legend: {position: "top", align: "start"},
        tooltip: {callbacks: {title: ([item]) => `Rank ${item.label}`, label: (item) => `${item.dataset.label}: ${text(item.raw)}`,
          footer: ([item]) => isCompared ? `others would have waited for it: ${text(one.ranks[item.dataIndex].caused_waiting_seconds)}` : ""}}},
    },
  });
}

function drawWeak() {
  const one = chosenWeak();
  for (const id of ["weak-ages", "weak-waits"]) byId(id).parentElement.style.height = "17rem";
  byId("weak-ages").closest("figure").hidden = one.ages.length === 0;
  if (one.ages.length > 0) drawWeakAges(one);
  drawWeakWaits(one);
}

function showWeak() {
  const one = chosenWeak();
  drawWeak();
  const place = (site) => frameText(site.frames[0]) + (site.ended.length > 0 ? `, waited for at ${frameText(site.ended[0])}` : "");
  const late = (site) => site.late_ranks.length === 0 ? "-"
    : `rank ${site.late_ranks[0].rank}, ${share(ratio(site.late_ranks[0].caused_waiting_seconds, site.consistent_waiting_seconds))}`;
  const sites = one.call_sites.filter((site) => site.frames.length > 0);
  byId("weak-sites-box").hidden = sites.length === 0;
  const showSites = (rows) => fillTable(byId("weak-sites"), [{title: "from", left: true, words: true, cell: place}, ...weakColumns,
    {title: "late", left: true, cell: late}], rows, "Call sites, most time first");
  showMore(byId("weak-sites-all"), () => sites, SITES_AT_FIRST, "call sites", showSites);
  byId("weak-phases-box").hidden = one.phases.length === 0;
  fillTable(byId("weak-phases"), [{title: "phase", left: true, words: true, cell: (phase) => phase.name || "(none)"}, ...weakColumns], one.phases,
    "Phases of the program, most time first");
}

function setUpWeak() {
  const all = report.weak_collectives;
  if (all.length === 0) {
    byId("weak").hidden = true;
    return;
  }
  fillTable(byId("weak-table"), [
    {title: "collective", left: true, cell: (one) => one.name},
    {title: "algorithm", left: true, cell: (one) => element("code", {}, one.algorithm)},
    {title: "parameters", left: true, cell: (one) => one.parameters}, ...weakColumns], all, "Weakly consistent collectives, summed over ranks");
  byId("weak-choice").replaceChildren(...all.map((one, i) => element("option", {value: i}, weakText(one))));
  byId("weak-choice").closest(".controls").hidden = all.length === 1;
  byId("weak-choice").addEventListener("change", showWeak);
  showWeak();
}
