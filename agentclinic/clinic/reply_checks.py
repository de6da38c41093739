"""Checking a patient model's words against the facts it may use.

Code decides exactly whose words they are and which numbers and diseases they name. By the lexicon, it decides whether
they affirm what the facts deny or the reverse, and whether they tell more than was chosen. What the lexicon does not
know passes: a check that rejects faultless words would put code's in their place. Nothing here depends on the true
diagnosis.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from agentclinic import lazy
from agentclinic.cases.matcher.asking import stems
from agentclinic.cases.matcher.statements import statement
from agentclinic.cases.model import Fact
from agentclinic.results import utterance
from agentclinic.vocabulary import lexicon
from agentclinic.vocabulary.denial import answers_no, answers_yes, has_denying_word
from agentclinic.vocabulary.disease_names import disease_mentions
from agentclinic.vocabulary.lexicon import Named
from agentclinic.vocabulary.numbers import KnownNumbers, numbers, rough_durations
from agentclinic.vocabulary.text import words

NUMBER = "number"
DISEASE = "disease"
POLARITY = "polarity"
WITHHELD = "withheld"
ADDED = "added"
RESULT = "result"
ROLE = "role"
UNTOLD = "untold"


@dataclass(frozen=True)
class Problem:
    """One thing that a patient's words must not do."""

    kind: str
    message: str
    """For the model."""


KEPT_BACK = Problem(WITHHELD, "you told something that you tell only in private, or only when asked about it directly")
DENIED_BACK = Problem(WITHHELD, "you denied something that you keep back; say that you would rather not go into it")
_PATIENT = "patient|caregiver|mother|father|parent|me|assistant|answer|reply"
_NOT_THE_PATIENT = "doctor|physician|dr|measurement|laboratory|results|nurse|system|user"


def own_words(raw: str) -> tuple[str, list[str]]:
    """A patient's own words, without a label, other speakers' lines or quotation marks, and what slips were in them."""
    text, slips = utterance.own_words(raw, _PATIENT, _NOT_THE_PATIENT)
    return text.strip('"').strip(), slips


@dataclass(frozen=True)
class Told:
    """What a reply may tell."""

    facts: tuple[Fact, ...] = ()
    """The chosen facts."""
    words: tuple[str, ...] = ()
    """What else it may repeat: code's words for the facts, the patient's manner, what is known at the door."""
    before: tuple[Fact, ...] = ()
    """What was told in earlier replies. It may be mentioned beside an answer, not after a denial."""
    denied: tuple[str, ...] = ()
    """What was asked, if no fact answers it and the answer is no or not known."""
    silent: bool = False
    """Whether no part is answered otherwise than with no or not known."""
    open: bool = False
    """Whether nothing of what was asked may be denied: the patient does not know."""
    kept: tuple[Fact, ...] = ()
    """What the patient keeps back."""

    @property
    def texts(self) -> list[str]:
        return [text for fact in self.facts for text in (fact.text, fact.says or "") if text]


def problems(said: str, told: Told, question: str) -> list[Problem]:
    """What is wrong with the words, given what they may tell."""
    if not said:
        return [Problem(utterance.EMPTY, "you said nothing")]
    said = " ".join(said.split())
    if _speaks_as_another(said, [*told.texts, *told.words], question):
        return [Problem(ROLE, "those are the doctor's words, and you are the patient")]
    before = () if told.silent else told.before
    allowed = [*told.texts, *told.words, question, *(f"{fact.text} {fact.says or ''}" for fact in before)]
    found = []
    if invented := _invented_numbers(said, allowed):
        found.append(Problem(NUMBER, f"you named a number that you do not know ({', '.join(invented)})"))
    if named := diseases_beyond(said, allowed) | _guessed(said, [*told.texts, *told.words]):
        found.append(Problem(DISEASE, f"you named an illness that you do not know of ({', '.join(sorted(named))})"))
    if told.silent and (answers_yes(said) or not (has_denying_word(said) or _UNSURE.search(said))):
        found.append(Problem(POLARITY, "you said yes where the answer is no or not known"))
    elif told.open and _PLAIN_NO.match(said) and not _KNOWS_NOT.search(said):
        found.append(Problem(POLARITY, "you do not know this: say so, and neither confirm nor deny it"))
    elif turned := _turned(said, told):
        found.append(Problem(POLARITY, turned))
    if _results_in(said, [*told.texts, *told.words]):
        found.append(Problem(RESULT, "you gave the result of a test that you do not know of"))
    if not found:
        found += _beyond(said, told, allowed, question)
    if not found and _tells_nothing(said, told, question):
        found.append(Problem(UNTOLD, "you told nothing of what you were asked for"))
    return found


