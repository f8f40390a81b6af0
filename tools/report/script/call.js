// One call, rank by rank.

const current = {group: 0, call: 0};
const currentCall = () => pictures.groups[current.group].shown[current.call];

const groupText = (group) => group.call_site === null ? `${group.name}, no call site` : siteText(report.call_sites[group.call_site]);
const choiceText = (group) => `${groupText(group)}${group.shown[0].pending ? ", which never ended" : ""}`;

const timesOfCalls = new WeakMap();

// Its ranks: row, arrival, wait and exit in us, exit null where it never left.
function ranksOf(call) {
  if (!timesOfCalls.has(call)) {
    const {rows} = pictures.communicators[call.communicator];
    const times = floatsOf(call.times);
    timesOfCalls.set(call, rows.map((row, i) => ({row, arrival: times[i], wait: times[rows.length + i],
      exit: times[2 * rows.length + i] < 0 ? null : times[2 * rows.length + i], isLast: i === call.last})));
  }
  return timesOfCalls.get(call);
}

// From its first arrival to its last exit, in seconds.
const spanOf = (call) => ranksOf(call).reduce((most, rank) => Math.max(most, rank.exit ?? 0, rank.arrival), 0) / 1e6;

// The calls known singly, of the call sites and the phase that are chosen.
function candidates() {
  const found = [];
  pictures.groups.forEach((group, g) => {
    if (!isOfChosenSite(group.call_site)) return;
    group.shown.forEach((call, c) => {
      if (selection.phase === null || call.phase === selection.phase) found.push({g, c, call});
    });
  });
  return found;
}

// The one at the chosen moment or nearest to it; else the worst, of those for which the chosen rank was waited for if there are any.
function callFor({at, rank}) {
  const all = candidates();
  if (all.length === 0) return null;
  const best = (calls, cost) => calls.reduce((found, one) => cost(one.call) < cost(found.call) ? one : found);
  if (at !== null) {
    return best(all, (call) => {
      const end = call.begin_seconds + call.worst_us / 1e6;
      return at < call.begin_seconds ? call.begin_seconds - at : Math.max(0, at - end);
    });
  }
  const own = rank === null ? [] : all.filter(({call}) => ranksOf(call).some((one) => one.isLast && rankOf(one.row) === rank));
  return best(own.length > 0 ? own : all, (call) => call.pending ? -Infinity : -call.worst_us);
}

function fillSiteChoice() {
  const collective = byId("call-collective").value;
  byId("call-site").replaceChildren(...pictures.groups.map((group, i) => [group, i])
    .filter(([group]) => collective === "" || group.name === collective)
    .map(([group, i]) => element("option", {value: i}, choiceText(group))));
}

function showCall(g, c) {
  const group = pictures.groups[g];
  Object.assign(current, {group: g, call: Math.min(group.shown.length - 1, Math.max(0, c))});
  if (byId("call-collective").value !== "" && byId("call-collective").value !== group.name) byId("call-collective").value = "";
  fillSiteChoice();
  byId("call-site").value = String(g);
  const slider = byId("call-number");
  slider.max = String(group.shown.length - 1);
  slider.value = String(current.call);
  slider.setAttribute("aria-valuetext", `call ${currentCall().call}`);
  byId("call-previous").disabled = current.call === 0;
  byId("call-next").disabled = current.call === group.shown.length - 1;
  const even = group.shown.filter((call) => !call.is_worst).length;
  byId("call-share").textContent = currentCall().pending ? "The record ends where the picture does." : group.shown.length === group.calls ? `All ${plural(group.calls, "call", "calls")} of this call site are here.`
    : `${count(group.shown.length)} of the ${count(group.calls)} calls of this call site are here: ` +
      `${count(group.shown.length - even)} worst, ${count(even)} evenly chosen.`;
  drawCall();
}

// The other views follow to its moment, and to its call site if one is chosen; what ranks wait for there stays chosen.
function chooseCall(g, c, isStep) {
  showCall(g, c);
  const site = pictures.groups[g].call_site;
  const {phase} = currentCall();
  const wait = report.call_sites[site]?.waits_for === selection.wait ? selection.wait : null;
  select({at: currentCall().begin_seconds, site: selection.site === null ? null : site, wait, phase: selection.phase === null ? null : phase}, isStep);
}

function chooseWorst(g) {
  const {shown} = pictures.groups[g];
  chooseCall(g, shown.reduce((best, one, i) => one.worst_us > shown[best].worst_us ? i : best, 0), false);
}

function followCall(changed) {
  const isHere = selection.at !== null && Math.abs(currentCall().begin_seconds - selection.at) < 2e-6 &&
    candidates().some(({call}) => call === currentCall());
  const found = changed.some((name) => ["at", "site", "wait", "phase", "rank"].includes(name)) && !isHere ? callFor(selection) : null;
  // Another rank in the same call is looked at there.
  if (found !== null && !(changed.length === 1 && changed[0] === "rank" && selection.at !== null)) showCall(found.g, found.c);
  else paintCall();
}

function fillCallTable() {
  const ranks = [...ranksOf(currentCall())].sort((a, b) => b.arrival - a.arrival);
  const columns = [
    {title: "rank", left: true, cell: (rank) => `${rankOf(rank.row)}`},
    ...(isAcrossNodes ? [{title: "node", left: true, cell: (rank) => `${nodeOf(rank.row)}`}] : []),
    {title: "arrival", cell: (rank) => rank.isAbsent ? "never" : time(rank.arrival)},
    {title: "waited", cell: (rank) => time(rank.wait)},
    {title: "exit", cell: (rank) => rank.exit === null ? "never" : time(rank.exit)}];
  showMore(byId("call-table-all"), () => ranks, 4 * RANKS_AT_FIRST, "ranks", (rows) => fillTable(byId("call-table").querySelector("table"),
    columns, rows, "Arrivals of this call, the last first", (rank) => ({rank: rankOf(rank.row)})));
}

function setUpCalls() {
  if (pictures.groups.length === 0) {
    byId("call").hidden = true;
    return;
  }
  const names = [...new Set(pictures.groups.map((group) => group.name))];
  byId("call-collective").replaceChildren(element("option", {value: ""}, "all"), ...names.map((name) => element("option", {value: name}, name)));
  byId("call-collective").addEventListener("change", () => {
    fillSiteChoice();
    chooseWorst(Number(byId("call-site").value));
  });
  byId("call-site").addEventListener("change", () => chooseWorst(Number(byId("call-site").value)));
  byId("call-number").addEventListener("input", () => chooseCall(current.group, Number(byId("call-number").value), true));
  byId("call-previous").addEventListener("click", () => chooseCall(current.group, current.call - 1, true));
  byId("call-next").addEventListener("click", () => chooseCall(current.group, current.call + 1, true));
  byId("call-worst").addEventListener("click", () => chooseWorst(current.group));
  const most = Math.max(...pictures.communicators.map((one) => one.rows.length));
  if (most > READABLE_RANKS) document.querySelector("input[name=order][value=arrival]").checked = true;
  for (const choice of document.querySelectorAll("input[name=order], input[name=callscale]")) choice.addEventListener("change", drawCall);
  byId("call-table").addEventListener("toggle", () => { if (byId("call-table").open) fillCallTable(); });
  setUpCallChart();
  const worst = callFor(NOTHING);
  showCall(worst.g, worst.c);
  follow(followCall);
  if (pictures.groups_of > pictures.groups.length) {
    byId("call-controls").after(element("p", {class: "hint"},
      `Calls of ${count(pictures.groups.length)} of ${count(pictures.groups_of)} call sites are here, those with the most waiting.`));
  }
}
