"""Plain NumPy loops: slow, obvious, independent of TensorFlow."""

import numpy as np


def squash(s):
    n = np.sqrt((s**2).sum(-1, keepdims=True))
    return np.where(n > 0, n / (1 + n**2) * s, 0.0)


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
