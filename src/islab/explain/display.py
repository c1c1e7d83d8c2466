"""Effects in scikit-learn's convention for displays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from islab.explain.effects import Effect

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


class EffectDisplay:
    """The effect of one variable, as scikit-learn's displays are: made from an estimator and drawn.

    Parameters
    ----------
    effect : Effect

    Attributes
    ----------
    effect : Effect
    ax_ : axes
        Once it is drawn.
    figure_ : figure

    Examples
    --------
    ``EffectDisplay.from_estimator(model, X, "age")`` draws the effect of age over the rows of X.
    """

    ax_: Any
    figure_: Any

    def __init__(self, effect: Effect) -> None:
        self.effect = effect

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: Any,
        variable: str,
        *,
        kind: str = "auto",
        ax: Any = None,
        **options: Any,
    ) -> EffectDisplay:
        """Finds and draws the effect of a variable over the rows of a table.

        Parameters
        ----------
        estimator : fitted estimator
        X : DataFrame or (rows, columns)
        variable : str
        kind : {"auto", "average", "accumulated"}
        ax : axes, optional
        **options
            Those of ``estimator.explain_global``: ``output``, ``model``, ``n_draws``, ``level``.
        """
        return cls(estimator.explain_global(X, **options).effect(variable, kind)).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> EffectDisplay:
        """Draws it."""
        self.ax_ = self.effect.plot(ax=ax)
        self.figure_ = self.ax_.figure
        return self