# --- whose words they are, and whether they answer --------------------------------------------------------------------

_REPEATED = 6
"""Whoever repeats fewer words of a question may only be asking back: "The chest pain?"."""
_OF_ANOTHER = lazy.regex(
    r"\bi (?:can ?not|can['’]?t|am unable to|am not able to) diagnose\b|\bas an ai\b|\blanguage model\b"
    r"|(?<!\bi['’]m )(?<!\bi am )\bthe patient\b"
    r"|\byour (?:patient|boy|girl|son|daughter|child|baby|condition|concerns|medical history|breathing"
    r"|symptoms?|pain|dizziness|cough|fever|headaches?|nausea|vomiting|rash|swelling|fatigue|bleeding)\b",
    re.IGNORECASE,
)
"""What doctors and assistants say and patients do not."""


def _speaks_as_another(said: str, own: Sequence[str], question: str) -> bool:
    """Whether the words are the doctor's: a sentence of the question, or what only a doctor would say."""
    repeated = words(said)
    if len(repeated) >= _REPEATED and f" {' '.join(repeated)} " in f" {' '.join(words(question))} ":
        return True
    known = " ".join(own).lower()
    return any(of_another[0].lower() not in known for of_another in _OF_ANOTHER.finditer(said))


def _tells_nothing(said: str, told: Told, question: str) -> bool:
    """Whether the words have nothing in common with any fact that they should tell.

    A plain yes or no is enough if one of the facts says no more than the question: "Any fever?", not "Any medicines?".
    """
    if told.silent or not told.facts:
        return False
    texts = [*told.texts, *told.words]
    if stems(said) & stems(" ".join(texts)) or _named([said]).closed & _named(texts).closed & ~lexicon.roots():
        return False
    if answers_yes(said) or answers_no(said):
        return not any(stems(fact.text) <= stems(question) for fact in told.facts)
    return True


# --- numbers ---------------------------------------------------------------------------------------------------------

_DATED = lazy.regex(
    r"\b(?:yesterday|today|tonight|this (?:morning|afternoon|evening)|since|until|monday|tuesday|wednesday|thursday"
    r"|friday|saturday|sunday|childhood|birth|born|hours?|days?|nights?|weeks?|months?|years?|minutes?)\b",
    re.IGNORECASE,
)


def _invented_numbers(said: str, allowed: Sequence[str]) -> list[str]:
    known = KnownNumbers(allowed)
    invented = [number.text for number in numbers(said) if not known.has(number)]
    # Without any duration to compare it with, only a text that has no time at all decides.
    dated = known.has_durations or not any(map(_DATED.search, allowed))
    invented += [rough.text for rough in rough_durations(said) if dated and not known.has_about(rough)]
    return list(dict.fromkeys(invented))


# --- diseases --------------------------------------------------------------------------------------------------------

_TOO_WIDE = frozenset({"medical condition", "diagnosed illness", "childhood illness", "infectious disease"})
"""Not the names of particular diseases."""
_GUESS = lazy.regex(
    r"\b(?:i (?:think|guess|suppose|bet|fear|figure)|must be|could be|might be|maybe|probably|afraid|scared|worried"
    r"|sure it|(?:says?|said|saying|told me|thinks?) (?:it|that|i)\b|diagnos\w+)",
    re.IGNORECASE,
)
_ALSO_COMPLAINTS = frozenset({"ulcer", "blood clots", "lump", "infection", "low mood"})
"""Complaints whose names are diseases if a patient guesses: "I think it's an ulcer"."""


def diseases_beyond(said: str, allowed: Sequence[str]) -> frozenset[str]:
    """The diseases that a text names and the allowed texts do not, even by a narrower name.

    Names that are also complaints, such as migraine, do not count.
    """
    known = {kind for text in allowed for name in _concepts(text) for kind in lexicon.kinds(name)} | _TOO_WIDE
    keys = {mention.key for text in allowed for mention in disease_mentions(text)}
    there = {word for text in allowed for word in words(text)}
    by_name = {
        mention.key
        for mention in disease_mentions(said)
        if mention.key not in keys
        and not there.issuperset(mention.words)
        and not (_concepts(" ".join(mention.words)) & known)
    }
    return frozenset(by_name or _concepts(said) - known)


def _concepts(text: str) -> frozenset[str]:
    named = (hit.concept for hit in lexicon.found(text) if hit.concept.type == "disease")
    return frozenset(concept.name for concept in named if not lexicon.complaints(concept.name))


def _guessed(said: str, allowed: Sequence[str]) -> frozenset[str]:
    """Names that are also complaints, where the patient guesses at the illness with them."""
    known = frozenset[str]().union(*map(lexicon.complaints, allowed))
    guesses = (lexicon.complaints(piece) for piece in _SENTENCE.split(said) if _GUESS.search(piece))
    return frozenset[str]().union(*guesses) & _ALSO_COMPLAINTS - known


