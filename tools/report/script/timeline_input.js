// The pointer and the keyboard on the picture of ranks over time.

// What a rank does in a bin of time, as a sentence.
function cellText(row, bin) {
  const cell = row * heat.bins + bin;
  const [caused, mean, worst] = ["caused", "mean", "worst"].map((mode) => heatMap.levels[mode][cell]);
  const us = (level, top) => heat.floor_us * (top / heat.floor_us) ** ((level - 1) / 254);
  const late = (level) => level <= 1 ? `within ${time(heat.floor_us)} of the first` : `about ${time(us(level, heat.top_us))} after the first`;
  const inside = heatMap.inside[cell];
  const stall = stallOfRow.get(row);
  const sentences = stall && heat.begin_seconds + (bin + 1) * heat.bin_seconds >= stall.from - 1e-9 ? [stallText(stall)] : [];
  if (chosenLosses() !== null) {
    const where = selection.site !== null ? "at this call site" : "in calls of this kind";
    const lost = chosenLosses().levels[cell];
    if (lost > 0) sentences.push(`${where} the others lose about ${time(us(lost, chosenLosses().topUs))} waiting for it`);
    return sentences.length > 0 ? sentences.join(", ") : `nobody waits for it ${where}`;
  }
  if (mean > 0) sentences.push(heatMode() === "mean" ? `${late(mean)}, mean` : `${late(worst)}, worst call`);
  if (error && worst > 1) sentences.push(error);
  if (caused > 1) sentences.push(`the others lose about ${time(us(caused, heat.caused_top_us))} waiting for it`);
  if (inside >> 4) sentences.push(`it waits inside a call for ${share((inside >> 4) / 15)} of this time`);
  else if (inside > 0) sentences.push(`inside a call for ${share(inside / 15)} of this time`);
  return sentences.length > 0 ? sentences.join(", ") : "no call here";
}

function readHeat(place, bin) {
  const tip = byId("heat-tip");
  heatMap.row = Math.min(heatMap.order.length - 1, Math.max(0, place));
  heatMap.bin = Math.min(heat.bins - 1, Math.max(0, bin));
  const row = heatMap.order[heatMap.row];
  const at = heat.begin_seconds + (heatMap.bin + 0.5) * heat.bin_seconds;
  tip.replaceChildren(element("b", {}, `Rank ${rankOf(row)}${isAcrossNodes ? ` (node ${nodeOf(row)})` : ""}`),
    `at ${seconds(at)}: ${cellText(row, heatMap.bin)}`);
  tip.hidden = false;
  const x = Math.min(heatMap.left + heatMap.width, Math.max(heatMap.left, xOf(at)));
  const y = yOf(heatMap.row + 0.5);
  const room = byId("heat-picture").clientWidth;
  tip.style.left = `${x > room / 2 ? Math.max(0, x - tip.offsetWidth - 12) : Math.min(x + 12, room - tip.offsetWidth)}px`;
  tip.style.top = `${Math.max(0, Math.min(y + 12, heatMap.top + heatMap.height - tip.offsetHeight))}px`;
  drawHeatFrame();
}

function leaveHeat() {
  heatMap.row = heatMap.bin = -1;
  heatMap.drag = null;
  byId("heat-tip").hidden = true;
  drawHeatFrame();
}

// Around the moment that is chosen or read, else the middle.
function zoomBy(by) {
  const read = heatMap.bin >= 0 ? heat.begin_seconds + (heatMap.bin + 0.5) * heat.bin_seconds : selection.at;
  const middle = read !== null && read >= heatMap.from && read <= heatMap.to ? read : (heatMap.from + heatMap.to) / 2;
  const length = (heatMap.to - heatMap.from) / by;
  select(zoomed(middle - length / 2, middle + length / 2));
}
const zoomAll = () => select({from: null, to: null});

function chooseCell(place, at) {
  const rank = place === null ? selection.rank : rankOf(heatMap.order[place]);
  const isSame = rank === selection.rank && selection.at !== null && binOf(selection.at) === binOf(at);
  select(isSame ? {rank: null, at: null} : {rank, at});
}

