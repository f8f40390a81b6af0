// One call, rank by rank.

const current = {group: 0, call: 0};

const groupText = (group) => group.call_site === null ? `${group.name}, no call site` : siteText(report.call_sites[group.call_site]);

function fillSiteChoice() {
  const collective = byId("call-collective").value;
  byId("call-site").replaceChildren(...pictures.groups.map((group, i) => [group, i])
    .filter(([group]) => collective === "" || group.name === collective)
    .map(([group, i]) => element("option", {value: i}, groupText(group))));
}

function chooseGroup(index, call) {
  const {shown} = pictures.groups[index];
  current.group = index;
  const worst = shown.reduce((best, one, i) => one.worst_us > shown[best].worst_us ? i : best, 0);
  if (byId("call-collective").value !== "" && byId("call-collective").value !== pictures.groups[index].name) byId("call-collective").value = "";
  fillSiteChoice();
  byId("call-site").value = String(index);
  byId("call-number").max = String(shown.length - 1);
  chooseCall(call === undefined ? worst : call);
}

function chooseCall(index) {
  const group = pictures.groups[current.group];
  current.call = Math.min(group.shown.length - 1, Math.max(0, index));
  const slider = byId("call-number");
  slider.value = String(current.call);
  slider.setAttribute("aria-valuetext", `call ${group.shown[current.call].call}`);
  byId("call-previous").disabled = current.call === 0;
  byId("call-next").disabled = current.call === group.shown.length - 1;
  const even = group.shown.filter((call) => !call.is_worst).length;
  byId("call-share").textContent = group.shown.length === group.calls ? `All ${plural(group.calls, "call", "calls")} of this call site are here.`
    : `${count(group.shown.length)} of the ${count(group.calls)} calls of this call site are here: ` +
      `${count(group.shown.length - even)} worst, ${count(even)} evenly chosen.`;
  drawCall();
}

function showCallNearest(at) {
  let best = null;
  pictures.groups.forEach((group, g) => group.shown.forEach((call, c) => {
    const distance = Math.abs(call.begin_seconds - at);
    if (best === null || distance < best.distance) best = {distance, g, c};
  }));
  if (best === null) return;
  chooseGroup(best.g, best.c);
  byId("call").scrollIntoView();
}

// Its ranks: row, arrival, wait and exit in us, exit null where it never left.
function ranksOf(call) {
  const {rows} = pictures.communicators[call.communicator];
  const times = floatsOf(call.times);
  return rows.map((row, i) => ({row, arrival: times[i], wait: times[rows.length + i],
    exit: times[2 * rows.length + i] < 0 ? null : times[2 * rows.length + i], isLast: i === call.last}));
}

const marks = {
  id: "marks",
  afterDatasetsDraw(chart, _, options) {
    const {ctx, chartArea, scales} = chart;
    ctx.save();
    ctx.fillStyle = colour("soft");
    ctx.globalAlpha = 0.6;
    const height = scales.y.height / options.ranks.length;
    for (const row of options.borders) ctx.fillRect(chartArea.left, scales.y.top + row * height - 0.5, chartArea.width, 1);
    ctx.globalAlpha = 1;
    ctx.strokeStyle = colour("late");
    ctx.setLineDash([5, 4]);
    const x = scales.x.getPixelForValue(options.last);
    ctx.beginPath();
    ctx.moveTo(x, chartArea.top);
    ctx.lineTo(x, chartArea.bottom);
    ctx.stroke();
    // Arrivals as ticks: a rank that left at once has no bar.
    ctx.setLineDash([]);
    options.ranks.forEach((rank, i) => {
      ctx.fillStyle = colour(rank.isLast ? "late" : "text");
      const thick = rank.isLast ? 4 : 2;
      const tall = Math.max(rank.isLast ? 5 : 1, Math.min(height, 22) * (rank.isLast ? 0.95 : 0.8));
      ctx.fillRect(scales.x.getPixelForValue(rank.arrival) - thick / 2, scales.y.top + (i + 0.5) * height - tall / 2, thick, tall);
    });
    ctx.restore();
  },
};

