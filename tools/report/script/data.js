// What papaya has put into the page: report.json, and what is drawn beyond it.

const report = JSON.parse(document.getElementById("report-data").textContent);
const pictures = JSON.parse(document.getElementById("picture-data").textContent);
const heat = pictures.heat_map;

const SIZES = ["small", "medium", "large"];
const SIZE_TEXTS = {small: "up to 1 KiB", medium: "up to 1 MiB", large: "larger"};

function bytesOf(text) {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < characters.length; ++i) bytes[i] = characters.charCodeAt(i);
  return bytes;
}
function floatsOf(text) {
  const view = new DataView(bytesOf(text).buffer);
  const floats = new Float64Array(view.byteLength / 4);
  for (let i = 0; i < floats.length; ++i) floats[i] = view.getFloat32(4 * i, true);
  return floats;
}
const rankOf = (row) => heat.ranks[row];
const nodeOf = (row) => heat.nodes[row];
const fileOf = new Map(heat.ranks.map((rank, row) => [rank, row]));
