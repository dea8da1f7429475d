"""Where a run computes: one device, several, or several machines."""

from collections.abc import Callable

import tensorflow as tf


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
    replicas = strategy.num_replicas_in_sync
    if replicas == 1:
        return make_shard(1, 0)

    def for_worker(context):
        local = replicas // context.num_input_pipelines
        first = context.input_pipeline_id * local
        shards = [make_shard(replicas, first + i) for i in range(local)]
        turns = tf.data.Dataset.range(local).repeat()
        return tf.data.Dataset.choose_from_datasets(
            shards, turns, stop_on_empty_dataset=True
        )

    return strategy.distribute_datasets_from_function(for_worker)
