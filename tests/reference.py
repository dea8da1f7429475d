"""Plain NumPy loops: slow, obvious, independent of TensorFlow."""

import numpy as np


def squash(s):
    n = np.sqrt((s**2).sum(-1, keepdims=True))
    return np.where(n > 0, n / (1 + n**2) * s, 0.0)


def squash_gradient(s, upstream):
    """Jacobian of one vector's squash, in closed form, times upstream."""
    n = np.sqrt((s**2).sum())
    if n == 0:
        return np.zeros_like(s)
    along = np.outer(s / n, s / n)
    jacobian = n / (1 + n**2) * (np.eye(len(s)) - along)
    jacobian += 2 * n / (1 + n**2) ** 2 * along
    return jacobian @ upstream


def conv(x, kernel, bias, stride):
    """Ungrouped convolution, padded by (k−1)/2 on both sides."""
    k = kernel.shape[0]
    p = (k - 1) // 2
    x = np.pad(x, ((0, 0), (p, p), (p, p), (0, 0)))
    rows = range(0, x.shape[1] - k + 1, stride)
    columns = range(0, x.shape[2] - k + 1, stride)
    y = np.zeros((len(x), len(rows), len(columns), kernel.shape[-1]))
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            window = x[:, row : row + k, column : column + k]
            y[:, i, j] = np.einsum("bhwi,hwio->bo", window, kernel)
    return y + bias


def grouped_conv(x, kernel, groups, stride):
    """One convolution after the other."""
    x = np.split(x, groups, -1)
    kernel = np.split(kernel, groups, -1)
    return np.concatenate(
        [conv(*part, 0.0, stride) for part in zip(x, kernel, strict=True)], -1
    )


def batch_norm(x, layer):
    mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
    x = (x - mean) / np.sqrt(var + 1e-5)
    return x * layer.gamma.numpy() + layer.beta.numpy()


def activate(x, layer, num_capsules):
    x = np.maximum(batch_norm(x, layer), 0)
    capsules = x.reshape(*x.shape[:3], num_capsules, -1)
    return squash(capsules).reshape(x.shape)


def cap_conv(layer, x, skip):
    """capConv capsule by capsule, from the weights of a layer."""
    count, dim = layer.num_capsules, layer.capsule_dim
    d_in = x.shape[-1] // count
    master_kernel = layer.master.kernel.numpy()
    master, aide = [], []
    for c in range(count):
        outputs = slice(c * dim, (c + 1) * dim)
        own = x[..., c * d_in : (c + 1) * d_in]
        master.append(
            conv(
                own,
                master_kernel[..., outputs],
                layer.master.bias.numpy()[outputs],
                layer.stride,
            )
        )
        lower = [
            i
            for i in range(count)
            if layer.aide_scope == "all" or i != c
        ]  # fmt: skip
        channels = [i * d_in + d for i in lower for d in range(d_in)]
        aide.append(
            conv(
                x[..., channels],
                layer.aide.kernel.numpy()[:, :, channels, outputs],
                layer.aide.bias.numpy()[outputs],
                layer.stride,
            )
        )
    master = activate(np.concatenate(master, -1), layer.master_norm, count)
    aide = activate(np.concatenate(aide, -1), layer.aide_norm, count)
    kernel = layer.coefficient_conv.kernel.numpy()
    bias = layer.coefficient_conv.bias.numpy()
    s = np.zeros_like(master)
    for c in range(count):
        own = slice(c * dim, (c + 1) * dim)
        v1, v2 = master[..., own], aide[..., own]
        if layer.coefficients == "both":
            pair = np.concatenate((v1, v2), -1)
            m1, m2 = (
                conv(pair, kernel[..., [2 * c + b]], bias[2 * c + b], 1)
                for b in (0, 1)
            )
        else:
            from_v1 = conv(v1, kernel[..., [c]], bias[c], 1)
            from_v2 = conv(v2, kernel[..., [count + c]], bias[count + c], 1)
            m1, m2 = from_v1, from_v2
            if layer.coefficients == "cross":
                m1, m2 = from_v2, from_v1
        s[..., own] = m1 * v1 + m2 * v2
    s += conv(
        x,
        layer.skip_projection.kernel.numpy(),
        layer.skip_projection.bias.numpy(),
        layer.stride,
    )
    return activate(s + skip, layer.norm, count)


def softmax(x, axis):
    x = np.exp(x - x.max(axis, keepdims=True))
    return x / x.sum(axis, keepdims=True)


def dynamic_routing(votes, logits, num_iterations, axis):
    """One sample at a time; axis 0 is the lower, 1 the higher capsules."""
    results = []
    for sample in votes:
        b = logits.copy()
        for iteration in range(num_iterations):
            c = softmax(b, axis)
            s = (c[..., None] * sample).sum(0)
            v = squash(s)
            if iteration < num_iterations - 1:
                b += (sample * v).sum(-1)
        results.append(v)
    return np.stack(results)


def em_routing(
    votes, activations, beta_v, beta_a, num_iterations, smallest_share=0
):
    """One sample and one higher capsule at a time, densities as logarithms.

    No variance is below its smallest share of the first round's.
    """
    lower, higher = votes.shape[1:3]
    all_means, all_activations = [], []
    for sample, a_in in zip(votes, activations, strict=True):
        r = np.full((lower, higher), 1 / higher)
        first = np.zeros((higher, votes.shape[3]))
        for iteration in range(num_iterations):
            weighted = r * a_in[:, None]
            means, deviations, costs = [], [], []
            for j in range(higher):
                mass = weighted[:, j].sum()
                share = weighted[:, j] / mass
                mean = (share[:, None] * sample[:, j]).sum(0)
                variance = (share[:, None] * (sample[:, j] - mean) ** 2).sum(0)
                if iteration == 0:
                    first[j] = variance
                variance = np.maximum(variance, smallest_share * first[j])
                means.append(mean)
                deviations.append(np.sqrt(variance))
                costs.append((np.log(deviations[-1]) + beta_v[j]).sum() * mass)
            costs = np.array(costs)
            spread = np.ptp(costs)
            share = (costs - costs.min()) / spread if spread else 0 * costs
            a = 1 / (1 + np.exp(-(1 + iteration) * (beta_a - 10 * share + 5)))
            log_p = np.empty((lower, higher))
            for i in range(lower):
                for j in range(higher):
                    z = (sample[i, j] - means[j]) / deviations[j]
                    log_p[i, j] = (
                        np.log(a[j])
                        - (0.5 * z**2 + np.log(deviations[j])).sum()
                    )
            r = softmax(log_p, 1)
        all_means.append(means)
        all_activations.append(a)
    return np.array(all_means), np.array(all_activations)


def dense(x, layer):
    kernel, bias = layer.get_weights()
    return x @ kernel + bias


def doubling(x, layer):
    """A transposed convolution, kernel 4, stride 2: each pixel is spread."""
    kernel, bias = layer.get_weights()
    height, width = x.shape[1:3]
    y = np.zeros((len(x), 2 * height + 2, 2 * width + 2, len(bias)))
    for i in range(height):
        for j in range(width):
            spread = np.einsum("bi,hwoi->bhwo", x[:, i, j], kernel)
            y[:, 2 * i : 2 * i + 4, 2 * j : 2 * j + 4] += spread
    return y[:, 1:-1, 1:-1] + bias
