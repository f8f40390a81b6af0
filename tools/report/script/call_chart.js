// The picture of one call: a row for each rank while there is room, else the sorted curve of their arrivals.

const READABLE_RANKS = 64;
const callChart = {ranks: [], each: 0, left: 56, right: 12, top: 8, bottom: 40, reading: -1};

const callUnit = (us) => us >= 1e6 ? [1e6, "s"] : us >= 1e3 ? [1e3, "ms"] : [1, "µs"];

function setCallScale(end) {
  const {left, width} = callChart;
  const isLog = chosen("callscale") === "log";
  // Logarithms of times from half a microsecond on; what is shorter lies close to 0.
  const floor = Math.min(0.5, end / 100);
  const part = isLog ? (us) => Math.log1p(us / floor) / Math.log1p(end / floor) : (us) => us / end;
  callChart.x = (us) => left + Math.min(1, Math.max(0, part(us))) * width;
  if (!isLog) {
    const [unit] = callUnit(end);
    const step = niceStep(end / unit * 72 / width);
    callChart.ticks = Array.from({length: Math.floor(end / unit / step) + 1}, (_, i) => Number((i * step).toPrecision(6)) * unit);
  } else {
    callChart.ticks = [0];
    for (let tick = 1; tick <= end; tick *= 10) callChart.ticks.push(tick);
  }
}

function drawCall() {
  const group = pictures.groups[current.group];
  const call = currentCall();
  const isByArrival = chosen("order") === "arrival";
  const ranks = [...ranksOf(call)];
  const sorted = [...ranks].sort((a, b) => a.arrival - b.arrival);
  const last = ranks.find((rank) => rank.isLast);
  const first = sorted[0];
  byId("call-readout").replaceChildren(...call.pending ? stalledReadout(call) : [
    `${group.name}, call ${count(call.call)} on ${pictures.communicators[call.communicator].name}, ${bytes(call.bytes)}, ` +
    `by ${call.algorithm || "an unknown algorithm"}, at ${seconds(call.begin_seconds)}: rank ${rankOf(first.row)} came first, `,
    element("b", {}, `rank ${rankOf(last.row)} last, ${time(last.arrival)} later`), error ? `, ${error}.` : "."]);
  const share90 = sorted[Math.min(sorted.length - 1, Math.floor(0.9 * sorted.length))].arrival;
  byId("call-spread").textContent = ranks.length < 10 || call.pending ? "" : `Half of the ${count(ranks.length)} ranks had come after ` +
    `${time(sorted[Math.floor(sorted.length / 2)].arrival)}, nine of ten after ${time(share90)}; the last one came ${time(last.arrival - share90)} after that.`;
  Object.assign(callChart, {ranks: isByArrival ? sorted : ranks, last, isByArrival, reading: -1,
    end: Math.max(1e-3, ...ranks.map((rank) => Math.max(rank.exit ?? 0, rank.arrival + rank.wait)))});
  byId("call-chart").setAttribute("aria-label", byId("call-readout").textContent);
  byId("call-tip").hidden = true;
  drawCallChart();
  if (byId("call-table").open) fillCallTable();
}

function drawCallChart() {
  const canvas = byId("call-chart");
  const {ranks, left, right, top, bottom, end} = callChart;
  const room = byId("call-picture").clientWidth;
  const height = Math.min(Math.max(ranks.length * (ranks.length <= 12 ? 26 : ranks.length <= 32 ? 18 : 12), 90), ranks.length > READABLE_RANKS ? 420 : 800);
  const scale = window.devicePixelRatio || 1;
  Object.assign(callChart, {width: Math.max(1, room - left - right), height, each: height / ranks.length, scale});
  canvas.style.height = `${height + top + bottom}px`;
  canvas.width = Math.round(room * scale);
  canvas.height = Math.round((height + top + bottom) * scale);
  setCallScale(end);
  paintCall();
}

const callRowY = (place) => callChart.top + place * callChart.each;

