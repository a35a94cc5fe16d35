"""What is made of released numbers, made once for equal numbers: a replay of many pairs costs half.

Under a replay a table and its neighbours draw the same noise, so a model gets the same released numbers
again and again. A call whose arguments are the same to the last byte gets a copy of the result of the
first. A call with any other argument is made, so what differs on two tables goes on to differ.

That leaves one thing unseen: a function that looks elsewhere than at its arguments. So `fresh` calls are
all made, and must give the same bytes. The functions are those of `postprocess`, which the contract "no
road back" keeps from everything private.
"""

import pickle  # noqa: TID251 - bytes of arguments, in this process alone
from contextlib import contextmanager

from adumbra.mechanisms.moments import release
from support.planting import plant

FUNCTIONS = ((release, "read_marginals"), (release, "build_model"))


class Remembered:
    """The results of functions by the bytes of their arguments."""

    def __init__(self) -> None:
        self.results, self.is_fresh = dict[bytes, bytes](), False
        self.made, self.spared = 0, 0

    def wrap(self, name, function):
        """The function, called once for equal arguments, or always where that is asked for."""

        def call(*args):
            key = pickle.dumps((name, args))
            known = self.results.get(key)
            if known is not None and not self.is_fresh:
                self.spared += 1
                return pickle.loads(known)  # noqa: S301 - our own, of this process
            self.made += 1
            result = function(*args)
            held = pickle.dumps(pickle.loads(pickle.dumps(result)))  # noqa: S301 - shared parts told apart
            assert known in (None, held), f"{name}: another result from the same arguments"
            self.results[key] = held
            return result

        return call

    def forget(self) -> None:
        """Start anew."""
        self.results.clear()

    @contextmanager
    def fresh(self, is_fresh=True):
        """Where every call is made."""
        self.is_fresh = is_fresh
        try:
            yield
        finally:
            self.is_fresh = False


@contextmanager
def remembering():
    """Plant it into the methods that build a model."""
    kept = Remembered()
    with plant([(place, name, kept.wrap(name, getattr(place, name))) for place, name in FUNCTIONS]):
        yield kept
