// Boxes that scroll sideways can be reached with the keyboard: wide tables, which the theme wraps,
// and charts on a narrow screen.
function markScrolling() {
  const boxes = ".md-typeset__scrollwrap, .md-typeset p:has(> img)";
  for (const box of document.querySelectorAll(boxes)) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}

addEventListener("load", markScrolling);
addEventListener("resize", markScrolling);
