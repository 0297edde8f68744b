"""What an answer that was to tell a former text anew makes of it: does that stay as it is, is it all but gone? Pure."""

import re

_MOST_CHARS = 200
"""A longer text that begins with "No changes." tells something all the same."""

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
    """Whether `text` only says that `former` stays as it is, in one of the larger languages; with a reason at most."""
    if len(text) > _MOST_CHARS:
        return False
    said = text.casefold().strip(_EDGES)
    if _UNCHANGED.fullmatch(said):
        return True
    first_clause = _CLAUSE_END.split(said, maxsplit=1)[0].strip(_EDGES)
    return 2 * len(text) <= len(former) and _UNCHANGED.fullmatch(first_clause) is not None


def is_remnant(text: str, former: str) -> bool:
    """Whether next to nothing is left of a long `former`: not a tenth of it, or of 2,000 characters if it is longer.

    A text that is told anew keeps what it told: what is so short is a remark, whatever it says.
    """
    return len(former) >= _LONG_CHARS and _REMNANT * len(text) < min(len(former), _MOST_LONG_CHARS)
