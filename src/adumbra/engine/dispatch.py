"""The driver's side of a pass: orders go to workers, answers come back, lost ones are asked again.

Dask carries and starts tasks; which worker does what is decided here. An order goes straight to its
worker and the task that carries it out may run nowhere else, so the scheduler learns names without
meaning, sizes and times. A worker that is reached neither by TLS nor on this machine gets none, whenever
it came. When a worker is gone, so are its orders and answers, and both are made again:
a pure function of rows and keys gives the same bytes.
"""

import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from distributed import Client, Future
from distributed.utils_comm import gather_from_workers

from adumbra import errors
from adumbra.engine.channels import RULE, is_safe, require_safe
from adumbra.engine.orders import (
    FAILED,
    UNFIT,
    Answer,
    MergeOrder,
    Order,
    Sealed,
    carry_out,
    merge,
    opened,
)
from adumbra.errors import AdumbraError, ClusterFailed, require

POLL = 0.02  # seconds between two looks at what workers have done
LOOK = 0.5  # ... and at which workers there are
PATIENCE = 60.0  # seconds without a worker before a pass is given up
LOSSES = 12  # of one order, before it is given up
LOST = ("cancelled", "lost", "error")
REMEDY = "look at the workers' memory and at the scheduler, then release again"

MakeOrder = Callable[[int, int], Order]  # of a number, for a worker with so many threads
TakeAnswer = Callable[[int, Answer], None]


@dataclass(slots=True)
class Job:
    """A task on its way or done: which orders it stands for, and which workers it needs."""

    worker: str
    covers: frozenset[int]
    future: Future
    inputs: list[Future] = field(default_factory=list)  # kept alive until it is done
    needs: frozenset[str] = frozenset()


class Dispatch:
    """One pass over the orders 0 to count - 1; `take` gets each answer once, in any order."""

    def __init__(
        self,
        client: Client,
        count: int,
        seal: bytes,
        order: MakeOrder,
        take: TakeAnswer,
    ) -> None:
        self._client, self._seal, self._order, self._take = client, seal, order, take
        self._waiting = deque(range(count))
        self._flying: dict[str, Job] = {}
        self._lost: Counter[int] = Counter()
        self._workers: dict[str, int] = {}
        self._unfit: set[str] = set()  # workers that came later, and run other code, say
        self._looked = self._met = -float("inf")

    @property
    def is_done(self) -> bool:
        """Whether every order was answered and taken."""
        return not self._waiting and not self._flying

    def pump(self) -> None:
        """Look once at what is done or lost, and hand out what waits; never blocks for long."""
        self._look()
        for job in list(self._flying.values()):
            if self._is_lost(job):
                self._again(job)
            elif job.future.status == "finished":
                self._finish(job)
        for worker, threads in self._workers.items():
            if worker not in self._flying and worker not in self._unfit and self._waiting:
                self._start(worker, threads)

    def run(self) -> None:
        """Until every order is answered."""
        while not self.is_done:
            self.pump()
            time.sleep(POLL)

    def stop(self) -> None:
        """Give up what is under way; workers drop what they hold."""
        for job in self._flying.values():
            job.future.cancel()
        self._flying.clear()
        self._waiting.clear()

    def _look(self) -> None:
        """Which workers there are, every now and then."""
        now = time.monotonic()
        if now < self._looked + LOOK:
            return
        self._looked = now
        self._workers = workers_of(self._client)
        is_some = not self._workers.keys() <= self._unfit
        self._met = now if is_some or self._met < 0 else self._met
        if now > self._met + PATIENCE:
            rule = f"no worker has been there for {PATIENCE:.0f} seconds{_left_out(self._client)}"
            raise ClusterFailed(f"cluster: {rule}; {REMEDY}")

    def _is_lost(self, job: Job) -> bool:
        return job.future.status in LOST or not job.needs <= self._workers.keys()

    def _again(self, job: Job) -> None:
        """A worker was lost: its orders wait again."""
        if self._flying.get(job.worker) is job:  # a sum that is held may be lost beside it
            del self._flying[job.worker]
        job.future.cancel()
        for number in sorted(job.covers):
            self._lost[number] += 1
            if self._lost[number] > LOSSES:
                rule = f"workers were lost {LOSSES + 1} times at the same rows"
                raise ClusterFailed(f"cluster: {rule}; {REMEDY}")
            self._waiting.appendleft(number)
        self._looked = -float("inf")

    def _start(self, worker: str, threads: int) -> None:
        number = self._waiting.popleft()
        try:
            sent = send(self._client, worker, self._order(number, threads))
            job = Job(
                worker,
                frozenset([number]),
                submit(self._client, worker, carry_out, sent),
                [sent],
                frozenset([worker]),
            )
        except (OSError, TimeoutError, KeyError, ValueError) as error:
            if isinstance(error, AdumbraError):
                raise
            self._waiting.appendleft(number)  # the worker has just gone: look again
            self._looked = -float("inf")
            return
        self._flying[worker] = job

    def _finish(self, job: Job) -> None:
        """Fetch an answer; a worker that goes now takes it along."""
        (number,) = job.covers
        content = fetch(self._client, job.future, job.worker)
        if content is None:
            self._again(job)
            return
        del self._flying[job.worker]
        answer = answered(content, self._seal, number)
        if answer.facts.get(FAILED) == UNFIT:
            self._unfit.add(job.worker)
            self._waiting.appendleft(number)
        else:
            self._take(number, answer)


