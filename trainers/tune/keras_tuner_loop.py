"""What is borrowed from inside keras-tuner's loop over trials."""

import statistics
import time

import keras_tuner as kt

from trainers.runs.child import Child
from trainers.tune.keras_tuner_oracles import OBJECTIVE
from trainers.tune.trials import Search


class ChildTuner(kt.engine.base_tuner.BaseTuner):
    """Runs trials in a child process.

    Args:
        oracle: Chooses the values.
        search: Says what becomes of them.
        child: Trains.
    """

    def __init__(self, oracle: kt.Oracle, search: Search, child: Child):
        folder = search.path.resolve()
        super().__init__(
            oracle, directory=str(folder.parent), project_name=folder.name
        )
        self._search = search
        self._child = child

    def pre_create_trial(self):
        """Waits a little: an oracle that waits is asked again and again."""
        time.sleep(0.1)

    def run_trial(self, trial):
        """Trains with every seed; returns the mean error."""
        errors = []
        for recipe in self._search.recipes(trial.hyperparameters.values):
            folder = self._search.folder(trial.trial_id, recipe)
            result = self._child.run(recipe, folder)
            if "failed" in result:
                raise kt.errors.FailedTrialError(result["reason"])
            errors.append(result["validation_error"])
        return {OBJECTIVE: statistics.fmean(errors)}

    def _try_run_and_update_trial(self, trial):
        """Fails a trial that failed; keras-tuner would also hide our bugs."""
        try:
            self._run_and_update_trial(trial)
            trial.status = "COMPLETED"
        except kt.errors.FailedTrialError:
            trial.status = "FAILED"

    def save(self):
        """The oracle saves itself, and a tuner has nothing else."""
