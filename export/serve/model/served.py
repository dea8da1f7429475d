"""The model being served: its versions, and how they are replaced."""

import gc
import logging
import pathlib
import threading
from collections.abc import Mapping

from export.serve.labels import check_labels
from export.serve.limits import Limits
from export.serve.model.loaded_version import LoadedVersion, fingerprint
from export.version.folders import check_has_versions, versions

_log = logging.getLogger("export.serve")


class ServedModel:
    """A folder of versions: the newest answers, and those with a label.

    Args:
        folder: The folder that `python -m export --out=…` writes.
        name: What clients call the model.
        limits: Of batches and images.
        labels: Names of versions that stay loaded whatever is newer.

    Attributes:
        current: The newest version that can be loaded.
        loaded: All that answer, by number.

    Raises:
        ValueError: There is no version, or one with a label is not there, that
            can be loaded.
    """

    def __init__(
        self,
        folder: pathlib.Path,
        name: str,
        limits: Limits,
        labels: Mapping[str, int] | None = None,
    ):
        self.folder = folder
        self.name = name
        self.labels = dict(labels or {})
        self.current: LoadedVersion | None = None
        self.loaded: dict[int, LoadedVersion] = {}
        self._limits = limits
        self._loading: int | None = None
        self._ended: dict[int, str] = {}
        self._identities: dict[int, tuple] = {}
        self._broken: set[tuple] = set()
        self._replaced = False
        self._stopped = threading.Event()
        check_has_versions(folder)
        check_labels(self.labels, folder)
        self.refresh()
        self._check_loaded()

    def refresh(self) -> None:
        """Loads the newest version, and those with labels, where need be.

        A version that cannot be loaded is tried again when its files change.
        """
        if self._replaced:
            # By now the requests to the old version have most likely ended.
            gc.collect()
            self._replaced = False
        found = versions(self.folder)
        for number in set(self.labels.values()) & found.keys():
            self._take_up(found[number])
        for number, folder in reversed(found.items()):
            if self._take_up(folder):
                self._answer_with(number)
                return

    def watch(self, seconds: float) -> threading.Thread:
        """Refreshes every `seconds`, in a thread, until `stop`."""

        def loop():
            while not self._stopped.wait(seconds):
                try:
                    self.refresh()
                except OSError:  # files come and go while they are listed
                    _log.exception("cannot look for versions")

        thread = threading.Thread(target=loop, name="versions", daemon=True)
        thread.start()
        return thread

    def stop(self) -> None:
        """Ends `watch`."""
        self._stopped.set()

    def find(self, name: str, version: str | None) -> LoadedVersion | None:
        """Returns the version that a request asks for, if it answers.

        Args:
            name: The model's.
            version: A number or a label; None for the newest.
        """
        if name != self.name:
            return None
        if version is None:
            return self.current
        number = self.labels.get(version, version)
        return {str(n): v for n, v in self.loaded.items()}.get(str(number))

    def statuses(self) -> dict[int, tuple[str, str]]:
        """Returns state and error message of the versions seen so far."""
        statuses = {
            number: ("END", m) for number, m in dict(self._ended).items()
        }
        if self._loading is not None:
            statuses[self._loading] = ("LOADING", "")
        return statuses | {number: ("AVAILABLE", "") for number in self.loaded}

    def _check_loaded(self):
        reasons = "; ".join(filter(None, self._ended.values()))
        if self.current is None:
            raise ValueError(
                "`--model` must hold a version that can be loaded. "
                f"Received: --model={self.folder}, where {reasons}."
            )
        for label, number in self.labels.items():
            if number not in self.loaded:
                raise ValueError(
                    "`--labels` must name versions that can be loaded. "
                    f"Received: {label}={number}, but {reasons}."
                )

    def _answer_with(self, number):
        """Makes a version the newest; only those with labels stay beside it."""
        self.current = self.loaded[number]
        stay = {number, *self.labels.values()}
        for other in self.loaded.keys() - stay:
            self._ended.setdefault(other, "")
            self._identities.pop(other)
            self._replaced = True
        # A dictionary of its own: requests may be looking into the old one.
        self.loaded = {n: v for n, v in self.loaded.items() if n in stay}

    def _take_up(self, folder) -> bool:
        """Whether a version is loaded as it now is, which it is if it works."""
        number = int(folder.name)
        identity = (number, fingerprint(folder))
        if self._identities.get(number) == identity:
            return True
        if identity in self._broken:
            return False
        version = self._load(folder, number)
        if version is None:
            self._broken.add(identity)
            return False
        self._replaced = self._replaced or number in self.loaded
        self._ended.pop(number, None)
        self._identities[number] = identity
        self.loaded = self.loaded | {number: version}
        _log.info("version loaded", extra={"version": number})
        return True

    def _load(self, folder, number) -> LoadedVersion | None:
        self._loading = number
        try:
            return LoadedVersion(folder, self._limits)
        except Exception as problem:  # whatever it is, the old one goes on
            _log.exception("version not loaded", extra={"version": number})
            reason = type(problem).__name__
            self._ended[number] = f"version {number} cannot be loaded: {reason}"
            return None
        finally:
            self._loading = None