class TreeDispatch(Dispatch):
    """The same, but sums stay with the workers: two of one worker are added there, then across workers.

    The driver fetches one sum in all, by `total`; `shown` hears how many orders are in what is held.
    """

    def __init__(
        self,
        client: Client,
        count: int,
        seal: bytes,
        order: MakeOrder,
        shown: Callable[[int], None] = lambda _done: None,
    ) -> None:
        super().__init__(client, count, seal, order, lambda _number, _answer: None)
        self._shown, self._done = shown, set[int]()
        self._held: dict[str, list[Job]] = {}
        self._merges = count  # numbers of merges follow those of orders

    def total(self) -> Answer:
        """The sum of all orders."""
        while True:
            self.pump()
            held = [job for jobs in self._held.values() for job in jobs]
            if not self._waiting and not self._flying and len(held) == 1:
                content = fetch(self._client, held[0].future, held[0].worker)
                if content is not None:
                    answer = answered(content, self._seal, None)
                    if FAILED in answer.facts:
                        raise ClusterFailed(f"cluster: a worker that came later {answer.facts['words']}")
                    return answer
                self._again(held[0])
            time.sleep(POLL)

    def pump(self) -> None:
        """As above; and add sums that are done."""
        self._look()
        for jobs in list(self._held.values()):
            for job in jobs:
                if self._is_lost(job):
                    self._again(job)
        for worker in self._workers:
            if worker not in self._flying and len(self._held.get(worker, ())) > 1:
                self._merge(worker, self._held[worker][:2])
        if not self._waiting and not self._flying:
            heads = [jobs[0] for jobs in self._held.values() if jobs]
            for one, other in zip(heads[::2], heads[1::2], strict=False):
                self._merge(one.worker, [one, other])
        super().pump()

    def _again(self, job: Job) -> None:
        for jobs in self._held.values():
            if job in jobs:
                jobs.remove(job)
        self._done -= job.covers
        self._shown(len(self._done))
        super()._again(job)

    def _finish(self, job: Job) -> None:
        del self._flying[job.worker]
        job.inputs.clear()
        job.needs = frozenset([job.worker])
        self._held.setdefault(job.worker, []).append(job)
        self._done |= job.covers
        self._shown(len(self._done))

    def _merge(self, worker: str, jobs: Sequence[Job]) -> None:
        """Add two sums on a worker; both are lost with either worker until that is done."""
        try:
            sent = send(self._client, worker, MergeOrder(number=self._merges, seal=self._seal))
            futures = [job.future for job in jobs]
            future = submit(self._client, worker, merge, sent, *futures)
        except (OSError, TimeoutError, KeyError, ValueError):
            self._looked = -float("inf")
            return
        self._merges += 1
        for job in jobs:
            self._held[job.worker].remove(job)
        covers = frozenset().union(*(job.covers for job in jobs))
        self._flying[worker] = Job(
            worker, covers, future, [sent, *futures], frozenset(job.worker for job in jobs)
        )


