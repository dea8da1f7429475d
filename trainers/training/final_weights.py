"""Which weights a run hands over: the last, the averaged or the best."""

import contextlib
from collections.abc import Iterator

import keras

from trainers.recipe import Recipe
from trainers.training.checkpoints import State


class FinalWeights:
    """Chooses among the weights that a run has had.

    Args:
        recipe: Says whether weights are averaged (`ema`), and whether the best
            are kept (`patience`).
        model: The network.
        optimizer: Keeps the average.
    """

    def __init__(
        self, recipe: Recipe, model: keras.Model, optimizer: keras.Optimizer
    ):
        self._recipe = recipe
        self._model = model
        self._optimizer = optimizer

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """Inside, the model has the weights that count: averaged, if so."""
        if not self._recipe.ema:
            yield
            return
        variables = self._model.trainable_variables
        kept = [variable.numpy() for variable in variables]
        self._average()
        try:
            yield
        finally:
            for variable, value in zip(variables, kept, strict=True):
                variable.assign(value)

    def note(self, state: State, error: float) -> None:
        """Remembers the weights, as they are, if none were better so far."""
        if error < state.best_error:
            state.best_error, state.best_epoch = error, state.epoch
            if self._recipe.patience:
                state.best_weights = {
                    v.path: v.numpy() for v in self._model.weights
                }

    def are_found(self, state: State) -> bool:
        """Whether more epochs are not wanted.

        The validation error is as low as asked for, or the best one is too
        long ago.
        """
        patience, target = self._recipe.patience, self._recipe.target_error
        waited = state.epoch - 1 - state.best_epoch
        if patience is not None and waited >= patience:
            return True
        reached = bool(state.history) and target is not None
        return reached and self.error(state) <= target

    def settle(self, state: State) -> None:
        """Gives the model the best, the averaged or the last weights."""
        if state.best_weights is not None:
            for variable in self._model.weights:
                variable.assign(state.best_weights[variable.path])
        elif self._recipe.ema:
            self._average()

    def error(self, state: State) -> float:
        """Returns the validation error of the weights that are handed over."""
        if state.best_weights is not None:
            return state.best_error
        return state.history[-1]["val_error"]

    def _average(self):
        inner = getattr(self._optimizer, "inner_optimizer", self._optimizer)
        inner.finalize_variable_values(self._model.trainable_variables)
