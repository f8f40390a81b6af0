// When are ranks late? Each row a rank, from left to right the run; above it what each moment costs.

const MOST_ROWS = 40;  // of the ranks most waited for
const LENS_HEIGHT = 20;  // of the chosen rank, where rows are too thin to read
const heatMap = {levels: {}, inside: null, lost: [], order: [], image: null, row: -1, bin: -1, left: 48, strip: 52, bottom: 26, from: 0, to: 0};

// At chosen call sites only what is lost there is known.
const heatMode = () => chosenLosses() !== null ? "caused" : chosen("heat");
const isLinear = () => chosen("scale") === "linear";
const topUs = () => heatMode() === "caused" ? lossesInSight().topUs : heat.top_us;
const levelsInSight = () => heatMode() === "caused" ? lossesInSight().levels : heatMap.levels[heatMode()];

// The page has levels by the logarithm: 1 for the floor and less, 255 for the most.
const usOfLevel = (level) => level <= 1 ? heat.floor_us : heat.floor_us * (topUs() / heat.floor_us) ** ((level - 1) / 254);
const levelPart = (level) => isLinear() ? usOfLevel(level) / topUs() : (level - 1) / 254;

const partsOf = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
function ramp(name, part) {
  const stops = colour(name).split(/\s+/).map(partsOf);
  const at = Math.min(1, Math.max(0, part)) * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  return stops[low].map((value, i) => Math.round(value + (stops[low + 1][i] - value) * (at - low)));
}
const rgb = (parts) => `rgb(${parts.join(" ")})`;
const packed = ([red, green, blue]) => (255 << 24 | blue << 16 | green << 8 | red) >>> 0;

// What costs less than this part of the most is drawn as what the rank does besides.
const LEAST_PART = 0.015;

// A function of level and inside: the colour of a cell.
function cellColours() {
  const late = Array.from({length: 256}, (_, level) => level === 0 ? null : packed(ramp("ramp", levelPart(level))));
  const isCostly = Array.from({length: 256}, (_, level) => level > 0 && levelPart(level) >= LEAST_PART);
  const waits = Array.from({length: 16}, (_, part) => packed(ramp("wait-ramp", (part - 1) / 14)));
  const [none, calls] = [packed(partsOf(colour("none"))), packed(partsOf(colour("inside")))];
  // Where ranks wait is known of all call sites together.
  const isOfSite = chosenLosses() !== null;
  return (level, inside) => isCostly[level] ? late[level] : isOfSite ? (inside > 0 ? calls : none)
    : inside >> 4 ? waits[inside >> 4] : late[level] ?? (inside > 0 ? calls : none);
}

// Of two shares of a bin each: waiting, inside.
const mostOf = (one, other) => Math.max(one & 0xf0, other & 0xf0) | Math.max(one & 15, other & 15);

function heatRows() {
  if (chosen("rows") === "all") return heat.ranks.map((_, row) => row);
  return report.late_ranks.map((rank) => fileOf.get(rank.rank)).filter((row) => row !== undefined).slice(0, MOST_ROWS);
}

const heatEnd = () => heat.begin_seconds + heat.bins * heat.bin_seconds;
const xOf = (at) => heatMap.left + (at - heatMap.from) / (heatMap.to - heatMap.from) * heatMap.width;
const atOf = (x) => heatMap.from + (x - heatMap.left) / heatMap.width * (heatMap.to - heatMap.from);
const binOf = (at) => Math.min(heat.bins - 1, Math.max(0, Math.floor((at - heat.begin_seconds) / heat.bin_seconds + 1e-9)));
const yOf = (place) => heatMap.top + place * heatMap.height / heatMap.order.length;

