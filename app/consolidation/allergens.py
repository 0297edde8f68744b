"""Reads what somebody is allergic to from the words that follow "allergic to". Pure.

Only the words of `_HEADS` are read as allergens, because people also say that they are allergic to Mondays or to drama.
An allergy to something else is no fact, but its sentence may be quoted as a memory (`extractive.py`).
"""

import re
from collections.abc import Iterator

from app.consolidation.fact_values import DOUBT, is_aside, strip_filler
from app.summarising.sentences import find_terms

_HEADS = frozenset(
    find_terms("""
    nut nuts peanut peanuts almond almonds cashew cashews walnut walnuts hazelnut hazelnuts pistachio pistachios pecan
    pecans macadamia macadamias chestnut chestnuts coconut coconuts sesame tahini seed seeds lupin lupins lupine
    shellfish crustacean crustaceans mollusc molluscs mollusk mollusks seafood shrimp shrimps prawn prawns crab crabs
    lobster lobsters crayfish clam clams mussel mussels oyster oysters scallop scallops squid octopus fish salmon tuna
    cod anchovy anchovies
    egg eggs milk dairy lactose casein whey cheese butter cream yogurt yoghurt wheat gluten rye barley oats oat
    buckwheat corn maize rice yeast soy soya soybean soybeans tofu bean beans lentil lentils pea peas chickpea chickpeas
    legume legumes mustard celery garlic onion onions tomato tomatoes potato potatoes carrot carrots pepper peppers
    mushroom mushrooms spinach cucumber cucumbers avocado avocados paprika cinnamon vanilla ginger coriander cilantro
    apple apples banana bananas kiwi kiwis kiwifruit strawberry strawberries raspberry raspberries blueberry blueberries
    berry berries cherry cherries peach peaches plum plums pear pears apricot apricots melon melons watermelon mango
    mangoes mangos pineapple pineapples papaya orange oranges lemon lemons lime limes citrus grape grapes grapefruit fig
    figs fruit fruits meat beef pork chicken lamb turkey gelatin gelatine honey chocolate cocoa coffee
    caffeine alcohol wine beer histamine msg sulfite sulfites sulphite sulphites preservatives additives
    cat cats kitten kittens dog dogs puppy puppies horse horses rabbit rabbits hamster hamsters mouse mice rat rats cow
    cows goat goats sheep bird birds parrot parrots reptile reptiles pig pigs
    animal animals pets pet hair fur dander feather feathers down wool
    saliva
    bee bees wasp wasps hornet hornets ant ants mosquito mosquitoes mosquitos flea fleas cockroach cockroaches insect
    insects sting stings bite bites venom mite mites dust mold mould molds moulds
    pollen grass ragweed birch hay tree trees flower flowers lily lilies ivy oak weed weeds mugwort cedar sun sunlight
    latex nickel cobalt gold silver metal rubber perfume perfumes fragrance fragrances scent scents smoke chlorine
    detergent detergents soap formaldehyde lanolin adhesive adhesives sunscreen
    antibiotic antibiotics penicillin amoxicillin ampicillin cephalosporin cephalosporins erythromycin tetracycline
    doxycycline sulfa aspirin ibuprofen naproxen nsaids paracetamol acetaminophen codeine morphine opioids iodine
    contrast lidocaine novocaine anesthesia anaesthesia insulin medication medications
    """)
)
"""The last word of the name of an allergen."""

_MODIFIERS = frozenset(
    find_terms("""
    tree pine brazil brewer cow goat sheep house dust red yellow black green white raw cooked fresh dried
    roasted fried citrus tropical stone sea freshwater saltwater farm long-haired short-haired fire paper honey bumble
    guinea long short with
    poison certain some grass pet cat dog horse animal goose wild sunflower poppy pumpkin chia flax sesame mustard
    strong artificial food dairy wheat soy egg peanut fur hay direct cigarette tobacco sulfa contrast iodine
    """)
)
_MARK = re.compile(
    r"(?P<list>,\s*(?:and\s+|&\s*)?|\s+(?:and|&)\s+)|\s+[-–—]+\s+|\s+(?=(?:because|since|which|so)\b)", re.I
)
_ARTICLE = re.compile(r"(?:the|an?|my|all|most)\s+", re.I)
_OTHER_SUBJECT = re.compile(
    r"\b(?:is|are|am|was|were|has|had|does|did|will|can|allergic)\b|['’](?:s|re|m)\b|\bor\b|[?()“”\"]", re.I
)
_MAX_WORDS = 4


def read_allergens(said: str) -> Iterator[str]:
    """Yield each allergen of the list with which `said` begins, such as `peanuts, bees and cats, sadly`.

    A list ends where something else is said: `shellfish and love dogs` has one allergen. Yields none if the list is in
    doubt.
    """
    bare = strip_filler(said)
    if DOUBT.search(bare):
        return
    allergens, rest, joins = _read_list(bare)
    is_call = len(rest.split()) == 1 and rest.strip("'’").isalpha()  # the name of a listener: "bees and cats, Kai"
    goes_on = joins and not _OTHER_SUBJECT.search(rest)
    if is_aside(rest) or is_call or goes_on:
        yield from allergens


def _read_list(said: str) -> tuple[list[str], str, bool]:
    """Return the allergens at the beginning of `said`, the rest after them, and whether "and" joins the rest."""
    allergens: list[str] = []
    at, joins = 0, False
    while at < len(said):
        mark = _MARK.search(said, at)
        name = _ARTICLE.sub("", said[at : mark.start() if mark else len(said)].strip(), count=1)
        if not _is_allergen(name):
            return allergens, said[at:], joins
        allergens.append(name)
        at = mark.end() if mark else len(said)
        joins = bool(mark and mark["list"] and mark["list"].strip(" ,"))
    return allergens, "", joins


def _is_allergen(name: str) -> bool:
    words = [word.removesuffix("'s") for word in name.casefold().replace("’", "'").split()]
    is_known = all(word in _HEADS or word in _MODIFIERS for word in words)
    return 0 < len(words) <= _MAX_WORDS and words[-1] in _HEADS and is_known
