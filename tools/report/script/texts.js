// Figures and names as readers see them.

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
  return frame.file ? `${frame.function} (${base(frame.file)}:${frame.line})` : `${frame.function} (${base(frame.module)}+${frame.offset})`;
}
// By the name of the field.
const WAITS = {all: "for all ranks", barrier: "for all ranks, in a barrier", root: "for the root", as_root: "as the root, for the others",
  lower_ranks: "for lower ranks"};
const siteText = (site) => `${site.name} in ${frameText(site.frames[0])}`;