// A pixel may stand for several ranks and bins: it shows the costliest, and where rows are thin that of the rows beside it too,
// so that a single late rank is never lost.
function paintRows(rows, columns, lines) {
  const image = Object.assign(document.createElement("canvas"), {width: columns, height: lines});
  const paint = image.getContext("2d");
  const data = paint.createImageData(columns, lines);
  const pixels = new Uint32Array(data.data.buffer);
  const levels = levelsInSight();
  const colourOf = cellColours();
  const first = binOf(heatMap.from);
  const last = Math.min(heat.bins - 1, Math.max(first, Math.ceil((heatMap.to - heat.begin_seconds) / heat.bin_seconds - 1e-9) - 1));
  const begins = Array.from({length: columns + 1}, (_, x) => binOf(heatMap.from + x / columns * (heatMap.to - heatMap.from)));
  const [latest, inside] = [new Uint8Array(heat.bins), new Uint8Array(heat.bins)];
  const beside = lines < 3 * rows.length ? Math.ceil(1.2 * rows.length / lines) : 0;
  let painted = -1;
  for (let y = 0; y < lines; ++y) {
    const begin = Math.floor(y * rows.length / lines);
    const end = Math.max(begin + 1, Math.floor((y + 1) * rows.length / lines));
    if (begin === painted) {
      pixels.copyWithin(y * columns, (y - 1) * columns, y * columns);
      continue;
    }
    painted = begin;
    for (let bin = first; bin <= last; ++bin) {
      latest[bin] = inside[bin] = 0;
      for (let place = Math.max(0, begin - beside); place < Math.min(rows.length, end + beside); ++place)
        latest[bin] = Math.max(latest[bin], levels[rows[place] * heat.bins + bin]);
      for (let place = begin; place < end; ++place) inside[bin] = mostOf(inside[bin], heatMap.inside[rows[place] * heat.bins + bin]);
    }
    for (let x = 0; x < columns; ++x) {
      let [level, within] = [0, 0];
      for (let bin = begins[x]; bin <= Math.max(begins[x], begins[x + 1] - 1); ++bin) {
        level = Math.max(level, latest[bin]);
        within = mostOf(within, inside[bin]);
      }
      pixels[y * columns + x] = colourOf(level, within);
    }
  }
  paint.putImageData(data, 0, 0);
  return image;
}

function drawHeat() {
  const canvas = byId("heat");
  const width = byId("heat-picture").clientWidth;
  const order = heatRows();
  const hasLens = selection.rank !== null && fileOf.has(selection.rank) && order.length > MOST_ROWS;
  const top = heatMap.strip + (hasLens ? LENS_HEIGHT + 6 : 0);
  const height = Math.round(Math.min(Math.max(order.length * (order.length <= 12 ? 28 : 16), 84), Math.min(560, 0.75 * window.innerHeight)));
  const scale = window.devicePixelRatio || 1;
  Object.assign(heatMap, {order, hasLens, top, width: Math.max(1, width - heatMap.left - stallRoom()), height, scale,
    from: selection.from ?? heat.begin_seconds, to: selection.to ?? heatEnd()});
  canvas.style.height = `${top + height + heatMap.bottom}px`;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round((top + height + heatMap.bottom) * scale);
  const columns = Math.max(1, Math.round(heatMap.width * scale));
  heatMap.image = paintRows(order, columns, Math.max(1, Math.round(height * scale)));
  heatMap.lens = hasLens ? paintRows([fileOf.get(selection.rank)], columns, 1) : null;
  showHeatLegend();
  drawHeatFrame();
}

function showHeatLegend() {
  const stops = (name, part) => `linear-gradient(90deg, ${Array.from({length: 12}, (_, i) => rgb(ramp(name, part(i / 11)))).join(", ")})`;
  byId("heat-ramp").style.background = stops("ramp", (part) => part);
  byId("wait-ramp").style.background = stops("wait-ramp", (part) => part);
  byId("heat-low").textContent = isLinear() ? "0" : `${time(heat.floor_us)} or less`;
  byId("heat-high").textContent = time(topUs());
  byId("heat-what").textContent = heatMode() === "caused" ? "the others lose waiting for it:" : "it arrives after the first by:";
  const isOfSite = chosenLosses() !== null;
  for (const input of document.querySelectorAll("input[name=heat]")) input.disabled = isOfSite && input.value !== "caused";
  byId("heat-waits").hidden = isOfSite;
  byId("heat-inside").textContent = isOfSite ? "inside a call of any call site" : "the rest of a call";
  byId("heat-site").textContent = lossesText();
  byId("heat-stalls").hidden = stallOfRow.size === 0;
  byId("zoom-out").disabled = byId("zoom-all").disabled = !isZoomed();
  byId("heat-zoom").textContent = isZoomed() ? `${seconds(selection.from)} to ${seconds(selection.to)} of ${seconds(heatEnd())}` : "the whole run";
}

