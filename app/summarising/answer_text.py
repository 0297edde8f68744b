"""Cleans a model's answer, and detects refusals and answers that state that there is nothing. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile, zip_longest

from app.kit.refusals import RefusalKind


class UnusableAnswer(Exception):
    """The answer is refused.

    The message gives the reason without quoting the answer. The next request to the model contains it in a sentence
    (`app/layers/ask.py`): "An earlier answer to this request was refused: …." `kind` is the kind of fault. It is `form`
    if the answer is empty, too long, cut off, or not in the form that was asked for; an explicit "nothing" is not a
    fault where the prompt allows it.
    """

    def __init__(self, reason: str, kind: RefusalKind = "form") -> None:
        super().__init__(reason)
        self.kind: RefusalKind = kind


MAX_ANSWER_CHARS = 20_000
"""Far longer than any memo or narrative; a model that writes this much repeats itself."""

FENCE = re.compile(r"```(?:jsonl?|text|txt|plaintext|markdown|md)?", re.I)
"""The start or the end of a code block."""

_WIDE_GAP = re.compile(r"[^\S\n]{33,}")
_LINE_END = re.compile(r"[^\S\n]{1,32}\n")
_TALL_GAP = re.compile(r"\n{4,}")
_UNWANTED = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff\ufeff]")
_THINKING_TAG = re.compile(
    r"<(/?)(?:seed:)?(?:think|thinking|thoughts?|reason|reasoning|reflection|scratchpad)(?: [^<>\n]{0,80})?>", re.I
)
_THINKING_BEGINS = re.compile(
    r"\[THINK\]|◁think▷|<\|begin_of_thought\|>|<\|channel\|>analysis<\|message\|>|\A\s*analysis(?=[A-Z])"
)
_THINKING_ENDS = re.compile(
    r"\[/THINK\]|◁/think▷|<\|end_of_thought\|>|<\|channel\|>final<\|message\|>|(?<=[.?!\s])assistantfinal"
)
_CONTROL_TOKEN = re.compile(r"<\|(?:start\|>assistant|(?:begin|end)_of_solution\|>)")
_TURN_TOKEN = re.compile(
    r"(?P<end><\|(?:im_end|eot_id|eom_id|end_of_text|endoftext|end_of_turn|END_OF_TURN_TOKEN|end|return)\|>"
    r"|<end_of_turn>|<｜end▁of▁sentence｜>|</s>)"
    r"|(?P<other><\|(?:user|system|USER_TOKEN|SYSTEM_TOKEN)\|>|<｜User｜>|\[INST\]|<</?SYS>>"
    r"|(?:<\|(?:im_start|start_header_id|start)\|>|<start_of_turn>)\s{0,4}(?:user|system|tool|developer)\b)"
    r"|(?P<own><\|(?:im_start|start_header_id|start)\|>(?:\s{0,4}(?:assistant|model)\b)?"
    r"|<start_of_turn>(?:\s{0,4}model\b)?|<\|(?:assistant|CHATBOT_TOKEN)\|>|<｜Assistant｜>|\[/INST\])"
    r"|(?P<mark><\|(?:begin_of_text|end_header_id|message|START_OF_TURN_TOKEN)\|>|<s>)"
)
"""The tokens of chat templates, in groups.