# --- yes and no ------------------------------------------------------------------------------------------------------

_UNSURE = lazy.regex(
    r"\b(?:unsure|uncertain|unaware|cannot|nothing|nobody|no one|examine|what do you mean|another way|rephrase"
    r"|couldn|rather|everything|all right|that['’]?s all|much to (?:tell|say)|(?:would|['’]d) have to|measure"
    r"|go ahead|yourself)\b",
    re.IGNORECASE,
)
"""Other ways to avoid a yes, besides the words that deny (`vocabulary.denial`)."""
_PLAIN_NO = lazy.regex(r"\W*(?:no|nope|none|never|nothing)\b", re.IGNORECASE)
_KNOWS_NOT = lazy.regex(r"\b(?:know|sure|say|tell|idea|remember|recall|aware|attention|notic\w+)\b", re.IGNORECASE)
_AS_USUAL = lazy.regex(
    r"\b(?:fine|okay|ok|normal(?:ly)?|good|(?<!as )well|healthy|steady|strong|same|regular|usual(?:ly)?|clear"
    r"|all there|hardly|nothing|nobody|no one|nope|neither|unsure|free of|used to|if|stopped|gone|before)\b|\?",
    re.IGNORECASE,
)
"""Words by which a complaint is named without saying that it is there now."""
_SENTENCE = lazy.regex(r"(?<=[.!?;]) | [–—-] ")
_PIECE = lazy.regex(
    r"[,;]? (?=(?:but|though|although|however|except|just|only|apart from|other than|besides)\b)"
    r"|, (?:and )?(?=(?:i|he|she|it|they|we|my|his|her|their|the|there|no|not|never|none)\b)"
    r"| and (?=(?:i|he|she|it|they|we|my|his|her|no|there)\b)",
    re.IGNORECASE,
)
_OWN_NO = lazy.regex(
    r"\b(?:no|without|(?:don['’]?t|do not|doesn['’]?t|does not|haven['’]?t|have not|hasn['’]?t|didn['’]?t|never|not) "
    r"(?:\w+ )?(?:have|had|get|got|feel|felt|notice|noticed)(?: any| an?)?) (?P<what>(?:\w+ ?){1,3})",
    re.IGNORECASE,
)
"""A denial and what it denies."""


def _pieces(said: str) -> Iterator[str]:
    """The stretches of a text that each affirm or deny on their own."""
    for sentence in _SENTENCE.split(said):
        yield from filter(None, _PIECE.split(sentence))


def _affirming(said: str) -> Iterator[str]:
    return (piece for piece in _pieces(said) if not (has_denying_word(piece) or _AS_USUAL.search(piece)))


def _symptoms(text: str) -> int:
    return lexicon.named(text).names & lexicon.of_types("symptom") & ~lexicon.roots()


def _all_symptoms(texts: Iterable[str]) -> int:
    found = 0
    for text in texts:
        found |= _symptoms(text)
    return found


def _pains(texts: Iterable[str]) -> int:
    """Where it hurts, by the texts: "my back's been aching" and "back pain" name the same place."""
    pain, places = lexicon.bit("pain"), lexicon.of_types("place")
    found = 0
    for named in map(lexicon.named, texts):
        found |= named.names & places if named.closed & pain else 0
    return found


def _turned(said: str, told: Told) -> str:
    """Whether the words affirm what is denied, or deny what is affirmed."""
    no, yes = [fact for fact in told.facts if fact.denied], [fact for fact in told.facts if not fact.denied]
    present = _all_symptoms(f"{fact.text}. {fact.says or ''}" for fact in yes)
    denials = [*(fact.text for fact in no), *told.denied]
    absent = _all_symptoms(denials) & ~present
    painless = _pains(denials) & ~_pains(text for fact in yes for text in (fact.text, fact.says or ""))
    affirming = list(_affirming(said))
    for piece in affirming:
        if _symptoms(piece) & absent or _pains([piece]) & painless:
            return f"you said “{piece.strip(' .')}”, and the answer is no"
    own = _all_symptoms(fact.text for fact in yes if not has_denying_word(f"{fact.text} {fact.says or ''}"))
    for no_more in _OWN_NO.finditer(said):
        if _symptoms(no_more["what"]) & own & ~_all_symptoms(denials):
            return f"you said “{no_more[0].strip(' .')}”, and the facts you chose say otherwise"
    plain = yes and not denials and not any(map(has_denying_word, told.texts))
    alike = stems(said) & stems(" ".join(told.texts))
    if plain and answers_no(said) and (not alike or (not affirming and _AS_USUAL.search(said))):
        return "you said no, and the facts you chose say otherwise"
    return ""


