"""Where a run computes: one device, several, or several machines."""

import functools
import json
import os
from collections.abc import Callable

import keras
import tensorflow as tf

from encapnet_tf.checks import check_choice
from trainers.choices import STRATEGIES
from trainers.recipe import Recipe


def make_strategy(
    name: str = "auto", logical_cpus: int = 1
) -> tf.distribute.Strategy:
    """Returns the strategy; call it before anything else of TensorFlow.

    Args:
        name: "single", "mirrored" (all devices of this machine),
            "multi_worker" (all machines in TF_CONFIG) or "auto".
        logical_cpus: Into how many devices to split the CPU, to try several
            devices on a machine without any.

    Returns:
        A distribution strategy.
    """
    check_choice("strategy", name, STRATEGIES)
    if logical_cpus > 1:
        _split_cpu(logical_cpus)
    if name == "auto":
        name = _natural(logical_cpus)
    if name == "multi_worker":
        if not _num_workers():
            raise ValueError(
                "The strategy multi_worker needs the environment variable "
                "TF_CONFIG. Received: none. `python -m trainers.launch` sets "
                "it for several workers on one machine."
            )
        return tf.distribute.MultiWorkerMirroredStrategy()
    if name == "mirrored":
        kind = "GPU" if tf.config.list_physical_devices("GPU") else "CPU"
        devices = tf.config.list_logical_devices(kind)
        return tf.distribute.MirroredStrategy([d.name for d in devices])
    return tf.distribute.get_strategy()


def set_policy(recipe: Recipe) -> None:
    """Makes the recipe's seed and number format those of this process."""
    keras.utils.set_random_seed(recipe.seed)
    keras.config.set_dtype_policy(recipe.dtype_policy)
    if recipe.deterministic:
        tf.config.experimental.enable_op_determinism()


def check_batch_size(batch_size: int, strategy: tf.distribute.Strategy) -> None:
    """Refuses a global batch that the replicas cannot share alike."""
    replicas = strategy.num_replicas_in_sync
    if batch_size % replicas:
        below = batch_size // replicas * replicas
        near = [str(n) for n in (below, below + replicas) if n]
        raise ValueError(
            f"`batch_size` must be a multiple of the {replicas} replicas. "
            f"Received: batch_size={batch_size}. The nearest: "
            f"{' and '.join(near)}."
        )


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process is the one that writes."""
    resolver = strategy.cluster_resolver
    if resolver is None or not resolver.task_type:
        return True
    return resolver.task_type == "chief" or (
        resolver.task_id == 0 and "chief" not in resolver.cluster_spec().jobs
    )


def num_processes(strategy: tf.distribute.Strategy) -> int:
    """How many processes work on the run."""
    if not _is_multi(strategy):
        return 1
    jobs = strategy.cluster_resolver.cluster_spec().as_dict()
    return max(1, sum(map(len, jobs.values())))


def distribute(
    strategy: tf.distribute.Strategy,
    make_shard: Callable[[int, int], tf.data.Dataset],
):
    """Gives every replica its share of each global batch.

    Args:
        strategy: The strategy of the run.
        make_shard: Takes the number of shards and the index of one; returns
            that share of every global batch, in order.

    Returns:
        What to iterate over and hand to `strategy.run`.
    """
    if strategy.num_replicas_in_sync == 1:
        return make_shard(1, 0)
    return _shares(strategy, make_shard)


def _shares(strategy, make_shard):
    # Not the strategy's own distributed datasets: their iterators, one for
    # each device, are autotuned, which `batches` avoids.
    @functools.cache
    def shard(index):
        return iter(make_shard(strategy.num_replicas_in_sync, index))

    def share(context):
        return next(shard(context.replica_id_in_sync_group))

    while True:
        try:
            batch = strategy.experimental_distribute_values_from_function(share)
        except StopIteration:
            return
        yield batch


def _is_multi(strategy):
    return isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)


def _natural(logical_cpus):
    if _num_workers() > 1:
        return "multi_worker"
    gpus = len(tf.config.list_physical_devices("GPU"))
    return "mirrored" if max(gpus, logical_cpus) > 1 else "single"


def _num_workers():
    """How many workers TF_CONFIG names; 0 without it."""
    text = os.environ.get("TF_CONFIG")
    if not text:
        return 0
    try:
        cluster = json.loads(text)["cluster"]
        return sum(len(cluster.get(job, ())) for job in ("chief", "worker"))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(
            "TF_CONFIG must be JSON with a `cluster` of `worker` addresses "
            f"and a `task`. Received: TF_CONFIG={text}."
        ) from None


def _split_cpu(count):
    cpu = tf.config.list_physical_devices("CPU")[0]
    parts = [tf.config.LogicalDeviceConfiguration()] * count
    tf.config.set_logical_device_configuration(cpu, parts)
