"""The training loop: one for every network, data set and strategy."""

import math
import signal
import time

import keras
import numpy as np
import tensorflow as tf

from encapnet_tf.agreement import set_agreement_ramp
from encapnet_tf.data import Dataset, batches, split_validation
from trainers import stopping
from trainers.recipe import Recipe, length_of_a_quick_run
from trainers.runs.folder import RunFolder
from trainers.scoring import error_rate, limited, scores_and_labels
from trainers.training import checkpoints, objective
from trainers.training.checkpoints import State
from trainers.training.devices import (
    check_batch_size,
    distribute,
    is_chief,
    num_processes,
    set_policy,
)
from trainers.training.divergence import Diverged, diagnosis, is_finite
from trainers.training.event_log import EventLog
from trainers.training.final_weights import FinalWeights
from trainers.training.norm_statistics import NormStatistics
from trainers.training.progress import Progress
from trainers.training.step import TrainStep, learning_rate

# Reports stay on the device for this many steps: reading each would make the
# device wait.
_STEPS_PER_READ = 10
# Enough for the statistics of batch norms, and a small part of most epochs.
_NORM_IMAGES = 2_048
_NOT_IN_ROWS = ("bad_variable", "stop")


class Loop:
    """Trains a recipe in a run folder, from wherever it stands there.

    Args:
        recipe: What to train and how.
        dataset: The data.
        folder: The run folder, or None to leave nothing behind.
        strategy: A distribution strategy; the default is one device.
        checkpoint_seconds: Longest time between two checkpoints.
        callbacks: Keras callbacks; their logs are the rows of `metrics.csv`.
        quiet: Whether to print nothing.

    Attributes:
        model: The network.
        epochs: How many the run has.
        state: Where the run stands.
        final_weights: Chooses the weights that the run hands over.
        stopping: Set it to stop after the step under way.
        stop_signal: The signal that stopped the run; SIGTERM if another
            process got it.
    """

    def __init__(
        self,
        recipe: Recipe,
        dataset: Dataset,
        folder: RunFolder | None,
        strategy: tf.distribute.Strategy | None = None,
        checkpoint_seconds: float = 300.0,
        callbacks: list[keras.callbacks.Callback] | None = None,
        quiet: bool = False,
    ):
        self.recipe = recipe
        self.dataset = dataset
        self.folder = folder
        self.strategy = strategy or tf.distribute.get_strategy()
        self.checkpoint_seconds = checkpoint_seconds
        self.state = State()
        self.stopping = False
        self.stop_signal = signal.SIGTERM
        self.is_chief = is_chief(self.strategy)
        self._together = num_processes(self.strategy) > 1
        check_batch_size(recipe.batch_size, self.strategy)
        self._split_data()
        self.epochs = recipe.epochs or length_of_a_quick_run(self.steps)
        set_policy(recipe)
        with self.strategy.scope():
            self.model = self._new_model()
            self.optimizer = objective.make_optimizer(
                recipe, self.epochs * self.steps
            )
            self.optimizer.build(self.model.trainable_variables)
            self._train_step = TrainStep(
                self.model,
                self.optimizer,
                recipe,
                self._class_weights(),
                self.strategy,
            )
        self.final_weights = FinalWeights(recipe, self.model, self.optimizer)
        self._norms = NormStatistics(self.model, self.strategy)
        silent = quiet or not self.is_chief
        self._progress = Progress(
            self.epochs, self.steps, recipe.batch_size, silent
        )
        self._callbacks = keras.callbacks.CallbackList(
            callbacks, model=self.model
        )
        self._events = None

    def _split_data(self):
        recipe, seed = self.recipe, self.recipe.seed_of_subsets
        train = limited(self.dataset.train, recipe.limit_train, seed)
        self.test = limited(self.dataset.test, recipe.limit_test, seed)
        self.train, self.validation = train, self.dataset.validation
        if self.validation is None:
            self.train, self.validation = split_validation(
                train, recipe.validation_fraction, seed
            )
        self.steps = (images := self.train.num_examples) // recipe.batch_size
        if self.steps == 0:
            raise ValueError(
                "`batch_size` must not exceed the training images. Received: "
                f"batch_size={recipe.batch_size}, {images} images after the "
                f"validation split. Try --batch_size={max(1, images // 4)}."
            )
        self.steps = min(self.steps, recipe.steps_per_epoch or self.steps)

    def _class_weights(self):
        classes = self.dataset.num_classes
        if self.recipe.class_weights == "none":
            return np.ones(classes, np.float32)
        labels = getattr(self.train, "labels", None)
        if labels is None:
            raise ValueError(
                "`class_weights=balanced` needs the labels in memory. "
                f"Received: dataset={self.dataset.name!r}, which is streamed."
            )
        return objective.make_class_weights(self.recipe, labels, classes)

    def run(self) -> bool:
        """Trains; returns whether the run reached its end."""
        if self.folder is not None:
            self.state = checkpoints.restore(
                self.folder, self.model, self.optimizer
            )
        self._callbacks.on_train_begin()
        self._checkpointed_at = time.monotonic()
        with stopping.asked_first(self._stop):
            while self.state.epoch < self.epochs and not self.stopping:
                if self.final_weights.are_found(self.state):
                    break
                self._run_epoch()
        self._callbacks.on_train_end()
        if self.stopping and self.state.epoch < self.epochs:
            self._save()
            return False
        self.final_weights.settle(self.state)
        return True

    def _stop(self, number):
        self.stopping, self.stop_signal = True, number

    def _run_epoch(self):
        state = self.state
        began = time.monotonic()
        self._progress.start(state.epoch, state.step)
        if state.step == 0:
            self._callbacks.on_epoch_begin(state.epoch)
            state.sums = [0.0] * len(self._train_step.names)
        # From the epoch alone, so that a run resumed inside it has the same.
        self._train_step.set_progress(state.epoch / self.epochs)
        reports = []
        for images, labels in self._train_batches(state.step, self.steps):
            self._set_ramp()
            wish = tf.constant(self.stopping)
            reports.append(self._train_step(images, labels, wish))
            state.step += 1
            self._callbacks.on_train_batch_end(state.step - 1)
            stop = self._may_leave()
            if len(reports) < _STEPS_PER_READ and not stop:
                continue
            if self._read(reports) or stop:
                self.stopping = True
                self._count_time(began)
                return
            if self._checkpoint_due():
                began = self._count_time(began)
                self._save()
        self._read(reports)
        self._validate(began)

    def _may_leave(self):
        # Several processes stop together, where they read together.
        return self.stopping and not self._together

    def _train_batches(self, first, last):
        """The batches of this epoch from `first` to before `last`."""
        recipe = self.recipe

        def shard(num_shards, shard_index):
            return batches(
                self.train,
                recipe.batch_size,
                training=True,
                image_shape=self.model.input_shape[1:],
                augmentation=recipe.augmentation,
                flip=recipe.mirrors(self.dataset.flip),
                seed=recipe.seed,
                epoch=self.state.epoch,
                start_step=first,
                drop_remainder=True,
                num_shards=num_shards,
                shard_index=shard_index,
            ).take(last - first)

        return distribute(self.strategy, shard)

    @property
    def validation_error(self) -> float:
        """The error of the weights that the run hands over."""
        return self.final_weights.error(self.state)

    def _progress_share(self):
        done = self.state.epoch * self.steps + self.state.step
        return done / (self.epochs * self.steps)

    def ramp(self) -> float:
        """The factor of λ now: rises linearly over the recipe's share."""
        length = self.recipe.agreement_ramp
        return min(1.0, self._progress_share() / length) if length else 1.0

    def _set_ramp(self):
        if self.recipe.agreement_ramp and self._ramp_set != 1.0:
            self._ramp_set = self.ramp()
            set_agreement_ramp(self.model, self._ramp_set)

    _ramp_set = None

    def _read(self, reports):
        """Adds the reports up; returns whether any process wants to stop."""
        names = self._train_step.names
        wanted = False
        for offset, report in enumerate(reports):
            values = np.asarray(report, np.float64)
            if not is_finite(values, names, self.recipe):
                step = self.state.step - len(reports) + offset + 1
                paths = [v.path for v in self.model.trainable_variables]
                raise Diverged(
                    diagnosis(values, names, paths, self.state.epoch + 1, step)
                )
            wanted = wanted or values[names.index("stop")] > 0
            self.state.sums = [
                total + float(value)
                for total, value in zip(self.state.sums, values, strict=True)
            ]
        reports.clear()
        loss, error = (
            self.state.sums[names.index(name)] / self.state.step
            for name in ("loss", "error")
        )
        self._progress.show(self.state.step, loss, error)
        return wanted

    def _validate(self, began):
        state = self.state
        with self.final_weights.applied():
            enough = math.ceil(_NORM_IMAGES / self.recipe.batch_size)
            self._norms.settle(self._train_batches(0, min(self.steps, enough)))
            scored = scores_and_labels(
                self.model,
                self.validation,
                augmentation=self.recipe.augmentation,
                stopped=self._may_leave,
            )
            if scored is None:
                # The same epoch goes on here: all steps, no validation yet.
                self._count_time(began)
                return
            scores, labels = scored
            self.final_weights.note(state, error_rate(scores, labels))
        rate = learning_rate(self.optimizer)
        self._count_time(began)
        names = self._train_step.names
        means = {
            name: total / state.step
            for name, total in zip(names, state.sums, strict=True)
        }
        row = {"epoch": state.epoch + 1}
        row |= {n: v for n, v in means.items() if n not in _NOT_IN_ROWS}
        row |= {
            "val_error": error_rate(scores, labels),
            "learning_rate": rate,
            "agreement_ramp": self.ramp(),
            "seconds": round(state.seconds, 3),
        }
        if "top5_error" in names:
            row["val_top5_error"] = error_rate(scores, labels, top=5)
        state.history.append(row)
        self._progress.finish(state.history)
        state.epoch, state.step, state.seconds = state.epoch + 1, 0, 0.0
        self._save()
        self._log(row)
        self._callbacks.on_epoch_end(state.epoch - 1, logs=dict(row))
        if getattr(self.model, "stop_training", False):
            self.stopping = True

    def _count_time(self, began):
        now = time.monotonic()
        self.state.seconds += now - began
        return now

    def _checkpoint_due(self):
        waited = time.monotonic() - self._checkpointed_at
        return self._writes() and waited >= self.checkpoint_seconds

    def _writes(self):
        return self.folder is not None and self.is_chief

    def _save(self):
        if not self._writes():
            return
        done = self.state.epoch * self.steps + self.state.step
        checkpoints.save(
            self.folder, self.state, done, self.model, self.optimizer
        )
        self._checkpointed_at = time.monotonic()

    def single_model(self) -> keras.Model:
        """Returns the trained network, bound to no strategy."""
        if self.strategy.num_replicas_in_sync == 1:
            return self.model
        model = self._new_model()
        for variable, value in zip(
            model.weights, self.model.weights, strict=True
        ):
            variable.assign(value.numpy())
        return model

    def _new_model(self):
        return self.recipe.build(
            self.dataset.num_classes, self.dataset.image_shape
        )

    def _log(self, row):
        if not self._writes():
            return
        if self._events is None:
            self._events = EventLog(self.folder.tensorboard)
        self._events.write(row)