# --- what was not asked for ------------------------------------------------------------------------------------------

_TEST = lazy.regex(
    r"\b(?:e[ck]g|x-?rays?|scans?|ct|mri|ultrasound|scope|endoscopy|colonoscopy|biopsy|(?:blood|urine|stool|lab|skin)"
    r" (?:tests?|work|counts?|pressure|sugar|cultures?|samples?)|tests?|results|calcium|creatinine|potassium|sodium"
    r"|hemoglobin|iron level|oxygen(?: level)?|cultures?|swab|pulse)\b",
    re.IGNORECASE,
)
_FOUND = lazy.regex(
    r"\b(?:was|were|is|came back|showed|shows|looked|turned out|found)\b[^.?!]{0,60}\b(?:normal|abnormal|fine|clear"
    r"|high|low|good|bad|positive|negative|raised|ok|okay|elevated|in order|off)\b"
    r"|\b(?:came back|showed|shows|found)\b",
    re.IGNORECASE,
)
_TELLABLE = ("symptom", "drug", "procedure", "habit")
_VAGUE = (
    "sleep", "waking", "injury", "gait", "appetite", "consciousness", "thirst", "anxiety", "temperature intolerance",
    "infection", "stress", "mood", "exercise", "diet", "medication", "hospital stay", "doctor visit",
)  # fmt: skip
"""Concepts that everyday words name by the way: "I'm afraid", "when I get up"."""


def _results_in(said: str, allowed: Sequence[str]) -> bool:
    """Whether the words give the result of a test that the allowed texts do not mention."""
    known = " ".join(allowed).lower()
    return any(
        _FOUND.search(sentence) and any(test[0].lower() not in known for test in _TEST.finditer(sentence))
        for sentence in _SENTENCE.split(said)
    )


def _named(texts: Iterable[str]) -> Named:
    names = closed = 0
    for text in texts:
        names, closed = names | lexicon.named(text).names, closed | lexicon.named(text).closed
    return Named(names, closed)


def _beyond(said: str, told: Told, allowed: Sequence[str], question: str) -> list[Problem]:
    """What the words tell that was kept back, or that is in neither the facts nor the question."""
    known = _named(allowed)
    narrower = 0 if told.silent else _named(text for text in allowed if text != question).names
    pieces = list(_affirming(said))
    if any(_hints_at(piece, fact, told, known, allowed) for fact in told.kept for piece in pieces):
        return [KEPT_BACK]
    if answers_no(said) and any(
        lexicon.named(asked).names & statement(fact).main & ~lexicon.roots()
        for fact in told.kept
        for asked in told.denied
    ):
        return [DENIED_BACK]
    kinds, there = known.closed, frozenset(token for text in allowed for token in lexicon.tokens(text))
    if told.silent:
        kinds, there = known.names, frozenset()
    added = [piece for piece in pieces if _adds(piece, kinds, narrower, there)]
    if not added:
        return []
    where = "after a denial, add nothing" if told.silent else "you told more than the facts you chose"
    return [Problem(ADDED, f"{where} (“{added[0].strip(' .')}”)")]


def _adds(piece: str, known: int, narrower: int, there: frozenset[str]) -> bool:
    """Whether words tell of something new.

    That is: not known, no narrower name of what `narrower` has, and not in the words `there`. What is said in the same
    words as something known is no addition: "high blood pressure" where the chart has hypertension.
    """
    hits, tokens = lexicon.found(piece), lexicon.tokens(piece)

    def is_known(hit: lexicon.Found) -> bool:
        above = lexicon.closed(hit.concept.name) & ~lexicon.roots()
        return bool(lexicon.bit(hit.concept.name) & known or above & narrower)

    old = [hit for hit in hits if hit.concept.type in (*_TELLABLE, "disease") and is_known(hit)]
    return any(
        hit.concept.type in _TELLABLE
        and hit.concept.name not in _VAGUE
        and not any(hit.start < other.end and other.start < hit.end for other in old)
        and not there.issuperset(tokens[hit.start : hit.end])
        for hit in hits
    )


def _hints_at(piece: str, fact: Fact, told: Told, known: Named, allowed: Sequence[str]) -> bool:
    tells = statement(fact).main & ~lexicon.roots() & ~known.closed
    if lexicon.named(piece).names & tells:
        return True
    common = frozenset[str]().union(*map(stems, allowed), *(stems(other.text) for other in told.facts))
    return any(len(stem) > _SHORT_STEM for stem in stems(piece) & stems(fact.text) - common)


_SHORT_STEM = 4
"""Longer beginnings of words are distinctive: "burden", not "feel"."""
