// Lines over time, drawn as SVG.

import { h, say, svg } from "./dom.js";

const WIDTH = 240;

/** A line that is `height` high and as wide as there is room. `format` writes a value. */
export function chart({ label, format, height = 40, atLeast = 0, isLarge = false }) {
  const area = svg("path", { class: "chart-area", d: "" });
  const line = svg("path", { class: "chart-line", d: "", "vector-effect": "non-scaling-stroke" });
  const limitLine = svg("path", { class: "chart-limit", d: "", "vector-effect": "non-scaling-stroke" });
  const grid = svg("path", { class: "chart-grid", d: [0.25, 0.5, 0.75].map((part) => `M0 ${height * part}H${WIDTH}`).join(""), "vector-effect": "non-scaling-stroke" });
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, preserveAspectRatio: "none", class: "chart-drawing", role: "img", "aria-label": label }, isLarge ? grid : [], area, line, limitLine);
  const value = h("span", { class: "chart-value" }, "–");
  const top = h("span", { class: "chart-top" }, "");
  const element = h("figure", { class: isLarge ? "chart large" : "chart" },
    h("figcaption", {}, h("span", { class: "chart-label" }, label), value),
    h("div", { class: "chart-frame" }, drawing, isLarge && top));

  return {
    element,
    /** `values` are the newest last, at most `room` of them. */
    update(values, { room = 90, limit } = {}) {
      const last = values.at(-1);
      const highest = Math.max(atLeast, ...values, 0);
      const isNear = limit && highest > limit / 4;
      const scale = nice(isNear ? Math.max(highest, limit) : highest * 1.15);
      const x = (index) => WIDTH - ((values.length - 1 - index) * WIDTH) / (room - 1);
      const y = (number) => height - 1 - (number / scale) * (height - 3);
      const points = values.map((number, index) => `${x(index).toFixed(1)} ${y(number).toFixed(1)}`);
      const path = points.length ? `M${points.join("L")}` : "";
      line.setAttribute("d", path);
      area.setAttribute("d", points.length ? `${path}L${WIDTH} ${height}L${x(0).toFixed(1)} ${height}Z` : "");
      limitLine.setAttribute("d", isNear ? `M0 ${y(limit).toFixed(1)}H${WIDTH}` : "");
      const text = last === undefined ? "–" : format(last);
      say(value, text);
      say(top, values.length ? format(scale) : "");
      drawing.setAttribute("aria-label", `${label}: ${text}${limit ? ` of ${format(limit)}` : ""}`);
    },
  };
}

function nice(value) {
  if (!(value > 0)) return 1;
  const power = 2 ** Math.floor(Math.log2(value));
  return [1, 1.25, 1.5, 1.75, 2].map((step) => step * power).find((step) => step >= value) ?? value;
}
