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

// Of a group of radio buttons.
const chosen = (name) => document.querySelector(`input[name=${name}]:checked`).value;
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

// `columns`: {title, left, words, isWide, cell(row)}; a cell is a text or an element. `choiceOf`: what a row stands for, if it can
// be chosen.
function fillTable(table, columns, rows, caption, choiceOf = () => null) {
  const mark = (column) => [column.left ? "left" : "", column.words ? "words" : "", column.isWide ? "wide-cell" : ""]
    .filter(Boolean).join(" ") || null;
  const focused = table.contains(document.activeElement) ? JSON.stringify(document.activeElement.closest("tr")?.choice) : null;
  table.replaceChildren(
    element("caption", {class: "unseen"}, caption),
    element("thead", {}, element("tr", {}, columns.map((column) => element("th", {scope: "col", class: mark(column)}, column.title)))),
    element("tbody", {}, rows.map((row) => {
      const choice = choiceOf(row);
      const cells = columns.map((column, i) => {
        const content = column.cell(row);
        return element("td", {class: mark(column)}, choice !== null && i === 0 ? element("button", {type: "button", class: "pick"}, content) : content);
      });
      const made = element("tr", {}, cells);
      if (choice !== null) makeChoice(made, choice);
      return made;
    })));
  if (focused) [...table.tBodies[0].rows].find((row) => JSON.stringify(row.choice) === focused)?.querySelector(".pick").focus();
}
const shareBar = (part, isCalm = false) => element("span", {class: isCalm ? "share calm" : "share"},
  element("i", {part, "aria-hidden": "true"}), element("span", {}, share(part)));

// Rows of a table at first.
const RANKS_AT_FIRST = 12;
const SITES_AT_FIRST = 8;

// The first few rows and those chosen, and a button for all. Returns what shows them again. `rowsNow`: in the order they have then.
function showMore(button, rowsNow, few, noun, show, isWanted = () => false) {
  let isAll = false;
  const again = () => {
    const rows = rowsNow();
    show(isAll ? rows : rows.filter((row, i) => i < few || isWanted(row)));
    button.hidden = rows.length <= few;
    button.textContent = isAll ? `Show the first ${few} ${noun}` : `Show all ${count(rows.length)} ${noun}`;
    markChoices();
  };
  button.onclick = () => {
    isAll = !isAll;
    again();
  };
  again();
  return again;
}
