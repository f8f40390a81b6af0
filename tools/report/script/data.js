// What papaya has put into the page: report.json, and what is drawn beyond it.

const report = JSON.parse(document.getElementById("report-data").textContent);
const pictures = JSON.parse(document.getElementById("picture-data").textContent);
const heat = pictures.heat_map;

const SIZES = ["small", "medium", "large"];
const SIZE_TEXTS = {small: "up to 1 KiB", medium: "up to 1 MiB", large: "larger"};

const bytesOf = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
function floatsOf(text) {
  const view = new DataView(bytesOf(text).buffer);
  return Array.from({length: view.byteLength / 4}, (_, i) => view.getFloat32(4 * i, true));
}
const rankOf = (row) => heat.ranks[row];
const nodeOf = (row) => heat.nodes[row];
