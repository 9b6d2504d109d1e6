// Sorts and filters tables that are marked "sortable", and keeps both in the address. Without it every table reads the same, in rank order.
(() => {
  "use strict";
  const key = (row, column) => {
    const cell = row.cells[column];
    const raw = cell.dataset.sort ?? cell.textContent.trim();
    const value = Number(raw);
    return raw !== "" && !Number.isNaN(value) ? value : raw;
  };
  const order = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en");
  // Unknown values stay at the end, whichever way the rest goes.
  const compare = (a, b, down) => (a === "" || b === "" ? (a === "") - (b === "") : order(a, b) * (down ? -1 : 1));
  const state = new URLSearchParams(location.search);
  const remember = (name, value) => {
    if (value) state.set(name, value);
    else state.delete(name);
    const query = state.toString();
    try {
      history.replaceState(null, "", location.pathname + (query ? `?${query}` : "") + location.hash);
    } catch {
      // An address that can't be changed, such as a file's in some browsers, is no reason not to sort.
    }
  };
  const sort = (table, heading, down) => {
    const column = heading.cellIndex;
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const body = table.tBodies[0];
    const rows = [...body.rows].map((row) => [key(row, column), row]);
    rows.sort((a, b) => compare(a[0], b[0], down));
    body.append(...rows.map((pair) => pair[1]));
  };
  const headings = (table, number) => {
    for (const heading of table.tHead.rows[0].cells) {
      if (heading.dataset.nosort !== undefined) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const down = heading.getAttribute("aria-sort") === "ascending";
        sort(table, heading, down);
        remember(`sort${number || ""}`, `${heading.cellIndex}${down ? "d" : "a"}`);
      });
    }
    const wanted = /^(\d+)([ad])$/.exec(state.get(`sort${number || ""}`) ?? "");
    const heading = wanted && table.tHead.rows[0].cells[Number(wanted[1])];
    if (heading && heading.dataset.nosort === undefined) sort(table, heading, wanted[2] === "d");
  };
  const filter = (tables) => {
    const box = document.createElement("p");
    box.className = "filter";
    const label = document.createElement("label");
    label.textContent = "Filter by model ";
    const input = document.createElement("input");
    input.type = "search";
    input.autocomplete = "off";
    input.value = state.get("model") ?? "";
    const said = document.createElement("span");
    said.setAttribute("role", "status");
    label.append(input);
    box.append(label, said);
    tables[0].closest(".scroll").before(box);
    const apply = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const table of tables) {
        for (const row of table.tBodies[0].rows) {
          const name = row.querySelector("th").textContent.toLowerCase();
          row.hidden = !words.every((word) => name.includes(word));
          shown += table === tables[0] && !row.hidden;
        }
      }
      said.textContent = words.length ? ` ${shown} of ${tables[0].tBodies[0].rows.length} shown` : "";
    };
    input.addEventListener("input", () => {
      apply();
      remember("model", input.value.trim());
    });
    apply();
  };
  const tables = [...document.querySelectorAll("table.sortable")];
  tables.forEach(headings);
  const filtered = tables.filter((table) => table.dataset.filter !== undefined);
  if (filtered.length && filtered[0].tBodies[0].rows.length > 2) filter(filtered);
})();
