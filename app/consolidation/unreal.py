"""Recognises words about a dream, a lie, a game or a wish. What is said in them is not what happened. Pure.

A dream, a lie or a game makes the whole message uncertain, because the words about it can be in another sentence than
what happens in it. A wish makes only its own sentence uncertain.
"""

import re
from collections.abc import Iterable

from app.summarising.sentences import split_sentences

_DREAMS = r"(?:dreams?|nightmares?|daydreams?|fantas(?:y|ies)|imagination)"
_STORIES = r"(?:game|story|novel|role-?play|rp|campaign)"
_INVENTED = re.compile(
    r"(?<!always )(?<!ever )(?<!never )\b(?:day)?dream(?:ed|t)\b"
    r"|\bI(?:['’]m| am| was)(?: just| only)? (?:day)?dreaming\b"
    rf"|\b(?:had|have|having) (?:an?|this|that|the|another) (?:\w+ )?{_DREAMS}"
    r"(?= (?:that|where|in|about|last|I)\b|[.,:;!…]|$)"
    rf"|\b[Ii]n (?:an?|my|your|his|her|our|the|this|that|another|last night['’]s) (?:\w+ )?{_DREAMS}\b"
    rf"|\b[Ii]n (?:an?|my|our|the|this|that) (?:\w+ )?{_STORIES}(?= (?:I|we|my)\b|[.,:;!…]|$)"
    r"|\bI (?:(?!never\b|not\b)\w+ ){0,2}lied\b|\blied (?:that|when|about)\b"
    r"|\bI(?:['’]m| am| was)(?: just| only)? lying(?! (?:down|in|on|here|there|awake|back|beside|next|under)\b)"
    r"|\b(?:told|telling|tell) (?:\w+ ){0,2}?(?:an?|the) (?:\w+ )?lie\b"
    r"|(?:\b(?:is|was|were|be)|['’]s)(?: (?:all|just|only))? an? (?:\w+ )?lie\b|\bit was (?:all|just|only) an? dream\b"
    r"|\bI made (?:it|that|this|all of (?:it|that|this)) up\b"
    r"|\b(?:I|we|[Ll]et['’]?s|[Ll]et us)(?:['’]ll| will)? (?:just )?pretend(?:ed)?\b"
    r"|\bI(?:['’]m| am| was) (?:just )?pretending\b"
    r"|\b(?:[Ii]magine|[Ii]magined|[Ss]uppose|[Ss]upposing)(?: that)? (?:I|my|we)\b"
    r"|\*[^*\n]{0,80}\b(?:lied|lies|lying to|pretends?|pretending)\b(?! (?:down|in|on|back|beside|next)\b)"
    r"|\bgeträumt\b|\bich träum(?:e|te)\b|\bTräumte\b|\b[Ii]m Traum\b|\bin (?:meinem|einem) Traum\b|\bgelogen\b"
    r"|\b[Ii]ch (?:habe |hab )?(?:dich |euch |ihn |sie )?(?:an)?(?:log|lüge)\b|\b[Ii]ch tat so\b"
    r"|\b[Ss]oñ(?:é|aba|ando)\b|\b[Hh]e soñado\b|\ben (?:mi|un|el) sueño\b|\b[Mm]entí\b|\b[Hh]e mentido\b"
    r"|\b[Ff]ingí\b|\bes mentira\b"
    r"|\brêv(?:é|ais|ait)\b|\bdans (?:mon|un) rêve\b|\b[Jj]['’]ai menti\b|\b[Jj]e (?:te |vous )?mentais\b"
    r"|\bfaisais semblant\b"
    r"|夢を見|夢で|夢の中|嘘をつ|嘘だ|嘘です|うそをつ|ふりをし|梦见|梦到|夢見|夢到|梦里|夢裡|梦中|夢中|撒谎|撒謊|说谎|說謊"
    r"|骗了|騙了|骗你|騙你|假装|假裝"
)
_WISH = re.compile(
    r"\bI(?:['’]d| do| just| really| so)? wish(?:ed)?\b(?! (?:you|him|her|them|everyone|all)\b(?! (?:were|knew)))"
    r"|\b[Ii]f only\b|\b[Ww]ishing (?:I|that|my)\b|\bI(?:['’]d| would)(?: have)? (?:\w+ )?if\b|\b[Aa]s if I\b"
    r"|\b(?:if|unless) I (?:were|was|had)\b"
    r"|\b[Ii]ch wünsch(?:e|te)\b|\b[Hh]ätte ich\b|\b[Ww]äre ich\b|\b[Ww]enn ich nur\b"
    r"|\b[Oo]jalá\b|\b[Qq]uisiera\b|\b[Ss]i yo fuera\b"
    r"|\b[Ss]i seulement\b|\b[Jj]e (?:voudrais|souhaiterais)\b|\b[Jj]['’]aimerais\b"
    r"|ならいいのに|だったらいいのに|ならよかった|要是我|要是能|如果我是|真希望|但愿|但願"
)


def is_invented(text: str) -> bool:
    """Return whether a message speaks of a dream, a lie or a game of its speaker."""
    return _INVENTED.search(text) is not None


def list_wishes(text: str) -> list[str]:
    """Return the sentences of a message that wish for something."""
    if not _WISH.search(text):
        return []
    return [said for one in split_sentences(text) if _WISH.search(said := "".join(one.clauses))]


def is_of_one(said: str, sentences: Iterable[str]) -> bool:
    """Return whether `said`, a quotation, is from one of these sentences."""
    core = said.strip(" …*")
    return any(core in one or one in core for one in sentences)
