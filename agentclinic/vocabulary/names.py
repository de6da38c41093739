"""Names of diagnoses brought into one form: spelling, abbreviations, synonyms, word forms, word order."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from agentclinic.vocabulary.base import knowledge, relations, siblings, vocabulary
from agentclinic.vocabulary.text import words

FUNCTION = frozenset("an and at by for from in is it of on the to with due type subtype sided point".split())
"""Words that carry nothing. Not "a": hepatitis A."""
GENERIC = frozenset("disease syndrome disorder condition infection infestation illness process lesion problem".split())
"""Words that name no disease by themselves."""
GRADE = frozenset(
    "severe mild moderate active classic classical typical likely probable probably suspected presumed possible "
    "possibly new onset newly diagnosed confirmed uncomplicated complicated symptomatic early late advanced "
    "progressive recurrent persistent refractory untreated uncontrolled exacerbation flare attack episode relapse "
    "consistent clinical most stage grade marked underlying current emerging overt superimposed evolving".split()
)
"""Words that grade a disease or the doctor's confidence without making it another disease."""
ORGANISMS = frozenset(
    "virus bacteria fungus parasite streptococcus staphylococcus pneumococcus meningococcus gonococcus cryptococcus "
    "candida tuberculosis legionella klebsiella pseudomona mycoplasma chlamydia escherichia coli salmonella shigella "
    "campylobacter clostridioides clostridium helicobacter haemophilus listeria neisseria enterococcus herpes "
    "cytomegaloviru influenza adenoviru rotaviru noroviru enteroviru coxsackieviru parvoviru varicella zoster "
    "aspergillus histoplasma blastomyce coccidioides pneumocystis toxoplasma plasmodium falciparum vivax ovale "
    "malariae giardia entamoeba borrelia treponema rickettsia bartonella brucella nocardia actinomyce mycobacterium "
    "epstein aureus pneumoniae pylori mucor norovirus rotavirus adenovirus cytomegalovirus".split()
)
_KINDS_OF_WORDS = {
    "tumor": "cancer adenocarcinoma cystadenocarcinoma choriocarcinoma adenoma cystadenoma sarcoma lymphoma glioma "
    "schwannoma lipoma fibroma teratoma papilloma hemangioma blastoma astrocytoma meningioma chondroma osteoma",
    "cancer": "adenocarcinoma cystadenocarcinoma choriocarcinoma",
    "sarcoma": "osteosarcoma chondrosarcoma liposarcoma leiomyosarcoma rhabdomyosarcoma fibrosarcoma angiosarcoma",
    "bacteria": "streptococcus staphylococcus pneumococcus meningococcus gonococcus tuberculosis legionella klebsiella "
    "pseudomona mycoplasma chlamydia escherichia salmonella shigella campylobacter clostridioides clostridium "
    "haemophilus listeria neisseria enterococcus treponema rickettsia bartonella brucella nocardia mycobacterium "
    "pasteurella proteus serratia moraxella yersinia vibrio bacteroides",
    "streptococcus": "pneumococcus",
    "virus": "herpes cytomegalovirus influenza adenovirus rotavirus norovirus enterovirus coxsackievirus parvovirus "
    "varicella zoster epstein rhinovirus coronavirus echovirus papillomavirus",
    "fungus": "candida aspergillus cryptococcus histoplasma blastomyces coccidioides pneumocystis mucor dermatophyte "
    "sporothrix",
    "parasite": "plasmodium falciparum vivax toxoplasma giardia entamoeba trichomonas schistosoma strongyloides "
    "echinococcus leishmania trypanosoma",
    "rupture": "avulsion",
    "drug": "antipsychotic neuroleptic antibiotic opioid statin steroid diuretic antidepressant anticonvulsant "
    "amoxicillin penicillin ampicillin cephalexin ceftriaxone ciprofloxacin levofloxacin vancomycin gentamicin "
    "isoniazid rifampin phenytoin carbamazepine valproate lamotrigine lithium haloperidol risperidone olanzapine "
    "clozapine fluphenazine metoclopramide hydralazine procainamide amiodarone lisinopril captopril enalapril "
    "allopurinol methotrexate warfarin heparin omeprazole ibuprofen naproxen aspirin acetaminophen sertraline "
    "fluoxetine nitrofurantoin minocycline doxycycline sulfamethoxazole trimethoprim furosemide hydrochlorothiazide "
    "simvastatin atorvastatin prednisone dexamethasone chemotherapy cisplatin doxorubicin bleomycin cyclophosphamide",
    "antipsychotic": "haloperidol risperidone olanzapine clozapine fluphenazine quetiapine chlorpromazine neuroleptic",
    "neuroleptic": "haloperidol risperidone olanzapine fluphenazine chlorpromazine antipsychotic metoclopramide",
    "antibiotic": "amoxicillin penicillin ampicillin cephalexin ceftriaxone ciprofloxacin levofloxacin clindamycin",
    "opioid": "heroin morphine fentanyl oxycodone hydrocodone methadone codeine",
    "steroid": "prednisone dexamethasone hydrocortisone glucocorticoid corticosteroid",
    "glucocorticoid": "prednisone dexamethasone hydrocortisone",
    "statin": "simvastatin atorvastatin rosuvastatin lovastatin pravastatin",
    "intestine": "bowel colon duodenum ileum jejunum cecum sigmoid rectum",
    "bowel": "colon duodenum ileum jejunum cecum sigmoid",
    "colon": "sigmoid cecum",
    "spine": "lumbar sacral lumbosacral",
    "lumbar": "lumbosacral l1 l2 l3 l4 l5",
    "meningitis": "meningoencephalitis",
    "encephalitis": "meningoencephalitis",
    "pharyngitis": "nasopharyngitis tonsillopharyngitis pharyngotonsillitis",
    "conjunctivitis": "keratoconjunctivitis blepharoconjunctivitis",
    "colitis": "enterocolitis ileocolitis proctocolitis pancolitis",
    "vaginitis": "vulvovaginitis",
    "leg": "calf thigh knee ankle foot",
}
"""Words and the narrower words for kinds of the same: what is said of the narrower is said of the wider."""
_PREFIXES = frozenset(
    "post pre anti micro macro multi sub hyper hypo pseudo neo intra inter extra auto meta peri para poly gastro "
    "cardio osteo broncho musculo cerebro veno vaso retro supra infra ultra hemo neuro".split()
)
_ROMAN = {"i": "1", "ii": "2", "iii": "3", "iv": "4"}
# Adjectives made of a disease: neutropenic fever is fever in neutropenia.
_ADJECTIVES = (("emic", "emia"), ("penic", "penia"), ("otic", "osis"), ("itic", "itis"), ("oxic", "oxia"))
# Diseases with one cause, where no other name of the disease says it.
_CAUSED_BY = {
    "varicella": "varicella zoster virus",
    "herpes zoster": "varicella zoster virus",
    "poststreptococcal glomerulonephritis": "group A streptococcus",
    "rheumatic fever": "group A streptococcus",
    "scarlet fever": "group A streptococcus",
    "infectious mononucleosis": "Epstein Barr virus",
    "erythema infectiosum": "parvovirus B19",
    "roseola infantum": "human herpesvirus 6",
    "hand foot and mouth disease": "coxsackievirus enterovirus",
    "herpangina": "coxsackievirus enterovirus",
    "molluscum contagiosum": "poxvirus",
    "condyloma acuminatum": "human papillomavirus",
    "verruca vulgaris": "human papillomavirus",
    "Kaposi sarcoma": "human herpesvirus 8",
    "measles": "measles virus",
    "mumps": "mumps virus",
    "rubella": "rubella virus",
    "progressive multifocal leukoencephalopathy": "JC virus",
    "Pneumocystis pneumonia": "Pneumocystis jirovecii fungus",
    "tinea versicolor": "Malassezia fungus",
    "syphilis": "Treponema pallidum bacteria",
    "leprosy": "Mycobacterium leprae bacteria",
    "tuberculosis": "Mycobacterium tuberculosis bacteria",
    "Lyme disease": "Borrelia burgdorferi bacteria",
    "malaria": "Plasmodium parasite",
    "gas gangrene": "Clostridium perfringens bacteria",
    "bacterial vaginosis": "Gardnerella vaginalis bacteria",
    "toxic shock syndrome": "Staphylococcus aureus streptococcus bacteria toxin",
    "staphylococcal scalded skin syndrome": "Staphylococcus aureus bacteria",
    "impetigo": "Staphylococcus aureus streptococcus bacteria",
    "erysipelas": "streptococcus bacteria",
    "croup": "parainfluenza virus",
    "hemolytic uremic syndrome": "Shiga toxin producing Escherichia coli",
    "bronchiolitis": "respiratory syncytial virus",
    "acute epiglottitis": "Haemophilus influenzae bacteria",
}
# Adjectives that are not their noun's: a nephritic syndrome is more than a nephritis, an antibiotic no antibiosis.
_OWN_WORD = re.compile(r"anti|nephritic$|narcotic$|hypnotic$")
# Greek and Latin plurals, as they are left by the removal of an s: keratoses, arthritides, fibromata.
_PLURALS = (("ose", "osis"), ("itide", "itis"), ("omata", "oma"), ("stase", "stasis"))
_ORGANISM_NAMES: tuple[tuple[str, ...], ...] = (
    ("Clostridioides difficile", "C difficile", "C diff", "Clostridium difficile"),
    ("Helicobacter pylori", "H pylori"),
    ("Escherichia coli", "E coli"),
    ("Staphylococcus aureus", "S aureus"),
    ("pneumococcus", "Streptococcus pneumoniae", "S pneumoniae"),
    ("meningococcus", "Neisseria meningitidis", "N meningitidis"),
    ("gonococcus", "Neisseria gonorrhoeae", "N gonorrhoeae"),
    ("falciparum", "Plasmodium falciparum", "P falciparum"),
    ("vivax", "Plasmodium vivax", "P vivax"),
    ("Mycobacterium tuberculosis", "M tuberculosis"),
)
# Words one letter from another that the tables do not hold.
_LOOK_ALIKE = frozenset(
    "dysphagia dysphasia dysphonia aphasia aphagia dyspnea dyspepsia nephritic nephrotic myositis myelitis mastitis "
    "mastoiditis keratosis ketosis ileitis iritis colitis cholangitis cystitis cervicitis vaginitis vulvitis "
    "perineal peritoneal peroneal facial fascial malleolus palpation palpitation".split()
)
# English words that are abbreviations too: read as such only where they stand alone or nothing else is in capitals.
_ALSO_WORDS = frozenset("ALL AS TEN MEN HIT CAP PAN PAD FAS IDA MS AR MAC DRESS COP MALT GIST PET RAS".split())
_ABBREVIATION = re.compile(r"(?<![\w.])[A-Za-z][A-Za-z0-9]*(?:-[A-Z])?(?![\w])")
# "A" after these is a type; elsewhere a small "a" is an article.
_ARTICLE = re.compile(r"(?<!\bhepatitis )(?<!\bhemophilia )(?<!\binfluenza )(?<!\btype )\b(?:a|an|the)\s+(?=\w)")
# "Stenosis of the mitral valve" is the mitral valve's stenosis, "anemia, iron deficiency" iron deficiency anemia: what
# follows goes before the head.
_AFTER_HEAD = re.compile(
    r"(?:\s*,\s*|\s+(?:of|in|due to|caused by|secondary to|from|involving|affecting|because of|resulting from"
    r"|related to|associated with|to)\s+)(?:the\s+|a\s+|an\s+)?",
    re.IGNORECASE,
)
_POSSESSIVE = re.compile(r"['’]s\b")
_WITHOUT = re.compile(r"\bwithout\s+(?=[a-z])", re.IGNORECASE)


