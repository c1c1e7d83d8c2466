"""The paper's method as a classifier and a regressor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from islab.core import families
from islab.estimators.classifier import NetworkClassifier
from islab.estimators.islab_base import ISLaBEstimator
from islab.estimators.parameter_checks import one_of
from islab.estimators.regressor import NetworkRegressor
from islab.estimators.settings import check_params


class ISLaBClassifier(ISLaBEstimator, NetworkClassifier):
    """Bayesian neural network that keeps few weights and explains each class probability.

    Parameters
    ----------
    likelihood : {"auto", "categorical", "ordinal"}
        Whether three or more classes have an order: then one predictor and thresholds on it tell
        them apart (cumulative logits). "auto" takes the order of an ordered pandas Categorical;
        with "ordinal" numbers are ordered as well.
    class_weight : dict or "balanced", optional
        Positive factors on the rows of each class, as in scikit-learn. Probabilities are then
        those of data in which the classes are so much more frequent; to choose other classes at
        the same probabilities, see ``sklearn.model_selection.TunedThresholdClassifierCV``.
    hidden_layer_sizes : "auto" or tuple of int
        Widths of the hidden layers to start from; ``()`` for a linear model.
    activation : "auto", "leaky_relu", "relu", "identity", "sigmoid", "tanh", or a tuple of them
        A tuple has one for each hidden layer. Local explanations are exact for "relu", which "auto"
        stands for where networks are sampled, "leaky_relu", which it stands for where they are
        trained only, and "identity". Any registered one can be named.
    posterior : {"auto", "sampled", "stacked", "independent", "flow"}
        Networks drawn by Markov chains, whose probabilities and intervals are calibrated; draws of
        all variational runs, weighted to predict best together; the run with the highest ELBO
        alone, with independent weights; or that run with weights tied by a normalizing flow.
        "auto" samples where chains can serve and stacks runs where they cannot; it is
        "independent" if ``training`` or a prior by block is given.
    flow : {"iaf", "rnvp"}
        Kind of the flow's transforms, inverse autoregressive or real-valued non-volume
        preserving; only ``posterior="flow"`` has them.
    n_transforms : int
        How many of them follow one another.
    input_skip : bool
        Whether covariates enter every layer or only the first.
    constraints : dict, optional
        For columns, by name or position, one or several of: "exclude"; "include", a weight of its
        own is certain; "linear", no hidden unit reads it; "increasing" or "decreasing", the
        predictor never falls or rises with it, in every draw. For a tuple of columns, or of groups
        of them, "no interaction": no hidden unit reads two of them. The last three need a sampled
        posterior.
    sparsity : "auto" or float
        From 0, the most accurate network, to 1, the one that is easiest to read.
    prior_inclusion, prior_scale : "auto", float or dict
        Prior probability that a weight is needed, and standard deviation of such a weight; a
        number fixes what is otherwise learned from the data. A dict has numbers for "covariates"
        or "hidden" weights, for a layer (0 is the first, -1 the output layer), or for both at
        once: ``{"hidden": 0.1, (0, "covariates"): 0.5}``.
    slab_df : float, optional
        Degrees of freedom of a Student-t prior for the weights that are needed, which shrinks
        large weights less; a Gaussian prior if not given.
    inclusion_init : "auto", str, (low, high) or dict
        Where the inclusion parameters, logits of the probabilities, start: a keyword such as
        "dense" or "sparse", or bounds; a dict has them for "covariates" and "hidden" weights.
    batch_size : "auto" or int
        Rows in a step of training; a quarter of them, from 64 to 512, by default, and
        more where there are more than 16,000.
    learning_rate_init : "auto" or float
        Adam's highest rate.
    max_epochs : "auto" or int
        Passes over the data to train each network.
    n_restarts : "auto" or int
        Networks to train: chains start from them, or they are stacked, or the best one stays.
    training : "auto", "paper" or dict
        How a variational posterior is trained: the paper's way, with one stage, fixed priors and
        rates halved at 50, 70 and 90 %, or with settings of your own. Keys of the dict, all
        optional: "recipe" ("default" or "paper"), "inclusion_rate", "milestones" and "drop",
        "means" and "sigma" where weights start, "bias_scale", "bias_inclusion" (selects biases,
        too), "refine" (epochs in which the median network learns on), "flow_width",
        "shrink_from", "noise", "standardize"; see the user guide.
    threshold : float
        Weights that are needed with a larger probability are in the readable network.
    n_draws : int
        Draws of the model behind each prediction.
    missing : {"impute", "error"}
        What to do with missing values. Imputed numbers get the mean and a covariate that says
        so; missing text is a level.
    shrink : bool
        Drop dead hidden units while training.
    early_stopping : bool
        End a stage when the ELBO no longer rises. No data are held out.
    engine : {"auto", "native", "torch"}
        What computes: the compiled engine where it can, else torch.
    device : str
        "cpu", or a device of torch.
    n_jobs : int, optional
        Networks to train at the same time.
    random_state : int, RandomState instance or None
        Same number, same model. Predictions are the same each time in any case.
    verbose : bool
        Show a progress bar.
    checkpoint : path, optional
        Folder in which a fit keeps its state, so that the same fit continues from there after a
        crash and ends in the same model; emptied once the fit is done. Needs a ``random_state``.
    on_interrupt : {"auto", "raise", "keep"}
        What Ctrl-C does: raise KeyboardInterrupt and leave the estimator as it was, or keep the
        best model so far with a warning. "auto" keeps it in an interactive session with
        ``verbose=True`` and raises otherwise.

    Attributes
    ----------
    classes_ : (classes,)
        In the order of the columns of ``predict_proba``.
    levels_ : (classes,) or None
        The classes from the lowest to the highest, if they have an order.
    network_ : SparseNetwork
        The readable network: predicts, and can be read.
    posterior_ : SampledPosterior or Posterior
        Drawn networks, or the distribution of all weights of one run; None if the model comes from
        a sparse file.
    n_used_weights_ : int
    elbo_, elbo_error_ : float
        Lower bound of the log evidence, of variational weights, and its Monte Carlo standard error.
    history_ : History
    interrupted_ : bool
        Whether training was interrupted and kept before its end.
    columns_ : ColumnEncoder
        How tables become covariates.
    n_features_in_ : int
    feature_names_in_ : (columns,)
        If the training table had names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ISLaBClassifier(max_epochs=20, n_restarts=1, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape
    (150, 3)
    """

    def __init__(
        self,
        *,
        likelihood: str = "auto",
        class_weight: Any = None,
        hidden_layer_sizes: Any = "auto",
        activation: str = "auto",
        posterior: str = "auto",
        flow: str = "iaf",
        n_transforms: int = 2,
        input_skip: bool = True,
        constraints: dict[Any, Any] | None = None,
        sparsity: Any = "auto",
        prior_inclusion: Any = "auto",
        prior_scale: Any = "auto",
        slab_df: float | None = None,
        inclusion_init: Any = "auto",
        batch_size: Any = "auto",
        learning_rate_init: Any = "auto",
        max_epochs: Any = "auto",
        n_restarts: Any = "auto",
        training: Any = "auto",
        threshold: float = 0.5,
        n_draws: int = 1000,
        missing: str = "impute",
        shrink: bool = True,
        early_stopping: bool = False,
        engine: str = "auto",
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
        checkpoint: str | Path | None = None,
        on_interrupt: str = "auto",
    ) -> None:
        super().__init__(
            hidden_layer_sizes=hidden_layer_sizes,
            activation=activation,
            posterior=posterior,
            flow=flow,
            n_transforms=n_transforms,
            input_skip=input_skip,
            constraints=constraints,
            sparsity=sparsity,
            prior_inclusion=prior_inclusion,
            prior_scale=prior_scale,
            slab_df=slab_df,
            inclusion_init=inclusion_init,
            batch_size=batch_size,
            learning_rate_init=learning_rate_init,
            max_epochs=max_epochs,
            n_restarts=n_restarts,
            training=training,
            threshold=threshold,
            n_draws=n_draws,
            missing=missing,
            shrink=shrink,
            early_stopping=early_stopping,
            engine=engine,
            device=device,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
            checkpoint=checkpoint,
            on_interrupt=on_interrupt,
        )
        self.likelihood = likelihood
        self.class_weight = class_weight

    def _check_params(self) -> None:
        known = ("auto", *families.likelihoods_of_classes())
        rule = (one_of(*known), " or ".join(map(repr, known)))
        check_params(self.get_params(deep=False), {"likelihood": rule})

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Three clusters on no line have no order to learn.
        ordered = self.likelihood != "auto" and families.likelihood(self.likelihood).ordered
        tags.classifier_tags.poor_score = ordered
        return tags


class ISLaBRegressor(ISLaBEstimator, NetworkRegressor):
    """Bayesian neural network that keeps few weights and explains each predicted number.

    Parameters
    ----------
    likelihood : str
        "gaussian" or "student_t": real targets with noise of a learned size, normal or with
        outliers. "poisson" or "negative_binomial": counts, or counts that vary more than Poisson
        counts, with a learned dispersion. "zero_inflated_poisson" or
        "zero_inflated_negative_binomial": the same where further zeros have a learned
        probability. "auto" fits all that can be, those of counts for whole numbers none of which
        is negative, and takes the one with the highest ELBO.
    hidden_layer_sizes : "auto" or tuple of int
        Widths of the hidden layers to start from; ``()`` for a linear model.
    activation : "auto", "leaky_relu", "relu", "identity", "sigmoid", "tanh", or a tuple of them
        A tuple has one for each hidden layer. Local explanations are exact for "relu", which "auto"
        stands for where networks are sampled, "leaky_relu", which it stands for where they are
        trained only, and "identity". Any registered one can be named.
    posterior : {"auto", "sampled", "stacked", "independent", "flow"}
        Networks drawn by Markov chains, whose probabilities and intervals are calibrated; draws of
        all variational runs, weighted to predict best together; the run with the highest ELBO
        alone, with independent weights; or that run with weights tied by a normalizing flow.
        "auto" samples where chains can serve and stacks runs where they cannot; it is
        "independent" if ``training`` or a prior by block is given.
    flow : {"iaf", "rnvp"}
        Kind of the flow's transforms, inverse autoregressive or real-valued non-volume
        preserving; only ``posterior="flow"`` has them.
    n_transforms : int
        How many of them follow one another.
    input_skip : bool
        Whether covariates enter every layer or only the first.
    constraints : dict, optional
        For columns, by name or position, one or several of: "exclude"; "include", a weight of its
        own is certain; "linear", no hidden unit reads it; "increasing" or "decreasing", the
        predictor never falls or rises with it, in every draw. For a tuple of columns, or of groups
        of them, "no interaction": no hidden unit reads two of them. The last three need a sampled
        posterior.
    sparsity : "auto" or float
        From 0, the most accurate network, to 1, the one that is easiest to read.
    prior_inclusion, prior_scale : "auto", float or dict
        Prior probability that a weight is needed, and standard deviation of such a weight; a
        number fixes what is otherwise learned from the data. A dict has numbers for "covariates"
        or "hidden" weights, for a layer (0 is the first, -1 the output layer), or for both at
        once: ``{"hidden": 0.1, (0, "covariates"): 0.5}``.
    slab_df : float, optional
        Degrees of freedom of a Student-t prior for the weights that are needed, which shrinks
        large weights less; a Gaussian prior if not given.
    inclusion_init : "auto", str, (low, high) or dict
        Where the inclusion parameters, logits of the probabilities, start: a keyword such as
        "dense" or "sparse", or bounds; a dict has them for "covariates" and "hidden" weights.
    batch_size : "auto" or int
        Rows in a step of training; a quarter of them, from 64 to 512, by default, and
        more where there are more than 16,000.
    learning_rate_init : "auto" or float
        Adam's highest rate.
    max_epochs : "auto" or int
        Passes over the data to train each network.
    n_restarts : "auto" or int
        Networks to train: chains start from them, or they are stacked, or the best one stays.
    training : "auto", "paper" or dict
        How a variational posterior is trained: the paper's way, with one stage, fixed priors and
        rates halved at 50, 70 and 90 %, or with settings of your own. Keys of the dict, all
        optional: "recipe" ("default" or "paper"), "inclusion_rate", "milestones" and "drop",
        "means" and "sigma" where weights start, "bias_scale", "bias_inclusion" (selects biases,
        too), "refine" (epochs in which the median network learns on), "flow_width",
        "shrink_from", "noise", "standardize"; see the user guide.
    threshold : float
        Weights that are needed with a larger probability are in the readable network.
    n_draws : int
        Draws of the model behind each prediction.
    missing : {"impute", "error"}
        What to do with missing values. Imputed numbers get the mean and a covariate that says
        so; missing text is a level.
    shrink : bool
        Drop dead hidden units while training.
    early_stopping : bool
        End a stage when the ELBO no longer rises. No data are held out.
    engine : {"auto", "native", "torch"}
        What computes: the compiled engine where it can, else torch.
    device : str
        "cpu", or a device of torch.
    n_jobs : int, optional
        Networks to train at the same time.
    random_state : int, RandomState instance or None
        Same number, same model. Predictions are the same each time in any case.
    verbose : bool
        Show a progress bar.
    checkpoint : path, optional
        Folder in which a fit keeps its state, so that the same fit continues from there after a
        crash and ends in the same model; emptied once the fit is done. Needs a ``random_state``.
    on_interrupt : {"auto", "raise", "keep"}
        What Ctrl-C does: raise KeyboardInterrupt and leave the estimator as it was, or keep the
        best model so far with a warning. "auto" keeps it in an interactive session with
        ``verbose=True`` and raises otherwise.

    Attributes
    ----------
    network_ : SparseNetwork
        The readable network: predicts, and can be read.
    posterior_ : SampledPosterior or Posterior
        Drawn networks, or the distribution of all weights of one run; None if the model comes from
        a sparse file.
    n_used_weights_ : int
    elbo_, elbo_error_ : float
        Lower bound of the log evidence, of variational weights, and its Monte Carlo standard error.
    history_ : History
    interrupted_ : bool
        Whether training was interrupted and kept before its end.
    columns_ : ColumnEncoder
        How tables become covariates.
    n_outputs_ : int
    n_features_in_ : int
    feature_names_in_ : (columns,)
        If the training table had names.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = ISLaBRegressor(max_epochs=50, n_restarts=1, random_state=0).fit(X, y)
    >>> model.predict_interval(X, level=0.9).shape
    (442, 2)
    """

    def __init__(
        self,
        *,
        likelihood: str = "gaussian",
        hidden_layer_sizes: Any = "auto",
        activation: str = "auto",
        posterior: str = "auto",
        flow: str = "iaf",
        n_transforms: int = 2,
        input_skip: bool = True,
        constraints: dict[Any, Any] | None = None,
        sparsity: Any = "auto",
        prior_inclusion: Any = "auto",
        prior_scale: Any = "auto",
        slab_df: float | None = None,
        inclusion_init: Any = "auto",
        batch_size: Any = "auto",
        learning_rate_init: Any = "auto",
        max_epochs: Any = "auto",
        n_restarts: Any = "auto",
        training: Any = "auto",
        threshold: float = 0.5,
        n_draws: int = 1000,
        missing: str = "impute",
        shrink: bool = True,
        early_stopping: bool = False,
        engine: str = "auto",
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: bool = False,
        checkpoint: str | Path | None = None,
        on_interrupt: str = "auto",
    ) -> None:
        super().__init__(
            hidden_layer_sizes=hidden_layer_sizes,
            activation=activation,
            posterior=posterior,
            flow=flow,
            n_transforms=n_transforms,
            input_skip=input_skip,
            constraints=constraints,
            sparsity=sparsity,
            prior_inclusion=prior_inclusion,
            prior_scale=prior_scale,
            slab_df=slab_df,
            inclusion_init=inclusion_init,
            batch_size=batch_size,
            learning_rate_init=learning_rate_init,
            max_epochs=max_epochs,
            n_restarts=n_restarts,
            training=training,
            threshold=threshold,
            n_draws=n_draws,
            missing=missing,
            shrink=shrink,
            early_stopping=early_stopping,
            engine=engine,
            device=device,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
            checkpoint=checkpoint,
            on_interrupt=on_interrupt,
        )
        self.likelihood = likelihood

    def _check_params(self) -> None:
        known = ("auto", *families.likelihoods("numbers", "counts"))
        rule = (one_of(*known), " or ".join(map(repr, known)))
        check_params(self.get_params(deep=False), {"likelihood": rule})
