// When are ranks late?

const heatMap = {levels: null, image: null, row: -1, bin: -1, left: 44, bottom: 24, rows: heat.ranks.length};

function rampColours() {
  const stops = colour("ramp").split(/\s+/).map((text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16)));
  return Array.from({length: 256}, (_, level) => {
    const at = Math.max(0, level - 1) / 254 * (stops.length - 1);
    const low = Math.min(Math.floor(at), stops.length - 2);
    return stops[low].map((value, i) => Math.round(value + (stops[low + 1][i] - value) * (at - low)));
  });
}
const rgb = (parts) => `rgb(${parts.join(" ")})`;

function usOfLevel(level) {
  return level <= 1 ? heat.floor_us : heat.floor_us * (heat.top_us / heat.floor_us) ** ((level - 1) / 254);
}

// A pixel may stand for several ranks and bins: it shows the latest, so that a single late rank is never lost.
function drawHeat() {
  const canvas = byId("heat");
  const width = byId("heat-picture").clientWidth;
  const height = Math.round(Math.min(Math.max(heatMap.rows * 16, 96), Math.min(560, 0.8 * window.innerHeight)));
  const scale = window.devicePixelRatio || 1;
  canvas.style.height = `${height + heatMap.bottom}px`;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round((height + heatMap.bottom) * scale);
  Object.assign(heatMap, {width: width - heatMap.left, height, scale});
  const columns = Math.max(1, Math.round(heatMap.width * scale));
  const lines = Math.max(1, Math.round(height * scale));
  const image = Object.assign(document.createElement("canvas"), {width: columns, height: lines});
  const paint = image.getContext("2d");
  const data = paint.createImageData(columns, lines);
  const none = colour("none").match(/[0-9a-f]{2}/gi).map((text) => parseInt(text, 16));
  const colours = rampColours();
  colours[0] = none;
  const levels = heatMap.levels;
  const latest = new Uint8Array(heat.bins);
  let painted = -1;
  for (let y = 0; y < lines; ++y) {
    const first = Math.floor(y * heatMap.rows / lines);
    const last = Math.max(first + 1, Math.floor((y + 1) * heatMap.rows / lines));
    if (first !== painted) {
      latest.fill(0);
      for (let row = first; row < last; ++row) {
        for (let bin = 0; bin < heat.bins; ++bin) latest[bin] = Math.max(latest[bin], levels[row * heat.bins + bin]);
      }
      painted = first;
    }
    for (let x = 0; x < columns; ++x) {
      const begin = Math.floor(x * heat.bins / columns);
      const end = Math.max(begin + 1, Math.floor((x + 1) * heat.bins / columns));
      let level = 0;
      for (let bin = begin; bin < end; ++bin) level = Math.max(level, latest[bin]);
      data.data.set(colours[level], 4 * (y * columns + x));
      data.data[4 * (y * columns + x) + 3] = 255;
    }
  }
  paint.putImageData(data, 0, 0);
  heatMap.image = image;
  byId("heat-ramp").style.background = `linear-gradient(90deg, ${Array.from({length: 12}, (_, i) => rgb(colours[1 + Math.round(i * 254 / 11)])).join(", ")})`;
  byId("heat-low").textContent = `${time(heat.floor_us)} or less`;
  byId("heat-high").textContent = time(heat.top_us);
  drawHeatFrame();
}

function drawHeatFrame() {
  const canvas = byId("heat");
  const paint = canvas.getContext("2d");
  const {left, bottom, width, height, scale, rows} = heatMap;
  paint.setTransform(scale, 0, 0, scale, 0, 0);
  paint.clearRect(0, 0, width + left, height + bottom);
  paint.drawImage(heatMap.image, left, 0, width, height);
  paint.font = "12px system-ui, sans-serif";
  paint.fillStyle = colour("soft");
  paint.textAlign = "left";
  paint.textBaseline = "top";
  paint.fillText("rank", 0, height + 8);
  paint.textAlign = "right";
  paint.textBaseline = "middle";
  const step = niceStep(rows * 22 / height, true);
  for (let row = 0; row < rows; row += step) paint.fillText(rankOf(row), left - 6, Math.max(6, (row + 0.5) * height / rows));
  paint.textBaseline = "top";
  const span = heat.bins * heat.bin_seconds;
  const tick = niceStep(span * 64 / width);
  for (let at = Math.ceil(heat.begin_seconds / tick) * tick; at <= heat.begin_seconds + span; at += tick) {
    const x = left + (at - heat.begin_seconds) / span * width;
    paint.textAlign = x < left + 14 ? "left" : "center";
    if (x < left + width - 20) paint.fillText(tickText(at, tick), x, height + 8);
    paint.fillRect(x - 0.5, height, 1, 4);
  }
  paint.fillStyle = colour("surface");
  for (const row of nodeBorders(heat.nodes)) paint.fillRect(left, row * height / rows - 1, width, 2);
  if (heatMap.row < 0) return;
  paint.strokeStyle = colour("focus");
  paint.lineWidth = 2;
  paint.strokeRect(left + heatMap.bin * width / heat.bins - 1, heatMap.row * height / rows - 1,
    Math.max(3, width / heat.bins) + 2, Math.max(3, height / rows) + 2);
}