`end` ends a turn, `other` begins a turn of another speaker, `own` begins one of the model, `mark` is any other token.
"""

_STRUCK_OUT = re.compile(r"<s>(?=[^\S\n]{0,200}[^\s<])((?:(?!\[/?INST\])[^<>\n]){1,200})</s>")
"""HTML that strikes out words of a line: then `<s>` and `</s>` are no tokens."""

_HEADED = re.compile(r"^### (?:(?P<other>Instruction|Input)|(?P<own>Response)):[ \t]*$", re.M)
"""The headings of a prompt in the form of Alpaca, which a model can repeat."""

_PREAMBLE = re.compile(r"\s*(?:[^\n]{0,80}:|(?:sure|certainly|of course|okay|understood)[!.,]?)\s*", re.I)
_NOTHING = re.compile(
    r"(?:there (?:is|are|was|were) )?(?:none|nothing|null|n/a|not applicable|no(?= [a-z]))"
    r"(?: (?:is|are|was|were|has|have|been|of|or|the|this|that|these|it|in|to|for|from|here|new|memorable"
    r"|notable|noteworthy|significant|important|relevant|particular|special|worth|found|occurred|happened"
    r"|record(?:ed|ing)?|remember(?:ing)?|note|noting|report|identified|highlights?|moments?|events?|memory"
    r"|memories|memos?|facts?|details?|messages?|batch|conversation|chat|exchange|excerpt)){0,15}"
    r"|nada(?: (?:(?:de )?memorable|memorável|destacable|relevante|que (?:recordar|destacar)))?|ningun[oa]"
    r"|nenhum|niente(?: di memorabile)?|aucun|rien(?: de (?:mémorable|notable)| à (?:retenir|signaler))?"
    r"|nichts(?: (?:denkwürdiges|erwähnenswertes|besonderes|bemerkenswertes))?|keine(?: highlights)?"
    r"|нет|ничего(?: (?:важного|особенного|примечательного|запоминающегося))?"
    r"|(?:特に)?(?:なし|無し|ありません)|(?:特筆|記録|記憶|印象)(?:なし|(?:す(?:べき|る)|に(?:残[るす]|値)|的な|事項|内容)[ぁ-ん一-龠]{0,12}(?:なし|ません|ない))"
    r"|(?:没有|沒有|[暂暫]?[无無])(?:(?:任何)?(?:值得|重要|特别|特別)[记記录錄住的事件内內容亮点點]*)?"
    r"|(?:(?:특별|기억|주목|기록)[가-힣 ]{0,14})?(?:없음|없습니다|없다)"
)
_NONE = re.compile(r"\W{0,4}(?:none|null|n/a|not applicable)\W{0,4}(?:$|[\n.!:;(–—]|-\s)", re.I)
_SAID_AGAIN = re.compile(r"\b(none|null|n/a)(?:\W{1,4}\1\b){1,200}")
_CLAUSE_END = re.compile(r"[.!?。！？:：;；(（,，–—]|\s-\s")
_REFUSAL = re.compile(
    r"(?:i(?:['’]m| am) (?:(?:really|very|so) )?sorry|sorry,? (?:but|i)\b|my apologies\b|i apologi[sz]e"
    r"|(?:unfortunately,? )?i(?:['’]m| am)? (?:can['’]?t|can ?not|won['’]?t|will not|unable|not able)\b"
    r"|i must decline|as an ai (?:language )?(?:model|assistant)\b[^.\n“]{0,60}?\b(?:i|my)\b|lo siento"
    r"|no puedo|désolée?,"
    r"|je (?:ne peux|suis désolé)|es tut mir leid|ich kann (?:dir |dabei |das )?nicht|mi dispiace|desculpe"
    r"|não posso|извините|к сожалению, я|я не могу|申し訳(?:ありません|ございません)|対応できません"
    r"|很?抱歉|对不起|對不起|我无法|我無法|我不能|죄송)",
    re.I,
)


def spoken(answer: str, *, truncate: bool = False) -> str:
    """Return `answer` without reasoning, control characters and long gaps. Every parser reads only this text.

    A model whose stop string is wrong goes on after its turn, with the tokens of its chat template and the next turns.
    Only its first turn is returned (`first_turn`). `<s>` and `</s>` around all of it are tokens, too.

    A gap within a line has at most 32 spaces, lines do not end with spaces, and there are at most two blank lines in a
    row, so that no parser has to skip more white space. With `truncate`, which is for answers that are a list of
    independent items, the result is cut off after MAX_ANSWER_CHARS. Raises UnusableAnswer if the reasoning does not
    end, and, without `truncate`, if the result is longer than MAX_ANSWER_CHARS.
    """
    text = first_turn(without_controls(answer)).strip()
    if wrapped := _STRUCK_OUT.fullmatch(text):
        text = wrapped[1]
    text = _TALL_GAP.sub("\n\n\n", _LINE_END.sub("\n", _WIDE_GAP.sub(" " * 32, text))).strip()
    if truncate:
        return text[:MAX_ANSWER_CHARS]
    if len(text) > MAX_ANSWER_CHARS:
        raise UnusableAnswer("the answer is far too long")
    return text


def without_controls(text: str) -> str:
    """Return `text` without NUL and most other control characters, lone surrogates and byte order marks."""
    return _UNWANTED.sub("", text)


def says_nothing(text: str) -> bool:
    """Whether the first clause of `text` is an explicit "nothing memorable", in one of the major languages."""
    text = _SAID_AGAIN.sub(r"\1", text.casefold())
    clause = _CLAUSE_END.split(text.strip("\"'()[] "), maxsplit=1)[0].strip()
    return _NOTHING.fullmatch(clause) is not None


def says_only_nothing(text: str) -> bool:
    """Whether all of `text` is an explicit "nothing memorable", or a bare "NONE", perhaps followed by a reason."""
    text = _SAID_AGAIN.sub(r"\1", text.casefold())
    return bool(_NONE.match(text)) or _NOTHING.fullmatch(text.strip("\"'()[].!?。！？ \n")) is not None


def refuses(text: str) -> bool:
    """Whether `text` begins with a refusal or an apology, in one of the major languages."""
    return _REFUSAL.match(text) is not None


def first_turn(answer: str) -> str:
    """Return the first turn of the model in `answer` that has a text, without its reasoning and the template's tokens.

    A turn that the model repeats from its prompt, or invents for another speaker, is not its own. A preamble such as
    "Sure!" is dropped if a token that begins the model's turn follows it, perhaps after one that ends the preamble's.
    Words that HTML strikes out stay. Raises UnusableAnswer if the reasoning of the turn does not end.
    """
    tagged = _THINKING_ENDS.sub("</think>", _THINKING_BEGINS.sub("<think>", _CONTROL_TOKEN.sub("", answer)))
    turns = [_Turn()]
    for piece in _without_unopened_reasoning(list(_list_pieces(tagged))):
        turn = turns[-1]
        if isinstance(piece, str):
            if not turn.thinks:
                turn.texts.append(piece)
        elif piece.re is _THINKING_TAG:
            turn.tag(closes=bool(piece[1]))
        elif not turn.thinks and piece.lastgroup != "mark":
            turns.append(_Turn(piece.lastgroup or ""))
    return _choose_turn(turns)


@dataclass(slots=True)
class _Turn:
    """A turn of an answer.

    Attributes:
        begun_by: The kind of the token before it (a group of `_TURN_TOKEN`); "" for the beginning of the answer.
        texts: Its text without the reasoning, in pieces.
        thinks: Whether its reasoning has not ended yet.

    """

    begun_by: str = ""
    texts: list[str] = field(default_factory=list)
    thinks: bool = False

    def tag(self, *, closes: bool) -> None:
        """Begin the reasoning or, with `closes`, end it."""
        if closes and not self.thinks:
            self.texts.clear()  # its opening tag is missing (`_without_unopened_reasoning`)
        if closes and self.texts:
            self.texts.append("\n")
        self.thinks = not closes

    @property
    def text(self) -> str:
        return "".join(self.texts)


_Piece = str | re.Match[str]
"""A part of an answer: a tag of reasoning, a token of a turn, or the text between them."""


def _without_unopened_reasoning(pieces: list[_Piece]) -> list[_Piece]:
    """Return `pieces` without the reasoning at the beginning whose opening tag is missing.

    Many chat templates open the reasoning, so the answer contains only its end. The reasoning can quote tokens, but if
    a token that begins the model's turn follows the first text, that text is the answer.
    """
    tags = (at for at, piece in enumerate(pieces) if isinstance(piece, re.Match) and piece.re is _THINKING_TAG)
    first = next(tags, None)
    if first is None or not pieces[first][1]:
        return pieces
    begun = dropwhile(lambda piece: isinstance(piece, re.Match) or not piece.strip(), pieces[:first])
    is_answered = any(isinstance(piece, re.Match) and piece.lastgroup == "own" for piece in begun)
    return pieces if is_answered else pieces[first + 1 :]


def _list_pieces(text: str) -> Iterator[_Piece]:
    """Yield the tags of reasoning and the tokens of turns in `text`, and the text between them, in order."""
    struck = {at for words in _STRUCK_OUT.finditer(text) for at in (words.start(), words.end() - len("</s>"))}
    tokens = (token for token in _TURN_TOKEN.finditer(text) if token.start() not in struck)
    found = [*_THINKING_TAG.finditer(text), *tokens]
    headings = list(_HEADED.finditer(text))
    is_repeated = any(heading["other"] for heading in headings)
    if is_repeated or (headings and (not text[: headings[0].start()].strip() or _is_preamble(text, headings[0]))):
        found += headings
    end = 0
    for match in sorted(found, key=lambda one: one.start()):
        yield text[end : match.start()]
        yield match
        end = match.end()
    yield text[end:]


def _is_preamble(text: str, token: re.Match[str]) -> bool:
    return _PREAMBLE.fullmatch(text, 0, token.start()) is not None


def _choose_turn(turns: Sequence[_Turn]) -> str:
    """Return the text of the first turn that is the model's own and has a text.

    What follows a token that ends a turn counts as the model's own turn, too. Raises UnusableAnswer if the reasoning of
    the turn does not end.
    """
    filled = [turn for turn in turns if turn.thinks or turn.text.strip()]
    for turn, following in zip_longest(filled, filled[1:]):
        if turn.begun_by == "other":
            continue
        if turn.thinks:
            raise UnusableAnswer("the answer ends while the model is still thinking")
        goes_on = following is not None and following.begun_by == "own" and following.text.strip()
        if not (goes_on and _PREAMBLE.fullmatch(turn.text)):
            return turn.text
    return ""


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
_FIRST_CLAUSE_END = re.compile(r"[.!?。！？:：;；(（,，–—\n]|\s-\s")
_EDGES = "-–—• \"'“”()[]*_`.!?。！？\n"


def leaves_former(text: str, former: str) -> bool:
    """Whether `text` only states that `former` stays unchanged, perhaps with a reason, in one of the major languages.

    Returns False for a `text` of more than 200 characters. A statement with a reason may be at most half as long as
    `former`.
    """
    if len(text) > _MOST_CHARS:
        return False
    said = text.casefold().strip(_EDGES)
    if _UNCHANGED.fullmatch(said):
        return True
    first_clause = _FIRST_CLAUSE_END.split(said, maxsplit=1)[0].strip(_EDGES)
    return 2 * len(text) <= len(former) and _UNCHANGED.fullmatch(first_clause) is not None


def is_remnant(text: str, former: str) -> bool:
    """Whether `text` is less than a tenth as long as `former`.

    Returns False for a `former` of fewer than 600 characters; one of more than 2,000 characters counts as 2,000. A
    rewritten text keeps the content of the former one, so a text this short is only a remark.
    """
    return len(former) >= _LONG_CHARS and _REMNANT * len(text) < min(len(former), _MOST_LONG_CHARS)
