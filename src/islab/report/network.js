"use strict";
/* The network that the page holds, evaluated as Python does: predictions, slopes, intervals. */

class Network {
  /* `data` is what whatif.py wrote; the first draw is the posterior mean. */
  constructor(data) {
    this.data = data;
    this.weights = Network.unpacked(data.weights, data.edges.length, data.n_draws + 1);
    this.biases = Network.unpacked(data.biases, data.n_units, data.n_draws + 1);
    this.firstOutput = data.n_units - data.outputs.length;
  }

  static unpacked(text, columns, rows) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    return Array.from({ length: rows }, (_, row) =>
      Float64Array.from({ length: columns }, (_, column) =>
        view.getFloat64(8 * (row * columns + column), true),
      ),
    );
  }

  activate(z) {
    switch (this.data.activation) {
      case "relu": return z > 0 ? z : 0;
      case "leaky_relu": return z > 0 ? z : this.data.leaky_slope * z;
      case "sigmoid": return 1 / (1 + Math.exp(-z));
      case "tanh": return Math.tanh(z);
      default: return z;
    }
  }

  activationSlope(z) {
    switch (this.data.activation) {
      case "relu": return z > 0 ? 1 : 0;
      case "leaky_relu": return z > 0 ? 1 : this.data.leaky_slope;
      case "sigmoid": return this.activate(z) * (1 - this.activate(z));
      case "tanh": return 1 - Math.tanh(z) ** 2;
      default: return 1;
    }
  }

  /* Predictor of each output, and slopes [output][covariate], of one draw, in the user's units. */
  piece(draw, x) {
    const { edges, outputs, x_scale, y_center, y_scale } = this.data;
    const weights = this.weights[draw];
    const z = Float64Array.from(this.biases[draw]);
    edges.forEach(([fromCovariate, source, target], edge) => {
      z[target] += weights[edge] * (fromCovariate ? x[source] : this.activate(z[source]));
    });
    const link = outputs.map((_, k) => y_center[k] + y_scale[k] * z[this.firstOutput + k]);
    const slopes = outputs.map((_, k) => {
      const flow = new Float64Array(z.length);
      const slope = new Float64Array(x.length);
      flow[this.firstOutput + k] = 1;
      for (let edge = edges.length - 1; edge >= 0; edge--) {
        const [fromCovariate, source, target] = edges[edge];
        const sent = flow[target] * weights[edge];
        if (fromCovariate) slope[source] += sent;
        else flow[source] += sent * this.activationSlope(z[source]);
      }
      return slope.map((value, column) => (value * y_scale[k]) / x_scale[column]);
    });
    return { link, slopes };
  }

  response(link) {
    switch (this.data.likelihood) {
      case "bernoulli": return link.map((eta) => 1 / (1 + Math.exp(-eta)));
      case "categorical": {
        const largest = Math.max(...link);
        const grown = link.map((eta) => Math.exp(eta - largest));
        const total = grown.reduce((sum, value) => sum + value, 0);
        return grown.map((value) => value / total);
      }
      case "poisson": return link.map((eta) => {
        const capped = Math.min(eta, this.data.largest_log_rate);
        return Math.exp(capped) * (1 + eta - capped);
      });
      default: return link.slice();
    }
  }

  /* Scores of classes have no origin of their own: they are given against their mean. */
  centred({ link, slopes }) {
    if (this.data.likelihood !== "categorical") return { link, slopes };
    const mean = link.reduce((sum, value) => sum + value, 0) / link.length;
    return {
      link: link.map((value) => value - mean),
      slopes: slopes.map((slope) =>
        slope.map((value, j) => value - slopes.reduce((sum, s) => sum + s[j], 0) / slopes.length),
      ),
    };
  }

  /* What is predicted for covariates `x` in the user's units, and what each contributes.

     `draws` [draw][output] are responses, `mean`, `lower` and `upper` [output] summarise them.
     `predictive` has the ends of the interval of a new value, where values are numbers.
     `contributions` [group][output] are counted from the center; `mean` there is that of the
     posterior mean of the weights, so that `intercept` and they add up to `link`. A group is a
     list of covariates whose contributions are added up; by default each is a group. */
  predict(x, groups = this.data.covariates.map((_, column) => [column])) {
    const { x_center, x_scale, level, outputs } = this.data;
    const standardised = x.map((value, j) => (value - x_center[j]) / x_scale[j]);
    const pieces = this.weights.map((_, draw) => this.piece(draw, standardised));
    const draws = pieces.slice(1).map(({ link }) => this.response(link));
    const told = pieces.map((piece) => this.centred(piece));
    const added = told.map(({ slopes }) =>
      groups.map((group) =>
        slopes.map((slope) =>
          group.reduce((sum, j) => sum + slope[j] * (x[j] - x_center[j]), 0),
        ),
      ),
    );
    const ends = [(1 - level) / 2, 1 - (1 - level) / 2];
    const column = (rows, k) => Float64Array.from(rows, (row) => row[k]).sort();
    const sorted = outputs.map((_, k) => column(draws, k));
    const contributions = groups.map((_, g) => {
      const spread = outputs.map((_, k) => column(added.slice(1).map((draw) => draw[g]), k));
      return {
        mean: added[0][g],
        lower: spread.map((values) => quantile(values, ends[0])),
        upper: spread.map((values) => quantile(values, ends[1])),
      };
    });
    const link = told[0].link;
    return {
      draws,
      mean: outputs.map((_, k) => draws.reduce((sum, row) => sum + row[k], 0) / draws.length),
      lower: sorted.map((values) => quantile(values, ends[0])),
      upper: sorted.map((values) => quantile(values, ends[1])),
      predictive: this.predictive(sorted),
      link,
      intercept: link.map((value, k) => added[0].reduce((rest, part) => rest - part[k], value)),
      contributions,
    };
  }

  /* Interval of a new value: noise included. Classes are no numbers and have none. */
  predictive(sorted) {
    const { level, likelihood, noise } = this.data;
    const ends = [(1 - level) / 2, (1 + level) / 2];
    if (likelihood === "gaussian") {
      return ends.map((end, i) =>
        sorted.map((centres, k) =>
          mixtureQuantile(centres, Math.sqrt(noise[k]), end, this.data.normal_ends[i],
            this.data.bisections),
        ),
      );
    }
    if (likelihood === "poisson") {
      return ends.map((end) => sorted.map((rates) => countQuantile(rates, end)));
    }
    return null;
  }
}

