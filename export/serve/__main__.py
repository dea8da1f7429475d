"""Serves a model, with a page to try it.

    python -m export.serve
    python -m export.serve --model=exported/encapnet --host=0.0.0.0 --port=80

Without --model it serves exported/encapnet or, where that is not there, a
network of handwritten digits that comes with this project.

TensorFlow Serving's REST protocol (`POST /v1/models/NAME:predict`), KServe's
Open Inference Protocol v2 (`POST /v2/models/NAME/infer`), a page at `/`,
`/healthz` and `/metrics`. A newer version that appears in the folder is taken
up while the server runs.
"""

import pathlib

from absl import flags

from encapnet_tf.weights import SHIPPED
from export.model_path import archive_at
from export.serve.labels import check_labels, parse_labels
from export.serve.limits import Limits
from export.serve.origins import check_origins
from export.serve.port import take
from export.version.folders import check_has_versions, versions
from trainers import cli
from trainers.tensorflow_start import start_tensorflow

# Shown by --help; the limits by --helpfull.
FIRST = ("model", "name", "host", "port")
_DEFAULT = Limits()
# What is served by default: what `python -m export` writes by default, else
# the shipped network whose images can be drawn on the page.
_EXPORTED, _DRAWN = "exported/encapnet", "mnist"


def define(values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines the flags of this program."""
    kwargs = {"flag_values": values}
    flags.DEFINE_string(
        "model",
        None,
        "The folder that `python -m export` wrote, a file of `python -m "
        f"export.weights`, or {' or '.join(SHIPPED)}, which come with this "
        f"project. Default: {_EXPORTED} if it is there, else {_DRAWN}.",
        **kwargs,
    )
    flags.DEFINE_string(
        "name",
        None,
        "The model's name; by default the folder's.",
        **kwargs,
    )
    flags.DEFINE_string(
        "host", "127.0.0.1", "Address to listen on; 0.0.0.0 for all.", **kwargs
    )
    flags.DEFINE_integer(
        "port", 8501, "Port; 0 takes a free one.", 0, 65535, **kwargs
    )
    flags.DEFINE_list(
        "labels",
        [],
        "Names of versions that stay loaded: --labels=stable=1,canary=2.",
        **kwargs,
    )
    flags.DEFINE_list(
        "cors",
        [],
        "Origins whose pages in a browser may ask: "
        "--cors=https://example.org, or * for all.",
        **kwargs,
    )
    flags.DEFINE_integer(
        "max_batch",
        _DEFAULT.max_batch,
        "Most images computed together.",
        1,
        1024,
        **kwargs,
    )
    flags.DEFINE_float(
        "batch_timeout_ms",
        _DEFAULT.batch_timeout_ms,
        "How long a batch waits for more images, in milliseconds.",
        0,
        10_000,
        **kwargs,
    )
    flags.DEFINE_integer(
        "max_images",
        _DEFAULT.max_images,
        "Most images in one request.",
        1,
        **kwargs,
    )
    flags.DEFINE_float(
        "max_megabytes",
        _DEFAULT.max_megabytes,
        "Largest body of a request, in MB.",
        0,
        **kwargs,
    )
    flags.DEFINE_float(
        "max_megapixels",
        _DEFAULT.max_megapixels,
        "Most megapixels in one request, all images together.",
        0,
        **kwargs,
    )
    flags.DEFINE_integer(
        "max_queue",
        _DEFAULT.max_queue,
        "Most requests under way; more are answered with 429.",
        1,
        4096,
        **kwargs,
    )
    flags.DEFINE_float(
        "timeout_s",
        _DEFAULT.timeout_s,
        "Seconds allowed for headers, a body, an answer, and for reading it.",
        0.1,
        **kwargs,
    )


def main(arguments: list[str], values: flags.FlagValues = flags.FLAGS) -> int:
    """Serves until SIGTERM or Ctrl-C."""
    cli.take_no_arguments(arguments)
    path = values.model
    if path is None:
        path = _EXPORTED if versions(_EXPORTED) else _DRAWN
    folder, archive = pathlib.Path(path), archive_at(path)
    name = values.name or (archive.stem if archive else folder.resolve().name)
    if set(name) & set("/:"):
        raise ValueError(
            "`--name` must fit between the slashes of /v1/models/NAME:predict. "
            f"Received: --name={name}. Leave / and : out."
        )
    labels = parse_labels(values.labels)
    if archive is None:
        check_has_versions(folder)
        check_labels(labels, folder)
    elif labels:
        raise ValueError(
            "`--labels` needs a folder of versions. "
            f"Received: --labels={','.join(values.labels)} for {name}."
        )
    check_origins(values.cors)
    limits = Limits(**{name: values[name].value for name in vars(_DEFAULT)})
    listener = take(values.host, values.port)
    start_tensorflow()
    from export.serve.server import serve
    from export.version.from_archive import exported_archive

    if archive is not None:
        folder = exported_archive(archive)
    serve(folder, name, listener, limits, labels, values.cors)
    return 0


if __name__ == "__main__":
    define()
    cli.run(main)
