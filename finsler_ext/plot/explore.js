"use strict";
// plotly draws; what is here is the projection, what to colour by, and the list of selected rows.
const LISTED = 100, FADED = 0.15, TURN_MS = 500, NARROW = 700;
// more dots than this do not turn smoothly: while turning, a sample of about so many is shown
const SMOOTH = 20000;
const MOST_NAMES = 200;
// of the sentence in a saved picture, in pixels: a letter is at most so wide, a line so high
const LETTER = 8, LINE = 18;
const SYMBOLS = ["circle", "square", "triangle-up", "diamond", "triangle-down"];
const $ = id => document.getElementById(id);
const unpack = (text, Type) => new Type(Uint8Array.from(atob(text), c => c.charCodeAt(0)).buffer);
const data = JSON.parse($("data").textContent);
const place = unpack(data.positions, Float32Array), height = unpack(data.height, Float64Array);
const rows = unpack(data.rows, Int32Array), n = rows.length;
for (const c of data.colors) c.values = unpack(c.values, c.names ? Int32Array : Float64Array);
const ends = unpack(data.lines, Int32Array);
const canvas = document.createElement("canvas");
const FLAT = canvas.getContext("webgl2") || canvas.getContext("webgl") ? "scattergl" : "scatter";
// lines lead up or down, which the map from above does not show
const view = {tilt: ends.length ? 90 : 0, turn: 0, lift: data.magnify, solid: false, color: data.start, drag: "pan"};
let drawn = [], selected = new Set(), adding = false, turning = false;
const wide = () => innerWidth >= NARROW;

// plotly reads some HTML in its texts
const plain = text => String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;")
  .replaceAll(">", "&gt;");
function short(text) {
  const most = wide() ? 24 : 14;
  return text.length > most ? text.slice(0, most - 1) + "…" : text;
}
function show(value) {
  const much = Math.abs(value);
  return much && (much < 0.01 || much >= 1e5) ? value.toExponential(2) : String(+value.toFixed(2));
}

// what is known of a row: in the hover text, the list and the csv
const columns = [
  {name: "row", of: i => rows[i]},
  ...data.hover.map(c => ({name: c.name, of: i => c.values[i]})),
  ...data.colors.slice(1).map(c => ({name: c.name, of: i => c.names ? c.names[c.values[i]] : c.values[i]})),
  {name: "height", of: i => height[i]},
];
const cell = v => typeof v === "number" ? show(v) : v;
const texts = [];
const describe = i => texts[i] ??= columns.map(c => plain(`${c.name}: ${cell(c.of(i))}`)).join("<br>");

// Seen from above at tilt 0; at 90 degrees the height points up.
function project(members) {
  const x = new Float32Array(members.length), y = new Float32Array(members.length);
  const turn = view.turn * Math.PI / 180, tilt = view.tilt * Math.PI / 180;
  const ct = Math.cos(turn), st = Math.sin(turn), away = Math.cos(tilt), up = view.lift * Math.sin(tilt);
  members.forEach((i, k) => {
    x[k] = ct * place[3 * i] - st * place[3 * i + 1];
    y[k] = (st * place[3 * i] + ct * place[3 * i + 1]) * away + place[3 * i + 2] * up;
  });
  return {type: FLAT, x, y};
}
function solid(members) {
  const axis = (k, times) => Float32Array.from(members, i => times * place[3 * i + k]);
  return {type: "scatter3d", x: axis(0, 1), y: axis(1, 1), z: axis(2, view.lift)};
}
function span(k) {
  let low = Infinity, high = -Infinity;
  for (let i = k; i < 3 * n; i += 3) { low = Math.min(low, place[i]); high = Math.max(high, place[i]); }
  return Math.max((high - low) / 2, 0.01);
}

// A trace per name takes a browser minutes if there are very many: rare names share the last one.
function traceOf(color) {
  if (color.traceOf) return color.traceOf;
  const count = new Int32Array(color.names.length);
  for (const code of color.values) count[code]++;
  const codes = [...count.keys()].sort((a, b) => count[b] - count[a] || a - b);
  const own = codes.length > MOST_NAMES ? codes.slice(0, MOST_NAMES).sort((a, b) => a - b) : codes;
  if (own.length < codes.length) color.rest = `${codes.length - own.length} other names`;
  color.traceOf = new Int32Array(color.names.length).fill(own.length);
  color.traces = own.length < codes.length ? own : [...codes.keys()];
  color.traces.forEach((code, k) => { color.traceOf[code] = k; });
  return color.traceOf;
}