// Of the moments in sight.
function drawStrip(paint) {
  const {left, strip, width} = heatMap;
  const first = binOf(heatMap.from);
  const last = binOf(heatMap.to - 1e-9);
  const {lost} = lossesInSight();
  let most = 0;
  for (let bin = first; bin <= last; ++bin) most = Math.max(most, lost[bin]);
  const tall = strip - 18;
  const floor = heat.floor_us / 1e6;
  const part = (one) => one <= 0 || most <= 0 ? 0 : isLinear() ? one / most
    : Math.max(0, Math.log(one / floor) / Math.max(1e-9, Math.log(Math.max(most, 10 * floor) / floor)));
  paint.fillStyle = colour("late");
  for (let bin = first; bin <= last; ++bin) {
    const x = Math.max(left, xOf(heat.begin_seconds + bin * heat.bin_seconds));
    const end = Math.min(left + width, xOf(heat.begin_seconds + (bin + 1) * heat.bin_seconds));
    const high = tall * part(lost[bin]);
    if (high > 0) paint.fillRect(x, strip - 6 - Math.max(1, high), Math.max(1, end - x - (end - x > 4 ? 1 : 0)), Math.max(1, high));
  }
  paint.fillStyle = colour("line");
  paint.fillRect(left, strip - 6, width, 1);
  paint.fillStyle = colour("soft");
  paint.textAlign = "left";
  paint.textBaseline = "top";
  paint.fillText("lost", 0, strip - 18);
  paint.fillText(most <= 0 ? "no time lost here" : `${width > 400 ? "time lost at each moment by all ranks" : "by all ranks"}, at most ${seconds(most)}`, left, 0);
  if (selection.site === null && selection.wait === null && selection.phase === null) return;
  // Where calls of what is chosen are known singly.
  paint.fillStyle = colour("focus");
  for (const {call} of candidates()) {
    const x = xOf(call.begin_seconds);
    if (x >= left && x <= left + width) paint.fillRect(x - 0.5, strip - 5, 1.5, 5);
  }
}

// Calls that are known singly, where they are wide enough to be told apart.
function drawSingleCalls(paint) {
  const {left, width, height, top, order} = heatMap;
  const each = height / order.length;
  if (!isZoomed() || each < 3) return 0;
  const inSight = candidates().filter(({call}) => !call.pending && call.begin_seconds < heatMap.to && call.begin_seconds + spanOf(call) > heatMap.from &&
    spanOf(call) / (heatMap.to - heatMap.from) * width >= 6);
  if (inSight.length === 0) return 0;
  const places = new Map(order.map((row, place) => [row, place]));
  paint.save();
  paint.beginPath();
  paint.rect(left, top, width, height);
  paint.clip();
  const bar = (name, place, from, to) => {
    paint.fillStyle = colour(name);
    paint.fillRect(xOf(from), yOf(place) + 0.15 * each, Math.max(0, xOf(to) - xOf(from)), 0.7 * each);
  };
  paint.fillStyle = colour("surface");
  for (const {call} of inSight)
    paint.fillRect(xOf(call.begin_seconds) - 2, top, xOf(call.begin_seconds + spanOf(call)) - xOf(call.begin_seconds) + 4, height);
  for (const {call} of inSight) {
    for (const rank of ranksOf(call)) {
      const place = places.get(rank.row);
      if (place === undefined) continue;
      const at = (us) => call.begin_seconds + us / 1e6;
      bar("wait", place, at(rank.arrival), at(rank.arrival + rank.wait));
      if (rank.exit !== null) bar("excess", place, at(rank.arrival + rank.wait), at(rank.exit));
      paint.fillStyle = colour(rank.isLast ? "late" : "text");
      const thick = rank.isLast ? 4 : 1.5;
      paint.fillRect(xOf(at(rank.arrival)) - thick / 2, yOf(place) + 0.05 * each, thick, 0.9 * each);
    }
  }
  paint.restore();
  return inSight.length;
}

