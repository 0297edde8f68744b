"""Changes the list of a chat's characters: merges a given list into it, and renames a character.

A stored character is `{"id", "name", "persona"?, "disabled"?, "aliases"?, "hashed_name"?}`. `aliases` are its former
names, newest last. `hashed_name` is its name before the first rename: its messages are hashed with this instead of the
present name, so that a rename changes no hash. If the name of a new character is already the `hashed_name` of another
one, the new character's id becomes its own `hashed_name`, so that the messages of the two have different hashes.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from app.chats.characters import Characters, list_aliases
from app.chats.errors import CharacterMismatch, CharacterNotFound, CharacterTaken

MAX_ALIASES = 20
"""The maximum number of former names that a character keeps."""

Character = dict[str, Any]


def merge_characters(stored: Characters, given: Characters, make_id: Callable[[], UUID]) -> list[Character]:
    """Return the given characters, completed with stored ids and former names, and with ids for new characters.

    A given character updates the stored character that has its id. If there is none, it updates the one that has its
    name, as the current or else as a former name. A former name does not rename the character back. If `aliases` are
    given, a former name that they leave out can be given to another character. The caller makes sure that the given
    names are unique, and the given ids too.

    Raises CharacterMismatch if a given id and its name do not belong to the same stored character, unless both are
    unknown; and CharacterTaken if two given characters are the same stored one.
    """
    matches = [_find_by_id_or_name(stored, one) or _find_by_alias(stored, given, one) for one in given]
    merged = []
    for index, (one, match) in enumerate(zip(given, matches, strict=True)):
        _check(index, one, match)
        if match is not None and one["name"] != match["name"] and matches.count(match) > 1:
            raise _refuse_alias(index, one, match)
        merged.append(_merge(stored, one, match, make_id))
    return merged


def find_character(stored: Characters, name: str) -> Mapping[str, Any]:
    """Return the character with a name, which may also be a former one. Raises CharacterNotFound."""
    current = (one for one in stored if one["name"] == name)
    former = (one for one in stored if name in list_aliases(one))
    found = next(current, None) or next(former, None)
    if found is None:
        raise CharacterNotFound(f"The chat has no character {name!r}.")
    return found


def rename_character(stored: Characters, former: str, name: str) -> list[Character]:
    """Return the characters after a rename; `former` may also be a former name of the character.

    Raises CharacterNotFound, and CharacterTaken if the new name is a name or a former name of another character.
    """
    renamed = find_character(stored, former)
    for other in stored:
        if other is not renamed and name in (other["name"], *list_aliases(other)):
            is_alias = "" if name == other["name"] else "a former name of "
            message = f"is {is_alias}the character “{other['name']}”; choose another name"
            raise CharacterTaken(f"name: {message}", errors=[{"loc": ["body", "name"], "msg": message}])
    return [_renamed(one, name) if one is renamed else dict(one) for one in stored]


def _renamed(character: Mapping[str, Any], name: str) -> Character:
    former = character["name"]
    if name == former:
        return dict(character)
    aliases = [alias for alias in list_aliases(character) if alias not in (name, former)] + [former]
    hashed_name = character.get("hashed_name", former)
    return {**character, "name": name, "aliases": aliases[-MAX_ALIASES:], "hashed_name": hashed_name}


def _find_by_id_or_name(stored: Characters, given: Mapping[str, Any]) -> Mapping[str, Any] | None:
    by_id = next((one for one in stored if given.get("id") and one.get("id") == given["id"]), None)
    return by_id or next((one for one in stored if one["name"] == given["name"]), None)


def _find_by_alias(stored: Characters, given: Characters, wanted: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the character that had the name, unless the given list removes the name from its aliases."""
    for one in stored:
        if wanted["name"] in list_aliases(one):
            same = next((other for other in given if _find_by_id_or_name(stored, other) is one), {})
            return one if "aliases" not in same or wanted["name"] in (same["aliases"] or ()) else None
    return None


def _check(index: int, given: Mapping[str, Any], match: Mapping[str, Any] | None) -> None:
    """Raise CharacterMismatch unless id and name are those of one character."""
    if match is None or not given.get("id") or not match.get("id"):
        return
    if given["id"] != match["id"]:
        message = f"must be that of the character “{match['name']}”, {match['id']}; leave it out to find it by name"
        raise _mismatch(index, "id", message)
    if given["name"] not in (match["name"], *list_aliases(match)):
        message = f"must be “{match['name']}”, the name of this id; POST …/characters/{{name}}/rename changes a name"
        raise _mismatch(index, "name", message)


def _merge(
    stored: Characters, given: Mapping[str, Any], match: Mapping[str, Any] | None, make_id: Callable[[], UUID]
) -> Character:
    described = {name: given[name] for name in ("persona", "disabled") if name in given}
    match = match or {}
    name = match.get("name", given["name"])
    merged = {"id": match.get("id") or given.get("id") or str(make_id()), "name": name, **described}
    aliases = list_aliases(match)
    if "aliases" in given:
        aliases = [alias for alias in aliases if alias in (given["aliases"] or ())]
    if aliases:
        merged["aliases"] = aliases
    if hashed_name := match.get("hashed_name") or _find_hashed_name(stored, merged):
        merged["hashed_name"] = hashed_name
    return merged


def _find_hashed_name(stored: Characters, new: Mapping[str, Any]) -> str | None:
    """Return the id of a new character if its name is the `hashed_name` of another character; else None.

    The id becomes its own `hashed_name`, so that the messages of the two have different hashes.
    """
    is_hashed = any(one["name"] != new["name"] and one.get("hashed_name") == new["name"] for one in stored)
    return str(new["id"]) if is_hashed else None


def _mismatch(index: int, field: str, message: str) -> CharacterMismatch:
    location = ["body", "characters", index, field]
    return CharacterMismatch(f"characters.{index}.{field}: {message}", errors=[{"loc": location, "msg": message}])


def _refuse_alias(index: int, given: Mapping[str, Any], match: Mapping[str, Any]) -> CharacterTaken:
    message = (
        f"“{given['name']}” is a former name of “{match['name']}”, which is in the list too; "
        "leave it out of that character's aliases to use it for another one"
    )
    location: Sequence[str | int] = ["body", "characters", index, "name"]
    return CharacterTaken(f"characters.{index}.name: {message}", errors=[{"loc": location, "msg": message}])
