// Where does the time of each rank go?

// Parts of a rank's time, in the order of its bar; they sum to the run.
const TIME_PARTS = [
  ["before", "MPI_Init", (rank) => rank.time.before_seconds],
  ["computing", "computing", (rank) => rank.time.computing_seconds],
  ["unrecorded", "not recorded", (rank) => rank.time.unrecorded_seconds],
  ["waiting", "waiting for late ranks", (rank) => Math.min(rank.waited_seconds, rank.time.collectives_seconds)],
  ["collectives", "rest of blocking collectives", (rank) => Math.max(0, rank.time.collectives_seconds - rank.waited_seconds)],
  ["messages", "messages and their completion", (rank) => rank.time.point_to_point_seconds + rank.time.completion_seconds],
  ["other", "other MPI", (rank) => rank.time.starting_seconds + rank.time.one_sided_seconds + rank.time.management_seconds +
    rank.time.io_seconds + rank.time.neighbourhood_seconds],
  ["finalize", "MPI_Finalize", (rank) => rank.time.finalize_seconds]];

const TIME_TITLES = {before: "Init", unrecorded: "not recorded", finalize: "Finalize"};

const timedRanks = report.late_ranks.filter((rank) => rank.time !== null);
const timeParts = TIME_PARTS.filter(([, , of]) => timedRanks.some((rank) => of(rank) >= 0.0005 * report.run_seconds));

const timesOrder = () => [...timedRanks].sort((a, b) => chosen("times") === "rank" ? a.rank - b.rank
  : b.time.computing_seconds - a.time.computing_seconds || a.rank - b.rank);

const timesChart = {left: 44, ranks: []};

// Of what nobody looked at.
function hatched(paint) {
  const tile = document.createElement("canvas");
  tile.width = tile.height = 6;
  const brush = tile.getContext("2d");
  brush.fillStyle = colour("sunken");
  brush.fillRect(0, 0, 6, 6);
  brush.strokeStyle = colour("part-unrecorded");
  brush.lineWidth = 1.5;
  for (const shift of [-6, 0, 6]) {
    brush.moveTo(shift, 6);
    brush.lineTo(shift + 6, 0);
  }
  brush.stroke();
  return paint.createPattern(tile, "repeat");
}

// Of many ranks: a column each, or the mean of those that share one.
function drawTimes() {
  if (timedRanks.length <= RANKS_AT_FIRST) return;
  const canvas = byId("times-chart");
  const width = byId("times-picture").clientWidth;
  const [height, bottom] = [200, 24];
  const scale = window.devicePixelRatio || 1;
  canvas.style.height = `${height + bottom}px`;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round((height + bottom) * scale);
  const paint = canvas.getContext("2d");
  paint.scale(scale, scale);
  const {left} = timesChart;
  const room = Math.max(1, width - left);
  const ranks = timesOrder();
  Object.assign(timesChart, {ranks, room});
  const columns = Math.min(ranks.length, room);
  for (let column = 0; column < columns; ++column) {
    const begin = Math.floor(column * ranks.length / columns);
    const group = ranks.slice(begin, Math.max(begin + 1, Math.floor((column + 1) * ranks.length / columns)));
    // On whole pixels: else each column would show through the next.
    const [from, to] = [column, column + 1].map((edge) => Math.round((left + edge * room / columns) * scale) / scale);
    let y = height;
    for (const [kind, , of] of timeParts) {
      const tall = height * ratio(group.reduce((sum, rank) => sum + of(rank), 0) / group.length, report.run_seconds);
      paint.fillStyle = kind === "unrecorded" ? hatched(paint) : colour(`part-${kind}`);
      paint.fillRect(from, y - tall, to - from - (to - from > 6 ? 1 : 0), tall);
      y -= tall;
    }
  }
  paint.font = "12px system-ui, sans-serif";
  paint.fillStyle = colour("soft");
  paint.textAlign = "right";
  paint.textBaseline = "middle";
  for (const part of [0, 0.5, 1]) paint.fillText(`${100 * part} %`, left - 6, Math.min(height - 6, Math.max(6, height * (1 - part))));
  paint.textBaseline = "top";
  const isByRank = chosen("times") === "rank";
  const step = niceStep(ranks.length * 48 / room, true);
  paint.textAlign = "center";
  if (isByRank) for (let i = 0; i < ranks.length; i += step) paint.fillText(ranks[i].rank, left + (i + 0.5) * room / ranks.length, height + 6);
  paint.textAlign = "left";
  if (isByRank) paint.fillText("rank", 0, height + 6);
  else paint.fillText(`${count(ranks.length)} ranks, the one that computes longest first`, left, height + 6, room);
  const place = ranks.findIndex((rank) => rank.rank === selection.rank);
  if (place < 0) return;
  paint.strokeStyle = colour("focus");
  paint.lineWidth = 2;
  const each = Math.max(4, room / ranks.length);
  paint.strokeRect(left + (place + 0.5) * room / ranks.length - each / 2, 1, each, height - 2);
}

