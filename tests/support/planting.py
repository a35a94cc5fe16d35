"""Plant a wrong version for one block of a test; the product's own `plant` refuses to do it here."""

from contextlib import contextmanager


@contextmanager
def plant(patches):
    """Set (object, name, wrong version) and take them back whatever happens."""
    right = [getattr(place, name) for place, name, _ in patches]
    try:
        for place, name, wrong in patches:
            setattr(place, name, wrong)
        yield
    finally:
        for (place, name, _), old in zip(patches, right, strict=True):
            setattr(place, name, old)