function setUpHeatPointer(canvas) {
  const placeAt = (y) => y < heatMap.top ? null : Math.min(heatMap.order.length - 1, Math.floor((y - heatMap.top) / heatMap.height * heatMap.order.length));
  const inside = (x) => Math.min(heatMap.left + heatMap.width, Math.max(heatMap.left, x));
  let down = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button === 0) down = inside(event.offsetX);
  });
  canvas.addEventListener("pointermove", (event) => {
    const x = inside(event.offsetX);
    if (down !== null && Math.abs(x - down) > 6) {
      if (!heatMap.drag) canvas.setPointerCapture(event.pointerId);
      heatMap.drag = {begin: down, end: x};
      byId("heat-tip").hidden = true;
      heatMap.row = heatMap.bin = -1;
      drawHeatFrame();
    } else if (down === null && placeAt(event.offsetY) !== null) {
      readHeat(placeAt(event.offsetY), binOf(atOf(x)));
    }
  });
  canvas.addEventListener("pointerup", (event) => {
    const {drag} = heatMap;
    const isClick = down !== null && !drag;
    down = heatMap.drag = null;
    if (drag) {
      const [from, to] = [drag.begin, drag.end].map(atOf).sort((a, b) => a - b);
      select(zoomed(from, to));
      drawHeatFrame();
    } else if (isClick) {
      const place = placeAt(event.offsetY);
      if (place !== null) readHeat(place, binOf(atOf(inside(event.offsetX))));
      chooseCell(place, atOf(inside(event.offsetX)));
    }
  });
  canvas.addEventListener("pointercancel", () => {
    down = null;
    leaveHeat();
  });
  canvas.addEventListener("pointerleave", () => { if (!heatMap.drag) leaveHeat(); });
}

function setUpHeatKeys(canvas) {
  canvas.addEventListener("keydown", (event) => {
    const by = event.shiftKey ? 10 : 1;
    const move = {ArrowUp: [-by, 0], ArrowDown: [by, 0], ArrowLeft: [0, -by], ArrowRight: [0, by]}[event.key];
    const zoom = {"+": () => zoomBy(2), "=": () => zoomBy(2), "-": () => zoomBy(0.5), "0": zoomAll}[event.key];
    if (move) {
      readHeat(heatMap.row < 0 ? 0 : heatMap.row + move[0], heatMap.bin < 0 ? binOf(heatMap.from) : heatMap.bin + move[1]);
      const at = heat.begin_seconds + (heatMap.bin + 0.5) * heat.bin_seconds;
      const half = (heatMap.to - heatMap.from) / 2;
      if (isZoomed() && (at < heatMap.from || at > heatMap.to)) select(zoomed(at - half, at + half), true);
      event.preventDefault();
    } else if (zoom) {
      zoom();
      event.preventDefault();
    } else if (event.key === "Enter" && heatMap.bin >= 0) {
      chooseCell(heatMap.row, heat.begin_seconds + (heatMap.bin + 0.5) * heat.bin_seconds);
    } else if (event.key === "Escape") {
      leaveHeat();
    }
  });
  canvas.addEventListener("blur", leaveHeat);
}

function setUpHeat() {
  if (report.compared_calls === 0 && stalledCalls.length === 0) {
    byId("when").hidden = true;
    return;
  }
  for (const mode of ["caused", "mean", "worst"]) heatMap.levels[mode] = bytesOf(heat[mode]);
  heatMap.inside = bytesOf(heat.inside);
  heatMap.lost = floatsOf(heat.lost_seconds);
  const canvas = byId("heat");
  canvas.setAttribute("aria-label", `What ${plural(heat.ranks.length, "rank", "ranks")} do over the run. ${report.verdict} ` +
    "Arrow keys read single cells, Enter chooses one, plus and minus zoom, 0 shows the whole run.");
  byId("rows-choice").hidden = heat.ranks.length < 3;
  byId("rows-most").textContent = heat.ranks.length > MOST_ROWS ? `${MOST_ROWS} most waited for` : "most waited for first";
  for (const choice of document.querySelectorAll("input[name=heat], input[name=scale], input[name=rows]")) {
    choice.addEventListener("change", () => {
      drawHeat();
      if (heatMap.row >= 0) readHeat(heatMap.row, heatMap.bin);
    });
  }
  byId("zoom-in").addEventListener("click", () => zoomBy(2));
  byId("zoom-out").addEventListener("click", () => zoomBy(0.5));
  byId("zoom-all").addEventListener("click", zoomAll);
  setUpHeatPointer(canvas);
  setUpHeatKeys(canvas);
  drawHeat();
  follow((changed) => {
    if (changed.some((name) => ["from", "to", "rank", "site", "wait"].includes(name))) drawHeat();
    else drawHeatFrame();
  });
}
