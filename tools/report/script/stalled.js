// Calls that never ended: which ranks are inside, and which never came.

const inRanges = (rank, list) => list.some(([first, last]) => rank >= first && rank <= last);

// As a call among those known singly, which ends with the record. One of the ranks that never came stands at its end.
function stalledCall(pending, {begin_seconds, ranks, arrivals}) {
  const late = floatsOf(arrivals);
  const end = Math.max(pending.waited_seconds * 1e6, ...late, 1e-3);
  const all = ranks.map((rank, i) => ({row: fileOf.get(rank), arrival: late[i], wait: end - late[i], exit: null, isLast: false}))
    .concat(heat.ranks.map((rank, row) => ({rank, row})).filter(({rank}) => inRanges(rank, pending.not_arrived))
      .map(({row}) => ({row, arrival: end, wait: 0, exit: null, isLast: true, isAbsent: true})))
    .filter((one) => one.row !== undefined).sort((a, b) => a.row - b.row);
  const call = {call: pending.call, bytes: null, algorithm: "", phase: null, begin_seconds, worst_us: end, is_worst: true, pending,
    communicator: pictures.communicators.length, last: all.findIndex((one) => one.isAbsent)};
  pictures.communicators.push({name: pending.communicator, rows: all.map((one) => one.row)});
  timesOfCalls.set(call, all);
  return call;
}

const stalledCalls = report.pending.map((pending, i) => stalledCall(pending, pictures.unfinished[i]));

function addStalledCalls() {
  for (const call of [...stalledCalls].reverse()) {
    const {pending} = call;
    pictures.groups.unshift({call_site: siteNumbers.get(siteKey(pending.name, pending.call_site)) ?? null, name: pending.name, calls: 1, shown: [call]});
    ++pictures.groups_of;
  }
}

// By row: what a rank is inside, else what it never came to.
const stallOfRow = new Map();
for (const isAbsent of [true, false])
  for (const call of [...stalledCalls].reverse())
    for (const rank of ranksOf(call))
      if (Boolean(rank.isAbsent) === isAbsent) stallOfRow.set(rank.row, {call, isAbsent, from: call.begin_seconds + (isAbsent ? 0 : rank.arrival / 1e6)});

const stallText = ({call, isAbsent}) =>
  `${isAbsent ? "never came to" : "inside"} ${call.pending.name}, call ${count(call.call)} on ${call.pending.communicator}${isAbsent ? "" : ", which never ended"}`;

function hatch(paint, name) {
  const tile = Object.assign(document.createElement("canvas"), {width: 8, height: 8});
  const lines = tile.getContext("2d");
  lines.fillStyle = colour("surface");
  lines.fillRect(0, 0, 8, 8);
  lines.strokeStyle = colour(name);
  lines.lineWidth = 3;
  for (const x of [-8, 0, 8]) {
    lines.beginPath();
    lines.moveTo(x - 2, 10);
    lines.lineTo(x + 10, -2);
    lines.stroke();
  }
  return paint.createPattern(tile, "repeat");
}

// To the right of the run, and over it from when they began. The ranks that never came stand over those inside, however thin rows are.
function drawStalls(paint) {
  const {left, width, height, order} = heatMap;
  if (stallOfRow.size === 0 || heatMap.to < heatEnd() - 1e-9) return;
  const each = height / order.length;
  const places = order.map((row, place) => ({place, stall: stallOfRow.get(row)})).filter(({stall}) => stall);
  for (const isAbsent of [false, true]) {
    paint.fillStyle = hatch(paint, isAbsent ? "late" : "wait");
    const tall = isAbsent ? Math.max(3, each) : each;
    for (const {place, stall} of places) {
      if (stall.isAbsent !== isAbsent) continue;
      const x = Math.min(left + width, Math.max(left, xOf(stall.from)));
      paint.fillRect(x, yOf(place + 0.5) - tall / 2, left + width + STALL_WIDTH - x, tall - (each > 6 ? 1 : 0));
    }
  }
}

// Beside the run, however short the record of it is.
const STALL_WIDTH = 24;
const stallRoom = () => stallOfRow.size > 0 ? STALL_WIDTH : 0;