// One group of rows per trace: those of a name; or all that have a value, and the others.
function groups() {
  const color = data.colors[view.color];
  const trace = color.names && traceOf(color);
  const found = color.names
    ? color.traces.map(code => ({name: color.names[code], code, members: []}))
    : ["", "no value"].map((name, code) => ({name, code, members: []}));
  if (color.rest) found.push({name: color.rest, code: -1, members: []});
  const group = color.names ? v => trace[v] : v => isFinite(v) ? 0 : 1;
  const step = turning ? Math.ceil(n / SMOOTH) : 1;
  for (let i = 0; i < n; i += step) found[group(color.values[i])].members.push(i);
  // three dimensions have no faded dots: what is not selected gets a group of its own
  if (view.solid && selected.size) {
    found.forEach(g => { g.members = g.members.filter(i => selected.has(i)); });
    const others = [...rows.keys()].filter(i => !selected.has(i));
    found.push({name: "not selected", code: -1, members: others});
  }
  return found.filter(g => g.members.length);
}
function marker({name, code, members}) {
  const color = data.colors[view.color];
  const size = Math.max(2, Math.min(view.solid ? 4 : 7, 320 / Math.sqrt(n)));
  if (color.names && code >= 0)
    return {size, color: color.colors[code], symbol: SYMBOLS[code % SYMBOLS.length]};
  if (name) return {size, color: "#bbbbbb"};
  const {low, high} = color, upright = wide();
  return {
    size, color: Float64Array.from(members, i => color.values[i]),
    colorscale: "Viridis", cmin: low, cmax: high,
    colorbar: {
      title: {text: plain(color.name), side: upright ? "right" : "top"}, thickness: 14, outlinewidth: 0,
      orientation: upright ? "v" : "h", len: 0.8, ...(upright ? {} : {y: -0.02, yanchor: "top"}),
      tickvals: [low, (low + high) / 2, high],
      ticktext: [`≤ ${show(low)}`, show((low + high) / 2), `≥ ${show(high)}`],
    },
  };
}
function trace(group) {
  const {name, members} = group;
  const chosen = members.flatMap((i, k) => selected.has(i) ? [k] : []);
  return {
    mode: "markers", name: plain(short(name)), showlegend: Boolean(name), marker: marker(group),
    text: members.map(describe), hoverinfo: "text",
    ...(view.solid ? solid(members) : {
      ...project(members), selectedpoints: selected.size ? chosen : null,
      selected: {marker: {opacity: 1}}, unselected: {marker: {opacity: FADED}},
    }),
  };
}
// Lines that were asked for, after the dots, with a gap after every second end.
function lines() {
  if (!ends.length || turning) return [];
  const found = view.solid ? solid([...ends]) : project([...ends]);
  const gaps = v => Array.from(v).flatMap((c, k) => k % 2 ? [c, null] : [c]);
  for (const axis of ["x", "y", "z"]) if (found[axis]) found[axis] = gaps(found[axis]);
  return [{...found, mode: "lines", line: {color: "#d62728", width: 1}, opacity: 0.6,
    hoverinfo: "skip", showlegend: false, connectgaps: false}];
}
function layout() {
  const color = data.colors[view.color];
  const beside = wide() ? {y: 0.5} : {orientation: "h", y: -0.02, maxheight: 0.25};
  const above = {orientation: "h", x: 0, y: 1, yanchor: "bottom"};
  const bare = {showticklabels: false, title: {text: ""}, showspikes: false};
  const arrow = {
    text: "height", x: 0, xref: "paper", xanchor: "left", xshift: -44, ax: 0, arrowhead: 2,
    y: 1, yref: "paper", yanchor: "bottom", yshift: -18, ay: 60 * Math.sin(view.tilt * Math.PI / 180),
  };
  return {
    autosize: true, margin: {l: 52, r: 8, t: 34, b: 8, autoexpand: true}, hovermode: "closest",
    dragmode: view.solid ? "orbit" : view.drag,
    uirevision: view.solid, showlegend: true,
    legend: {
      title: {text: color.names ? plain(short(color.name)) : ""}, itemsizing: "constant",
      uirevision: view.color, ...(color.names ? beside : above),
    },
    hoverlabel: {bgcolor: "#ffffff", bordercolor: "#777777", font: {color: "#1a1a1a"}, align: "left"},
    xaxis: {visible: false}, yaxis: {visible: false, scaleanchor: "x"}, selections: [],
    scene: {
      aspectmode: "manual", aspectratio: {x: span(0), y: span(1), z: view.lift * span(2)},
      camera: {eye: {x: 0.75, y: -1.35, z: 0.9}},
      xaxis: bare, yaxis: bare, zaxis: {...bare, title: {text: "height"}},
    },
    annotations: view.solid || view.tilt < 12 ? [] : [arrow],
  };
}
const config = {
  responsive: true, displaylogo: false, scrollZoom: true, displayModeBar: true,
  modeBarButtons: [["lasso2d", "select2d", "pan2d", "resetViews"]],
};
let waiting = null;
function draw() {
  return waiting ??= new Promise(done => requestAnimationFrame(() => {
    waiting = null; drawn = groups();
    done(Plotly.react("plot", [...drawn.map(trace), ...lines()], layout(), config));
  }));
}