@dataclass(frozen=True)
class Name:
    """A name in one form; its last word is its head."""

    words: tuple[str, ...]

    @property
    def key(self) -> frozenset[str]:
        """The words whatever their order."""
        return frozenset(self.words)

    @property
    def specific(self) -> tuple[str, ...]:
        """The words that say which disease it is."""
        return tuple(word for word in self.words if word not in GENERIC | GRADE)


@lru_cache(maxsize=65536)
def name(text: str) -> Name:
    """A text as a name."""
    return Name(_book().replaced(_plain(text)))


def spelled(text: str) -> tuple[str, ...]:
    """The words of a name in their usual form, no synonym replaced."""
    return _plain(text)


def implied(text: str) -> frozenset[str]:
    """Words that go without saying with a name: those of its other names, and the organism that alone causes it."""
    meant = name(text)
    found = set(_book().said_by.get(meant.words, ()))
    for disease, organism in _CAUSED_BY.items():
        if name(disease).key <= meant.key:
            found |= name(organism).key
    return frozenset(found | {wide for word in found for wide in wider(word)})


def _plain(text: str) -> tuple[str, ...]:
    """Words in one spelling and form, head last, abbreviations written out."""
    text = _ARTICLE.sub("", _expanded(_WITHOUT.sub("non-", _POSSESSIVE.sub("", text))))
    parts = _AFTER_HEAD.split(text)
    tokens: list[str] = []
    for part in reversed(parts):
        tokens.extend(_joined(words(part)))
    return tuple(token for token in map(_form, tokens) if token not in FUNCTION)


