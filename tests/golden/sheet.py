"""Writes a context down so that it can be read by eye, and compared: nothing in it differs from run to run. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from tests.golden.script import Json


def write_sheet(context: Json, inclusion: Sequence[Json], asked: Mapping[str, int]) -> str:
    """What is said of the context, each line behind a `#`, then the context itself."""
    told = [
        f"The context of the preset `{context['chat_id']}` after message {inclusion[-1]['seq']}.",
        "",
        f"tokens      {context['tokens']:,} of {context['max_tokens']:,}",
        f"history     {_word_history(context['history'])}",
        f"memos       {_word_window(context['memo_window'])}",
        f"gaps        {_word_ranges(context['memo_window']['gaps'])}",
        f"omitted     {_word_omitted(context['omitted'])}",
        f"asked       {', '.join(f'{name} {times}' for name, times in sorted(asked.items())) or 'nothing'}",
        f"inclusion   {_word_inclusion(inclusion)}",
        "",
        *_word_segments(context["segments"]),
        "",
        *(f"breakpoint  after {one['after']}, {one['tokens']:,} tokens" for one in context["breakpoints"]),
    ]
    head = "\n".join(f"# {line}".rstrip() for line in told)
    return f"{head}\n\n{context['text']}\n"


def _word_history(history: Json) -> str:
    cut = history["last_cut"]
    last = f"last cut {cut['reason']} at {cut['at_seq']}, {cut['at'][:16]}" if cut else "never cut"
    return f"{history['anchor_seq']}–{history['last_seq']}, {history['messages']} messages; {last}"


def _word_window(window: Json) -> str:
    if not window["memos"]:
        return "none"
    if window["first_seq"] is None:
        return f"{window['memos']}, of no messages"
    return f"{window['memos']}, of the messages {window['first_seq']}–{window['last_seq']}"


def _word_omitted(omitted: Sequence[Json]) -> str:
    return ", ".join(f"{one['name']} ({one['why']})" for one in omitted) or "nothing"


def _word_ranges(ranges: Iterable[Sequence[int]]) -> str:
    return ", ".join(f"{first}–{last}" for first, last in ranges) or "none"


def _word_inclusion(inclusion: Sequence[Json]) -> str:
    """The statuses of all messages, neighbours of the same one together; what is deleted is not among them."""
    runs = [(status, [item["seq"] for item in run]) for status, run in groupby(inclusion, lambda item: item["status"])]
    return ", ".join(f"{seqs[0]}–{seqs[-1]} {status}" if seqs[1:] else f"{seqs[0]} {status}" for status, seqs in runs)


def _word_segments(segments: Sequence[Json]) -> list[str]:
    rows = [("segment", "role", "tokens", "cacheable", "sources")]
    rows += [
        (
            one["name"],
            one["role"] or "–",
            f"{one['tokens']:,}",
            "yes" if one["cacheable"] else "no",
            _word_sources(one["sources"]) + (f", depth {one['depth']}" if "depth" in one else ""),
        )
        for one in segments
    ]
    return [
        f"{name:11} {role:9} {tokens:>6}  {cacheable:9}  {sources}" for name, role, tokens, cacheable, sources in rows
    ]


def _word_sources(sources: Sequence[str]) -> str:
    """Messages and versions by name; of what is known only by an id, how many."""
    kinds = Counter(source.partition(":")[0] for source in sources if _is_masked(source))
    named = [source for source in sources if not _is_masked(source)]
    if len(named) > 2:
        named = [f"{named[0]} … {named[-1]}"]
    return ", ".join([*named, *(f"{count} × {kind}" for kind, count in kinds.items())]) or "–"


def _is_masked(source: str) -> bool:
    return source.count("-") == 4
