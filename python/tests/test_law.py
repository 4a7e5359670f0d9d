"""The law: after any history the flushed deltas add up to `pairs()`, and that is what a fresh `pairs` finds.

Bug classes: deltas that are lost or doubled at a flush; a delete or an empty text that leaves a pair; a state
that is reopened with other pairs; numbers as ids in another order than texts; workers that differ.
"""

import contextlib
import tempfile

import pytest

pytest.importorskip("hypothesis")
from conftest import text_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dupflow

NUMBERS = st.integers(0, 11)
TEXTS = st.one_of(
    st.builds(
        text_of, st.integers(0, 2), st.lists(st.tuples(st.integers(0, 29), st.integers(0, 3)), max_size=4)
    ),
    # Some contain others.
    st.builds(lambda template, words: text_of(template) + " more" * words, st.integers(0, 2), st.integers(0, 9)),
    st.sampled_from(["", "...", "one", "one two"]),
)
OPERATIONS = st.one_of(
    st.tuples(st.just("upsert"), NUMBERS, TEXTS),
    st.tuples(st.just("upsert"), NUMBERS, TEXTS),
    st.tuples(st.just("upsert_many"), st.lists(st.tuples(NUMBERS, st.none() | TEXTS), max_size=12)),
    st.tuples(st.just("delete"), NUMBERS),
    st.tuples(st.just("flush")),
)
FEW = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))


class Model:
    """A corpus beside what it should hold."""

    def __init__(self, name, **options):
        self.name, self.options = name, options
        self.corpus = dupflow.Corpus(**options)
        self.alive, self.sum = {}, {}

    def apply(self, operation):
        kind, *arguments = operation
        if kind == "upsert":
            number, text = arguments
            self.corpus.upsert(self.name(number), text)
            self.alive[self.name(number)] = text
        elif kind == "upsert_many":
            rows = [(self.name(number), text) for number, text in arguments[0]]
            batch = {"id": [id for id, _ in rows], "text": [text for _, text in rows]}
            if rows:
                count = self.corpus.upsert_many([batch], nulls="delete")
                assert count == sum(text is not None for _, text in rows)
            for id, text in rows:
                if text is None:
                    self.alive.pop(id, None)
                else:
                    self.alive[id] = text
        elif kind == "delete":
            self.corpus.delete(self.name(arguments[0]))
            self.alive.pop(self.name(arguments[0]), None)
        else:
            self.check()

    def check(self):
        """Flushes; the deltas add up to the pairs, which are those of a fresh run."""
        last = 0
        for delta in self.corpus.flush():
            assert delta.epoch >= last and delta.diff in (1, -1) and delta.cause, delta
            key = (delta.a, delta.b, delta.similarity, delta.in_a, delta.in_b)
            self.sum[key] = self.sum.get(key, 0) + delta.diff
            assert self.sum[key] in (0, 1), key
        summed = {key for key, count in self.sum.items() if count}
        pairs = {pair[:5] for pair in self.corpus.pairs()}
        assert summed == pairs
        assert self.fresh() == pairs
        assert self.corpus.stats()["documents"] == len(self.alive)
        assert self.corpus.stats()["pairs"] == len(pairs)

    def fresh(self):
        if not self.alive:
            return set()
        ids = sorted(self.alive, key=lambda id: id.encode() if isinstance(id, str) else id)
        frame = {"id": ids, "text": [self.alive[id] for id in ids]}
        options = {key: value for key, value in self.options.items() if key != "state"}
        return {pair[:5] for pair in dupflow.pairs(frame, id="id", **options)}

    def reopen(self):
        self.corpus.close()
        self.corpus = dupflow.Corpus(**self.options)


@FEW
@given(
    st.lists(OPERATIONS, max_size=30),
    st.sampled_from([1, 2]),
    st.sampled_from(["minhash", "exact", "contained"]),
)
def test_histories(operations, workers, pipeline):
    model = Model(lambda number: f"id/{number}", pipeline=pipeline, threshold=0.5, workers=workers)
    with contextlib.closing(model.corpus):
        for operation in operations:
            model.apply(operation)
        model.check()


@FEW
@given(st.lists(OPERATIONS, max_size=20))
def test_histories_with_numbers_as_ids(operations):
    # Negative numbers too: their order is that of numbers.
    model = Model(lambda number: number * 7 - 40, pipeline="exact", threshold=0.5)
    with contextlib.closing(model.corpus):
        for operation in operations:
            model.apply(operation)
        model.check()


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.lists(OPERATIONS, max_size=10), min_size=2, max_size=4), st.sampled_from([1, 2]))
def test_histories_with_restarts(parts, workers):
    with tempfile.TemporaryDirectory() as place:
        model = Model(lambda number: f"id/{number}", threshold=0.5, workers=workers, state=f"{place}/state")
        try:
            for operations in parts:
                for operation in operations:
                    model.apply(operation)
                model.check()
                model.reopen()
                assert len(model.corpus.flush()) == 0, "nothing has changed since"
                model.check()
        finally:
            model.corpus.close()
