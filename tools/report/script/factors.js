// How imbalanced are calls?

const factorsOf = () => pictures.factors.filter((one) => one.collective === byId("factor-collective").value);

const chosenMoment = {
  id: "moment",
  afterDatasetsDraw({ctx, chartArea, scales}) {
    const x = selection.at === null ? NaN : scales.x.getPixelForValue(selection.at);
    if (!(x >= chartArea.left && x <= chartArea.right)) return;
    ctx.fillStyle = colour("focus");
    ctx.fillRect(x - 1, chartArea.top, 2, chartArea.height);
  },
};

function factorPoints(kind) {
  return factorsOf().map((one) => {
    const values = floatsOf(one.points);
    const points = [];
    // Nothing is below the axis of logarithms: what is smaller than a hundredth is drawn there.
    for (let i = 0; i < values.length; i += 5) if (values[i + 1 + kind] >= 0) points.push({x: values[i], y: Math.max(0.01, values[i + 1 + kind])});
    return {label: SIZE_TEXTS[one.size], data: points, backgroundColor: colour(one.size), pointRadius: 2.5, pointHoverRadius: 5, borderWidth: 0};
  });
}

function drawFactors() {
  const kind = Number(chosen("scope")) + Number(chosen("case"));
  const name = byId("factor-collective").value;
  const what = `${chosen("case") === "0" ? "worst" : "average"}-case imbalance factors of ${name}${chosen("scope") === "2" ? " within nodes" : ""}`;
  const figures = factorsOf();
  const total = figures.reduce((sum, one) => sum + one.calls, 0);
  if (chosen("view") === "time") {
    const datasets = factorPoints(kind);
    const shown = datasets.reduce((sum, one) => sum + one.data.length, 0);
    byId("factor-share").textContent = shown === total ? `Each point is a call; all ${count(total)} are here.`
      : `Each point is a call; ${count(shown)} of ${count(total)} are here, evenly chosen.`;
    draw("factor-chart", `Over time: ${what}`, {
      type: "scatter",
      data: {datasets},
      options: {
        scales: {
          x: axis("seconds since the run began", {type: "linear", ...(isZoomed() ? {min: selection.from, max: selection.to} : {})}),
          y: axis("imbalance factor", {type: "logarithmic", ticks: {callback: (value) => Math.log10(value) % 1 === 0 ? `${value.toLocaleString("en")}x` : null}}),
        },
        plugins: {legend: {position: "top", align: "start"},
          tooltip: {callbacks: {label: (item) => `${factor(item.parsed.y)} at ${seconds(item.parsed.x)}, ${item.dataset.label}`}}},
        onClick: (event, [item], chart) => {
          if (item) select({at: chart.data.datasets[item.datasetIndex].data[item.index].x});
        },
      },
      plugins: [chosenMoment],
    });
  } else {
    const {smallest, per_decade} = pictures.factor_bins;
    const counts = figures.map((one) => one.counts[kind]);
    const bins = counts[0].length;
    const isUsed = (bin) => counts.some((own) => own[bin] > 0);
    let first = 0;
    let last = bins - 1;
    while (first < last && !isUsed(first)) ++first;
    while (last > first && !isUsed(last)) --last;
    const edge = (bin) => factor(smallest * 10 ** (bin / per_decade));
    const labels = [];
    for (let bin = first; bin <= last; ++bin) labels.push(bin === 0 ? `below ${edge(1)}` : bin === bins - 1 ? `${edge(bin)} and more` : edge(bin));
    byId("factor-share").textContent = `All ${count(total)} calls. A bar begins at its label and ends where the next one begins.`;
    draw("factor-chart", `Distribution: ${what}`, {
      type: "bar",
      data: {labels, datasets: figures.map((one) => ({label: SIZE_TEXTS[one.size], data: one.counts[kind].slice(first, last + 1),
        backgroundColor: colour(one.size), categoryPercentage: 1, barPercentage: 0.94}))},
      options: {
        scales: {x: axis("imbalance factor", {stacked: true, grid: {display: false}}), y: axis("calls", {stacked: true, ticks: {precision: 0}})},
        plugins: {legend: {position: "top", align: "start"},
          tooltip: {callbacks: {label: (item) => `${plural(item.raw, "call", "calls")}, ${item.dataset.label}`}}},
      },
    });
  }
  fillFactorTable();
}

function fillFactorTable() {
  const figures = report.collectives.find((one) => one.name === byId("factor-collective").value);
  const rows = [["all", figures.imbalance], ...SIZES.map((size) => [SIZE_TEXTS[size], figures.by_size[size].imbalance])]
    .filter(([, imbalance]) => imbalance);
  const columns = [{title: "size", left: true, cell: ([size]) => size}, {title: "calls", cell: ([, all]) => count(all.calls)}];
  for (const [scope, of] of [["all ranks", (all) => all], ...(isAcrossNodes ? [["within nodes", (all) => all.node]] : [])]) {
    const where = isAcrossNodes ? `, ${scope}` : "";
    for (const kind of ["worst", "average"]) {
      columns.push({title: `${kind}-case${where}`, cell: ([, all]) => !of(all) ? "-"
        : element("span", {class: "both"}, element("span", {}, time(of(all)[`${kind}_us`])), element("b", {}, factor(of(all)[`${kind}_factor`])))});
    }
  }
  fillTable(byId("factor-table"), columns, rows, "Imbalance, averages over calls");
}

function setUpFactors() {
  const names = report.collectives.map((one) => one.name).filter((name) => pictures.factors.some((one) => one.collective === name));
  if (names.length === 0) {
    byId("factors").hidden = true;
    return;
  }
  byId("factor-collective").replaceChildren(...names.map((name) => element("option", {value: name}, name)));
  byId("factor-scope").hidden = !isAcrossNodes;
  byId("alpha").textContent = report.alpha_nominal ? "The time of a message was not measured in this run: a nominal one is used." : "";
  byId("factor-collective").addEventListener("change", drawFactors);
  for (const choice of document.querySelectorAll("#factors input")) choice.addEventListener("change", drawFactors);
  follow((changed) => {
    const name = selection.site === null ? null : report.call_sites[selection.site].name;
    if (changed.includes("site") && names.includes(name)) byId("factor-collective").value = name;
    if (changed.some((one) => ["site", "from", "to"].includes(one))) drawFactors();
    else if (changed.includes("at")) charts["factor-chart"].draw();
  });
  drawFactors();
}
