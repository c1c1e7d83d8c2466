/* What moves in the page: the path graph, and the what-if panel. Names are set as text only. */

const DATA = JSON.parse(document.getElementById("islab-data").textContent);
const MODELS = Object.fromEntries(
  Object.entries(DATA.network.models).map(([name, drawn]) => [name, new Network(DATA.network, drawn)]),
);
window.islab = {
  data: DATA,
  predict: (x, groups, model = Object.keys(MODELS)[0]) => MODELS[model].predict(x, groups),
};

const MOST_IN_FULL = 4;

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "style") Object.assign(made.style, value);
    else if (value !== null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/* A name that lines may break where its words end, as in humidity_at_3pm. */
function breakable(name) {
  const parts = name.split(/(?<=[_/.-])(?=\p{L})/u);
  return parts.flatMap((part, k) => (k ? [document.createElement("wbr"), part] : [part]));
}

/* Three digits and a proper minus, as in Python. */
function shown(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  let text;
  if (size >= 1000 && size < 1e6) {
    text = Math.round(value).toLocaleString("en-US", { useGrouping: size >= 10000 });
  }
  else if (size >= 1e6 && size < 1e9) text = `${Number((value / 1e6).toPrecision(3))}M`;
  else if (size >= 1e6 || size < 1e-4) text = value.toExponential(2);
  else text = String(Number(value.toPrecision(3)));
  return text.replace("-", "\u2212");
}

function probability(value) {
  if (value < 0.0005) return "<0.001";
  return value > 0.9995 ? ">0.999" : value.toFixed(3);
}

/* -- the path graph ---------------------------------------------------------------------- */

(() => {
  const graph = document.getElementById("graph");
  if (!graph) return;
  const boxes = [...graph.querySelectorAll(".node")];
  const curves = [...graph.querySelectorAll(".edge")];
  const tip = document.getElementById("tip");
  const hint = document.getElementById("graph-hint");
  const whole = hint.textContent;

  function say(target, x, y) {
    tip.textContent = target.dataset.tip;
    tip.hidden = false;
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = `${Math.max(8, Math.min(x + 14, room))}px`;
    tip.style.top = `${Math.max(8, y - tip.offsetHeight - 10)}px`;
  }
  const hush = () => { tip.hidden = true; };

  /* Everything that the chosen boxes send to and hear from. */
  function onPaths(chosen) {
    const found = new Set();
    for (const [from, to] of [["source", "target"], ["target", "source"]]) {
      const reached = new Set(chosen);
      for (let grows = true; grows;) {
        grows = false;
        for (const curve of curves) {
          if (!reached.has(curve.dataset[from]) || found.has(curve)) continue;
          found.add(curve);
          reached.add(curve.dataset[to]);
          grows = true;
        }
      }
    }
    return found;
  }

  function choose(group) {
    const chosen = boxes.filter((box) => box.dataset.group === group);
    const kept = onPaths(chosen.map((box) => box.dataset.number));
    const ends = new Set(chosen.map((box) => box.dataset.number));
    for (const curve of kept) {
      ends.add(curve.dataset.source);
      ends.add(curve.dataset.target);
    }
    graph.classList.toggle("chosen", group !== null);
    for (const curve of curves) curve.classList.toggle("lit", kept.has(curve));
    for (const box of boxes) {
      box.classList.toggle("lit", ends.has(box.dataset.number));
      box.setAttribute("aria-pressed", String(group !== null && box.dataset.group === group));
    }
    for (const line of document.querySelectorAll("#covariates tr[data-group]")) {
      line.classList.toggle("lit", line.dataset.group === group);
    }
    const weights = `${kept.size} weight${kept.size === 1 ? "" : "s"}`;
    hint.textContent = group === null ? whole
      : `${chosen[0].dataset.tip.split("\n")[0]}: ${weights} on its paths. ` +
        "Click it again, or press Esc, to see all.";
  }

  const wide = () => {
    const box = graph.parentElement;
    document.getElementById("graph-wide").hidden = box.scrollWidth <= box.clientWidth;
  };
  addEventListener("resize", wide);
  wide();

  let current = null;
  const toggle = (group) => choose((current = current === group ? null : group));

  for (const part of [...boxes, ...curves]) {
    part.addEventListener("pointermove", (event) => say(part, event.clientX, event.clientY));
    part.addEventListener("pointerleave", hush);
  }
  for (const box of boxes) {
    box.addEventListener("click", () => toggle(box.dataset.group));
    box.addEventListener("focus", () => {
      const place = box.getBoundingClientRect();
      say(box, place.left, place.top);
    });
    box.addEventListener("blur", hush);
    box.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      toggle(box.dataset.group);
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      hush();
      toggle(current);
    }
  });
})();

