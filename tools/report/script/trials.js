// What PAPAYA_ADAPT has tried while the job ran, what serves since, and when that changed.

const TRIED_STATES = {kept: "", slower: "dropped", cannot_serve: "cannot serve", not_measured: "not measured"};

// A line for each: its name, a bar of what a call took in the last trial, and that time. The quickest of those kept first.
function triedLines(trial) {
  if (trial.tried.length === 0) return "nothing";
  const longest = Math.max(...trial.tried.map((one) => one.median_us ?? 0));
  const kept = (one) => one.state === "kept" && one.median_us !== null;
  const order = [...trial.tried].sort((a, b) => kept(b) - kept(a) || (a.median_us ?? Infinity) - (b.median_us ?? Infinity));
  return element("ul", {class: "tried"}, order.map((one) => element("li", {class: kept(one) ? null : "dropped"},
    element(one.algorithm === trial.algorithm ? "b" : "span", {}, one.algorithm),
    element("i", {part: ratio(one.median_us ?? 0, longest), "aria-hidden": "true"}),
    element("span", {}, one.median_us === null ? TRIED_STATES[one.state] : `${time(one.median_us)}${kept(one) ? "" : `, ${TRIED_STATES[one.state]}`}`))));
}

// "persistent, rank 3 late".
function arrivalsText(arrivals) {
  return arrivals.straggler === null ? arrivals.pattern : `${arrivals.pattern}, rank ${count(arrivals.straggler)} late`;
}

// Of what serves and of how the ranks arrive, in the order of time.
function changesOf(trials) {
  const ofAlgorithms = trials.flatMap((trial) => trial.last_changes.map((change) => ({...trial, ...change,
    texts: [change.from, change.to].map((one) => element("code", {}, one))})));
  const ofArrivals = trials.flatMap((trial) => trial.last_arrivals.map((arrivals, i) => ({...trial, ...arrivals,
    texts: [i === 0 ? "" : arrivalsText(trial.last_arrivals[i - 1]), arrivalsText(arrivals)]})));
  return [...ofAlgorithms, ...ofArrivals].sort((a, b) => a.seconds_after_init - b.seconds_after_init);
}

// "main (solve.c:88)", of calls of one place.
function trialSite(trial) {
  return trial.call_site.length === 0 ? "" : frameText(trial.call_site[0]);
}

function fillTrials() {
  const all = report.trials;
  byId("trials").hidden = all.length === 0;
  if (all.length === 0) return;
  const call = {title: "call", left: true, cell: (trial) => trial.name};
  const sizes = {title: "bytes", left: true, cell: (trial) => trial.most_bytes === null ? "-" : `up to ${bytes(trial.most_bytes)}`};
  showMore(byId("trials-all"), () => all, SITES_AT_FIRST, "trials", (rows) => fillTable(byId("trials-table"), [
    call, sizes,
    {title: "tried", left: true, isWide: true, cell: triedLines},
    {title: "serves now", left: true, cell: (trial) => element("code", {}, trial.algorithm)},
    {title: "ranks arrive", left: true, cell: (trial) => trial.last_arrivals.length === 0 ? "-" : arrivalsText(trial.last_arrivals.at(-1))},
    {title: "calls", cell: (trial) => count(trial.calls)},
    {title: "trials", cell: (trial) => count(trial.trials)},
    {title: "lost by trying", cell: (trial) => seconds(trial.lost_seconds)},
    {title: "call site", left: true, cell: trialSite},
    {title: "on", left: true, cell: (trial) => trial.communicator}], rows, "What was tried, most calls first"));
  const changes = changesOf(all);
  byId("trial-changes-box").hidden = changes.length === 0;
  fillTable(byId("trial-changes"), [
    {title: "at", left: true, cell: (change) => seconds(change.seconds_after_init)}, call, sizes,
    {title: "from", left: true, cell: (change) => change.texts[0]},
    {title: "to", left: true, cell: (change) => change.texts[1]},
    {title: "after calls", cell: (change) => count(change.after_calls)},
    {title: "call site", left: true, cell: trialSite},
    {title: "on", left: true, cell: (change) => change.communicator}], changes, "Changes of what serves and of how the ranks arrive, in the order of time",
  (change) => ({at: change.seconds_after_init}));
}