/* Of sorted values, with numpy's interpolation. */
function quantile(sorted, share) {
  const place = (sorted.length - 1) * share;
  const below = Math.floor(place);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - below);
}

/* Of an equal mixture of normals, by bisection. */
function mixtureQuantile(centres, sd, share, reach, bisections) {
  let low = centres[0] + reach * sd;
  let high = centres[centres.length - 1] + reach * sd;
  for (let step = 0; step < bisections; step++) {
    const middle = (low + high) / 2;
    const below = centres.reduce((sum, centre) => sum + normalShare((middle - centre) / sd), 0);
    if (below / centres.length < share) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/* Share of the standard normal below z: a series near 0, a continued fraction in the tails. */
function normalShare(z) {
  const size = Math.abs(z);
  if (size > 38) return z > 0 ? 1 : 0;
  const density = Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI);
  if (size < 3) {
    let term = z;
    let sum = z;
    for (let k = 3; Math.abs(term) > 1e-17 * Math.abs(sum); k += 2) {
      term *= (z * z) / k;
      sum += term;
    }
    return 0.5 + density * sum;
  }
  let fraction = size;
  for (let k = 60; k > 0; k--) fraction = size + k / fraction;
  return z > 0 ? 1 - density / fraction : density / fraction;
}

/* Smallest count that an equal mixture of Poisson counts does not exceed with that share. */
function countQuantile(rates, share) {
  const largest = rates[rates.length - 1];
  let low = -1;
  let high = Math.ceil(10 + largest + 20 * Math.sqrt(largest));
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    const below = rates.reduce((sum, rate) => sum + countShare(middle, rate), 0) / rates.length;
    if (below < share) low = middle;
    else high = middle;
  }
  return high;
}

/* Share of Poisson counts up to k, summed from k away from the middle. */
function countShare(k, rate) {
  if (rate === 0) return 1;
  const down = k < rate;
  let count = down ? k : k + 1;
  let term = Math.exp(count * Math.log(rate) - rate - logFactorial(count));
  let sum = 0;
  while (term > 1e-17 * sum && term > 0) {
    sum += term;
    term *= down ? count / rate : rate / (count + 1);
    count += down ? -1 : 1;
  }
  return down ? sum : 1 - sum;
}

function logFactorial(n) {
  if (n < 20) {
    let product = 1;
    for (let k = 2; k <= n; k++) product *= k;
    return Math.log(product);
  }
  const series = 1 / (12 * n) - 1 / (360 * n ** 3) + 1 / (1260 * n ** 5);
  return n * Math.log(n) - n + 0.5 * Math.log(2 * Math.PI * n) + series;
}