/* -- what if ------------------------------------------------------------------------------ */

(() => {
  const form = document.getElementById("settings");
  if (!form) return;
  const { network, settings, rows } = DATA;
  const isClass = network.symbol === "P";
  const told = isClass ? probability : shown;
  const percent = `${Number((100 * network.level).toPrecision(6))} %`;
  const begin = document.getElementById("begin");
  const which = document.getElementById("which-output");
  const chosen = document.getElementById("which-model");
  const predicted = () => window.islab.predict(x, groups, chosen?.value);
  let x = [];
  let before = null;

  const groups = settings.map((setting) => setting.used);
  const offered = new Set(groups.flat());
  const rest = network.covariates.map((_, j) => j).filter((j) => !offered.has(j));
  if (rest.length) groups.push(rest);

  /* A state (a number, null for missing, or a level's position) becomes covariates. */
  function apply(setting, state) {
    setting.used.forEach((place, i) => {
      if (setting.kind === "category") x[place] = setting.codes[state][i];
      else if (setting.columns[i] === 1) x[place] = state === null ? 1 : 0;
      else x[place] = state === null ? setting.fill : state;
    });
  }

  const controls = settings.map((setting, number) => {
    const id = `setting-${number}`;
    const label = element("label", { for: id, id: `${id}-label` }, ...breakable(setting.name));
    if (setting.kind === "category") {
      const options = setting.levels.map((level, k) => element("option", { value: k }, level));
      const select = element("select", { id }, ...options);
      select.addEventListener("input", () => change(setting, Number(select.value)));
      form.append(element("div", { class: "setting" }, label, select));
      return (state) => { select.value = String(state); };
    }
    const slider = element("input", {
      type: "range", min: setting.low, max: setting.high, step: setting.step,
      "aria-labelledby": `${id}-label`,
    });
    const field = element("input", { type: "number", step: "any", id });
    const missing = element("input", { type: "checkbox" });
    let known = setting.fill;
    const parts = [label, slider, field];
    if (setting.may_miss) {
      parts.push(element("label", { class: "missing" }, missing, "missing"));
    }
    const set = (state) => {
      missing.checked = state === null;
      slider.disabled = field.disabled = state === null;
      known = state ?? known;
      slider.value = String(known);
      field.value = String(Number(known.toPrecision(5)));
    };
    slider.addEventListener("input", () => {
      known = Number(slider.value);
      field.value = String(Number(known.toPrecision(5)));
      change(setting, known);
    });
    field.addEventListener("input", () => {
      if (!Number.isFinite(field.valueAsNumber)) return;
      known = field.valueAsNumber;
      slider.value = field.value;
      change(setting, known);
    });
    missing.addEventListener("input", () => {
      const state = missing.checked ? null : known;
      set(state);
      change(setting, state);
    });
    form.append(element("div", { class: "setting" }, ...parts));
    return set;
  });

  function change(setting, state) {
    apply(setting, state);
    show();
  }

  function startFrom(number) {
    x = rows[number].x.slice();
    rows[number].states.forEach((state, k) => controls[k](state));
    before = predicted();
    if (which) which.value = String(before.mean.indexOf(Math.max(...before.mean)));
    show();
  }

  /* Where a response stands on its track, in percent. */
  const [low, high] = DATA.range;
  const place = (value) => `${Math.max(0, Math.min(1, (value - low) / (high - low))) * 100}%`;
  const span = (a, b) => {
    const left = Math.max(0, Math.min(1, (a - low) / (high - low)));
    const right = Math.max(0, Math.min(1, (b - low) / (high - low)));
    return { left: `${left * 100}%`, width: `${(right - left) * 100}%` };
  };

  function outputLine(found, k) {
    const name = isClass ? `P(${network.outputs[k]})` : network.outputs[k];
    const track = element("div", { class: "track" });
    if (found.predictive) {
      const ends = span(found.predictive[0][k], found.predictive[1][k]);
      track.append(element("i", { class: "noise", style: ends }));
    }
    track.append(
      element("i", { class: "credible", style: span(found.lower[k], found.upper[k]) }),
      element("i", { class: "was", style: { left: place(before.mean[k]) } }),
      element("i", { class: "now", style: { left: place(found.mean[k]) } }),
    );
    const moved = Math.abs(found.mean[k] - before.mean[k]) > 1e-12;
    const words = [`${percent} interval ${told(found.lower[k])} to ${told(found.upper[k])}`];
    if (found.predictive) {
      const [from, to] = found.predictive;
      words.push(`a new value: ${shown(from[k])} to ${shown(to[k])}`);
    }
    if (moved) words.push(`was ${told(before.mean[k])}`);
    return element("div", { class: "output-line", title: words.join(" \u00b7 ") },
      element("div", { class: "headline" },
        element("span", { class: "what" }, name),
        element("strong", {}, told(found.mean[k]))),
      track,
      element("div", { class: "fine" }, words.join(" \u00b7 ")));
  }

  function contributionList(found, k) {
    const names = settings.map((setting) => setting.name);
    if (rest.length) names.push(`${rest.length} covariates not offered here`);
    const bars = found.contributions.map(({ mean, lower, upper }, g) =>
      ({ name: names[g], size: mean[k], lower: lower[k], upper: upper[k] }));
    bars.sort((a, b) => Math.abs(b.size) - Math.abs(a.size));
    const every = bars.flatMap(({ size, lower, upper }) => [size, lower, upper]).concat(0);
    const from = Math.min(...every);
    const reach = Math.max(...every) - from || 1;
    const at = (value) => ((value - from) / reach) * 100;
    return bars.map(({ name, size, lower, upper }) =>
      element("li", { class: size >= 0 ? "positive" : "negative" },
        element("span", { class: "name" }, ...breakable(name)),
        element("span", { class: "track" },
          element("i", { class: "zero", style: { left: `${at(0)}%` } }),
          element("i", { class: "bar", style: {
            left: `${Math.min(at(0), at(size))}%`, width: `${Math.abs(at(size) - at(0))}%` } }),
          element("i", { class: "whisker", style: {
            left: `${at(lower)}%`, width: `${at(upper) - at(lower)}%` } })),
        element("span", { class: "size",
          title: `${percent} interval ${shown(lower)} to ${shown(upper)}` }, shown(size))));
  }

  function show() {
    const found = predicted();
    const k = which ? Number(which.value) : 0;
    const prediction = document.getElementById("prediction");
    prediction.classList.toggle("many", network.outputs.length > MOST_IN_FULL);
    prediction.replaceChildren(
      ...network.outputs.map((_, number) => outputLine(found, number)));
    document.getElementById("contributions").replaceChildren(...contributionList(found, k));
    const bars = found.predictor[k] - found.intercept[k];
    document.getElementById("sum").textContent =
      `${DATA.scale || network.outputs[k]} ${shown(found.predictor[k])} = ` +
      `${shown(found.intercept[k])} at the typical row ${bars >= 0 ? "+" : "\u2212"} ` +
      `${shown(Math.abs(bars))} (the bars)`;
  }

  begin.addEventListener("input", () => startFrom(Number(begin.value)));
  if (which) which.addEventListener("input", show);
  if (chosen) chosen.addEventListener("input", () => startFrom(Number(begin.value)));
  document.getElementById("reset").addEventListener("click", () => startFrom(Number(begin.value)));
  for (const button of document.querySelectorAll("button[data-row]")) {
    button.addEventListener("click", () => {
      begin.value = button.dataset.row;
      startFrom(Number(button.dataset.row));
      document.getElementById("what-if").scrollIntoView({ behavior: "smooth" });
      begin.focus({ preventScroll: true });
    });
  }
  startFrom(0);
})();