function timeColumns() {
  const bar = (rank) => element("div", {class: "parts", role: "img",
    "aria-label": timeParts.map(([, name, of]) => `${name} ${share(ratio(of(rank), report.run_seconds))}`).join(", ")},
  timeParts.map(([kind, name, of]) => element("i", {class: kind, part: ratio(of(rank), report.run_seconds),
    title: `${name}: ${seconds(of(rank))}`})));
  return [
    {title: "rank", left: true, cell: (rank) => `${rank.rank}`},
    ...(isAcrossNodes ? [{title: "node", left: true, cell: (rank) => `${rank.node}`}] : []),
    {title: `of ${seconds(report.run_seconds)}`, left: true, isWide: true, cell: bar},
    ...timeParts.map(([kind, , of]) => ({title: TIME_TITLES[kind] ?? kind, cell: (rank) => seconds(of(rank))}))];
}

function fillFunctions() {
  byId("functions-title").hidden = report.functions.length === 0;
  if (report.functions.length === 0) return;
  fillTable(byId("functions"), [
    {title: "function", left: true, cell: (one) => one.name},
    {title: "calls", cell: (one) => count(one.calls)},
    {title: "time", cell: (one) => seconds(one.seconds)},
    {title: "per call", cell: (one) => seconds(one.seconds / one.calls)},
    {title: "most on rank", cell: (one) => `${one.most_rank}`},
    {title: "there", cell: (one) => seconds(one.most_seconds)}],
  report.functions, "Functions other than blocking collectives");
}

function fillTimes() {
  if (timedRanks.length === 0) return;
  byId("time").hidden = false;
  byId("time-key").replaceChildren(...timeParts.map(([kind, name]) =>
    element("li", {}, element("i", {class: kind, "aria-hidden": "true"}), name)));
  const {efficiency} = report;
  if (efficiency !== null)
    byId("efficiency").textContent = `Parallel efficiency ${efficiency.parallel.toFixed(2)} = load balance ` +
      `${efficiency.load_balance.toFixed(2)} × communication efficiency ${efficiency.communication.toFixed(2)}.`;
  const again = showMore(byId("times-all"), timesOrder, RANKS_AT_FIRST, "ranks",
    (rows) => fillTable(byId("times"), timeColumns(), rows, "Time of each rank", (rank) => ({rank: rank.rank})),
    (rank) => rank.rank === selection.rank);
  for (const input of document.querySelectorAll("input[name=times]")) {
    input.addEventListener("change", () => {
      again();
      drawTimes();
    });
  }
  byId("times-picture").hidden = timedRanks.length <= RANKS_AT_FIRST;
  byId("times-chart").setAttribute("aria-label", `Where the time of ${count(timedRanks.length)} ranks goes; the table below has the figures`);
  byId("times-chart").addEventListener("click", (event) => {
    const place = Math.floor((event.offsetX - timesChart.left) / timesChart.room * timesChart.ranks.length);
    if (timesChart.ranks[place]) toggle({rank: timesChart.ranks[place].rank});
  });
  fillEfficiencies();
  fillFunctions();
  drawTimes();
  follow((changed) => {
    if (!changed.includes("rank")) return;
    again();
    drawTimes();
  });
}
