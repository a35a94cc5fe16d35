"""Rivals that the papers name: PrivateSVM and DiffGen, on float noise. NOT FOR RELEASE.

PrivateSVM: objective perturbation for a linear SVM with Huber loss (Chaudhuri, Monteleoni, Sarwate 2011,
Algorithm 2), pure epsilon, replace-one. DiffGen (Mohammed, Chen, Fung, Yu 2011): attributes are
generalised top-down, a split per step by the exponential mechanism on information gain or Max, noisy
counts at the leaves. PrivBayes comes from a peer's package (peer_comparators.py). PriView and JTree:
no kept package offers them.
"""

import numpy as np
from scipy.optimize import minimize
from scipy.special import softmax

HUBER = 0.5  # half-width of the quadratic part of the loss
SMOOTHNESS = 1.0 / (2.0 * HUBER)  # the largest second derivative of the loss


def huber(margin):
    """Hinge loss with a quadratic corner, and its derivative."""
    far, corner = margin > 1.0 + HUBER, np.abs(1.0 - margin) <= HUBER
    room = 1.0 + HUBER - margin
    loss = np.where(far, 0.0, np.where(corner, room**2 / (4 * HUBER), 1.0 - margin))
    slope = np.where(far, 0.0, np.where(corner, -room / (2 * HUBER), -1.0))
    return loss, slope


def private_svm(x, y, epsilon, penalty, rng):
    """Weights of a linear SVM by objective perturbation; rows of length at most 1, y in {-1, 1}."""
    n, d = x.shape
    curve = SMOOTHNESS / (n * penalty)
    remaining = epsilon - np.log(1 + 2 * curve + curve**2)
    extra = 0.0
    if remaining <= 0:
        extra = SMOOTHNESS / (n * (np.exp(epsilon / 4) - 1)) - penalty
        remaining = epsilon / 2
    direction = rng.standard_normal(d)
    length = rng.gamma(d, 2.0 / remaining)
    push = direction / np.linalg.norm(direction) * length

    def objective(w):
        loss, slope = huber(y * (x @ w))
        value = loss.mean() + (penalty + extra) / 2 * w @ w + push @ w / n
        return value, (slope * y) @ x / n + (penalty + extra) * w + push / n

    return minimize(objective, np.zeros(d), jac=True, method="L-BFGS-B").x


def unit_ball(x):
    """Rows scaled by the largest possible length of rows in [0, 1]^d, with a constant."""
    one = np.column_stack([x, np.ones(len(x))])
    return one / np.sqrt(one.shape[1])


def children(node):
    """A range of codes in halves; a number's codes are its bins."""
    low, high = node
    middle = (low + high) // 2
    return [(low, middle), (middle, high)] if high - low > 1 else []


def diffgen(codes, sizes, y, epsilon, *, steps, score, rng):
    """Generalised rows with noisy counts per class: codes of synthetic rows (cell middles) and classes.

    `codes` are whole numbers below `sizes` per column; `score` is "infogain" or "max". Half of epsilon
    pays for the splits, half for the counts (add-remove). Sensitivities as its paper has them:
    log2 of the classes for the gain per row, 1 for Max.
    """
    n, classes = len(codes), int(y.max()) + 1
    cut = [[(0, size)] for size in sizes]
    group = np.zeros(n, dtype=np.int64)  # partition of each row
    boxes = [tuple((0, size) for size in sizes)]
    each = epsilon / 2 / max(1, steps)
    sensitivity = 1.0 if score == "max" else np.log2(classes)
    for _ in range(steps):
        options = [(j, node) for j, nodes in enumerate(cut) for node in nodes if children(node)]
        if not options:
            break
        worth = np.array([_worth(codes[:, j], node, y, classes, score) for j, node in options])
        chance = softmax(each * worth / (2 * sensitivity))
        j, node = options[rng.choice(len(options), p=chance)]
        cut[j].remove(node)
        cut[j] += children(node)
        group, boxes = _split(codes, group, boxes, j, node)
    counts = np.zeros((len(boxes), classes))
    np.add.at(counts, (group, y), 1.0)
    noisy = np.maximum(0, np.rint(counts + rng.laplace(scale=2 / epsilon, size=counts.shape))).astype(
        int
    )
    rows, labels = [], []
    for box, sizes_of in zip(boxes, noisy, strict=True):
        middle = [(low + high - 1) / 2 for low, high in box]
        for label, size in enumerate(sizes_of):
            rows.append(np.tile(middle, (size, 1)))
            labels.append(np.full(size, label))
    return np.concatenate(rows), np.concatenate(labels)


def _worth(values, node, y, classes, score):
    """Information gain in bits per row of the node, or the sum of majority counts, of splitting it."""
    low, high = node
    inside = (values >= low) & (values < high)
    parts = [
        np.bincount(y[inside & (values >= a) & (values < b)], minlength=classes)
        for a, b in children(node)
    ]
    if score == "max":
        return float(sum(part.max() for part in parts))
    whole = np.sum(parts, axis=0)
    rows = max(1, whole.sum())
    return (_entropy(whole) - sum(_entropy(part) for part in parts)) / rows


def _entropy(counts):
    """Entropy in bits times the number of rows."""
    total = counts.sum()
    if total == 0:
        return 0.0
    share = counts[counts > 0] / total
    return float(-total * np.sum(share * np.log2(share)))


def _split(codes, group, boxes, j, node):
    """Divide each partition whose box has the node in column j."""
    middle = (node[0] + node[1]) // 2
    group, boxes = group.copy(), list(boxes)
    for index in [i for i, box in enumerate(boxes) if box[j] == node]:
        box = boxes[index]
        left, right = children(node)
        boxes[index] = (*box[:j], left, *box[j + 1 :])
        boxes.append((*box[:j], right, *box[j + 1 :]))
        group[(group == index) & (codes[:, j] >= middle)] = len(boxes) - 1
    return group, boxes
