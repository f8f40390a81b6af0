// POP's efficiencies: of the run, of phases and of communicators.

const EFFICIENCIES = [["parallel", "parallel"], ["load_balance", "load balance"],
  ...(isAcrossNodes ? [["balance_within_nodes", "within nodes"], ["balance_between_nodes", "between nodes"]] : []),
  ["communication", "communication"], ["serialisation", "serialisation"], ["transfer", "transfer"]];
const ACCEPTABLE = 0.8;

function fillEfficiencies() {
  const rows = [{name: "the run", efficiency: report.efficiency, phase: null},
    ...report.phases.map((one) => ({name: `phase ${one.name || "(none)"}`, efficiency: one.efficiency, phase: one.name})),
    ...report.communicators.map((one) => ({name: one.name, efficiency: one.efficiency, phase: null}))]
    .filter((row) => row.efficiency);
  byId("efficiency-box").hidden = rows.length === 0;
  const figure = (value) => value === null || value === undefined ? "-"
    : element("span", {class: value < ACCEPTABLE ? "figure low" : "figure"}, value.toFixed(2));
  showMore(byId("efficiencies-all"), () => rows, RANKS_AT_FIRST, "rows", (shown) => fillTable(byId("efficiencies"), [
    {title: "of", left: true, words: true, cell: (row) => row.name},
    ...EFFICIENCIES.map(([key, title]) => ({title, cell: (row) => figure(row.efficiency[key])}))], shown, "Efficiencies",
  (row) => row.phase === null ? null : {phase: row.phase}), (row) => row.phase !== null && row.phase === selection.phase);
}
