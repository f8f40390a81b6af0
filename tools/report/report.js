"use strict";

(() => {
  const report = JSON.parse(document.getElementById("report-data").textContent);
  const pictures = JSON.parse(document.getElementById("picture-data").textContent);
  const heat = pictures.heat_map;

  const SIZES = ["small", "medium", "large"];
  const SIZE_TEXTS = {small: "up to 1 KiB", medium: "up to 1 MiB", large: "larger"};
  const RANKS_AT_FIRST = 12;
  const SITES_AT_FIRST = 8;

  // ---- elements and texts

  const byId = (id) => document.getElementById(id);

  // All text goes in as text, never as HTML: names come from files.
  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "part") made.style.setProperty("--part", `${(100 * Math.min(1, Math.max(0, value))).toFixed(1)}%`);
      else if (value !== null) made.setAttribute(name, value);
    }
    made.append(...children.flat().filter((child) => child !== null));
    return made;
  }

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const count = (value) => Math.round(value).toLocaleString("en");
  const plural = (value, one, many) => `${count(value)} ${value === 1 ? one : many}`;

  function digits(value) {
    if (value === 0) return "0";
    return value < 9.995 ? value.toFixed(2) : value < 99.95 ? value.toFixed(1) : Math.round(value).toLocaleString("en");
  }

  function time(us) {
    if (us === null || us === undefined) return "-";
    const size = Math.abs(us);
    if (size >= 7200e6) return `${(us / 3600e6).toFixed(1)} h`;
    if (size >= 120e6) return `${Math.floor(us / 60e6)} min ${Math.floor((us % 60e6) / 1e6)} s`;
    for (const [unit, name] of [[1e6, "s"], [1e3, "ms"], [1, "µs"]]) {
      if (size >= 0.9995 * unit) return `${us < 0 ? "-" : ""}${digits(size / unit)} ${name}`;
    }
    return `${Math.round(us * 1e3)} ns`;
  }
  const seconds = (value) => value === null ? "-" : time(value * 1e6);

  function bytes(value) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let unit = 0;
    while (value >= 1023.5 && unit + 1 < units.length) {
      value /= 1024;
      ++unit;
    }
    return `${unit === 0 || value >= 99.95 ? Math.round(value) : Number(value.toPrecision(3))} ${units[unit]}`;
  }

  function share(part) {
    const percent = 100 * part;
    if (percent === 0) return "0 %";
    return percent < 0.1 ? "< 0.1 %" : `${percent.toFixed(percent < 9.95 ? 1 : 0)} %`;
  }
  const ratio = (part, whole) => whole > 0 ? part / whole : 0;
  const factor = (value) => value === null || value === undefined ? "-" : `${digits(value)}x`;
  const ranges = (list) => list.map(([first, last]) => first === last ? `${first}` : `${first}-${last}`).join(", ");
  const ranksText = (list) => `${list.length === 1 && list[0][0] === list[0][1] ? "rank" : "ranks"} ${ranges(list)}`;
  const isAcrossNodes = report.nodes > 1;

  // "± 3 µs" beside every figure that compares nodes.
  const error = !isAcrossNodes ? "" : report.clock_error_us === null ? "nodes' clocks not compared"
    : `± ${time(report.clock_error_us)} between nodes`;

  const base = (path) => path.slice(path.lastIndexOf("/") + 1);
  function frameText(frame) {
    if (!frame.module) return frame.offset;
    if (!frame.function) return `${base(frame.module)}+${frame.offset}`;
    return frame.file ? `${frame.function} (${base(frame.file)}:${frame.line})` : `${frame.function} (${base(frame.module)})`;
  }
  const siteText = (site) => `${site.name} in ${frameText(site.frames[0])}`;

  // `columns`: {title, left, words, isWide, cell(row)}; a cell is a text or an element.
  function fillTable(table, columns, rows, caption) {
    const mark = (column) => [column.left ? "left" : "", column.words ? "words" : "", column.isWide ? "wide-cell" : ""]
      .filter(Boolean).join(" ") || null;
    table.replaceChildren(
      element("caption", {class: "unseen"}, caption),
      element("thead", {}, element("tr", {}, columns.map((column) => element("th", {scope: "col", class: mark(column)}, column.title)))),
      element("tbody", {}, rows.map((row) => element("tr", {}, columns.map((column) =>
        element("td", {class: mark(column)}, column.cell(row)))))));
  }
  const shareBar = (part, isCalm = false) => element("span", {class: isCalm ? "share calm" : "share"},
    element("i", {part, "aria-hidden": "true"}), element("span", {}, share(part)));

  // The first few rows, and a button for all.
  function showMore(button, total, few, noun, show) {
    show(few);
    if (total <= few) return;
    button.hidden = false;
    let isAll = false;
    const label = () => { button.textContent = isAll ? `Show the first ${few} ${noun}` : `Show all ${count(total)} ${noun}`; };
    button.addEventListener("click", () => {
      isAll = !isAll;
      show(isAll ? total : few);
      label();
    });
    label();
  }

  // ---- data of the pictures

  const bytesOf = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  function floatsOf(text) {
    const view = new DataView(bytesOf(text).buffer);
    return Array.from({length: view.byteLength / 4}, (_, i) => view.getFloat32(4 * i, true));
  }
  const rankOf = (row) => heat.ranks[row];
  const nodeOf = (row) => heat.nodes[row];

  // ---- opening

  function tile(title, value, small, isHot = false) {
    return element("div", isHot ? {class: "hot"} : {}, element("dt", {}, title),
      element("dd", {}, value, small ? element("small", {}, small) : null));
  }

  function fillOpening() {
    const when = new Date(report.begin_unix_seconds * 1e3);
    byId("program").textContent = [report.program, plural(report.ranks, "rank", "ranks"),
      Number.isNaN(when.getTime()) ? "" : when.toLocaleString("en", {dateStyle: "medium", timeStyle: "short"})]
      .filter(Boolean).join("  ·  ");
    const top = [...report.late_ranks].sort((a, b) => b.caused_waiting_seconds - a.caused_waiting_seconds)[0];
    const tiles = [tile("Waiting", report.compared_calls > 0 ? share(report.waiting_share) : "-",
      report.compared_calls > 0 ? `of the ${report.events.kept < report.events.begun ? "recorded part of the run" : "run"}, for late ranks: ${seconds(report.waiting_seconds)} of all ranks` : "no calls to compare", report.waiting_share >= 0.01)];
    if (top && top.caused_waiting_seconds > 0) {
      tiles.push(tile("Most waited for", `rank ${top.rank}`,
        `${share(ratio(top.caused_waiting_seconds, report.waiting_seconds))} of all waiting, last ${count(top.times_last)} of ${plural(top.calls, "time", "times")}`));
    }
    tiles.push(
      tile("Ranks", count(report.ranks), `on ${plural(report.nodes, "node", "nodes")}${report.ranks_read < report.ranks ? `, ${count(report.ranks_read)} read` : ""}`),
      tile("Run", seconds(report.run_seconds), report.finalized ? "MPI_Init to MPI_Finalize" : "to the end of the record"),
      tile("Calls compared", count(report.compared_calls), "known on all their ranks"),
      tile("Clock", !isAcrossNodes ? "one" : report.clock_error_us === null ? "unknown" : `± ${time(report.clock_error_us)}`,
        isAcrossNodes ? "error between nodes" : "one node, no error between ranks"));
    byId("tiles").replaceChildren(...tiles);
    if (report.notes.length > 0) {
      byId("notes").replaceChildren(element("div", {class: "notes"},
        element("h2", {}, report.partial ? "The record is not complete" : "Before you trust the figures"),
        element("ul", {}, report.notes.map((note) => element("li", {}, note)))));
    }
    if (report.pending.length > 0) {
      byId("pending").replaceChildren(element("div", {class: "notes"}, element("h2", {}, "Inside a collective when the record ended"),
        element("ul", {}, report.pending.map((pending) => element("li", {}, pendingText(pending))))));
    }
    for (const place of document.querySelectorAll(".error")) place.textContent = error;
  }

  function pendingText(pending) {
    const where = pending.call_site.length > 0 ? `, at ${frameText(pending.call_site[0])}` : "";
    const long = pending.waited_seconds >= 0.1 ? `, for ${seconds(pending.waited_seconds)} or longer` : "";
    const absent = pending.conflict ? ` The ranks disagree about the collective: ${pending.conflict}.`
      : pending.not_arrived.length > 0 ? ` Not arrived: ${ranksText(pending.not_arrived)}.`
      : pending.unknown_not_arrived > 0 ? ` Not arrived: ${pending.unknown_not_arrived} of its ranks.` : "";
    return `${ranksText(pending.inside)}: ${pending.name}, call ${count(pending.call)} on ${pending.communicator}${where}${long}.${absent}`;
  }

  // ---- heat map

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

  // ---- ranks

  function fillRanks() {
    const rows = report.late_ranks.filter((rank) => rank.calls > 0);
    if (rows.length === 0) {
      byId("who").hidden = true;
      return;
    }
    const columns = [
      {title: "rank", left: true, cell: (rank) => `${rank.rank}`},
      ...(isAcrossNodes ? [{title: "node", left: true, cell: (rank) => `${rank.node}`}] : []),
      {title: "last", cell: (rank) => count(rank.times_last)},
      {title: "of its calls", cell: (rank) => shareBar(ratio(rank.times_last, rank.calls), true)},
      {title: "lateness", cell: (rank) => time(rank.late_us)},
      {title: "longest wait for it", cell: (rank) => time(rank.longest_delay_us)},
      {title: "it waited", cell: (rank) => seconds(rank.waited_seconds)},
      {title: "began here", cell: (rank) => seconds(rank.began_waiting_seconds)},
      {title: "waiting caused", cell: (rank) => seconds(rank.caused_waiting_seconds)},
      {title: "of all waiting", cell: (rank) => shareBar(ratio(rank.caused_waiting_seconds, report.waiting_seconds))}];
    showMore(byId("ranks-all"), rows.length, RANKS_AT_FIRST, "ranks",
      (most) => fillTable(byId("ranks"), columns, rows.slice(0, most), "Late ranks"));
  }

  // Parts of a rank's time, in the order of its bar; they sum to the run.
  const TIME_PARTS = [
    ["before", "MPI_Init", (rank) => rank.time.before_seconds],
    ["computing", "computing", (rank) => rank.time.computing_seconds],
    ["waiting", "waiting for late ranks", (rank) => Math.min(rank.waited_seconds, rank.time.collectives_seconds)],
    ["collectives", "rest of blocking collectives", (rank) => Math.max(0, rank.time.collectives_seconds - rank.waited_seconds)],
    ["messages", "messages and their completion", (rank) => rank.time.point_to_point_seconds + rank.time.completion_seconds],
    ["other", "other MPI", (rank) => rank.time.starting_seconds + rank.time.one_sided_seconds + rank.time.management_seconds +
      rank.time.io_seconds + rank.time.neighbourhood_seconds],
    ["finalize", "MPI_Finalize", (rank) => rank.time.finalize_seconds]];

  function fillTimes() {
    const ranks = report.late_ranks.filter((rank) => rank.time !== null);
    if (ranks.length === 0) return;
    byId("time").hidden = false;
    const parts = TIME_PARTS.filter(([, , of]) => ranks.some((rank) => of(rank) >= 0.0005 * report.run_seconds));
    byId("time-key").replaceChildren(...parts.map(([kind, name]) =>
      element("li", {}, element("i", {class: kind, "aria-hidden": "true"}), name)));
    const efficiency = report.efficiency;
    if (efficiency !== null)
      byId("efficiency").textContent = `Parallel efficiency ${efficiency.parallel.toFixed(2)} = load balance ` +
        `${efficiency.load_balance.toFixed(2)} × communication efficiency ${efficiency.communication.toFixed(2)}.`;
    const bar = (rank) => element("div", {class: "parts", role: "img",
      "aria-label": parts.map(([, name, of]) => `${name} ${share(ratio(of(rank), report.run_seconds))}`).join(", ")},
    parts.map(([kind, name, of]) => element("i", {class: kind, part: ratio(of(rank), report.run_seconds),
      title: `${name}: ${seconds(of(rank))}`})));
    const columns = [
      {title: "rank", left: true, cell: (rank) => `${rank.rank}`},
      ...(isAcrossNodes ? [{title: "node", left: true, cell: (rank) => `${rank.node}`}] : []),
      {title: `of ${seconds(report.run_seconds)}`, left: true, isWide: true, cell: bar},
      ...parts.map(([kind, , of]) => ({title: kind === "before" ? "Init" : kind === "finalize" ? "Finalize" : kind, cell: (rank) => seconds(of(rank))}))];
    const order = () => document.querySelector("input[name=times]:checked").value;
    const sorted = () => [...ranks].sort((a, b) => order() === "rank" ? a.rank - b.rank
      : b.time.computing_seconds - a.time.computing_seconds);
    let shown = RANKS_AT_FIRST;
    const show = (most) => {
      shown = most;
      fillTable(byId("times"), columns, sorted().slice(0, most), "Time of each rank");
    };
    showMore(byId("times-all"), ranks.length, RANKS_AT_FIRST, "ranks", show);
    for (const input of document.querySelectorAll("input[name=times]")) input.addEventListener("change", () => show(shown));
    byId("functions-title").hidden = report.functions.length === 0;
    if (report.functions.length > 0)
      fillTable(byId("functions"), [
        {title: "function", left: true, cell: (one) => one.name},
        {title: "calls", cell: (one) => count(one.calls)},
        {title: "time", cell: (one) => seconds(one.seconds)},
        {title: "per call", cell: (one) => seconds(one.seconds / one.calls)},
        {title: "most on rank", cell: (one) => `${one.most_rank}`},
        {title: "there", cell: (one) => seconds(one.most_seconds)}],
      report.functions, "Functions other than blocking collectives");
  }

  function fillCostlyCalls() {
    const rows = report.costly_calls;
    byId("costly-title").hidden = rows.length === 0;
    if (rows.length === 0) return;
    fillTable(byId("costly"), [
      {title: "call", left: true, cell: (call) => call.name},
      {title: "number", cell: (call) => count(call.call)},
      {title: "at", cell: (call) => seconds(call.at_seconds)},
      {title: "longest wait", cell: (call) => time(call.longest_delay_us)},
      {title: "for rank", cell: (call) => `${call.rank}`},
      {title: "waiting", cell: (call) => seconds(call.waiting_seconds)},
      {title: "of all waiting", cell: (call) => shareBar(ratio(call.waiting_seconds, report.waiting_seconds))},
      {title: "from", left: true, cell: (call) => call.call_site.length > 0 ? frameText(call.call_site[0]) : ""},
      {title: "on", left: true, cell: (call) => call.communicator}], rows, "Costliest calls");
  }

  // ---- the whole run, where the record of single calls does not reach back to its beginning

  function fillWholeRun() {
    const whole = report.whole_run;
    if (report.events.kept >= report.events.begun || whole.calls === 0) return;
    byId("whole").hidden = false;
    byId("whole-lead").textContent = `The pictures and tables around show the last ${count(report.events.kept)} of ${count(report.events.begun)} calls ` +
      `(summed over ranks). While the run went on, its ranks compared ${count(whole.calls)} calls, each with the others of ${isAcrossNodes ? "its node" : "the node"}: ` +
      `first to last arrival took ${time(whole.worst_us)} on average and ${time(whole.most_us)} at most.` +
      (whole.given_up > 0 ? ` ${count(whole.given_up)} more were not compared: some rank came too long after others, or did not record them.` : "");
    const waited = (row) => shareBar(ratio(row, whole.waiting_seconds));
    showMore(byId("whole-ranks-all"), whole.late_ranks.length, RANKS_AT_FIRST, "ranks",
      (most) => fillTable(byId("whole-ranks"), [
        {title: "rank", left: true, cell: (rank) => `${rank.rank}`},
        ...(isAcrossNodes ? [{title: "node", left: true, cell: (rank) => `${rank.node}`}] : []),
        {title: "last", cell: (rank) => count(rank.times_last)},
        {title: "of calls", cell: (rank) => shareBar(ratio(rank.times_last, whole.calls), true)},
        {title: "waiting caused", cell: (rank) => seconds(rank.caused_waiting_seconds)},
        {title: "of all waiting", cell: (rank) => waited(rank.caused_waiting_seconds)}],
      whole.late_ranks.slice(0, most), "Late ranks over the whole run"));
    if (whole.call_sites.length === 0) {
      byId("whole-sites-title").hidden = true;
      return;
    }
    const lastOf = (site) => site.last.length === 0 ? "" : `rank ${site.last[0].rank}, last ${share(ratio(site.last[0].times_last, site.calls))}`;
    showMore(byId("whole-sites-all"), whole.call_sites.length, SITES_AT_FIRST, "call sites",
      (most) => fillTable(byId("whole-sites"), [
        {title: "call", left: true, cell: (site) => site.name},
        {title: "from", left: true, cell: (site) => frameText(site.frames[0])},
        {title: "calls", cell: (site) => count(site.calls)},
        {title: "first to last", cell: (site) => time(site.worst_us)},
        {title: "at most", cell: (site) => time(site.most_us)},
        {title: "waiting", cell: (site) => seconds(site.waiting_seconds)},
        {title: "of all waiting", cell: (site) => waited(site.waiting_seconds)},
        {title: "most waited for", left: true, cell: lastOf}],
      whole.call_sites.slice(0, most), "Call sites over the whole run"));
  }

  // ---- call sites

  const PATTERNS = {unknown: "too few imbalanced calls", balanced: "balanced", persistent: "persistent straggler", rotating: "rotating",
    drifting: "drifting", random: "random"};

  function patternOf(site) {
    const title = element("h4", {}, "Pattern");
    if (site.compared_calls === 0) return element("div", {}, title, element("span", {class: "badge"}, "not compared"));
    const name = PATTERNS[site.pattern] + (site.straggler === null ? "" : `: rank ${site.straggler}`);
    const known = site.predictability !== null;
    return element("div", {}, title, element("span", {class: `badge ${site.pattern}`}, name),
      known ? element("div", {class: "meter", "aria-hidden": "true"}, element("i", {part: site.predictability})) : null,
      element("p", {class: "small"}, site.pattern === "balanced" ? "arrivals within the time of ten messages on average"
        : `${known ? `predictability ${site.predictability.toFixed(2)}; ` : ""}${count(site.uneven_calls)} of ${plural(site.compared_calls, "call", "calls")} imbalanced`));
  }

  function siteCard(site, index) {
    const group = pictures.groups.findIndex((one) => one.call_site === index);
    const more = site.frames.length > 0 ? element("ol", {class: "stack"}, site.frames.map((frame) =>
      element("li", {class: "frame", title: `${frame.file || frame.module}${frame.line ? `:${frame.line}` : ""}`}, frameText(frame)))) : null;
    const button = group < 0 ? null : element("button", {type: "button"}, "Show its calls");
    if (button) {
      button.addEventListener("click", () => {
        chooseGroup(group);
        byId("call").scrollIntoView();
        byId("call-number").focus({preventScroll: true});
      });
    }
    const lasts = site.last.slice(0, 4);
    return element("article", {class: "site"},
      element("div", {}, element("h3", {}, site.name), more, button),
      element("div", {}, element("dl", {},
        element("dt", {}, "waiting"), element("dd", {}, `${seconds(site.waiting_seconds)} (${share(ratio(site.waiting_seconds, report.waiting_seconds))})`),
        element("dt", {}, "worst-case"), element("dd", {}, `${time(site.worst_us)} mean`),
        element("dt", {}, "excess"), element("dd", {}, seconds(site.excess_seconds)),
        element("dt", {}, "calls"), element("dd", {}, `${count(site.calls)} in all`))),
      patternOf(site),
      lasts.length === 0 ? null : element("div", {}, element("h4", {}, "Most often last"),
        element("ul", {class: "lasts"}, lasts.map((last) => element("li", {},
          element("span", {}, `rank ${last.rank}`), element("i", {part: ratio(last.times_last, site.compared_calls), "aria-hidden": "true"}),
          element("span", {}, share(ratio(last.times_last, site.compared_calls))))))));
  }

  function fillSites() {
    const all = report.call_sites.map((site, index) => [site, index]).filter(([site]) => site.compared_calls > 0 || site.waiting_seconds !== null || site.calls > 0);
    if (all.length === 0) {
      byId("sites").replaceChildren(element("p", {}, "The run has no call sites (PAPAYA_CALLSITES=1 records them)."));
      return;
    }
    showMore(byId("sites-all"), all.length, SITES_AT_FIRST, "call sites",
      (most) => byId("sites").replaceChildren(...all.slice(0, most).map(([site, index]) => siteCard(site, index))));
  }

  // ---- charts

  const charts = {};

  function draw(id, label, configuration) {
    if (charts[id]) charts[id].destroy();
    byId(id).setAttribute("aria-label", label);
    charts[id] = new Chart(byId(id), configuration);
  }

  function setChartDefaults() {
    Chart.defaults.animation = false;
    Chart.defaults.maintainAspectRatio = false;
    Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    Chart.defaults.font.size = 12;
    Chart.defaults.color = colour("soft");
    Chart.defaults.borderColor = colour("line");
    Chart.defaults.plugins.tooltip.backgroundColor = colour("text");
    Chart.defaults.plugins.tooltip.titleColor = colour("surface");
    Chart.defaults.plugins.tooltip.bodyColor = colour("surface");
    Chart.defaults.plugins.tooltip.displayColors = false;
    Chart.defaults.plugins.tooltip.padding = 9;
    Chart.defaults.plugins.legend.labels.boxWidth = 12;
    Chart.defaults.plugins.legend.labels.boxHeight = 12;
  }

  const axis = (text, more = {}) => ({title: {display: Boolean(text), text}, grid: {color: colour("line")}, ...more});

  // ---- one call

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

  // ---- imbalance factors

  const chosen = (name) => document.querySelector(`input[name=${name}]:checked`).value;
  const factorsOf = () => pictures.factors.filter((one) => one.collective === byId("factor-collective").value);

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
            x: axis("seconds since the record began", {type: "linear"}),
            y: axis("imbalance factor", {type: "logarithmic", ticks: {callback: (value) => Math.log10(value) % 1 === 0 ? `${value.toLocaleString("en")}x` : null}}),
          },
          plugins: {legend: {position: "top", align: "start"},
            tooltip: {callbacks: {label: (item) => `${factor(item.parsed.y)} at ${seconds(item.parsed.x)}, ${item.dataset.label}`}}},
        },
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
    drawFactors();
  }

  // ---- collectives and sizes

  function drawSizes() {
    const figures = report.collectives;
    const bars = (id, label, value, text) => {
      byId(id).parentElement.style.height = `${figures.length * 34 + 84}px`;
      draw(id, `${label} by collective and message size`, {
        type: "bar",
        data: {labels: figures.map((one) => one.name), datasets: SIZES.map((size) => ({label: SIZE_TEXTS[size],
          data: figures.map((one) => value(one.by_size[size])), backgroundColor: colour(size), maxBarThickness: 26}))},
        options: {
          indexAxis: "y",
          scales: {x: axis("", {stacked: true, ticks: {maxTicksLimit: 5, callback: text}}), y: axis("", {stacked: true, grid: {display: false}})},
          plugins: {legend: {position: "top", align: "start"},
            tooltip: {callbacks: {label: (item) => `${item.dataset.label}: ${text(item.raw)}`}}},
        },
      });
    };
    bars("calls-chart", "Calls", (size) => size.calls, count);
    bars("time-chart", "Time", (size) => size.seconds, (value) => value === 0 ? "0" : seconds(value));
  }

  function setUpSizes() {
    if (report.collectives.length === 0) {
      byId("sizes").hidden = true;
      return;
    }
    const total = report.collectives.reduce((sum, one) => sum + one.seconds, 0);
    fillTable(byId("collectives"), [
      {title: "call", left: true, cell: (one) => one.name},
      {title: "calls", cell: (one) => count(one.calls)},
      {title: "bytes", cell: (one) => bytes(one.bytes)},
      {title: "time", cell: (one) => seconds(one.seconds)},
      {title: "per call", cell: (one) => time(one.seconds * 1e6 / one.calls)},
      {title: "of it waiting", cell: (one) => one.inside_us ? seconds(one.waiting_seconds) : "-"},
      {title: "excess p50", cell: (one) => one.excess_us ? time(one.excess_us.p50) : "-"},
      {title: "excess p99", cell: (one) => one.excess_us ? time(one.excess_us.p99) : "-"},
      {title: "share of time", cell: (one) => shareBar(ratio(one.seconds, total), true)}], report.collectives, "Collectives, summed over ranks");
    drawSizes();
  }

  // ---- weakly consistent collectives

  const chosenWeak = () => report.weak_collectives[Number(byId("weak-choice").value)];
  const weakText = (one) => `${one.name}, ${one.algorithm}${one.parameters ? `, ${one.parameters}` : ""}`;
  const weakColumns = [
    {title: "calls", cell: (one) => count(one.calls)},
    {title: "time", cell: (one) => seconds(one.seconds)},
    {title: "waited", cell: (one) => seconds(one.waited_seconds)},
    {title: "calls old", cell: (one) => one.staleness === null ? "-" : one.staleness.toFixed(2)},
    {title: "at most", cell: (one) => one.staleness === null ? "-" : count(one.most_staleness)},
    {title: "took part", cell: (one) => share(one.share)},
    {title: "saved", cell: (one) => seconds(one.saved_seconds)}];

  function drawWeakAges(one) {
    const total = one.ages.reduce((sum, age) => sum + age.calls, 0);
    draw("weak-ages", `Age of the results of ${weakText(one)}: ${plural(total, "call", "calls")} in the record`, {
      type: "bar",
      data: {labels: one.ages.map((age) => age.from === age.to ? `${age.from}` : `${age.from}-${age.to}`),
        datasets: [{label: "calls", data: one.ages.map((age) => age.calls), backgroundColor: colour("excess"), maxBarThickness: 48}]},
      options: {
        scales: {x: axis("calls that the oldest contribution is behind", {grid: {display: false}}), y: axis("calls", {ticks: {precision: 0}})},
        plugins: {legend: {display: false},
          tooltip: {callbacks: {title: ([item]) => `${item.label} behind`, label: (item) => `${plural(item.raw, "call", "calls")}, ${share(ratio(item.raw, total))}`}}},
      },
    });
  }

  function drawWeakWaits(one) {
    const isCompared = one.compared_calls > 0;
    const text = (value) => value === 0 ? "0" : seconds(value);
    const waits = (label, value, name) => ({label, data: one.ranks.map(value), backgroundColor: colour(name), maxBarThickness: 26});
    draw("weak-waits", `What each rank waited in ${weakText(one)}`, {
      type: "bar",
      data: {labels: one.ranks.map((rank) => rank.rank), datasets: isCompared
        ? [waits("waited", (rank) => rank.compared_waited_seconds ?? 0, "late"),
          waits("in consistent collectives", (rank) => rank.consistent_waiting_seconds ?? 0, "wait")]
        : [waits("waited", (rank) => rank.waited_seconds, "late")]},
      options: {
        interaction: {mode: "index", intersect: false},
        scales: {x: axis("rank", {grid: {display: false}, ticks: {autoSkipPadding: 6}}), y: axis("", {ticks: {maxTicksLimit: 6, callback: text}})},
        plugins: {legend: {position: "top", align: "start"},
          tooltip: {callbacks: {title: ([item]) => `Rank ${item.label}`, label: (item) => `${item.dataset.label}: ${text(item.raw)}`,
            footer: ([item]) => isCompared ? `others would have waited for it: ${text(one.ranks[item.dataIndex].caused_waiting_seconds)}` : ""}}},
      },
    });
  }

  function drawWeak() {
    const one = chosenWeak();
    for (const id of ["weak-ages", "weak-waits"]) byId(id).parentElement.style.height = "17rem";
    byId("weak-ages").closest("figure").hidden = one.ages.length === 0;
    if (one.ages.length > 0) drawWeakAges(one);
    drawWeakWaits(one);
  }

  function showWeak() {
    const one = chosenWeak();
    drawWeak();
    const place = (site) => frameText(site.frames[0]) + (site.ended.length > 0 ? `, waited for at ${frameText(site.ended[0])}` : "");
    const late = (site) => site.late_ranks.length === 0 ? "-"
      : `rank ${site.late_ranks[0].rank}, ${share(ratio(site.late_ranks[0].caused_waiting_seconds, site.consistent_waiting_seconds))}`;
    const sites = one.call_sites.filter((site) => site.frames.length > 0);
    byId("weak-sites-box").hidden = sites.length === 0;
    byId("weak-sites-all").hidden = true;
    const showSites = (most) => fillTable(byId("weak-sites"), [{title: "from", left: true, cell: place}, ...weakColumns,
      {title: "late", left: true, cell: late}], sites.slice(0, most), "Call sites, most time first");
    byId("weak-sites-all").replaceWith(byId("weak-sites-all").cloneNode());
    showMore(byId("weak-sites-all"), sites.length, SITES_AT_FIRST, "call sites", showSites);
    byId("weak-phases-box").hidden = one.phases.length === 0;
    fillTable(byId("weak-phases"), [{title: "phase", left: true, cell: (phase) => phase.name || "(none)"}, ...weakColumns], one.phases,
      "Phases of the program, most time first");
  }

  function setUpWeak() {
    const all = report.weak_collectives;
    if (all.length === 0) {
      byId("weak").hidden = true;
      return;
    }
    fillTable(byId("weak-table"), [
      {title: "collective", left: true, cell: (one) => one.name},
      {title: "algorithm", left: true, cell: (one) => element("code", {}, one.algorithm)},
      {title: "parameters", left: true, cell: (one) => one.parameters}, ...weakColumns], all, "Weakly consistent collectives, summed over ranks");
    byId("weak-choice").replaceChildren(...all.map((one, i) => element("option", {value: i}, weakText(one))));
    byId("weak-choice").closest(".controls").hidden = all.length === 1;
    byId("weak-choice").addEventListener("change", showWeak);
    showWeak();
  }

  // ---- algorithms, the run

  function fillAlgorithms() {
    if (report.algorithms.length === 0) {
      byId("algorithms").hidden = true;
      return;
    }
    const totals = new Map();
    for (const row of report.algorithms) totals.set(row.collective, (totals.get(row.collective) ?? 0) + row.calls);
    fillTable(byId("algorithm-table"), [
      {title: "call", left: true, cell: (row) => row.collective},
      {title: "algorithm", left: true, cell: (row) => element("code", {}, row.algorithm)},
      {title: "calls", cell: (row) => count(row.calls)},
      {title: "of its calls", cell: (row) => shareBar(ratio(row.calls, totals.get(row.collective)), true)},
      {title: "why native", left: true, words: true, cell: (row) => row.reason}], report.algorithms, "Algorithms, calls summed over ranks");
  }

  function fillAbout() {
    const facts = [["Program", report.program], ["Command", report.command], ["MPI", report.mpi], ["papaya", report.papaya],
      ["Nodes", report.hosts.slice(0, 32).map((host) => `${host.host} (${ranksText(host.ranks)})`).join("; ") +
        (report.hosts.length > 32 ? `; and ${report.hosts.length - 32} more` : "")],
      ["Clocks", !isAcrossNodes ? "one node, one clock" : report.clock_error_us === null ? "those of the nodes were not compared"
        : `those of the nodes are known to within ${time(report.clock_error_us)}`],
      ["Events", `${count(report.events.kept)} of ${count(report.events.begun)} in the record`]];
    byId("facts").replaceChildren(...facts.filter(([, value]) => value).flatMap(([name, value]) =>
      [element("dt", {}, name), element("dd", {}, value)]));
    const communicators = report.communicators.filter((one) => one.calls > 0);
    byId("communicators-box").hidden = communicators.length === 0;
    fillTable(byId("communicators"), [
      {title: "name", left: true, cell: (one) => one.name}, {title: "ranks", cell: (one) => count(one.size)},
      {title: "calls", cell: (one) => count(one.calls)}, {title: "worst-case", cell: (one) => time(one.worst_us)},
      {title: "waiting", cell: (one) => one.compared_calls > 0 ? seconds(one.waiting_seconds) : "-"}], communicators.slice(0, 100),
      "Communicators, most waiting first");
    const settings = Object.entries(report.settings);
    byId("settings-box").hidden = settings.length === 0;
    fillTable(byId("settings"), [{title: "name", left: true, cell: ([name]) => element("code", {}, name)},
      {title: "value", left: true, words: true, cell: ([, value]) => element("code", {}, value)}], settings, "Settings");
  }

  function drawAll() {
    setChartDefaults();
    if (!byId("when").hidden) drawHeat();
    if (!byId("call").hidden) drawCall();
    if (!byId("factors").hidden) drawFactors();
    if (!byId("sizes").hidden) drawSizes();
    if (!byId("weak").hidden) drawWeak();
  }

  setChartDefaults();
  fillOpening();
  setUpHeat();
  fillRanks();
  fillTimes();
  fillCostlyCalls();
  fillWholeRun();
  fillSites();
  setUpCalls();
  setUpFactors();
  setUpSizes();
  setUpWeak();
  fillAlgorithms();
  fillAbout();
  for (const section of document.querySelectorAll("main section[id]")) {
    const link = document.querySelector(`nav a[href="#${section.id}"]`);
    if (link) link.hidden = section.hidden;
  }
  // The charts follow the width by themselves, and the scheme's colours not.
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  let resized = 0;
  window.addEventListener("resize", () => {
    cancelAnimationFrame(resized);
    resized = requestAnimationFrame(() => { if (!byId("when").hidden) drawHeat(); });
  });
})();
