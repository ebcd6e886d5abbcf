// Tables sort by the column whose heading is clicked: first upwards, then downwards. Cells without a value stay last.
document.querySelectorAll("table.sortable thead button").forEach((button) => {
  button.addEventListener("click", () => {
    const heading = button.closest("th");
    const table = button.closest("table");
    const column = Array.from(heading.parentNode.children).indexOf(heading);
    const down = heading.getAttribute("aria-sort") === "ascending";
    table.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (row) => row.children[column].dataset.value ?? "";
    const compare = (a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x === "" || y === "") return (x === "") - (y === "");
      const [p, q] = [Number(x), Number(y)];
      const order = Number.isNaN(p) || Number.isNaN(q) ? x.localeCompare(y, "en", { numeric: true }) : p - q;
      return down ? -order : order;
    };
    const body = table.tBodies[0];
    body.append(...Array.from(body.rows).sort(compare));
  });
});
