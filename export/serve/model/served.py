"""The model being served: its newest version, and how it is replaced."""

import gc
import logging
import pathlib
import threading

from export.serve.limits import Limits, Refusal
from export.serve.model.loaded_version import LoadedVersion, fingerprint
from export.version.folders import check_has_versions, versions

_log = logging.getLogger("export.serve")


class ServedModel:
    """A folder of versions, the newest of which answers.

    Args:
        folder: The folder that `python -m export --out=…` writes.
        name: What clients call the model.
        limits: Of batches and images.

    Raises:
        ValueError: There is no version that can be loaded.
    """

    def __init__(self, folder: pathlib.Path, name: str, limits: Limits):
        self.folder = folder
        self.name = name
        self.current: LoadedVersion | None = None
        self._limits = limits
        self._loading: int | None = None
        self._ended: dict[int, str] = {}
        self._identity: tuple | None = None
        self._broken: set[tuple] = set()
        self._replaced = False
        self._stopped = threading.Event()
        check_has_versions(folder)
        self.refresh()
        if self.current is None:
            reasons = "; ".join(filter(None, self._ended.values()))
            raise ValueError(
                "`--model` must hold a version that can be loaded. "
                f"Received: --model={folder}, where {reasons}."
            )

    def refresh(self) -> None:
        """Loads the newest version if that is not the one that answers.

        A version that cannot be loaded is tried again when its files change.
        """
        if self._replaced:
            # By now the requests to the old version have most likely ended.
            gc.collect()
            self._replaced = False
        for number, folder in reversed(versions(self.folder).items()):
            identity = (number, fingerprint(folder))
            if identity == self._identity:
                return
            if identity not in self._broken and self._load(folder):
                self._identity = identity
                return
            self._broken.add(identity)

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

    def version(self, name: str, number: int | None = None) -> LoadedVersion:
        """Returns the version that a request asks for.

        Raises:
            Refusal: It is not being served.
        """
        current = self.current
        if name != self.name or number not in (None, current.number):
            asked = f"Latest({name})"
            if number is not None:
                asked = f"Specific({name}, {number})"
            raise Refusal(404, f"Servable not found for request: {asked}")
        return current

    def statuses(self) -> dict[int, tuple[str, str]]:
        """Returns state and error message of the versions seen so far."""
        statuses = {number: ("END", m) for number, m in self._ended.items()}
        if self._loading is not None:
            statuses[self._loading] = ("LOADING", "")
        statuses[self.current.number] = ("AVAILABLE", "")
        return statuses

    def _load(self, folder: pathlib.Path) -> bool:
        """Puts a version in the place of the present one, if it works."""
        number = int(folder.name)
        self._loading = number
        try:
            version = LoadedVersion(folder, self._limits)
        except Exception as problem:  # whatever it is, the old one goes on
            _log.exception("version not loaded", extra={"version": number})
            reason = type(problem).__name__
            self._ended[number] = f"version {number} cannot be loaded: {reason}"
            return False
        finally:
            self._loading = None
        self._replaced = self.current is not None
        if self._replaced:
            self._ended[self.current.number] = ""
        self._ended.pop(number, None)
        self.current = version
        _log.info("version loaded", extra={"version": number})
        return True