// "2 s", "2.5 s": as many digits as tell one tick from the next.
function tickText(at, step) {
  if (at < step / 2) return "0";
  const [unit, name] = step >= 0.1 ? [1, "s"] : step >= 1e-4 ? [1e-3, "ms"] : [1e-6, "µs"];
  return `${Number((at / unit).toFixed(Math.max(0, Math.ceil(-Math.log10(step / unit)))))} ${name}`;
}

function niceStep(least, isWhole = false) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1e-12)));
  const step = [1, 2, 5, 10].find((one) => one * power >= least) * power;
  return isWhole ? Math.max(1, Math.round(step)) : step;
}

// Rows before which another node begins; none where the lines would hide the ranks.
function nodeBorders(nodes) {
  const borders = [];
  for (let row = 1; row < nodes.length; ++row) if (nodes[row] !== nodes[row - 1]) borders.push(row);
  return borders.length <= nodes.length / 2 ? borders : [];
}

function readHeat(row, bin) {
  const tip = byId("heat-tip");
  heatMap.row = Math.min(heatMap.rows - 1, Math.max(0, row));
  heatMap.bin = Math.min(heat.bins - 1, Math.max(0, bin));
  const level = heatMap.levels[heatMap.row * heat.bins + heatMap.bin];
  const isMean = document.querySelector("input[name=heat]:checked").value === "mean";
  const node = isAcrossNodes ? ` (node ${nodeOf(heatMap.row)})` : "";
  const late = level === 0 ? "no call here"
    : level === 1 ? `within ${time(heat.floor_us)} of the first`
    : `about ${time(usOfLevel(level))} after the first, ${isMean ? "mean" : "worst call"}`;
  tip.replaceChildren(element("b", {}, `Rank ${rankOf(heatMap.row)}${node}`),
    `at ${seconds(heat.begin_seconds + (heatMap.bin + 0.5) * heat.bin_seconds)}: ${late}${level > 0 && error ? `, ${error}` : ""}`);
  tip.hidden = false;
  const x = heatMap.left + (heatMap.bin + 0.5) * heatMap.width / heat.bins;
  const y = (heatMap.row + 0.5) * heatMap.height / heatMap.rows;
  const room = byId("heat-picture").clientWidth;
  tip.style.left = `${x > room / 2 ? Math.max(0, x - tip.offsetWidth - 12) : Math.min(x + 12, room - tip.offsetWidth)}px`;
  tip.style.top = `${Math.max(0, Math.min(y + 12, heatMap.height - tip.offsetHeight))}px`;
  drawHeatFrame();
}

function setUpHeat() {
  if (report.compared_calls === 0) {
    byId("when").hidden = true;
    return;
  }
  const levels = {mean: bytesOf(heat.mean), worst: bytesOf(heat.worst)};
  heatMap.levels = levels.mean;
  const canvas = byId("heat");
  canvas.setAttribute("aria-label",
    `Lateness of ${plural(heatMap.rows, "rank", "ranks")} over the run. ${report.verdict} Arrow keys read single cells.`);
  for (const choice of document.querySelectorAll("input[name=heat]")) {
    choice.addEventListener("change", () => {
      heatMap.levels = levels[choice.value];
      drawHeat();
      if (heatMap.row >= 0) readHeat(heatMap.row, heatMap.bin);
    });
  }
  const cellAt = (event) => [Math.floor(event.offsetY / heatMap.height * heatMap.rows),
    Math.floor((event.offsetX - heatMap.left) / heatMap.width * heat.bins)];
  const leave = () => {
    heatMap.row = heatMap.bin = -1;
    byId("heat-tip").hidden = true;
    drawHeatFrame();
  };
  canvas.addEventListener("pointermove", (event) => readHeat(...cellAt(event)));
  canvas.addEventListener("pointerleave", leave);
  canvas.addEventListener("blur", leave);
  const showNearest = () => {
    if (heatMap.bin >= 0) showCallNearest(heat.begin_seconds + (heatMap.bin + 0.5) * heat.bin_seconds);
  };
  canvas.addEventListener("click", (event) => {
    readHeat(...cellAt(event));
    showNearest();
  });
  canvas.addEventListener("keydown", (event) => {
    const large = event.shiftKey ? 10 : 1;
    const move = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
    if (move) {
      readHeat(heatMap.row < 0 ? 0 : heatMap.row + large * move[0], heatMap.bin < 0 ? 0 : heatMap.bin + large * move[1]);
      event.preventDefault();
    } else if (event.key === "Enter") {
      showNearest();
    } else if (event.key === "Escape") {
      leave();
    }
  });
  drawHeat();
}
