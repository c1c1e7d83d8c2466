"""Why a row is predicted as it is: what each variable adds on the way from a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from islab.core import families
from islab.core.outputs import (
    Baseline,
    Output,
    baseline_values,
    checked_rows,
    contrast_matrix,
    current_reference,
    output_numbers,
    reference_name,
    require_piecewise_linear,
)
from islab.core.scale import Scale
from islab.explain.drawn import Explainable, ExplainedNetworks, RowDraws, Source, Weights
from islab.explain.local_explanation import Kind, LocalExplanation, check_memory

Float = NDArray[np.floating]


def explain_local(
    source: Source | Explainable,
    x: ArrayLike | Any,
    *,
    output: Output | Sequence[Output] | None = None,
    level: float = 0.95,
    n_draws: int = 1000,
    random_state: int | np.random.Generator | None = None,
    approximate: bool = False,
    reference: Output | None = None,
    baseline: Baseline | None = None,
    kind: Kind = "integrated",
    draws: Weights | None = None,
) -> LocalExplanation:
    """What each variable adds to the predictor of each row, with draws; and slopes at the rows.

    Parameters
    ----------
    source : SparseNetwork, Posterior or SampledPosterior, or a fitted estimator
        The networks to explain. With an estimator this is its own ``explain_local``, which takes
        tables as they are, and the seed of its fit.
    x : (rows, covariates), or of an estimator a DataFrame or (rows, columns)
        In the user's units.
    output : name, position or several of them, optional
        Outputs to explain; all if not given.
    level : float
        Of the credible intervals.
    n_draws : int
        Coherent draws of the network: each draw is the same network for all rows.
    random_state : int or Generator, optional
    approximate : bool
        Allow curved activations: contributions are then found by quadrature, and slopes hold only
        at the row itself.
    reference : "center", or the name or position of a class, optional
        Scores of several classes have no origin of their own. They are given against their mean
        (``"center"``, the default) or against one class.
    baseline : {"typical", "center", "zero"} or (covariates,), optional
        Where contributions are counted from. The default is the typical row of the training
        data: the median of each number and the most frequent level of each category.
        Linear contributions are counted from zero by default, which gives ``beta_j x_j``.
    kind : {"integrated", "linear"}
        What contributions follow: the network all the way from the baseline to the row, or the
        row's own line, as in section 3.3 of the paper.
    draws : (weights, biases), optional
        Draws of the source made before, in place of new ones.

    Notes
    -----
    An integrated contribution is :math:`(x_j - b_j) \\int_0^1 \\partial_j f(b + t(x - b)) dt` for
    baseline b, see :meth:`islab.core.drawn.DrawnNetworks.contributions`. It does not depend on
    whether the row happens to lie where the network is flat. A category's one-hot columns, and a
    number and what marks it as missing, change together; what they add is the contribution
    of their variable. Draws change both weights and linear regions, so everything is found
    anew in each draw.

    Examples
    --------
    >>> import numpy as np
    >>> from islab.core.architecture import Architecture
    >>> from islab.core.posterior import Posterior
    >>> rng = np.random.default_rng(0)
    >>> posterior = Posterior.initialise(Architecture(3, (2,), 1), rng)
    >>> explanation = explain_local(posterior.median(), np.ones((5, 3)), random_state=0)
    >>> explanation
    LocalExplanation(5 rows, 3 used variables, 1 output, 1000 draws, exact)
    >>> total = explanation.draws_intercept + explanation.draws_contribution.sum(axis=2)
    >>> bool(np.allclose(total, explanation.draws_predictor, rtol=1e-12))
    True
    """
    if isinstance(source, Explainable):
        chosen: dict[str, Any] = {"output": output, "level": level, "n_draws": n_draws}
        chosen |= {"approximate": approximate, "reference": reference, "kind": kind}
        return source.explain_local(x, baseline=baseline, **chosen)
    scale = scale_of(source)
    rows = checked_rows(scale, x)
    if n_draws < 1:
        raise ValueError(f"Got n_draws={n_draws}, expected at least 1; try 1000.")
    if not approximate:
        require_piecewise_linear(source, "approximate=True for integrals by quadrature")
    n_weights = source.architecture.n_weights
    check_memory(n_draws, 1, max(n_weights, len(scale.names)), 1)
    drawn = draws or source.draw(n_draws, np.random.default_rng(random_state))
    networks = ExplainedNetworks.collect(source, scale, [drawn])
    return explain_draws(
        networks,
        rows,
        output=output,
        level=level,
        reference=reference,
        baseline=baseline,
        kind=kind,
    )


def explain_draws(
    networks: ExplainedNetworks,
    rows: Float,
    *,
    output: Output | Sequence[Output] | None = None,
    level: float = 0.95,
    reference: Output | None = None,
    baseline: Baseline | None = None,
    kind: Kind = "integrated",
    **shown: Any,
) -> LocalExplanation:
    """The explanation of rows (rows, covariates) by networks that are drawn already.

    ``shown`` are ``labels``, ``values`` and ``baseline_shown`` of :class:`LocalExplanation`.
    """
    if not 0 < level < 1:
        raise ValueError(f"Got level={level}, expected a number between 0 and 1; try 0.95.")
    if kind not in ("integrated", "linear"):
        raise ValueError(f"Got kind={kind!r}, expected 'integrated' or 'linear'.")
    scale, likelihood = networks.scale, networks.likelihood
    chosen = output_numbers(scale.outputs, output)
    reference = current_reference(reference)
    if reference is None and families.likelihood(likelihood).relative_predictor:
        reference = "center"
    contrast_matrix(scale, likelihood, reference)
    name = reference_name(scale, reference)
    if baseline is None:
        baseline = "typical" if kind == "integrated" else "zero"
    return LocalExplanation(
        draws=RowDraws(networks, rows, chosen, name),
        x=rows,
        baseline=baseline_values(scale, baseline),
        kind=kind,
        used=networks.used,
        outputs=tuple(scale.outputs[number] for number in chosen),
        likelihood=likelihood,
        level=level,
        exact=networks.exact,
        reference=name,
        noise=networks.noise[chosen],
        scale=scale,
        **{"labels": np.arange(len(rows)), **shown},
    )


def scale_of(source: Any) -> Scale:
    """Names and scale of the data a source reads; plain ones if it has none."""
    shape = source.architecture
    return source.scale or Scale.plain(shape.n_covariates, shape.n_outputs)
