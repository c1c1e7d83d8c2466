/* The network that the page holds, evaluated as Python does: predictions, slopes, intervals.
   LIKELIHOODS and ACTIVATIONS are the families' own scripts; see core/families. */

class Network {
  /* `data` is what whatif.py wrote, `drawn` one of its `models`: draws, each with its own edges. */
  constructor(data, drawn) {
    this.data = data;
    this.drawn = drawn;
    this.likelihood = LIKELIHOODS[data.likelihood];
    const { edges, sizes, n_units } = drawn;
    // Of each hidden unit.
    this.activations = drawn.hidden.flatMap(([first, end], layer) =>
      Array(end - first).fill(ACTIVATIONS[data.activations[layer]]),
    );
    const [weights, biases, noise] = [drawn.weights, drawn.biases, drawn.noise].map(unpacked);
    const [numbers, normals] = [drawn.numbers, drawn.normals].map(unpacked);
    const width = noise.length / sizes.length;
    let end = 0;
    this.draws = sizes.map((size, draw) => {
      const start = end;
      end += size;
      return {
        edges: Array.from(numbers.slice(start, end), (number) => edges[number]),
        weights: weights.slice(start, end),
        biases: biases.slice(draw * n_units, (draw + 1) * n_units),
        noise: Array.from(noise.slice(draw * width, (draw + 1) * width)),
        normal: normals[draw],
      };
    });
    this.firstOutput = n_units - data.outputs.length;
  }

  /* What the units of one draw sum up. */
  sums({ edges, weights, biases }, x) {
    const z = Float64Array.from(biases);
    edges.forEach(([fromCovariate, source, target], edge) => {
      z[target] += weights[edge] * (fromCovariate ? x[source] : this.activations[source].value(z[source]));
    });
    return z;
  }

  /* Predictor of each output, and slopes [output][covariate], of one draw, in the user's units. */
  piece(draw, x) {
    const { outputs, x_scale, y_center, y_scale } = this.data;
    const { edges, weights } = draw;
    const z = this.sums(draw, x);
    const predictor = outputs.map((_, k) => y_center[k] + y_scale[k] * z[this.firstOutput + k]);
    const slopes = outputs.map((_, k) => {
      const flow = new Float64Array(z.length);
      const slope = new Float64Array(x.length);
      flow[this.firstOutput + k] = 1;
      for (let edge = edges.length - 1; edge >= 0; edge--) {
        const [fromCovariate, source, target] = edges[edge];
        const sent = flow[target] * weights[edge];
        if (fromCovariate) slope[source] += sent;
        else flow[source] += sent * this.activations[source].slope(z[source]);
      }
      return slope.map((value, column) => (value * y_scale[k]) / x_scale[column]);
    });
    return { predictor, slopes };
  }

  /* Shares of the straight way from one point to another at which slopes are taken, each with the
     length that it stands for. Between bends slopes are constant, so the middle stands for all. */
  stops(draw, from, to) {
    const { bends, quadrature } = this.data;
    const { hidden } = this.drawn;
    if (!bends) return quadrature;
    let times = [0, 1];
    for (const [layer, [first, end]] of hidden.entries()) {
      const sums = times.map((time) => this.sums(draw, between(from, to, time)));
      const found = [];
      for (let i = 1; i < times.length; i++) {
        for (let unit = first; unit < end; unit++) {
          for (const bend of bends[layer]) {
            const before = sums[i - 1][unit] - bend;
            const after = sums[i][unit] - bend;
            if (before * after < 0) {
              found.push(times[i - 1] + (before / (before - after)) * (times[i] - times[i - 1]));
            }
          }
        }
      }
      times = times.concat(found).sort((one, other) => one - other);
    }
    return times.slice(1).map((time, i) => [(times[i] + time) / 2, time - times[i]]);
  }

  /* As `piece`, with the mean of the slopes over the way from the typical row. */
  way(draw, from, to) {
    const { predictor } = this.piece(draw, to);
    const slopes = predictor.map(() => new Float64Array(to.length));
    for (const [time, length] of this.stops(draw, from, to)) {
      const here = this.piece(draw, between(from, to, time)).slopes;
      slopes.forEach((mean, k) => here[k].forEach((slope, j) => { mean[j] += length * slope; }));
    }
    return { predictor, slopes };
  }

  /* Scores of classes have no origin of their own: they are given against their mean. */
  centred({ predictor, slopes }) {
    if (!this.data.relative) return { predictor, slopes };
    const mean = predictor.reduce((sum, value) => sum + value, 0) / predictor.length;
    return {
      predictor: predictor.map((value) => value - mean),
      slopes: slopes.map((slope) =>
        slope.map((value, j) => value - slopes.reduce((sum, s) => sum + s[j], 0) / slopes.length),
      ),
    };
  }