function drawHeatFrame() {
  const canvas = byId("heat");
  const paint = canvas.getContext("2d");
  const {left, bottom, width, height, scale, order, top} = heatMap;
  paint.setTransform(scale, 0, 0, scale, 0, 0);
  paint.clearRect(0, 0, width + left + stallRoom(), top + height + bottom);
  paint.imageSmoothingEnabled = false;
  paint.font = "12px system-ui, sans-serif";
  drawStrip(paint);
  paint.drawImage(heatMap.image, left, top, width, height);
  const singly = drawSingleCalls(paint);
  byId("heat-detail").textContent = singly === 0 ? "" : `${plural(singly, "call is", "calls are")} drawn singly: waiting, then the rest of the call.`;
  if (heatMap.lens) paint.drawImage(heatMap.lens, left, heatMap.strip + 2, width, LENS_HEIGHT);
  drawStalls(paint);
  paint.fillStyle = colour("soft");
  paint.textAlign = "left";
  paint.textBaseline = "top";
  paint.fillText("rank", 0, top + height + 10);
  paint.textAlign = "right";
  paint.textBaseline = "middle";
  const step = chosen("rows") === "all" ? niceStep(order.length * 22 / height, true) : 1;
  const chosenPlace = selection.rank === null ? -1 : order.indexOf(fileOf.get(selection.rank));
  for (let place = 0; place < order.length; place += step)
    if (place !== chosenPlace && (chosenPlace < 0 || Math.abs(yOf(place) - yOf(chosenPlace)) > 12 || step === 1))
      paint.fillText(rankOf(order[place]), left - 8, Math.max(top + 6, yOf(place + 0.5)));
  paint.textBaseline = "top";
  const span = heatMap.to - heatMap.from;
  const tick = niceStep(span * 72 / width);
  for (let at = Math.ceil(heatMap.from / tick) * tick; at <= heatMap.to; at += tick) {
    const x = xOf(at);
    paint.textAlign = x < left + 14 ? "left" : "center";
    if (x < left + width - 22) paint.fillText(tickText(at, tick), x, top + height + 10);
    paint.fillRect(x - 0.5, top + height, 1, 4);
  }
  if (isZoomed()) {
    const whole = heatEnd() - heat.begin_seconds;
    paint.fillStyle = colour("sunken");
    paint.fillRect(left, top + height + 4, width, 4);
    paint.fillStyle = colour("focus");
    paint.fillRect(left + (heatMap.from - heat.begin_seconds) / whole * width, top + height + 4, Math.max(4, span / whole * width), 4);
  }
  paint.fillStyle = colour("surface");
  const each = height / order.length;
  const thick = each > 3 ? 2 : 1;
  if (chosen("rows") === "all") for (const row of nodeBorders(heat.nodes, each)) paint.fillRect(left, Math.round(yOf(row) - thick / 2), width, thick);
  drawHeatChoice(paint, chosenPlace);
}

function drawHeatChoice(paint, chosenPlace) {
  const {left, width, height, top, order} = heatMap;
  const each = height / order.length;
  paint.strokeStyle = colour("focus");
  paint.fillStyle = colour("focus");
  paint.lineWidth = 2;
  if (chosenPlace >= 0) {
    const tall = Math.max(3, each);
    paint.strokeRect(left - 1, yOf(chosenPlace + 0.5) - tall / 2 - 1, width + 1, tall + 2);
    paint.font = "bold 12px system-ui, sans-serif";
    paint.textAlign = "right";
    paint.textBaseline = "middle";
    paint.fillText(selection.rank, left - 8, yOf(chosenPlace + 0.5));
    if (heatMap.lens) {
      paint.strokeRect(left - 1, heatMap.strip + 1, width + 1, LENS_HEIGHT + 2);
      paint.fillText(selection.rank, left - 8, heatMap.strip + 2 + LENS_HEIGHT / 2);
    }
  }
  if (selection.at !== null && selection.at >= heatMap.from && selection.at <= heatMap.to)
    paint.fillRect(xOf(selection.at) - 1, 14, 2, top + height - 14);
  if (heatMap.drag) {
    paint.globalAlpha = 0.25;
    paint.fillRect(Math.min(heatMap.drag.begin, heatMap.drag.end), 14, Math.abs(heatMap.drag.end - heatMap.drag.begin), top + height - 14);
    paint.globalAlpha = 1;
  }
  if (heatMap.row < 0) return;
  const begin = Math.max(left, xOf(heat.begin_seconds + heatMap.bin * heat.bin_seconds));
  const end = Math.min(left + width, xOf(heat.begin_seconds + (heatMap.bin + 1) * heat.bin_seconds));
  paint.strokeStyle = colour("text");
  paint.strokeRect(begin - 1, yOf(heatMap.row) - 1, Math.max(3, end - begin) + 2, Math.max(3, each) + 2);
}

// "2 s", "2.5 s": as many digits as tell one tick from the next.
function tickText(at, step) {
  if (Math.abs(at) < step / 2) return "0";
  const [unit, name] = step >= 0.1 ? [1, "s"] : step >= 1e-4 ? [1e-3, "ms"] : [1e-6, "µs"];
  return `${Number((at / unit).toFixed(Math.max(0, Math.ceil(-Math.log10(step / unit)))))} ${name}`;
}

function niceStep(least, isWhole = false) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-12)));
  const step = [1, 2, 5, 10].find((one) => one * power >= least) * power;
  return isWhole ? Math.max(1, Math.round(step)) : step;
}

// Lines between nodes closer than this would hide the ranks.
const LEAST_BETWEEN_LINES = 12;

// Rows before which another node begins; of those too close to each other, in rows of `each` pixels, only some.
function nodeBorders(nodes, each) {
  const borders = [];
  for (let row = 1; row < nodes.length; ++row)
    if (nodes[row] !== nodes[row - 1] && (row - (borders.at(-1) ?? 0)) * each >= LEAST_BETWEEN_LINES) borders.push(row);
  return borders;
}