def _expanded(text: str) -> str:
    known = _abbreviations()
    alone = text.strip()
    if alone.upper() in known and " " not in alone:
        return known[alone.upper()]
    shouting = alone.isupper() and " " in alone

    def expand(match: re.Match[str]) -> str:
        short = match[0]
        if shouting and short in _ALSO_WORDS:
            return short
        # Two letters, and what is an English word too, count in capitals only.
        loose = len(short) > 2 and short.upper() not in _ALSO_WORDS
        return known.get(short.upper() if loose else short, short)

    return _ABBREVIATION.sub(expand, text)


@lru_cache(maxsize=1)
def _abbreviations() -> dict[str, str]:
    own = {
        synonym: disease.name
        for disease in knowledge().diseases.values()
        for synonym in disease.synonyms
        if _is_abbreviation(synonym)
    }
    known = {**vocabulary().abbreviations, **own}
    return {**{short.upper(): full for short, full in known.items()}, **known}


def _is_abbreviation(text: str) -> bool:
    return " " not in text and sum(char.isupper() for char in text) >= 2


def _joined(tokens: tuple[str, ...]) -> list[str]:
    """Prefixes written apart belong to their word: post traumatic is posttraumatic."""
    joined: list[str] = []
    for token in tokens:
        if joined and joined[-1] in _PREFIXES:
            joined[-1] += token
        else:
            joined.append(token)
    return joined


