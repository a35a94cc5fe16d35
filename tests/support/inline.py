"""A Dask client without Dask: what is sent to a worker is done here, at once, and written down."""

from types import SimpleNamespace

from adumbra.engine import dispatch, orders


class InlineClient:
    """Workers by address that do every task in this process; `sent` holds what each of them got."""

    status = "running"

    def __init__(self, *workers):
        self.workers = dict.fromkeys(workers, 1)
        self.sent = {}

    def nthreads(self):
        return dict(self.workers)

    def scatter(self, data, *, workers, **_):
        ((name, order),) = data.items()
        for worker in workers:
            self.sent.setdefault(worker, []).append(order)
        return {name: SimpleNamespace(result=order, status="finished", key=name)}

    def submit(self, task, *passed, key, **_):
        result = task(*(one.result for one in passed))
        return SimpleNamespace(result=result, status="finished", key=key, cancel=lambda: None)


def inline(monkeypatch, *workers):
    """Such a client, whose answers are fetched from where they are."""
    monkeypatch.setattr(orders, "why_unfit", lambda _: None)  # there is no worker to ask
    monkeypatch.setattr(dispatch, "fetch", lambda _client, future, _worker: future.result)
    monkeypatch.setattr(dispatch, "POLL", 0.0)
    return InlineClient(*workers)
