// Elements of the page and tables.

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

// Rows of a table at first.
const RANKS_AT_FIRST = 12;
const SITES_AT_FIRST = 8;

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