@lru_cache(maxsize=65536)
def _form(token: str) -> str:
    denied = token.startswith("non") and len(token) > 6
    bare = token[3:] if denied else token
    if len(bare) > 4:
        bare = bare.replace("ae", "e").replace("oe", "e").replace("our", "or")
        bare = re.sub(r"is(?=(?:e|ed|ing|ation)$)", "iz", bare)
    for plural, one in _PLURALS:
        if len(bare) > len(plural) + 3 and bare.endswith(plural):
            bare = bare.removesuffix(plural) + one
    bare = _word_forms().get(bare, bare)
    for ending, noun in _ADJECTIVES:
        if len(bare) > len(ending) + 2 and bare.endswith(ending) and not _OWN_WORD.match(bare):
            bare = bare.removesuffix(ending) + noun
    return ("non" if denied else "") + _ROMAN.get(bare, bare)


@lru_cache(maxsize=1)
def _word_forms() -> dict[str, str]:
    forms = {}
    for form, word in vocabulary().words.items():
        for spelled in words(form):
            forms[spelled] = words(word)[0]
    return forms


class _Book:
    """Synonyms replaced by the usual name, longest first."""

    def __init__(self) -> None:
        self._usual: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._by_key: dict[frozenset[str], tuple[str, ...]] = {}
        self.said_by: dict[tuple[str, ...], set[str]] = {}
        for group in _ORGANISM_NAMES:
            self._add(group)
        for disease in knowledge().diseases.values():
            self._add((disease.name, *(s for s in disease.synonyms if not _is_abbreviation(s))))
        for group in vocabulary().synonyms:
            self._add(group)
        self._longest = max(map(len, self._usual))

    def _add(self, group: tuple[str, ...]) -> None:
        plain = [tokens for tokens in map(_plain, group) if tokens]
        # A group that shares a name with an earlier one is about the same disease.
        usual = next((self._usual[tokens] for tokens in plain if tokens in self._usual), plain[0])
        for tokens in (*plain, usual):
            self._usual.setdefault(tokens, usual)
            self._by_key.setdefault(frozenset(tokens), usual)
            self.said_by.setdefault(usual, set()).update(tokens)

    def replaced(self, tokens: tuple[str, ...]) -> tuple[str, ...]:
        """The words with every synonym replaced, and once more for names that only now are one."""
        once = self._once(tokens)
        return once if once == tokens else self._once(once)

    def _once(self, tokens: tuple[str, ...]) -> tuple[str, ...]:
        whole = self._by_key.get(frozenset(tokens))
        if whole is not None:
            return whole
        result: list[str] = []
        index = 0
        while index < len(tokens):
            for end in range(min(len(tokens), index + self._longest), index, -1):
                part = tokens[index:end]
                usual = self._usual.get(part)
                if usual is None and part[0].startswith("non"):
                    denied = self._usual.get((part[0][3:], *part[1:]))
                    usual = ("non" + denied[0], *denied[1:]) if denied else None
                if usual is not None:
                    result.extend(usual)
                    index = end
                    break
            else:
                result.append(tokens[index])
                index += 1
        # "Peptic ulcer disease disease": a word twice in a row says nothing new.
        return tuple(word for place, word in enumerate(result) if place == 0 or word != result[place - 1])

    @property
    def lexicon(self) -> frozenset[str]:
        return frozenset(word for tokens in self._usual for word in tokens)