function paintCallAxes(paint) {
  const {left, top, width, height, ranks, each, x, ticks, end, isByArrival} = callChart;
  const [unit, name] = callUnit(end);
  paint.font = "12px system-ui, sans-serif";
  paint.textBaseline = "top";
  let free = -Infinity;
  for (const tick of ticks) {
    const at = x(tick);
    paint.fillStyle = colour("line");
    paint.fillRect(at - 0.5, top, 1, height);
    paint.fillStyle = colour("soft");
    paint.textAlign = at > left + width - 16 ? "right" : "center";
    const text = chosen("callscale") === "log" ? (tick === 0 ? "0" : time(tick)) : `${Number((tick / unit).toPrecision(6))}`;
    if (at - paint.measureText(text).width / 2 < free) continue;
    paint.fillText(text, at, top + height + 6);
    free = at + paint.measureText(text).width / 2 + 8;
  }
  paint.fillStyle = colour("soft");
  paint.textAlign = "left";
  paint.fillText(`${chosen("callscale") === "log" ? "time" : name} after the first arrival`, left, top + height + 23);
  paint.textAlign = "right";
  paint.textBaseline = "middle";
  const isCount = isByArrival && ranks.length > READABLE_RANKS;
  const step = niceStep(Math.max(1, 16 / each), true);
  for (let place = isCount ? step - 1 : 0; place < ranks.length; place += step)
    if (isCount || rankOf(ranks[place].row) !== selection.rank)
      paint.fillText(isCount ? count(place + 1) : rankOf(ranks[place].row), left - 8, callRowY(place + 0.5));
  paint.textAlign = "left";
  paint.textBaseline = "top";
  paint.fillText(isCount ? "came" : "rank", 0, top + height + 6);
}

function stalledReadout({pending, begin_seconds: begin}) {
  const absent = pending.conflict || pending.not_arrived.length === 0 ? "" : `${ranksText(pending.not_arrived)} never came`;
  return [`${pending.name}, call ${count(pending.call)} on ${pending.communicator}, at ${seconds(begin)}, never ended: ` +
    `${ranksText(pending.inside)} inside${absent || pending.conflict ? ", " : ""}`,
  element("b", {}, pending.conflict ? `the ranks disagree about the collective: ${pending.conflict}` : absent), "."];
}

// A row for each rank.
function paintCallRows(paint) {
  const {ranks, each, x} = callChart;
  const [pad, tall] = [0.18 * each, 0.64 * each];
  ranks.forEach((rank, place) => {
    if (rank.isAbsent) {
      paint.fillStyle = hatch(paint, "late");
      paint.fillRect(x(0), callRowY(place) + pad, x(rank.arrival) - x(0), tall);
      labelRank(paint, "never came", x(0) + 10, callRowY(place + 0.5), false, "accent");
      return;
    }
    const [arrival, waited] = [x(rank.arrival), x(rank.arrival + rank.wait)];
    paint.fillStyle = colour("wait");
    paint.fillRect(arrival, callRowY(place) + pad, Math.max(0, waited - arrival), tall);
    if (rank.exit !== null) {
      paint.fillStyle = colour("excess");
      paint.fillRect(waited, callRowY(place) + pad, Math.max(0, x(rank.exit) - waited), tall);
    }
    paint.fillStyle = colour(rank.isLast ? "late" : "text");
    const thick = rank.isLast ? 4 : 2;
    paint.fillRect(arrival - thick / 2, callRowY(place) + 0.06 * each, thick, 0.88 * each);
  });
}

// Several ranks in a line of pixels: from where to where they arrive, and a pale surface behind for what they wait.
function paintCallCurve(paint) {
  const {ranks, x, top, height} = callChart;
  const lines = Math.round(height);
  for (let line = 0; line < lines; ++line) {
    const begin = Math.floor(line * ranks.length / lines);
    const end = Math.max(begin + 1, Math.floor((line + 1) * ranks.length / lines));
    let [low, high, waited, exit] = [Infinity, 0, 0, 0];
    for (const rank of ranks.slice(begin, end)) {
      low = Math.min(low, rank.arrival);
      high = Math.max(high, rank.arrival);
      waited = Math.max(waited, rank.arrival + rank.wait);
      exit = Math.max(exit, rank.exit ?? 0);
    }
    const y = top + line;
    paint.fillStyle = colour("wait-pale");
    paint.fillRect(x(low), y, Math.max(0, x(waited) - x(low)), 1);
    paint.fillStyle = colour("excess-pale");
    paint.fillRect(x(waited), y, Math.max(0, x(exit) - x(waited)), 1);
    paint.fillStyle = colour("text");
    paint.fillRect(x(low) - 1, y, Math.max(2, x(high) - x(low) + 1), 1);
  }
  const labelled = [...ranks.keys()].sort((a, b) => ranks[b].arrival - ranks[a].arrival).slice(0, 5);
  let free = Infinity;
  for (const place of labelled.sort((a, b) => b - a)) {
    const rank = ranks[place];
    const y = callRowY(place + 0.5);
    paint.fillStyle = colour("late");
    paint.beginPath();
    paint.arc(x(rank.arrival), y, rank.isLast ? 5 : 3.5, 0, 7);
    paint.fill();
    const at = Math.min(Math.max(y, top + 8), free);
    free = at - 15;
    const isRight = x(rank.arrival) > callChart.left + callChart.width / 2;
    labelRank(paint, `rank ${rankOf(rank.row)}, ${rank.isAbsent ? "never came" : time(rank.arrival)}`, x(rank.arrival) + (isRight ? -12 : 12), at, isRight, "accent");
  }
}