function drawCall() {
  const group = pictures.groups[current.group];
  const call = group.shown[current.call];
  const isByArrival = document.querySelector("input[name=order]:checked").value === "arrival";
  const ranks = ranksOf(call);
  const last = ranks.find((rank) => rank.isLast);
  const first = ranks.reduce((a, b) => b.arrival < a.arrival ? b : a);
  if (isByArrival) ranks.sort((a, b) => a.arrival - b.arrival);
  const end = Math.max(...ranks.map((rank) => Math.max(rank.exit ?? 0, rank.arrival + rank.wait)));
  byId("call-readout").replaceChildren(
    `${group.name}, call ${count(call.call)} on ${pictures.communicators[call.communicator].name}, ${bytes(call.bytes)}, ` +
    `by ${call.algorithm || "an unknown algorithm"}, at ${seconds(call.begin_seconds)}: rank ${rankOf(first.row)} came first, `,
    element("b", {}, `rank ${rankOf(last.row)} last, ${time(last.arrival)} later`), error ? `, ${error}.` : ".");
  byId("call-picture").style.height = `${Math.min(Math.max(ranks.length * 20 + 90, 190), 760)}px`;
  const bars = {grouped: false, categoryPercentage: 1, barPercentage: ranks.length > 60 ? 1 : 0.66};
  const unit = end >= 1e6 ? [1e6, "s"] : end >= 1e3 ? [1e3, "ms"] : [1, "µs"];
  draw("call-chart", byId("call-readout").textContent, {
    type: "bar",
    data: {
      labels: ranks.map((rank) => rankOf(rank.row)),
      datasets: [
        {label: "waiting", data: ranks.map((rank) => [rank.arrival, rank.arrival + rank.wait]), backgroundColor: colour("wait"), ...bars},
        {label: "excess", data: ranks.map((rank) => rank.exit === null ? null : [Math.min(rank.arrival + rank.wait, rank.exit), rank.exit]),
          backgroundColor: colour("excess"), ...bars},
      ],
    },
    options: {
      indexAxis: "y",
      interaction: {mode: "index", axis: "y", intersect: false},
      scales: {
        x: axis(`${unit[1]} after the first arrival`, {min: 0, ticks: {callback: (value) => Number((value / unit[0]).toPrecision(6))}}),
        y: axis(isByArrival ? "rank, first to last" : "rank", {grid: {display: false}, ticks: {autoSkipPadding: 6}}),
      },
      plugins: {
        marks: {ranks, last: last.arrival, borders: isByArrival ? [] : nodeBorders(ranks.map((rank) => nodeOf(rank.row)))},
        legend: {position: "top", align: "start"},
        tooltip: {callbacks: {
          title: ([item]) => `Rank ${item.label}${isAcrossNodes ? `, node ${nodeOf(ranks[item.dataIndex].row)}` : ""}` +
            (ranks[item.dataIndex].isLast ? ", the last" : ""),
          label: (item) => {
            const rank = ranks[item.dataIndex];
            if (item.datasetIndex === 0) return [`arrived ${time(rank.arrival)} after the first`, `waited ${time(rank.wait)}`];
            return rank.exit === null ? "never left" : `excess ${time(Math.max(0, rank.exit - rank.arrival - rank.wait))}`;
          },
        }},
      },
    },
    plugins: [marks],
  });
  if (byId("call-table").open) fillCallTable();
}

function fillCallTable() {
  const ranks = ranksOf(pictures.groups[current.group].shown[current.call]).sort((a, b) => a.arrival - b.arrival);
  fillTable(byId("call-table").querySelector("table"), [
    {title: "rank", left: true, cell: (rank) => `${rankOf(rank.row)}`},
    ...(isAcrossNodes ? [{title: "node", left: true, cell: (rank) => `${nodeOf(rank.row)}`}] : []),
    {title: "arrival", cell: (rank) => time(rank.arrival)},
    {title: "waited", cell: (rank) => time(rank.wait)},
    {title: "exit", cell: (rank) => rank.exit === null ? "never" : time(rank.exit)}], ranks, "Arrivals of this call, first to last");
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
    chooseGroup(Number(byId("call-site").value));
  });
  byId("call-site").addEventListener("change", () => chooseGroup(Number(byId("call-site").value)));
  byId("call-number").addEventListener("input", () => chooseCall(Number(byId("call-number").value)));
  byId("call-previous").addEventListener("click", () => chooseCall(current.call - 1));
  byId("call-next").addEventListener("click", () => chooseCall(current.call + 1));
  byId("call-worst").addEventListener("click", () => chooseGroup(current.group));
  for (const choice of document.querySelectorAll("input[name=order]")) choice.addEventListener("change", drawCall);
  byId("call-table").addEventListener("toggle", () => { if (byId("call-table").open) fillCallTable(); });
  chooseGroup(0);
  if (pictures.groups_of > pictures.groups.length) {
    byId("call-controls").after(element("p", {class: "hint"},
      `Calls of ${count(pictures.groups.length)} of ${count(pictures.groups_of)} call sites are here, those with the most waiting.`));
  }
}