@lru_cache(maxsize=1)
def _book() -> _Book:
    return _Book()


@lru_cache(maxsize=1)
def lexicon() -> frozenset[str]:
    """Every word we know: one of them is no misspelling of another."""
    known = set(_book().lexicon) | ORGANISMS | GENERIC | GRADE | _LOOK_ALIKE
    for entry in (*relations("broader"), *relations("narrower"), *relations("manifestations")):
        for text in (entry.name, *entry.of):
            known.update(name(text).words)
    for family in siblings():
        for text in family:
            known.update(name(text).words)
    for finding in knowledge().findings.values():
        for text in (finding.name, *finding.terms):
            known.update(_form(word) for word in words(text))
    return frozenset(known)


def narrower(word: str) -> frozenset[str]:
    """The words that say more of the same: haloperidol is an antipsychotic."""
    return frozenset(map(_form, _KINDS_OF_WORDS.get(word, "").split()))


@lru_cache(maxsize=1)
def _wider() -> dict[str, frozenset[str]]:
    above: dict[str, set[str]] = {}
    for wide, narrow in _KINDS_OF_WORDS.items():
        for word in map(_form, narrow.split()):
            above.setdefault(word, set()).add(wide)
    return {word: frozenset(up | {top for one in up for top in above.get(one, ())}) for word, up in above.items()}


def wider(word: str) -> frozenset[str]:
    """The words that say less of the same: a pneumococcus is a streptococcus and a bacterium."""
    return _wider().get(word, frozenset())


def stands_for(short: str, full: str) -> bool:
    """Whether an abbreviation we do not know is plainly one of this name: HAE of hereditary angioedema.

    It begins with the first letter, holds the initials of all words in order, and all its letters are in the name.
    """
    letters = short.strip().replace("-", "")
    if not (2 <= len(letters) <= 6 and letters.isalpha() and letters.isupper()) or letters in _abbreviations():
        return False
    parts = [word for word in words(full) if word not in FUNCTION]
    initials = "".join(word[0] for word in parts)
    lower = letters.lower()
    return (
        len(parts) > 1 and lower[0] == initials[0] and _in_order(initials, lower) and _in_order(lower, "".join(parts))
    )


def _in_order(few: str, many: str) -> bool:
    rest = iter(many)
    return all(letter in rest for letter in few)


def mended(said: Name, meant: Name) -> Name:
    """The name with words that are misspellings of the other's put right."""
    unknown = [word for word in said.words if word not in meant.key and len(word) >= 6 and word not in lexicon()]
    if not unknown:
        return said
    missing = [word for word in meant.words if word not in said.key]
    better = {word: next((other for other in missing if _near(word, other)), word) for word in unknown}
    return Name(_book().replaced(tuple(better.get(word, word) for word in said.words)))


def _near(word: str, other: str) -> bool:
    """One letter wrong, missing, too many or two swapped; in a long word two."""
    # Too much is not too little, nor an inflammation a tumor, however alike the letters.
    if word[0] != other[0] or word[:5].startswith(("hyper", "hypo")):
        return False
    if word[-2:] != other[-2:] and sorted(word) != sorted(other):
        return False
    return _distance(word, other) <= (2 if min(len(word), len(other)) >= 10 else 1)


def _distance(one: str, other: str) -> int:
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, start=1):
        before, last, row = row, before, [i]
        for j, b in enumerate(other, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]
