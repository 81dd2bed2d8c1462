"use strict";
// Tables: a click on a heading sorts, and the address keeps the order.
const sheets = [...document.querySelectorAll(".scroll > table:not(.turned)")];
function sortBy(head, descending) {
  const table = head.closest("table");
  const heads = [...table.tHead.rows[0].cells];
  const at = heads.indexOf(head);
  const value = row => row.cells[at].dataset.value;
  const compare = (a, b) => {
    const [left, right] = [value(a), value(b)];
    // What has no value stays last, whichever way the rest is sorted.
    if (left === "" || right === "") return (left === "") - (right === "");
    const order = isNaN(left) || isNaN(right) ? left.localeCompare(right) : left - right;
    return descending ? -order : order;
  };
  table.tBodies[0].append(...[...table.tBodies[0].rows].sort(compare));
  heads.forEach(other => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", descending ? "descending" : "ascending");
}
sheets.forEach((table, number) => [...table.tHead.rows[0].cells].forEach(head =>
  head.firstElementChild.addEventListener("click", () => {
    const descending = head.getAttribute("aria-sort") === "ascending";
    sortBy(head, descending);
    const of = number > 0 ? number + ":" : "";
    history.replaceState(null, "", "#sort=" + of + (descending ? "-" : "") + head.dataset.key);
  })));
const wanted = /^#sort=(?:(\d+):)?(-?)(\w+)$/.exec(location.hash);
if (wanted && sheets[wanted[1] || 0]) {
  const heads = [...sheets[wanted[1] || 0].tHead.rows[0].cells];
  const found = heads.find(head => head.dataset.key === wanted[3]);
  if (found) sortBy(found, wanted[2] === "-");
}