  /* What is predicted for covariates `x` in the user's units, and what each contributes.

     `draws` [draw][output] are responses, `mean`, `lower` and `upper` [output] summarise them; of
     a row outside the range of training the interval is wider than they.
     `predictive` has the ends of the interval of a new value, where values are numbers.
     `contributions` [group][output] lead from the typical row to this one: integrated gradients,
     exact without curved activations, of each draw. Their means and `intercept` add up to
     `predictor`, the mean over draws. A group is a list of covariates whose contributions are
     added up; by default each is a group. */
  predict(x, groups = this.data.covariates.map((_, column) => [column])) {
    const { x_center, x_scale, x_typical, level, outputs } = this.data;
    const [from, to] = [x_typical, x].map((values) =>
      values.map((value, j) => (value - x_center[j]) / x_scale[j]),
    );
    const pieces = this.draws.map((draw) => this.way(draw, from, to));
    const draws = pieces.map(({ predictor }, draw) =>
      this.likelihood.response(predictor, this.draws[draw].noise),
    );
    const spread = this.spread(x, pieces) ?? draws;
    const told = pieces.map((piece) => this.centred(piece));
    const added = told.map(({ slopes }) =>
      groups.map((group) =>
        slopes.map((slope) =>
          group.reduce((sum, j) => sum + slope[j] * (x[j] - x_typical[j]), 0),
        ),
      ),
    );
    const ends = [(1 - level) / 2, 1 - (1 - level) / 2];
    const column = (rows, k) => Float64Array.from(rows, (row) => row[k]).sort();
    const sorted = outputs.map((_, k) => column(spread, k));
    const contributions = groups.map((_, g) => {
      const spread = outputs.map((_, k) => column(added.map((draw) => draw[g]), k));
      return {
        mean: spread.map((values) => average(values, (value) => value)),
        lower: spread.map((values) => quantile(values, ends[0])),
        upper: spread.map((values) => quantile(values, ends[1])),
      };
    });
    const predictor = outputs.map((_, k) => average(told, (draw) => draw.predictor[k]));
    return {
      draws,
      mean: outputs.map((_, k) => average(draws, (row) => row[k])),
      lower: sorted.map((values) => quantile(values, ends[0])),
      upper: sorted.map((values) => quantile(values, ends[1])),
      predictive: this.predictive(spread),
      predictor,
      intercept: predictor.map((value, k) =>
        contributions.reduce((rest, part) => rest - part.mean[k], value)),
      contributions,
    };
  }

  /* Responses of a row outside the range of training, whose change beyond the edge is as uncertain
     as it is large there or as far inside; see estimators/drawn_rows.py. Null of rows inside. */
  spread(x, pieces) {
    const { x_range, x_center, x_scale, y_center, y_scale } = this.data;
    if (!x_range) return null;
    const clipped = (row) => row.map((value, j) =>
      Math.min(Math.max(value, x_range[0][j] ?? -Infinity), x_range[1][j] ?? Infinity));
    const edge = clipped(x);
    if (edge.every((value, j) => value === x[j])) return null;
    const inside = clipped(edge.map((value, j) => 2 * value - x[j]));
    const [standardEdge, standardInside] = [edge, inside].map((row) =>
      row.map((value, j) => (value - x_center[j]) / x_scale[j]));
    return pieces.map(({ predictor }, number) => {
      const draw = this.draws[number];
      const [atEdge, before] = [standardEdge, standardInside].map((row) => this.sums(draw, row));
      const moved = predictor.map((value, k) => {
        const out = this.firstOutput + k;
        const change = value - y_center[k] - y_scale[k] * atEdge[out];
        const earlier = y_scale[k] * (atEdge[out] - before[out]);
        return value + draw.normal * (Math.abs(earlier) > Math.abs(change) ? earlier : change);
      });
      return this.likelihood.response(moved, draw.noise);
    });
  }

  /* Interval of a new value: noise included. Classes have none. */
  predictive(responses) {
    if (!this.likelihood.interval) return null;
    const { level, outputs } = this.data;
    const noise = this.draws.map((draw) => draw.noise);
    const last = noise[0].length - outputs.length;
    const column = (rows, k) => rows.map((row) => row[k]);
    return [(1 - level) / 2, (1 + level) / 2].map((share) =>
      outputs.map((_, k) => this.likelihood.interval(
        column(responses, k), share, column(noise, k), column(noise, last + k))),
    );
  }
}

/* Numbers that whatif.py packed: little-endian doubles, or whole numbers of 32 bits. */
function unpacked({ kind, text }) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  if (kind === "i4") {
    return Int32Array.from({ length: bytes.length / 4 }, (_, i) => view.getInt32(4 * i, true));
  }
  return Float64Array.from({ length: bytes.length / 8 }, (_, i) => view.getFloat64(8 * i, true));
}

/* Mean of a function of each item. */
function average(items, of) {
  let sum = 0;
  for (let i = 0; i < items.length; i++) sum += of(items[i], i);
  return sum / items.length;
}

/* A point on the straight way between two. */
function between(from, to, share) {
  return from.map((value, j) => value + share * (to[j] - value));
}

/* Of sorted values, with numpy's interpolation. */
function quantile(sorted, share) {
  const place = (sorted.length - 1) * share;
  const below = Math.floor(place);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - below);
}

/* Where a share of a distribution lies below, between two ends. */
function bisected(below, share, low, high) {
  for (let step = 0; step < 70; step++) {
    const middle = (low + high) / 2;
    if (below(middle) < share) low = middle;
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
