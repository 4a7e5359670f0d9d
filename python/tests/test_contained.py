"""Containment: both shares in every result, and what is removed.

Bug classes: shares of the wrong direction; a column that is there for one measure and missing in an empty
table; a list of what to remove that differs from the program's.
"""

import json

import pytest
from conftest import run

import dupflow


def words(*ranges):
    """The words of these ranges of one sequence."""
    return " ".join(f"w{n}" for start, end in ranges for n in range(start, end))


BOOK, NOTE = words((0, 120)), words((20, 70))
CHAPTER, EDITED = words((10, 60)), words((10, 35), (900, 901), (36, 60))
FRAME = {
    "id": ["note", "book", "apart", "chapter", "copy"],
    "text": [NOTE, BOOK, words((500, 560)), EDITED, NOTE],
}
SHINGLES = 46 / 116
"""Those of a part, of those of the book."""


def rounded(row):
    """Shares have nine decimals."""
    return tuple(round(value, 9) if isinstance(value, float) else value for value in row)


def test_pairs_have_both_shares():
    found = dupflow.pairs(FRAME, id="id", pipeline="contained", threshold=0.8)
    assert found.column_names == ["a", "b", "similarity", "in_a", "in_b"]
    rows = [rounded(pair[:5]) for pair in found]
    edited = (41 / 46, 41 / 116)
    assert rows == [
        rounded(("note", "book", 1.0, SHINGLES, 1.0)),
        ("note", "copy", 1.0, 1.0, 1.0),
        rounded(("book", "chapter", edited[0], edited[0], edited[1])),
        rounded(("book", "copy", 1.0, 1.0, SHINGLES)),
    ]
    with_evidence = dupflow.pairs(FRAME, pipeline="contained", evidence=True)
    assert with_evidence.column_names[3:6] == ["in_a", "in_b", "blocks"]
    empty = dupflow.pairs({"text": []}, pipeline="contained")
    assert empty.column_names == found.column_names and len(empty) == 0
    assert "in_a" not in dupflow.pairs(FRAME, pipeline="exact").column_names
    assert next(iter(dupflow.pairs(FRAME, pipeline="exact"))).in_a is None
    assert "<mark" in found._repr_html_()


def test_what_is_contained_in_what_stays_is_removed():
    kept = dupflow.dedup(FRAME, id="id", pipeline="contained", threshold=0.8)
    assert kept["id"] == ["book", "apart", "chapter"], "0.89 of the chapter is less than 0.95"
    settings = {"output.remove_if": "contained:0.85"}
    found = dupflow.removed(FRAME, id="id", pipeline="contained", threshold=0.8, settings=settings)
    expected = [dupflow.Removal(id, "book", "book") for id in ("note", "chapter", "copy")]
    assert list(found) == expected and found.filter(FRAME)["id"] == ["book", "apart"]
    assert found.stats == {"documents": 5, "nulls": 0, "kept": 2, "removed": 3}
    # Rows without a text stay, and of copies the first.
    rows = [{"text": NOTE}, {"text": None}, {"text": NOTE}]
    assert dupflow.dedup(rows, pipeline="contained", nulls="skip") == rows[:2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keep": "longest"}, "keep: of containment"),
        ({"against": FRAME}, "not compared with a reference"),
        ({"settings": {"filter.verify": "sketch"}}, 'filter.verify = "exact"'),
        ({"settings": {"output.remove_if": "contained:0.3"}}, "below threshold"),
        ({"settings": {"output.keep": "longest"}}, "output.keep"),
    ],
)
def test_what_cannot_be_decided_is_refused(options, message):
    with pytest.raises(dupflow.ConfigError, match=message):
        dupflow.dedup(FRAME, id="id", pipeline="contained", **options)


def test_deltas_of_a_corpus_add_up(tmp_path):
    """A new edition changes one share, so that the pair ends and begins."""
    state = tmp_path / "state"
    pairs = set()
    with dupflow.Corpus("contained", threshold=0.8, state=state) as corpus:
        assert corpus.flush().column_names[4:] == ["similarity", "in_a", "in_b", "cause"]
        for texts in [{"b": BOOK, "n": NOTE}, {"b": BOOK + " and more words"}, {"c": EDITED, "z": NOTE}]:
            for id, text in texts.items():
                corpus.upsert(id, text)
            for delta in corpus.flush():
                row = (delta.a, delta.b, delta.similarity, delta.in_a, delta.in_b)
                (pairs.add if delta.diff > 0 else pairs.remove)(row)
            assert pairs == {pair[:5] for pair in corpus.pairs()}
        assert len(pairs) == 4
        (best, *others) = corpus.similar(words((20, 90)))
        assert best == dupflow.Similar("b", 1.0, 1.0, round(66 / 119, 9))
        assert [found.id for found in others[:2]] == ["n", "z"]
        assert (others[0].in_id, others[0].of_id) == (round(46 / 66, 9), 1.0)
    with dupflow.Corpus("contained", threshold=0.8, state=state) as corpus:
        assert pairs == {pair[:5] for pair in corpus.pairs()}


def test_deltas_of_a_stream(tmp_path):
    path = tmp_path / "feed.jsonl"
    rows = [{"id": "book", "text": BOOK}, {"id": "note", "text": NOTE}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for source in (str(path), rows):
        (deltas,) = dupflow.follow(source, every="events:2", pipeline="contained")
        (delta,) = deltas
        assert rounded((delta.in_a, delta.in_b)) == rounded((1.0, SHINGLES))


def test_the_program_finds_and_removes_the_same(program, rows, tmp_path):
    """Generated documents, and parts of them."""
    parts = [
        {"id": f"{row['id']}/part", "text": " ".join(row["text"].split()[: 10 + n % 60])}
        for n, row in enumerate(rows)
    ]
    rows = sorted([*rows, *parts], key=lambda row: row["id"].encode())
    path = tmp_path / "feed.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def of_program(emit):
        out = run(program, "replay", "-p", "contained", "--emit", emit, path)
        return [json.loads(line) for line in out.decode().splitlines()]

    found = dupflow.pairs(rows, id="id", pipeline="contained")
    keys = found.column_names
    assert [dict(zip(keys, pair[:5], strict=True)) for pair in found] == of_program("pairs")
    assert sum(pair.in_a != pair.in_b for pair in found) > 100
    removed = dupflow.removed(rows, id="id", pipeline="contained")
    assert [removal._asdict() | {"old": None} for removal in removed] == [
        row | {"old": None} for row in of_program("remove")
    ]
    assert [row["id"] for row in removed.filter(rows)] == [row["id"] for row in of_program("keep")]


def test_a_plan_and_a_comparison():
    plan = dupflow.plan("contained")
    quotes = plan.quotes()
    assert quotes.column_names == ["words", "edits", "ratio", "found_at_most"]
    of_program = json.loads(plan.json())["quotes"]
    assert quotes.column("found_at_most") == [row["found_at_most"] for row in of_program]
    assert len(dupflow.plan("minhash").quotes()) == 0 and 0 < plan.recall(0.9) <= 1
    compared = dupflow.compare(BOOK, EDITED, pipeline="contained")
    assert rounded(compared.shares) == rounded((41 / 116, 41 / 46)) and compared.is_pair
    assert compared.similarity == max(compared.shares)
    assert dupflow.compare(BOOK, EDITED).shares is None
    assert dupflow.compare(BOOK, "nothing", pipeline="contained").shares is None