function set(changes, moving = false) {
  Object.assign(view, changes); turning = moving && n > SMOOTH;
  for (const name of ["tilt", "turn", "lift"]) $(name).value = view[name];
  $("times").textContent = view.lift; $("color").value = view.color;
  const on = {map: !view.solid && !view.tilt, side: !view.solid && view.tilt === 90,
    solid: view.solid, lasso: view.drag !== "pan"};
  for (const [name, pressed] of Object.entries(on)) $(name).setAttribute("aria-pressed", pressed);
  for (const name of ["tilt", "turn", "lasso"]) $(name).disabled = view.solid;
  return draw();
}
let moving = 0;
function tiltTo(goal) {
  const from = view.tilt, start = performance.now(), mine = ++moving;
  const still = view.solid || matchMedia("(prefers-reduced-motion: reduce)").matches;
  const step = async () => {
    const share = still ? 1 : Math.min(1, (performance.now() - start) / TURN_MS);
    const tilt = from + (goal - from) * share * share * (3 - 2 * share);
    await set({solid: false, tilt}, share < 1);
    if (share < 1 && mine === moving) step();
  };
  return step();
}

function choose(members) {
  selected = new Set(members);
  const count = selected.size, chosen = [...selected].sort((a, b) => a - b).slice(0, LISTED);
  $("count").textContent = count ? `${count} row${count > 1 ? "s" : ""} selected` : "No rows selected";
  $("download").hidden = !count; $("how").hidden = count > 0;
  const line = (tag, cells) => {
    const tr = document.createElement("tr");
    for (const text of cells) {
      const td = document.createElement(tag);
      td.textContent = td.title = text; tr.append(td);
    }
    return tr;
  };
  $("list").replaceChildren(...(count ? [line("th", columns.map(c => c.name))] : []),
    ...chosen.map(i => line("td", columns.map(c => cell(c.of(i))))));
  $("more").textContent = count > LISTED ? `and ${count - LISTED} more in the csv` : "";
  return draw();
}
function csv() {
  // what a spreadsheet would run as a formula gets an apostrophe in front; numbers do not
  const tame = v => /^[=+\-@\t\r]/.test(v) && !isFinite(v) ? "'" + v : v;
  const quoted = v => /[",\n\r]/.test(v) ? `"${v.replaceAll('"', '""')}"` : v;
  const lines = [...selected].sort((a, b) => a - b).map(i => columns.map(c => c.of(i)));
  return [columns.map(c => c.name), ...lines]
    .map(cells => cells.map(v => quoted(tame(String(v)))).join(",") + "\n").join("");
}
function download() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csv()], {type: "text/csv"}));
  link.download = "selected.csv"; link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1e4);
}

// dots drawn by the graphics card are an image in an svg as well; the rest are lines and text
function picture(format) {
  const {data: traces, layout, clientWidth: width, clientHeight: tall} = $("plot");
  const magnified = view.lift > 1 && (view.solid || view.tilt > 0);
  const times = magnified ? ` Heights are drawn ${view.lift} times as large as the map.` : "";
  const lines = wrapped(data.about + times, width / LETTER), room = lines.length * LINE;
  // what the height means and how far to trust it leaves the page with the picture
  const title = {text: lines.map(plain).join("<br>"), font: {size: 13}, x: 0.02, xanchor: "left",
    y: 1, yref: "container", yanchor: "top", pad: {t: 8}};
  const margin = {...layout.margin, t: layout.margin.t + room};
  return Plotly.downloadImage({data: traces, layout: {...layout, title, margin}},
    {format, filename: document.title, width, height: tall + room, scale: format === "png" ? 3 : 1});
}
function wrapped(text, most) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const line = lines.at(-1);
    if (line && line.length + word.length >= most) lines.push(word);
    else lines[lines.length - 1] = line ? `${line} ${word}` : word;
  }
  return lines;
}

data.colors.forEach((c, k) => $("color").add(new Option(k ? c.name : "height", k)));
$("lift").max = Math.max(20, data.magnify);
$("map").onclick = () => tiltTo(0);
$("side").onclick = () => tiltTo(90);
$("solid").onclick = () => set({solid: true});
for (const name of ["tilt", "turn", "lift", "color"]) {
  $(name).oninput = event => { moving++; set({[name]: +event.target.value}, true); };
  $(name).onchange = () => set({});
}
$("lasso").onclick = () => set({drag: view.drag === "pan" ? "lasso" : "pan"});
$("download").onclick = download;
for (const format of ["png", "svg"]) $(format).onclick = () => picture(format);
addEventListener("keydown", event => { if (event.key === "Escape") choose([]); });
matchMedia(`(max-width: ${NARROW - 1}px)`).addEventListener("change", draw);
$("plot").addEventListener("mousedown", event => { adding = event.shiftKey; }, true);
set({}).then(plot => {
  plot.on("plotly_selected", event => {
    // without an outline it is plotly's word on an outline that was taken away
    if (!event?.lassoPoints && !event?.range) return;
    const around = event.points.map(p => drawn[p.curveNumber].members[p.pointNumber]);
    choose(adding ? [...selected, ...around] : around);
  });
  plot.on("plotly_deselect", () => choose([]));
  plot.on("plotly_legendclick", event => { choose(drawn[event.curveNumber].members); return false; });
  plot.on("plotly_relayout", change => {
    if (change.dragmode && !view.solid) set({drag: change.dragmode});
  });
});
