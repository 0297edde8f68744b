"""Detects an answer that should rewrite a former text, but states no changes or keeps almost nothing of it. Pure."""

import re

_MOST_CHARS = 200
"""A longer text has content even if it begins with "No changes."."""

_LONG_CHARS = 600
_MOST_LONG_CHARS = 2_000
_REMNANT = 10

_TEXTS = r"summary|recap|diary|narrative|story|text|version"
_THE_TEXT = rf"(?:(?:the|this|my|former|previous|existing|current|running|whole) ){{0,3}}(?:{_TEXTS})"
_UNCHANGED = re.compile(
    r"(?:there (?:is|are|was|were) )?(?:no|nothing)"
    r"(?: (?:new|further|other|relevant|significant|major|has|have|been|needs?|was|is|to|be))*"
    r" (?:changes?|changed|updates?|updated?|additions?|add|added|fold in|revisions?|modifications?)"
    r"(?: (?:is|are|was|were|needed|necessary|required|made|to|in|from|at|all|here|so|far|new|messages?|entries"
    rf"|the|these|this|my|former|previous|existing|current|running|whole|{_TEXTS}))*"
    rf"|{_THE_TEXT} (?:is|remains|stays|stands)(?: (?:still|exactly|completely|entirely))?"
    r" (?:unchanged|the same|as (?:it (?:is|was|stands)|before|above))"
    rf"|(?:the )?same (?:as )?(?:before|above|{_THE_TEXT})|unchanged"
    rf"|(?:the )?(?:former|previous|existing) (?:{_TEXTS})(?: unchanged)?"
    r"|keine (?:änderungen|neuerungen)(?: (?:nötig|notwendig|erforderlich))?"
    r"|(?:die zusammenfassung bleibt )?unverändert"
    r"|sin cambios|no hay cambios|aucun changement|aucune modification|inchangé|sem alterações|não há alterações"
    r"|nessuna modifica|nessun cambiamento|invariato|без изменений|изменений нет|нет изменений"
    r"|(?:要約[にはの]*)?(?:変更|変化|更新)(?:点)?[はも]?(?:なし|無し|ない|ありません)"
    r"|(?:摘要|总结|總結|内容|內容)?(?:没有|沒有|无需|無需|无|無)(?:任何)?(?:变化|變化|变更|變更|更新|改动|改動|修改)"
    r"|(?:摘要|总结|總結|内容|內容)?(?:保持|维持|維持)?不[变變]"
    r"|(?:요약[은에]? )?(?:변경|변화|수정) ?(?:사항)?[이은]? ?(?:없음|없습니다|없다)"
)
_CLAUSE_END = re.compile(r"[.!?。！？:：;；(（,，–—\n]|\s-\s")
_EDGES = "-–—• \"'“”()[]*_`.!?。！？\n"


def leaves_former(text: str, former: str) -> bool:
    """Whether `text` only states that `former` stays unchanged, perhaps with a reason, in one of the major languages.

    Returns False for a `text` that is long compared with `former`.
    """
    if len(text) > _MOST_CHARS:
        return False
    said = text.casefold().strip(_EDGES)
    if _UNCHANGED.fullmatch(said):
        return True
    first_clause = _CLAUSE_END.split(said, maxsplit=1)[0].strip(_EDGES)
    return 2 * len(text) <= len(former) and _UNCHANGED.fullmatch(first_clause) is not None


def is_remnant(text: str, former: str) -> bool:
    """Whether `text` is less than a tenth as long as a long `former`, or as 2,000 characters if that is longer.

    A rewritten text keeps the content of the former one, so a text this short is only a remark.
    """
    return len(former) >= _LONG_CHARS and _REMNANT * len(text) < min(len(former), _MOST_LONG_CHARS)
