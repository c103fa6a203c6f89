// Before anything is drawn, so that the page does not change its colours while somebody looks at it. Not a module for that reason.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("palisade-theme");
  } catch {
    // Storage may be switched off; then the system's choice counts.
  }
  if (chosen === "light" || chosen === "dark") {
    document.documentElement.dataset.theme = chosen;
  }
})();
