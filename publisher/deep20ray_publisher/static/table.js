// Makes the headings of tables marked "sortable" into buttons. Without it every table reads the same, in rank order.
(() => {
  "use strict";
  const key = (row, column) => {
    const cell = row.cells[column];
    const raw = cell.dataset.sort ?? cell.textContent.trim();
    const value = Number(raw);
    return raw !== "" && !Number.isNaN(value) ? value : raw;
  };
  const compare = (a, b) => {
    if (a === b) return 0;
    if (a === "") return 1; // unknown values stay at the end of an ascending order
    if (b === "") return -1;
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en");
  };
  const sort = (table, heading) => {
    const column = heading.cellIndex;
    const down = heading.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = [...body.rows];
    rows.sort((a, b) => compare(key(a, column), key(b, column)) * (down ? -1 : 1));
    body.append(...rows);
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    for (const heading of table.tHead.rows[0].cells) {
      if (heading.dataset.nosort !== undefined) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      button.addEventListener("click", () => sort(table, heading));
      heading.append(button);
    }
  }
})();