def workers_of(client: Client) -> dict[str, int]:
    """The workers that may get orders, with their threads: one by an unsafe channel is not there."""
    return {worker: threads for worker, threads in _listed(client).items() if is_safe(worker)}


def _listed(client: Client) -> dict[str, int]:
    """All workers that the scheduler names, with their threads."""
    fault = None
    try:
        found: dict[str, int] = client.nthreads()
    except (OSError, TimeoutError, RuntimeError, AttributeError) as error:
        fault = type(error).__name__
    if fault is not None or client.status not in ("running", "connecting", "newly-created"):
        raise ClusterFailed(f"cluster: the scheduler does not answer; {REMEDY}")
    return found


def _left_out(client: Client) -> str:
    """Which workers are there and get nothing, in words."""
    found = [worker for worker in _listed(client) if not is_safe(worker)]
    return f" (to {', '.join(found)} {RULE}; start workers with tls://)" if found else ""


def send(client: Client, worker: str, order: MergeOrder) -> Future:
    """An order, straight to a worker; its name says nothing."""
    require_safe(worker, "worker")
    name = _name()
    sent = client.scatter({name: order}, workers=[worker], direct=True, hash=False, timeout=5)
    found: Future = sent[name]
    return found


def submit(client: Client, worker: str, task: Callable[..., Sealed], *passed: Future) -> Future:
    """A task for one worker and no other, whatever becomes of it."""
    return client.submit(
        task, *passed, key=_name(), workers=[worker], allow_other_workers=False, pure=False, retries=0
    )


def fetch(client: Client, future: Future, worker: str) -> Sealed | None:
    """The result, straight from the worker that holds it; None if it is gone."""
    try:
        data, *_ = client.sync(gather_from_workers, {future.key: [worker]}, rpc=client.rpc)
    except (OSError, TimeoutError, KeyError):
        return None
    found: Sealed | None = data.get(future.key)
    return found


def answered(content: Sealed, seal: bytes, number: int | None) -> Answer:
    """An answer, opened; a failure is raised, in our own words, unless the worker is at fault."""
    answer = opened(content, seal, number)
    kind = answer.facts.get(FAILED)
    if kind in {None, UNFIT}:
        return answer
    words = str(answer.facts["words"])
    known = getattr(errors, kind, None) if kind else None
    if known in {errors.InvalidInput, errors.Unsupported, errors.NoiseKeyReused, errors.NoSpace,
                 errors.NotWritable, errors.OutOfMemory, errors.ClusterFailed}:  # fmt: skip
        raise known(words)
    raise ClusterFailed(f"cluster: a worker failed ({words}); {REMEDY}")


def require_fit(client: Client, seal: bytes, order: Callable[[int], Order]) -> None:
    """One order for each worker that is there; refuse one that does not fit."""
    asked: set[str] = set()
    fit, start = False, time.monotonic()
    while True:
        found = [worker for worker in _listed(client) if worker not in asked]
        for worker in found:
            require_safe(worker, "worker")
            asked.add(worker)
            answer = _ask(client, worker, seal, order(len(asked)))
            if answer is not None:  # else it has gone
                require(FAILED not in answer.facts, f"worker={worker}: {answer.facts.get('words')}")
                fit = True
        if fit and not found:
            return
        if not fit and time.monotonic() > start + PATIENCE:
            raise ClusterFailed(f"cluster: it has no worker that answers; {REMEDY}")
        time.sleep(POLL)


def _ask(client: Client, worker: str, seal: bytes, order: Order) -> Answer | None:
    """The answer of a worker, or None if it goes."""
    try:
        sent = send(client, worker, order)
        future = submit(client, worker, carry_out, sent)
    except (OSError, TimeoutError, KeyError):
        return None
    while future.status == "pending":
        if worker not in workers_of(client):
            return None
        time.sleep(10 * POLL)
    content = fetch(client, future, worker) if future.status == "finished" else None
    return None if content is None else answered(content, seal, order.number)


def _name() -> str:
    return f"adumbra-{uuid.uuid4().hex}"