function labelRank(paint, text, x, y, isRight, name) {
  paint.font = "600 12px system-ui, sans-serif";
  paint.textAlign = isRight ? "right" : "left";
  paint.textBaseline = "middle";
  paint.lineWidth = 4;
  paint.lineJoin = "round";
  paint.strokeStyle = colour("surface");
  paint.strokeText(text, x, y);
  paint.fillStyle = colour(name);
  paint.fillText(text, x, y);
}

function paintCall() {
  const paint = byId("call-chart").getContext("2d");
  const {ranks, left, top, width, height, each, scale, x, last, isByArrival, reading} = callChart;
  paint.setTransform(scale, 0, 0, scale, 0, 0);
  paint.clearRect(0, 0, width + left + callChart.right, height + top + callChart.bottom);
  paintCallAxes(paint);
  if (ranks.length > READABLE_RANKS) paintCallCurve(paint);
  else paintCallRows(paint);
  if (last && !last.isAbsent) {
    paint.strokeStyle = colour("late");
    paint.lineWidth = 1;
    paint.setLineDash([5, 4]);
    paint.beginPath();
    paint.moveTo(x(last.arrival), top);
    paint.lineTo(x(last.arrival), top + height);
    paint.stroke();
    paint.setLineDash([]);
  }
  paint.fillStyle = colour("soft");
  if (!isByArrival) for (const row of nodeBorders(ranks.map((rank) => nodeOf(rank.row)), each)) paint.fillRect(left, callRowY(row) - 0.5, width, 1);
  for (const [place, name] of [[ranks.findIndex((rank) => rankOf(rank.row) === selection.rank), "focus"], [reading, "text"]]) {
    if (place < 0) continue;
    const tall = Math.max(3, each);
    paint.strokeStyle = colour(name);
    paint.lineWidth = 2;
    paint.strokeRect(left - 1, callRowY(place + 0.5) - tall / 2, width + 2, tall);
    if (name === "focus") labelRank(paint, `${selection.rank}`, left - 8, callRowY(place + 0.5), true, "focus");
  }
}

function readCall(place) {
  const {ranks, left, width, x} = callChart;
  callChart.reading = Math.min(ranks.length - 1, Math.max(0, place));
  const rank = ranks[callChart.reading];
  const tip = byId("call-tip");
  tip.replaceChildren(element("b", {}, `Rank ${rankOf(rank.row)}${isAcrossNodes ? `, node ${nodeOf(rank.row)}` : ""}${rank.isLast && !rank.isAbsent ? ", the last" : ""}`),
    rank.isAbsent ? "never came to this call" : `arrived ${time(rank.arrival)} after the first, waited ${time(rank.wait)}, ` +
    (rank.exit === null ? "never left" : `excess ${time(Math.max(0, rank.exit - rank.arrival - rank.wait))}`));
  tip.hidden = false;
  const at = x(rank.arrival) > left + width / 2 ? left + 8 : left + width - tip.offsetWidth - 8;
  tip.style.left = `${Math.max(0, at)}px`;
  tip.style.top = `${Math.max(0, Math.min(callRowY(callChart.reading + 1) + 6, callChart.height - tip.offsetHeight))}px`;
  paintCall();
}

function leaveCall() {
  callChart.reading = -1;
  byId("call-tip").hidden = true;
  paintCall();
}

function setUpCallChart() {
  const canvas = byId("call-chart");
  const placeAt = (event) => Math.floor((event.offsetY - callChart.top) / callChart.each);
  const choose = () => toggle({rank: rankOf(callChart.ranks[callChart.reading].row)});
  canvas.addEventListener("pointermove", (event) => readCall(placeAt(event)));
  canvas.addEventListener("pointerleave", leaveCall);
  canvas.addEventListener("blur", leaveCall);
  canvas.addEventListener("click", (event) => {
    readCall(placeAt(event));
    choose();
  });
  canvas.addEventListener("keydown", (event) => {
    const by = {ArrowUp: -1, ArrowDown: 1}[event.key];
    if (by) {
      readCall(callChart.reading < 0 ? 0 : callChart.reading + by * (event.shiftKey ? 10 : 1));
      event.preventDefault();
    } else if (event.key === "Enter" && callChart.reading >= 0) {
      choose();
    }
  });
}
