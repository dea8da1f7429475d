"""Looks whether a download can work before a slow library tries it."""

import threading
import urllib.error
import urllib.request


def answers(url: str, timeout: float = 5.0) -> bool:
    """Asks a server for the headers of a file.

    Proxies set in the environment are used, as the download would use them.

    Args:
        url: Address of the file.
        timeout: Seconds to wait. Name look-ups have no time limit of their
            own, so that the request runs in a thread that is left behind.

    Returns:
        True if the file can be had.
    """
    answered = threading.Event()

    def ask():
        request = urllib.request.Request(url, method="HEAD")
        try:
            with urllib.request.urlopen(request, timeout=timeout):
                answered.set()
        except (OSError, ValueError, urllib.error.URLError):
            pass
        finally:
            finished.set()

    finished = threading.Event()
    threading.Thread(target=ask, daemon=True).start()
    finished.wait(timeout + 2.0)
    return answered.is_set()
