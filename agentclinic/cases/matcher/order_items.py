"""Split an order into the items it names, each with what the rest of the order says about it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import dropwhile, islice, pairwise, takewhile

from agentclinic.cases.matcher.order_words import (
    Reading,
    american,
    joined,
    reading,
    same_site,
    usually_in_blood,
    vocabulary,
)
from agentclinic.vocabulary.text import LONGEST_NAME, fold, tidy, words

TAKEN = frozenset(
    ("culture", "biopsy", "histopathology", "cytology", "microscopy", "pcr", "serology", "gram stain", "acid fast",
     "smear", "mycobacterial culture", "fungal culture", "viral culture",
     "fine needle aspiration", "immunofluorescence", "immunohistochemistry")
)  # fmt: skip
"""Tests of a specimen; the rest of the order says where it was taken from."""
_OF_ANY_FLUID = frozenset({"cell count"})
"""Panels of whichever fluid the order is about."""
_METHODS = frozenset({"serology", "pcr"})
_PUNCTURED = frozenset({"csf", "pleural", "synovial", "ascitic", "pericardial", "bronchial"})
"""Fluids that are taken once for everything that follows in an order."""
_NOT_PUNCTURED = frozenset({"stool", "urine", "sputum"})
_GERMS = vocabulary().germs
"""Germs that are looked for together, by the same method in the same specimen."""
_OF_A_TAP = frozenset(
    {"lactate", "ldh", "ph", "total protein", "adenosine deaminase", "white cells", "neutrophils", "crystals"}
)
"""Values that follow the tap of a fluid as its own: "pleural tap for protein, LDH, pH"."""
_OF_URINE_TOO = vocabulary().of_blood | {"osmolality", "uric acid", "phosphate", "magnesium"} | vocabulary().collected
_OF_FLUIDS_TOO = frozenset({"amylase", "uric acid", "cea", "triglycerides", "cholesterol", "osmolality", "myoglobin"})
"""Values of blood that are also measured in what is tapped, or in urine."""
_AT_A_LIMB = frozenset({"reflexes", "range of motion"})
_ELICITED = frozenset({"special tests", "palpation"})
"""How single signs are elicited; one that is listed may be charted by itself."""
_CHEMISTRY = re.compile(r"(?:bio)?chemistr(?:y|ies)$")
_FINDS = frozenset({"inspection", "palpation", "percussion", "auscultation"})
_SEEN_APART = frozenset({"nail", "scalp", "lymph node"})
"""Places that have findings of their own in an examination of the skin or of a region."""
_SITED = frozenset({"x ray", "ct", "mri", "ultrasound"})
"""Images that are always of some part of the body."""
_IN_SEDIMENT = frozenset({"crystals", "casts", "bacteria", "epithelial cells"})
_VESSELS = frozenset({"angiography", "venography"})
_SLICED = frozenset({"ct", "mri"})
_NOTHING: frozenset[str] = frozenset()
_IN_FLUIDS = frozenset({"crystals", "glucose", "total protein", "white cells", "red cells", "neutrophils"})
_CHEMICAL = _IN_FLUIDS | vocabulary().of_blood | {"xanthochromia", "opening pressure"}
_SPLIT = re.compile(
    r"\s*(?:(?P<open>[(\[:]|\b(?:including|include|includes|incl?\b\.?|such as))"
    r"|(?P<close>[)\];?!]|(?<=[a-z]{2})\.(?=\s|$))|(?P<with>\bwith\b)|[,+]"
    r"|\b(?:and|plus|or|as well as|then|followed by)\b)\s*"
)
_ENDS = (";", ".", "?", "!")
_TYPES = re.compile(
    r"\b(hep(?:atitis)?|proteins?|vitamins?|factors?|coxsackie) "
    r"((?:[a-ek]\d{0,2}|s|[ivx]+)(?:\s*(?:,|/|\band\b|\bor\b| )\s*(?:\1 )?(?:[a-ek]\d{0,2}|s|[ivx]+)\b)+)"
)
"""Several of one name: "hepatitis B and C", "protein C, S", "factors VIII and IX"."""
_SINGULAR = re.compile(r"(?<=[nr])s$")
_REGIONS = re.compile(
    r"\b(cervical|thoracic|lumbar)(?= ?(?:,|and|&|/) ?(?:(?:cervical|thoracic|lumbar)\b[ ,]*(?:and |& )?)+spine)"
)
_COMPLEMENT = re.compile(r"\bc3(?: ?/ ?| and | )c4\b")
_JOINTS = r"(?:knee|hip|wrist|ankle|elbow|shoulder|joint|effusion|mtp|mcp|great toe|big toe)"
_SIDED = r"(?:(?:the|left|right|lt|rt|swollen|affected|hot|1st|first) )*"
_ASPIRATED = re.compile(
    rf"\b(?:(?:needle|diagnostic|joint) )*(?:aspirat(?:e|ion)|arthrocentesis|tap)(?: of| from)? {_SIDED}{_JOINTS}"
    rf"(?: joint| effusion)?\b(?! (?:exam|x ray))"
    rf"|\b{_SIDED}{_JOINTS}(?: joint| effusion)? (?:aspirat(?:e|ion)|tap|arthrocentesis|fluid)\b"
)
"""What is taken from a joint, whichever it is."""
_FILM = re.compile(
    r"(^|\b(?:cbc|fbc|count|differential|with|and|plus|a)|[,+(/])(\s*)(?=film\b(?! (?:of|at|after|in)\b))"
)
"""A film that names no part of the body is a blood film."""
_ENT = re.compile(r"\bears?,? (?:and )?nose,? (?:and|&) throat\b")
_RUN_TOGETHER = re.compile(r"(?<=[a-z]{4})(?=[A-Z][a-z]{2})")
_SPECIMEN = re.compile(r"\b(?=(?:urine|urinary|serum|plasma|blood|csf|stool|fecal|sputum|pleural|synovial|ascitic)\b)")
_MOST_SPECIMENS = 20
"""The most places at which a list without commas is split; no real list names as many specimens."""
_REASON = re.compile(
    r"\b(?:for|if|noting|documenting|recording|esp(?:ecially)?|particularly|in particular"
    r"|due to|because|since|as|given|regarding|in order|by|versus|vs|concerning|concern|suspect\w*|suspicion"
    r"|to (?:evaluate|assess|rule|look|check|exclude|confirm|determine|identify|detect|see|measure|visuali[sz]e"
    r"|monitor|guide|locali[sz]e|differentiate|characteri[sz]e|establish|test|find|document|clarify|investigate|screen|help|further|better|define"
    r"|follow|gauge|quantify|support|narrow|make sure|ensure)"
    r"|rule out|r o|rule in|look for|looking for|evaluate for|evaluating for|assess for|assessing for|check for"
    r"|checking for|per (?!rect|vagin)"
    r"|(?:before|prior to) (?:starting|giving|commencing|beginning|any|considering)\b"
    r"|(?:before|prior to) (?:the )?(?:lp\b|lumbar|spinal tap|antibiotic|surgery|operation|treatment|transfer|discharge"
    r"|azathioprine|methotrexate|steroid|biologic|immunosuppress|chemotherapy|anticoag|heparin|statin|isoniazid"
    r"|contrast|intubation|transfusion|thrombolysis)"
    r"|after (?:the |an? |each |one |two )?(?:epinephrine|adrenaline|fluids?|bolus|treatment|oxygen|nitroglycerin"
    r"|analgesi|nebuli|antipyretic|insulin|conversion|cardioversion|adenosine|therapy|medication))\b.*$"
)
EXAM = re.compile(r"\b(?:exam\w*|otoscop\w*|rhinoscop\w*|physical|palpat\w*|inspect\w*|auscultat\w*|percuss\w*)\b")
EXAM_OF = re.compile(r"\w exam\w*$")
_EXAM_OF_PLACE = re.compile(r"\bexam\w* of\b")
LABORATORY = re.compile(r"\b(?:labs?|laborator(?:y|ies)|blood ?works?|bloods|blood (?:tests?|stud(?:y|ies)))\b")
"""An order that names nothing else asks for everything measured in blood."""
ALL_OF_IT = re.compile(r"\b(?:full|complete|comprehensive|thorough|detailed|entire|whole)\b")
MEASURED = ("values", "panels", "tests", "modalities")
_SOUNDS_MEASURED = re.compile(
    r"\b(?:tests?|scores?|scales?|index|levels?|questionnaires?|abs|antibod\w+|scans?|anti \w+|serolog\w+|antigens?"
    r"|pcr|dna|rna|ig[agme]|genes?|genotypes?|mutations?|panels?|cultures?|assays?|titers?|titres?|diary|studies|study"
    r"|\w{4,}(?:graphy|metry|scopy|gram))\b"
)


@dataclass(frozen=True)
class Item:
    """One thing ordered."""

    text: str
    """As ordered."""
    read: Reading
    listed: frozenset[str] = frozenset()
    """Parts the order lists for this examination."""
    given: bool = False
    """Whether it is a treatment, which no chart has."""
    within: bool = False
    """Whether it is listed after the test that it is part of: "lumbar puncture (cell count, protein)"."""
    aimed: bool = False
    """Whether the order says what to look for in this examination: "abdomen for splenomegaly"."""
    others: bool = False
    """Whether it is of someone else: "ECG of the mother"."""
    detail: bool = False
    """Whether it only details the examination before it, and goes without saying if nothing is charted for it."""

    @property
    def measured(self) -> bool:
        return _tests(self.read)

    @property
    def sounds_measured(self) -> bool:
        """Whether an item that no table knows has a word that tests are called by."""
        return bool(_SOUNDS_MEASURED.search(self.text))


@dataclass(frozen=True)
class _Segment:
    text: str
    listed: bool
    """In brackets or after a colon: a detail of what comes before."""
    joined: bool
    """After "with": done together with what comes before."""
    included: bool
    """After "including": not all that is wanted, as a list in brackets may be."""
    aimed: bool
    """Whether a reason for it was given."""
    on_skin: bool
    """Whether the reason is a sign of the skin: "web spaces for burrows"."""
    begins: bool
    """At the beginning of a clause: the specimen of the one before it does not hold for values any more."""


_NUMBERED = re.compile(r"(?:^|(?<=[\s,;:.]))\(?\d{1,2}[.)]\s+(?=[A-Za-z(])|(?:^|(?<=\s))[*•]\s+|^[-–]\s+")
_DASHED = re.compile(r"(?:^|(?<=\s))[-–]\s+(?=[A-Za-z(])")
"""The items of a line that begins with a dash."""
_POLITE = re.compile(
    r"^(?:(?:please|also|then|next|i|we|you|would|like|to|want|need|can|could|let|let us|me|get|order|request|check"
    r"|perform|do|obtain|run|send|have|a|an|the|some|id) )+"
)
_DASH = re.compile(r"\s+[-–—]+\s+")


WITH_SPATULA = re.compile(
    r"\s*\b(?:with|without|using)(?: using)? (?:an? |the )?(?:tongue (?:depressor|blade)|spatula)\b", re.IGNORECASE
)
"""How the throat is looked at: the tongue is not what is ordered."""
_POSSESSIVE = re.compile(r"(?<=\w)['’]s\b")
"""Of a sign: "Brudzinski's"."""
_BESIDE_VITALS = r"(?:RR|HR|BP|sats|SpO2|temp(?:erature)?)"
_NERVES = (
    r"(?:median|ulnar|radial|sural|peroneal|tibial|facial|sciatic|accessory|trapezius|deltoid|nasalis"
    r"|orbicularis oculi)\b(?: (?:nerve|muscle)s?\b)?"
)
_TAKEN_FROM = (
    r"(?:blood|serum|stool|fa?eces|throat|pharyngeal|vesicle(?: fluid)?|blister(?: fluid)?|NPA|nasopharyngeal|nasal"
    r"|CSF|sputum|rectal|urethral|vaginal|saliva|oral fluid)"
)
"""Where a germ is looked for, as lists of these have it."""
_SPINE = {"C": "cervical", "T": "thoracic", "L": "lumbar"}


def _culture_of(found: re.Match[str]) -> str:
    return {"B": "blood cultures ", "U": "urine culture ", "S": "sputum culture "}[found[1]]


_PLUS = re.compile(r" ?(?:[/+&]|\band\b) ?", re.IGNORECASE)
_SWELLS = "ankle|pedal|leg|peripheral|pretibial|sacral|facial|face|periorbital|hand|arm"
_WRITTEN_OUT = (
    (re.compile(r"(?<=PCR) for (?:viruses|viral|bacteria\w*)(?: and (?:bacteria|viruses))?\b", re.IGNORECASE), ""),
    (
        re.compile(
            r"\b(skin|lymph node|muscle|nerve|liver|kidney|renal|bone) and (?=(?:[a-z]+ )?[a-z]+ biops(?:y|ies)\b)"
        ),
        r"\1 biopsy and ",
    ),
    (re.compile(r"\bresults? of (?:the |her |his )?(?:pending|outstanding) ", re.IGNORECASE), ""),
    (
        re.compile(
            r"\b((?:dip ?stick|urinalysis|\bUA)\b[^,;]*?) (?:with|including|and) (?:urine |urinary )?pH\b",
            re.IGNORECASE,
        ),
        r"\1",
    ),
    (re.compile(r"\b(?:lying|supine) (?:and|to|/|&) sitting (?=BPs?\b|blood)", re.IGNORECASE), "lying and standing "),
    (
        re.compile(
            r"\bMRI (?:of the )?brain (?:with (?:contrast|gadolinium) )?(?:including|incl\.?|and|with) (?:the )?"
            r"pituitary"
            r"(?: (?:and|\+) cavernous sinus(?:es)?)?",
            re.IGNORECASE,
        ),
        "MRI brain with pituitary and cavernous sinus",
    ),
    (
        re.compile(
            r"\b(?:trial of (?:\d+ ?(?:%|percent) )?(?:high[- ]flow )?oxygen|high[- ]flow oxygen trial)"
            r"(?: (?:at )?\d+ ?L/min)?(?: (?:by|via) (?:[\w-]+ )?mask)?"
            r"(?: during (?:an? |the )?(?:attack|bout|episode)s?)?",
            re.IGNORECASE,
        ),
        "oxygen trial",
    ),
    # Both ways to an image of the heart.
    (
        re.compile(
            r"\b(transthoracic|transo?esophageal)(?: echo\w*)?\W+(?:(?:and|or|plus|then|followed by)\W+){1,2}"
            r"(transthoracic|transo?esophageal)(?= echo)",
            re.IGNORECASE,
        ),
        r"\1 echocardiogram, \2",
    ),
    (re.compile(r"\b(TTE|TEE|TOE) (?:and )?then (?=(?:TTE|TEE|TOE)\b)", re.IGNORECASE), r"\1, "),
    (re.compile(r"(?<![/\w])w (?=[a-z])", re.IGNORECASE), "with "),
    (
        re.compile(
            r"\b(?=[\dqhots])(?:(?:\d{1,2}|one|two|four|six)[- ]?)?hourly\b ?|\bq ?\d{1,2} ?h(?:rs?|ourly)?\b",
            re.IGNORECASE,
        ),
        "",
    ),
    (
        # What is measured in two fluids.
        re.compile(
            r"(?:^|(?<=[,;+] ))([^,;+()]+) \((serum|blood|plasma|CSF|urine|stool) ?(?:\+|&|/|and|,) ?"
            r"(serum|blood|plasma|CSF|urine|stool)\)",
            re.IGNORECASE,
        ),
        r"\2 \1, \3 \1",
    ),
    (
        # Where a germ is looked for.
        re.compile(
            r"\b([\w-]+ PCR) (?=(?:stool|faeces|CSF|sputum)\b(?! (?:PCR|culture|for|antigen|studies|sample)))",
            re.IGNORECASE,
        ),
        r"\1 of ",
    ),
    (
        # Where a germ is looked for, in brackets.
        re.compile(
            r"(?:^|(?<=[,;+] ))([^,;+()]*\b(?:PCR|cultures?|serology|antigen)) "
            r"\((serum|blood|plasma|CSF|urine|stool)\)",
            re.IGNORECASE,
        ),
        r"\2 \1",
    ),
    (re.compile(r"(\bbiops\w+ (?:with|for|and|\+|&) (?:histology (?:and|\+|&) )?)D?IF\b"), r"\1immunofluorescence"),
    # The views of a film.
    (
        re.compile(
            r"\b(?:AP|PA)\b ?(?:\+|&|/|and|,)? ?\b(?:lat|lateral)\b|\b(?:lat|lateral)\b ?(?:\+|&|/|and) ?(?:AP|PA)\b",
            re.IGNORECASE,
        ),
        "",
    ),
    (re.compile(r"\bBM(?:A|B|AT)?\b (?=biops|bx|aspirat|trephine|exam)|\bBMA(?:T|B|&T|/T)?\b"), "bone marrow "),
    (re.compile(r"\b(?:obs?|obst|OB)\.? (?=US\b|USS\b|ultraso|scan\b|dopplers?\b)", re.IGNORECASE), "obstetric "),
    (
        # What is suspected: "abdo USS ?intussusception".
        re.compile(
            r"(?<=\w) (?:\?\s?(?=\w)|query (?=\w))(?:(?!\b(?:and|plus|then)\b)[^,;.?+(){}])*(?<! )", re.IGNORECASE
        ),
        "",
    ),
    # How soon a PCR finds a germ: part of its report.
    (
        re.compile(
            r"\s*[(,]?\s*\b(?:with |and |including )?(?:the )?(?:cycle[- ]threshold|C[tT])(?: \(C[tT]\))? ?"
            r"(?:\(C[tT](?: values?)?\)|values?)\)?",
        ),
        "",
    ),
    (re.compile(r"\bECoG\b|\bECochG\b"), "electrocochleography"),
    (re.compile(r"\bCT (?:of (?:the )?)?body\b", re.IGNORECASE), "CT chest abdomen pelvis"),
    (
        re.compile(
            r"\bMRI (?:brain |head )?with pituitary (?:protocol )?(?:and|\+|/|&) (?:the )?cavernous sinus(?:es)?\b",
            re.IGNORECASE,
        ),
        "MRI cavernous sinus",
    ),
    (re.compile(r"\bIF (?=ab\b|abs\b|antibod)"), "intrinsic factor "),
    (re.compile(r"\bAS[- ]OCT\b"), "anterior segment OCT"),
    (re.compile(r"\bHRM\b"), "esophageal manometry"),
    (re.compile(r"\bTAB\b"), "temporal artery biopsy"),
    # The muscle, not the sign that is named after it.
    (
        re.compile(
            r"(?<=\bbiopsy) (?:of|from) (?:the )?(?:(?:right|left) )?(ilio)?psoas\b(?: muscle\b)?", re.IGNORECASE
        ),
        r" of the \1psoas muscle",
    ),
    (re.compile(r"\bpsoas (?=(?:needle )?(?:biopsy|bx|aspirat\w+)\b)", re.IGNORECASE), "psoas muscle "),
    (re.compile(r",? \(?no (?:IV )?contrast\b\)?", re.IGNORECASE), " without contrast"),
    (re.compile(r"\br/v\b", re.IGNORECASE), "review"),
    (
        re.compile(r"\b(CTA|MRA|(?:CT|MR) angio\w*) (?:of (?:the )?)?(?:COW|circle of Willis)\b", re.IGNORECASE),
        r"\1 head",
    ),
    (
        re.compile(
            r"\b(CTA|CT angio\w*) (?:from )?(?:aortic )?arch to (?:COW|circle of Willis|vertex)\b", re.IGNORECASE
        ),
        r"\1 head and neck",
    ),
    (
        re.compile(
            r"(?<!flow )(?<!PEF )(?<!PEFR )\b(?:pre|before) ?(?:\+|/|&|and) ?(?:post|after)"
            r" ?(?:BD|bronchodilators?|salbutamol|albuterol)\b",
            re.IGNORECASE,
        ),
        "bronchodilator response",
    ),
    (
        re.compile(
            r"\b(visual|auditory|somatosensory) (?:\+|and|&|/|,) ?(?=(?:visual|auditory|somatosensory) evoked)",
            re.IGNORECASE,
        ),
        r"\1 evoked potentials, ",
    ),
    (
        re.compile(
            r"(\bMRI (?:of (?:the )?)?(?:brain|head)) ?(?:&|and|\+|/) ?(?:the )?(?:whole )?(?:spinal )?cord\b",
            re.IGNORECASE,
        ),
        r"\1, MRI spine",
    ),
    (re.compile(r"\bIF(?= ?(?:/|and|&) ?(?:GPC|PCA|parietal))"), "intrinsic factor antibodies"),
    (re.compile(r"\b(?:UGI|upper GI) contrast\b(?! (?:study|series))", re.IGNORECASE), "upper GI contrast study"),
    (re.compile(r"\bL ?(?:/|&|and) ?S (?=BPs?\b|blood)"), "lying and standing "),
    (
        re.compile(r"\b24[- ]?h(?:ou)?r?s? (?:urine |urinary )?(?:protein electrophoresis|UPEP)\b", re.IGNORECASE),
        "24 hour urine protein, urine protein electrophoresis",
    ),
    (re.compile(r"\b24[- ]?h(?:ou)?r?s? protein\b", re.IGNORECASE), "24 hour urine protein"),
    (
        re.compile(r"\b(CT|MRI?) (or|and|/) (CT|MRI?) (venogra\w+|angiogra\w+)", re.IGNORECASE),
        r"\1 \4 \2 \3 \4",
    ),
    (
        # What a specimen is tested for, not everything about it.
        re.compile(
            r"\b(stool|f(?:a?e)cal|urine|saliva)(?: (?:test(?:s|ing)?|samples?|specimens?|analysis)){1,2} for\b",
            re.IGNORECASE,
        ),
        r"\1 for",
    ),
    (
        re.compile(
            r"\b(?:USS?|ultrasound|scan) (?:for )?(?:f(?:o?e)tal )?growth\b"
            r"(?: ?(?:/|,|and|&|\+) ?(?:liquor|dopplers?|AFI|EFW|fluid)\b)*",
            re.IGNORECASE,
        ),
        "obstetric ultrasound",
    ),
    (
        re.compile(r"\b(?:USS?|ultrasound)(?: of)? KUB\b|\bKUB (?:USS?|ultrasound)\b", re.IGNORECASE),
        "renal ultrasound",
    ),
    # The great veins of the belly; the lower vena cava alone is seen with its organs.
    (
        re.compile(
            r"\b(?:iliac(?: veins?)?|pelvic veins?|IVC ?(?:/|and|&|\+) ?(?:the )?iliacs?(?: veins?)?)"
            r"(?: ?(?:/|and|&|\+) ?(?:the )?IVC)? "
            r"(?=US\b|USS\b|ultraso\w+|duplex|dopplers?\b)",
            re.IGNORECASE,
        ),
        "iliac vein ",
    ),
    (re.compile(r"\bIVC (?=US\b|USS\b|ultraso\w+|duplex|dopplers?\b)", re.IGNORECASE), "abdominal "),
    (
        re.compile(
            r"\b((?:duplex|dopplers?)\b[^,;]*?) ?(?:\+|\band\b|&|/|\bincl\w*\b\.?|\bwith\b) ?(?:the )?"
            r"(?:iliacs?|IVC)(?: veins?)?(?: ?(?:/|and|&) ?(?:IVC|iliacs?)(?: veins?)?)?(?=\s*(?:$|[,;.]))",
            re.IGNORECASE,
        ),
        r"\1, iliac vein ultrasound",
    ),
    (re.compile(r"\s*\((?:bacterial|viral)(?: ?(?:\+|and|&|/|,) ?(?:bacterial|viral))*\)", re.IGNORECASE), ""),
    (
        re.compile(
            r"\b(?:(?:USS?|ultrasound|venous|duplex|leg) )*(?:dopplers?|duplex) (?:to )?"
            r"(?:r/o|for|rule out|exclude) ?DVT\b",
            re.IGNORECASE,
        ),
        "leg vein ultrasound",
    ),
    (
        re.compile(r"\b((?:FBC|CBC|CRP|lactate|U&Es?|U\+Es?|BMP|CMP|LFTs?) ?[,/+] ?)cultures(?= ?(?:$|[,;./+]|x ?\d))"),
        r"\1blood cultures",
    ),
    (re.compile(r"\b([BUS])Cx?s?(?= ?x ?\d|\d\b| ?(?:$|[,;./)+]|and\b|from\b|before\b))"), _culture_of),
    (re.compile(r"\bbcx(?:s|2|3)?\b", re.IGNORECASE), "blood cultures"),
    (re.compile(r"\bucx\b", re.IGNORECASE), "urine culture"),
    (re.compile(r"\bu/s\b", re.IGNORECASE), "ultrasound"),
    (re.compile(r"\bPET bloods\b"), "bloods"),
    (
        # How a CT is done.
        re.compile(
            r"\s*\b(?:with |and )?(?:(?:IV|PO|oral|rectal)(?: ?(?:and|&|/|\+) ?)?)+ contrast\b"
            r"(?! (?:study|series|swallow|enema))",
            re.IGNORECASE,
        ),
        " with contrast",
    ),
    (
        re.compile(
            r"\b(?:CTA|CT angio\w*) (?:of (?:the )?)?abdo?(?:men|minal)?(?: and | ?[/&+,] ?)pelvis\b", re.IGNORECASE
        ),
        "CT angiography abdomen",
    ),
    (
        # Of one ratio; of a list that begins with a collection of urine.
        re.compile(
            r"^(?=.*\bPCR\b)"
            r"(.*\b(?:24[- ]?h\w*|urin\w+|spot)\b[^;]*(?:[,/+]|\bor) ?)PCR(?= ?(?:$|[,;/+.]))(?<!culture, PCR)",
            re.IGNORECASE,
        ),
        r"\1urine protein creatinine ratio",
    ),
    (re.compile(r"\b(24[- ]?h(?:ou)?rs?|24h|spot) U (?=[A-Z])", re.IGNORECASE), r"\1 urine "),
    (
        re.compile(
            r"\b((?:24[- ]?h\w*|spot) urine) (Ca|Na|K|calcium|sodium|protein|Prot|Cu|copper) ?/ ?"
            r"(?:Cr|creat\w*)\b(?! ratio)"
        ),
        r"\1 \2, urine creatinine",
    ),
    (
        re.compile(r"\b((?:plasma|serum|urine|urinary)(?: free| fractionated)*) mets\b", re.IGNORECASE),
        r"\1 metanephrines",
    ),
    (re.compile(r"\bmetanephrines ?/ ?cats\b", re.IGNORECASE), "metanephrines/catecholamines"),
    (re.compile(r"\bASA(?= (?:and|&|level|lvl|conc)| ?/ ?(?:APAP|tylenol|acet))"), "salicylate"),
    (
        re.compile(
            r"([/,&+]?)\s*\b([CTL])(?:[- ]?spine)? ?(?:[/&+,]|and) ?([CTL])(?: ?(?:[/&+,]|and) ?([CTL]))?[- ]spine\b"
        ),
        lambda found: (
            (", " if found[1] else " ") + ", ".join(f"{_SPINE[part]} spine" for part in found.groups()[1:] if part)
        ),
    ),
    (
        re.compile(
            r"\b(UA|urinalysis|urine(?: dip| cultures?)?)\s*"
            r"\([^)]*\b(?:cath\w*|bag|clean|mid\w*|catch|suprapubic)\b[^)]*\)",
            re.IGNORECASE,
        ),
        r"\1",
    ),
    (
        re.compile(r"\b((?:urine|urinary|spot) (?:protein|albumin)) ?: ?creat(?:inine)?\b(?: ratio)?", re.IGNORECASE),
        r"\1 creatinine ratio",
    ),
    (
        re.compile(
            r"^(?=.*\b(?:AFB|acid))(?!.*\b(?:CSF|LP|lumbar|pleural|gastric|urine|stool|biops\w+|node|tissue|BAL|wash\w*|joint|FNA\w*|fine|pericard\w*|ascit\w*|periton\w*|fluid|pus|abscess|skin)\b)(.*?)"
            r"(?<!sputum )\b(AFB|acid[- ]fast)(?= (?:smears?|stain|cx|culture|x ?\d))",
            re.IGNORECASE,
        ),
        r"\1sputum \2",
    ),
    (
        re.compile(
            r"^(?=.*\b(?:AFB|acid[- ]fast|IGRA|quantiferon)\b)"
            r"(.*(?:^|[,;:(+/]\s*|\b(?:and|sputum|smears?|cultures?|AFB|fast) ))NAATs?\b(?! (?:for|of))"
        ),
        r"\1TB PCR",
    ),
    (
        re.compile(r"\bB[- ]?scans?\b(?! (?:ultraso\w+|USS?\b))(?: of (?:the |both )?eyes?)?", re.IGNORECASE),
        "ocular ultrasound",
    ),
    (re.compile(r"\bper-?nasal swabs?(?: (?:for )?(?:pertussis )?(?:PCR|cultures?))?", re.IGNORECASE), "pertussis PCR"),
    (
        # Those of blood, if the order names nothing else that is cultured.
        re.compile(
            r"^(?=.*[/,+;] ?cultures)"
            r"(?!.*\b(?:LP|lumbar|CSF|joint|aspirat\w+|swabs?|fluid|biops\w+|bx|sputum|urine|urinalysis|stool|tap"
            r"|BAL|wash\w*|pus|abscess|tissue|collection|viral|PCR|\w*centesis|puncture|wound|throat|ear|eye|skin"
            r"|cell count|crystals|gram|bronch\w*|lavage|drain\w*|nodes?|marrow|blood)\b)"
            r"(.*[/,+;] ?)cultures(?= ?(?:$|[,;.+/]|x ?\d))",
            re.IGNORECASE,
        ),
        r"\1blood cultures",
    ),
    (
        re.compile(
            rf"\b((?:[\w-]+ )?PCR|cultures?) (?:of |on |from |in )?({_TAKEN_FROM}(?: ?[/+] ?{_TAKEN_FROM})+)",
            re.IGNORECASE,
        ),
        lambda found: ", ".join(f"{source} {found[1]}" for source in _PLUS.split(found[2])),
    ),
    (
        re.compile(
            rf"\b({_TAKEN_FROM}(?: ?(?:[/+&]|\band\b) ?{_TAKEN_FROM})+) "
            r"((?:swabs? )?(?:(?:for )?(?:[\w-]+ )?(?:PCR|NAAT)|(?<=swab )cultures?|(?<=swabs )cultures?))\b",
            re.IGNORECASE,
        ),
        lambda found: ", ".join(f"{source} {found[2]}" for source in _PLUS.split(found[1])),
    ),
    (re.compile(r"\bobstetric scan\b", re.IGNORECASE), "obstetric ultrasound"),
    (
        # Of the marrow or the blood, by what is beside it.
        re.compile(
            r"^(?=.*\b(?:cytogen\w+|marrow|smear|film|leuk\w+|lymphoma|immunophenotyp\w+|biops\w+)\b)(.*)\bflow\b"
            r"(?=\s*(?:$|[,;.)/+&]|and\b|for\b))",
            re.IGNORECASE,
        ),
        r"\1flow cytometry",
    ),
    (
        re.compile(
            r"\b(?:CT|US|USS|ultrasound|image)[- ]guided (?=(?:core )?(?:biopsy|bx)\b(?! (?:of|from)\b))", re.IGNORECASE
        ),
        "needle ",
    ),
    (
        re.compile(
            r"\burine for (?:(?:sterile|any) )*(?:pyuria|h(?:a?)ematuria|proteinuria|dip\w*|WBCs?|leu[ck]ocytes)\b",
            re.IGNORECASE,
        ),
        "urinalysis",
    ),
    (re.compile(r"\b(?:epinephrine|adrenaline) ?[(/] ?(?:epinephrine|adrenaline)\)?", re.IGNORECASE), "epinephrine"),
    (re.compile(r"\s*\b(?:with |and )?(?:an? )?(?:delayed )?films? (?:at|after) \d+ ?h(?:ours?|rs?)?\b"), ""),
    (
        re.compile(
            r"\b(?:gastrografin|water[- ]soluble(?: contrast)?|contrast|small bowel|barium)(?: small bowel)? "
            r"(?:follow[- ]?through|challenge|meal and follow[- ]?through)(?: study)?\b",
            re.IGNORECASE,
        ),
        "upper GI contrast study",
    ),
    (re.compile(r"\bcolou?r[- ](?=(?:flow )?(?:duplex|doppler|ultrasound)\b)", re.IGNORECASE), ""),
    (
        re.compile(
            r"^(?=.*\b(?:umbilical|growth scan|CTG|cardiotocogra\w+|biophysical|f(?:o?e)tal|liquor|amniotic)\b)(.*)"
            r"\b(?:MCA|middle cerebral artery|uterine artery) dopplers?\b",
            re.IGNORECASE,
        ),
        r"\1obstetric ultrasound",
    ),
    (
        # Of a tumor, not of the kidneys.
        re.compile(
            r"^(?=.*\b(?:biops\w+|histology|ALK|PD-?L1|ROS1|KRAS|BRAF|mutations?|cytology|aspirat\w+)\b)(.*)\bEGFR\b"
            r"(?: (?:mutations?|status|testing))?"
        ),
        r"\1tumor EGFR",
    ),
    (
        re.compile(
            r"\b(?:(?:[A-Z][A-Z0-9]{2,7} ?/ ?)+|(?:[A-Z]{2,6}\d[A-Z0-9]* ?(?:/|,|and|&) ?)+)[A-Z][A-Z0-9]{2,7} "
            r"(?=(?:gene )?panel\b)"
        ),
        "gene ",
    ),
    (re.compile(r"\bspot PCR\b"), "spot urine protein creatinine ratio"),
    (
        re.compile(r"\bglucose (?:paired )?with (?:paired |simultaneous )?(serum|plasma|blood)\b(?: glucose)?"),
        r"glucose, \1 glucose",
    ),
    (
        re.compile(
            r"\b(?:bacterial|aerobic|anaerobic) (?:,|and|&|/) ?((?:myco\w+|AFB|TB|fungal) cultures?)\b", re.IGNORECASE
        ),
        r"culture and \1",
    ),
    (
        # Crackling under the skin, not that of a joint or of the lungs.
        re.compile(
            r"(\b(?:neck|chest wall|supraclavicular|collarbones?|clavicles?|axillae?)\b[^;.]*?\b(?:for|feeling)\b"
            r"[^;.]*?)(?<!subcutaneous )(?<!surgical )\b(?:crepit(?:us|ations?)|crackling|emphysema)\b",
            re.IGNORECASE,
        ),
        r"\1subcutaneous emphysema",
    ),
    (
        re.compile(
            r"\b(?:palpat\w+|feel) (?:of )?(?:the )?(?=(?:(?:neck|shoulder)\b[\s,/&]*(?:and )?)*"
            r"(?:pericranial|temporal|temporalis|masseter|jaw|scalp|suboccipital|occipital)\b)"
            r"(?:(?:pericranial|temporal|temporalis|masseters?|jaw|scalp|suboccipital|occipital|cervical|neck|shoulder"
            r"|trapezius|paraspinal|sternocleidomastoid)\b[\s,/&]*(?:and )?)+muscles?\b",
            re.IGNORECASE,
        ),
        "pericranial muscles",
    ),
    (
        re.compile(
            r"\b(?:hydrogen |methane )*breath test(?:s|ing)? for (?:suspected )?"
            r"((?:lactose|fructose|SIBO|small|bacterial)[\w -]*?)"
            r"(?: (?:and|or) (?:suspected )?((?:lactose|fructose|SIBO|small|bacterial)[\w -]*?))?(?=$|[,;.])",
            re.IGNORECASE,
        ),
        lambda found: ", ".join(f"{what} breath test" for what in found.groups() if what),
    ),
    (
        # Looked for at the bedside, if the order does not sample it.
        re.compile(
            r"(?<!\bof )(?<!\bfrom )(?<!\btap )\bascites\b"
            r"(?! (?:fluid|tap|culture|cell|albumin|protein|analysis|sample|drain|for))",
            re.IGNORECASE,
        ),
        "shifting dullness",
    ),
    (
        # How a child is examined, not another test.
        re.compile(
            r",?\s*\b(?:while )?(?:observing|keeping|leaving) (?:him|her|the (?:child|baby|infant|toddler|boy|girl))\b"
            r"[^,;.]*\b(?:lap|arms)\b[^,;.]*"
            r"|\s*\b(?:while )?(?:(?:sitting|seated|held|sat) )?(?:on|in) (?:(?:his|her|the|a|its) )?"
            r"(?:mother|father|parent|carer|caregiver|mum|mom|dad|grand\w+)(?:['’]?s)? (?:lap|arms)\b",
            re.IGNORECASE,
        ),
        "",
    ),
    (re.compile(r"(?:^|(?<=[,;] ))lap(?=\s*(?:$|[,;.]))", re.IGNORECASE), "laparoscopy"),
    (
        re.compile(
            r"\b(?:(?:renal|kidney|liver|hepatic|thyroid)\s*(?:,|/|&|\+|\band\b)\s*)+"
            r"(?:renal|kidney|liver|hepatic|thyroid) (?:function|profiles?|panels?)(?: tests?)?\b",
            re.IGNORECASE,
        ),
        lambda found: ", ".join(
            f"{organ} function" for organ in re.findall(r"renal|kidney|liver|hepatic|thyroid", found[0], re.IGNORECASE)
        ),
    ),
    (
        re.compile(
            r"\b(testicular|scrotal|genital|penile) (?:and|&|/) (?:inguinal )?(hernial?) exam(?:ination)?\b"
            r"|\b(hernial?) (?:and|&|/) (testicular|scrotal|genital|penile) exam(?:ination)?\b",
            re.IGNORECASE,
        ),
        lambda found: f"{found[1] or found[4]} examination, {found[2] or found[3]} examination",
    ),
    (
        re.compile(
            r"\b([\w-]+ PCR) (?:on|of|in|from) (?:both )?(blood|serum|plasma|CSF) (?:and|&|/|\+) "
            r"(blood|serum|plasma|CSF)\b",
            re.IGNORECASE,
        ),
        r"\2 \1, \3 \1",
    ),
    (
        re.compile(
            r"^(?!.*\b(?:CSF|lumbar|LP|fluid|paired|ratio|urine)\b)(.*?)"
            r"\b(?:venous )?(?:plasma|serum|laboratory|lab) glucose\b(?! tolerance)",
            re.IGNORECASE,
        ),
        r"\1glucose",
    ),
    (
        re.compile(
            r"\b(?:temporal (?:arter(?:y|ies) )?(?:and|&|/|\+) (?:the )?axillary"
            r"|axillary (?:arter(?:y|ies) )?(?:and|&|/|\+) (?:the )?temporal)(?: arter(?:y|ies)\b)?"
            r"(?! (?:lymph|nodes?))",
            re.IGNORECASE,
        ),
        "temporal and axillary artery",
    ),
    (
        # A neurological examination includes it; that of a psychiatrist is another one.
        re.compile(
            r"(\bneurolog\w+ exam(?:ination)?) (?:with|and) mental status(?: exam(?:ination)?)?(?=\s*(?:$|[;.]))",
            re.IGNORECASE,
        ),
        r"\1",
    ),
    (re.compile(r"\bIA-?2A?\b(?! ?(?:anti|auto|ab\b))", re.IGNORECASE), "IA-2 antibodies"),
    (
        # In an examination for thyroid disease the hands are looked at for a tremor.
        re.compile(
            r"^(?=.*\bthyroid\b)(?!.*\b(?:tremor|X-?rays?|films?|radiograph\w*)\b)(.*)\bhands\b(?! (?:for|and feet)\b)",
            re.IGNORECASE,
        ),
        r"\1hands, tremor",
    ),
    (
        # Who does it, not why.
        re.compile(
            r"\s*\bby (?:an? |the )?(?:(?:senior|experienced|skilled|expert|specialist|consultant) )*"
            r"(?:sonographer|radiologist|operator|examiner|specialist|expert|consultant)s?\b",
            re.IGNORECASE,
        ),
        "",
    ),
    (
        # Looked for as part of an examination: what is listed is what is wanted.
        re.compile(
            r"(?:^|(?<=[,;.] )|(?<= and ))(?:please )?(?:also )?"
            r"(?:check|look|assess|inspect|feel|examine|evaluate) for "
            r"(?:any |signs of |evidence of )*(?=([^,;.]+))",
            re.IGNORECASE,
        ),
        lambda found: "" if _is_sign_alone(found[1]) else found[0],
    ),
    (
        # With blisters or a wound, crackling is looked for under the skin, not in a joint.
        re.compile(
            r"^(?=.*\b(?:bulla\w*|blister\w*|necro\w+|cellulitis|skin|wound|fasciitis)\b)(.*?)(?<!joint )(?<!knee )"
            r"(?<!chest )(?<!neck )\b(?:soft[- ]tissue )?crepitus\b",
            re.IGNORECASE,
        ),
        r"\1soft tissue crepitus",
    ),
    (
        re.compile(
            r"^(?=.*\b(?:bulla\w*|blister\w*|crepitus|cellulitis|skin|wound|fasciitis)\b)(.*?)"
            r"(?<!skin )(?<!tissue )(?<!tumor )(?<!vascular )(?<!fat )\bnecrosis\b(?! factor)",
            re.IGNORECASE,
        ),
        r"\1tissue necrosis",
    ),
    (re.compile(r"^(?=.*\b(?:crepitus|necrosis)\b)(.*?)\bblisters\b", re.IGNORECASE), r"\1bullae"),
    (re.compile(r"\bweigh (?:(?:the|this) )?(?:patient|him|her|baby|child|infant)\b", re.IGNORECASE), "weight"),
    (WITH_SPATULA, ""),
    (
        re.compile(
            r"\bcultures? (?:of|from) (?:an? |the )?(?:nasopharyngeal|NP) (?:swab|aspirate)s?\b"
            r"|\b(?:nasopharyngeal|NP) (?:swab|aspirate)s? (?:for )?cultures?\b",
            re.IGNORECASE,
        ),
        "nasopharyngeal culture",
    ),
    (
        re.compile(
            r"\b(?:24[- ]?(?:h|hr|hours?) )?urin(?:e|ary) (?:fractionated )?"
            r"(?:metanephrines(?: and |/)catecholamines|catecholamines(?: and |/)metanephrines)\b",
            re.IGNORECASE,
        ),
        "urine catecholamine metabolites",
    ),
    (
        re.compile(
            r"\bMRI (?:of )?(?:the )?(?:brain|head) ?(?:/|and|&|\+|with) ?(?:the )?"
            r"(?:IAMs?|IACs?|internal (?:auditory|acoustic) (?:meat\w+|canals?))\b",
            re.IGNORECASE,
        ),
        "MRI internal auditory canals",
    ),
    (re.compile(r"\s*\b(?:including|and|with) (?:the )?femoral canals?\b", re.IGNORECASE), ""),
    (
        re.compile(
            r"\b(?:NG|nasogastric)(?: tube)?\b[^,;.]*"
            r"\b(?:aspirat\w+|drainage|drained|output|returns?|contents?)\b[^,;.]*",
            re.IGNORECASE,
        ),
        "gastric aspirate appearance",
    ),
    (
        re.compile(
            r"\b((?:nerve conduction (?:stud\w+|tests?|velocit\w+)|NCS|EMG|repetitive (?:nerve )?stimulation|RNS)"
            r"(?: (?:and|&) (?:EMG|NCS))?(?: at [\d-]+ ?Hz)?) (?:of|in|for|on) "
            rf"(?:(?:the|right|left|both|bilateral) )*{_NERVES}(?:\s*(?:,|and|&|/)\s*{_NERVES})*",
            re.IGNORECASE,
        ),
        r"\1",
    ),
    (
        re.compile(
            r"\b(?:auscultat\w+|listen\w*) (?:(?:of|to|over|at) )?(?:(?:the|both) )*([^,;.]+?)"
            r"(?: (?:arter(?:y|ies)|vessels?))? for (?:(?:any|a) )?bruits?\b",
            re.IGNORECASE,
        ),
        r"\1 bruits",
    ),
    (
        re.compile(
            r"^(?=.*\b(?:JVP|JVD|neck veins?|jugular|paradox\w*|tamponade|pericard\w*|CVS|heart|cardi\w+)\b)"
            r"(.*)\bKussmaul\b(?! (?:sign|breath|resp))",
            re.IGNORECASE,
        ),
        r"\1Kussmaul sign",
    ),
    (
        re.compile(
            r"(\bherni\w+(?: orifices?| sites?)?) ?"
            r"\((?:(?:and|inguinal|femoral|umbilical|incisional|groins?|both)\b[\s,/&+]*)+\)",
            re.IGNORECASE,
        ),
        r"\1",
    ),
    (
        re.compile(
            r"\b(?:distal )?neuro[- ]?vascular (?:(?:exam(?:ination)?|status|assessments?|checks?|obs(?:ervations)?"
            r"|function|integrity)\b)?(?=(?: (?:of|in) [^,;.]+)?)",
            re.IGNORECASE,
        ),
        "distal pulses, capillary refill, power, sensation",
    ),
    (
        # Felt for nodes, unless an order is about the skin.
        re.compile(
            r"^(?!.*\b(?:skin|rash|web|burrows?|freckl\w+|hair|abscess\w*|breasts?|swab|temp\w*)\b)(.*?)"
            r"(?:^|(?<=[,;:+] )|(?<=\band ))(?:(?:the|both) )*(?:axillae?|armpits?)(?=\s*(?:$|[,;.+]|and\b))",
            re.IGNORECASE,
        ),
        r"\1axillary nodes",
    ),
    (re.compile(r"(\bbreath (?:odou?r|smell)s?) ?\([^)]*\)", re.IGNORECASE), r"\1"),
    (re.compile(r"\b(?:MR|AR|AS|MS|TR|PS|VSD|ASD) (?=murmurs?\b)"), ""),
    (re.compile(r"\btympan(?:y|ism|i(?:ti)?c (?:note|percussion))\b", re.IGNORECASE), "abdominal percussion"),
    (
        re.compile(
            r"\bhyper[- ]?resonan(?:ce|t(?: (?:note|percussion))?)\b|\b(?:stony )?dullness to percussion\b"
            r"|\bstony dullness\b",
            re.IGNORECASE,
        ),
        "chest percussion",
    ),
    (
        re.compile(
            r"\b(?:orthostatic|postural) (?:pulse and )?(?:pressures?|pulse|vitals|vital signs|obs)\b", re.IGNORECASE
        ),
        "lying and standing blood pressure",
    ),
    (re.compile(r"\b((?:anal |sphincter )?tone) and squeeze\b", re.IGNORECASE), r"\1"),
    (re.compile(r"\b(?:herpes zoster|zoster|shingles) rash\b", re.IGNORECASE), "skin rash"),
    (
        re.compile(r"\bvibration(?: sense)? (?:with|using|by) (?:an? |the )?(?:\d+ ?Hz )?tuning fork\b", re.IGNORECASE),
        "vibration sense",
    ),
    (re.compile(r"\bHS\b(?= ?(?:$|[,;./+&()]|and\b|with\b))"), "heart sounds"),
    (re.compile(r"\bBeck triad ?[:(] ?(?=\w)", re.IGNORECASE), ""),
    (re.compile(r"\bBeck triad\b", re.IGNORECASE), "JVP, heart sounds, BP"),
    (re.compile(r"\bCushing (?:triad|response|reflex)\b", re.IGNORECASE), "BP, HR, RR"),
    (
        re.compile(
            r"\b(?:median|ulnar|radial|peroneal|tibial|sciatic) nerve (?:exam(?:ination)?|testing|function)\b",
            re.IGNORECASE,
        ),
        "strength and sensation",
    ),
    (
        # One result, whatever it was looked for in.
        re.compile(
            r"(\bPCR\b[^,;.]*?\b(?:swab|aspirate|blood|sputum|saliva)) (?:and|&|\+) urine\b(?=\s*(?:$|[,;.]))",
            re.IGNORECASE,
        ),
        r"\1",
    ),
    (
        re.compile(
            r"\b(?:blanching|glass|tumbler) test(?: (?:of|on) (?:the |any )?(?:rash|spots|skin))?"
            r"(?: with an? (?:glass|tumbler))?",
            re.IGNORECASE,
        ),
        "skin rash",
    ),
    (
        re.compile(
            r"\b(?:(?:AP|PA|lateral|axillary|axial|oblique|skyline|sunrise|scapular[- ]Y|outlet|mortise|odontoid)\b"
            r"(?:\s*(?:,|and|&|/)\s*)?)+ ?views?\b",
            re.IGNORECASE,
        ),
        "",
    ),
    (
        re.compile(
            r"\bpalpat(?:ion|e)(?: of)?(?: the)? neck\b"
            r"(?!,? (?:lymph|node|gland|muscle|and thyroid|for (?:lymph|node|thyroid|goit)))",
            re.IGNORECASE,
        ),
        "neck palpation",
    ),
    (re.compile(r"\b(?:MRI? )?vessel[- ]wall (?:imaging|MRI?|study)\b", re.IGNORECASE), "MR angiography"),
    (re.compile(r" (?:arthroscop\w+ )?portals\b(?: sites?| scars?| wounds?)?(?! of)", re.IGNORECASE), ""),
    (
        re.compile(
            r"(?:^|(?<=[,;:] )|\b(?:check|assess|examine|inspect) )(?:the )?(?:upper )?airways? (?=for\b)",
            re.IGNORECASE,
        ),
        "stridor and throat ",
    ),
    (
        re.compile(r"\b(?:lumbar |CSF |spinal |large[- ]volume )*tap test\b[^,;.]*", re.IGNORECASE),
        "gait after removal of 40 ml spinal fluid",
    ),
    (
        re.compile(
            r",?\s*\b(?:with|paying)? ?(?:special |particular |close |careful )?"
            r"(?:attention (?:paid )?to|focus(?:ing)? on)\b",
            re.IGNORECASE,
        ),
        " including",
    ),
    (
        re.compile(r"\(?(?<!PD-)(?<!PD )\bL[1-5]\b(?:\s*(?:,|/|and|&|-|–|to)\s*[LS]\d\b)*\)?"),
        "",
    ),  # the levels of nerve roots
    (re.compile(r"\bHRCT\b"), "high resolution CT"),
    (
        re.compile(
            r"(\bMRI (?:of (?:the )?)?(?:brain|head)) (?:with|and|\+|/) (?:the )?cavernous sinus(?:es)?\b",
            re.IGNORECASE,
        ),
        "MRI cavernous sinus",
    ),
    (re.compile(r"\s*,?\s*\bcompared? (?:with|to|against)\b[^,;.]*", re.IGNORECASE), ""),
    (re.compile(r"(\burine colou?r) (?:on|after|when|over|in)\b[^,;.]*", re.IGNORECASE), r"\1"),
    (re.compile(r"(\b(?:abdom\w+|guarding|rebound|periton\w+)\b[^.;]*?)\brigidity\b", re.IGNORECASE), r"\1guarding"),
    (re.compile(r"\b(?:PR|rectal) tone\b"), "anal tone"),
    (re.compile(r"\b[CTLS]\d{1,2} ?(?:-|–|to) ?[CTLS]?\d{1,2}\b"), ""),  # the levels of nerve roots
    (re.compile(r"\b((?:cranial nerves?|CNs?)) (?:[IVX]+\b(?:\s*(?:[-–,/&+]|and|to)\s*)?)+"), r"\1 "),
    (re.compile(r"\b(?:musculoskeletal|MSK) (?=ultrasound|USS?\b)", re.IGNORECASE), ""),
    (re.compile(r"\s*\b(?:with|w/) (?:power |colou?r )?dopplers?\b", re.IGNORECASE), ""),
    (
        re.compile(
            r"\b(?:paired )?(serum|plasma) ?(?:/|&|and) ?(urine) (osmolalit\w+|sodium|electrolytes)", re.IGNORECASE
        ),
        r"\1 \3, \2 \3",
    ),
    (re.compile(r"\b(?:transvaginal|TV) (?:pelvic )?(?=ultrasound|US\b|USS\b|scan)", re.IGNORECASE), "transvaginal "),
    (re.compile(r"\b(capillary|venous|arterial) gas(?:es)?\b", re.IGNORECASE), r"\1 blood gas"),
    (re.compile(r"\bNIHSS\b|\bNIH stroke scale\b", re.IGNORECASE), "neurological examination"),
    (
        re.compile(
            r"\b(?:serum |quantitative )?immunoglobulins?\b(?! ?[AEGM]\b)(?= ?(?:$|[,;.)+/]|and\b|levels?\b))",
            re.IGNORECASE,
        ),
        "serum IgG, serum IgA, serum IgM",
    ),
    (
        re.compile(r"^(?=.*\b(?:nystagmus|skew|hallpike|roll|vestibul\w*|gaze)\b)(.*)\bHIT\b", re.IGNORECASE),
        r"\1head impulse test",
    ),
    (re.compile(r"\bportals? of entry\b", re.IGNORECASE), "skin"),
    (re.compile(r"\bC3 ?/ ?4\b", re.IGNORECASE), "C3, C4"),
    (re.compile(r"\banti-IF\b"), "anti intrinsic factor"),
    (re.compile(r"\b(ACL|B2GP1|anticardiolipin)\b(.{1,20}?)\bLA\b", re.IGNORECASE), r"\1\2lupus anticoagulant"),
    (
        re.compile(
            r"\b(?:4|four)[- ]limbs? (?:BPs?|blood pressures?)\b|\bBPs? (?:in )?(?:all )?(?:4|four) limbs?\b",
            re.IGNORECASE,
        ),
        "four-limb blood pressure",
    ),
    (
        re.compile(r"(\bspeculum\b[^,;]*?)\s*\b(?:with|w/|and|plus)?\s*\bswabs?\b(?! (?:for|of))", re.IGNORECASE),
        r"\1, high vaginal swab",
    ),
    (re.compile(r"\b(?:serum )?(?:trans|amino ?trans)(?:amin|fer)ases\b", re.IGNORECASE), "ALT, AST"),
    (
        re.compile(r"\bHINTS(?:[- ]plus)?(?: exam(?:ination)?)?\b|\bhints exam(?:ination)?\b"),
        "head impulse test, nystagmus, test of skew",
    ),
    # Abbreviations that are told from others by their capitals or by what is beside them.
    (re.compile(rf"\bPR\b(?=,? ?(?:and|/|&)? ?{_BESIDE_VITALS}\b)|(?<={'BP'}, )PR\b|(?<=RR, )PR\b"), "pulse rate"),
    (re.compile(r"(?<=ESR/)PV\b|(?<=ESR, )PV\b|(?<=ESR )PV\b|(?<=ESR \+ )PV\b"), "plasma viscosity"),
    (re.compile(r"\bPR\b(?! (?:interval|segment|prolongation|depression|exam))"), "rectal exam"),
    (re.compile(r"\bPV\b(?! exam)(?=$| ?(?:[,;.)]|and\b|exam))"), "pelvic exam"),
    (
        re.compile(r"\bBMs?\b(?! (?:biopsy|aspirat|exam|trephine))(?=$| ?[,;./)&+]| (?:and|stat|now)\b)"),
        "fingerstick glucose",
    ),
    (re.compile(r"\bTOE\b"), "TEE"),
    (re.compile(r"(?<=[a-z] )vs\.?(?= [a-z])"), "and"),
    (
        re.compile(
            r"^(?!.*\b(?:lumbar puncture|LP|spinal tap|CSF|cerebrospinal|skin|vesicle)\b)"
            r"(.*?)(?<!blood )(?<!serum )(?<!plasma )(?<!stool )\bviral PCR(?: swab)?\b"
            r"(?! ?\(?(?:of |on |from )?(?:the )?(?:blood|serum|plasma|stool|biops|myocard|tissue))",
            re.IGNORECASE,
        ),
        r"\1respiratory viral PCR",
    ),
    (
        re.compile(r"\bG ?(?:&|and|\+) ?[SH]\b|\bgroup (?:and|&) (?:rh(?:esus)?|rhd?)\b|\b(?:XM|X-match)\b"),
        "blood group",
    ),
    (re.compile(r"\bT ?& ?[SC]\b"), "blood group"),
    (re.compile(r"\bfemorals\b", re.IGNORECASE), "femoral pulses"),
    (
        re.compile(
            r"\b(R|L)(?:t|eft|ight)?\.? (?=knee|hip|shoulder|ankle|wrist|elbow|foot|hand|leg|arm|eye|ear|kidney|lung)"
        ),
        lambda found: {"R": "right ", "L": "left "}[found[1]],
    ),
    (re.compile(r"\bw ?/ ?(?:(?:and|&|\+|/) ?w ?/ ?o\b|wo\b)", re.IGNORECASE), "with and without"),
    (re.compile(r"\bw ?/ ?o\b", re.IGNORECASE), "without"),
    (re.compile(r"\bw/ ?", re.IGNORECASE), "with "),
    (
        re.compile(r"\bova ?[,/&]? ?(?:and )?cysts? ?[,/&]? ?(?:and |& )?parasites\b", re.IGNORECASE),
        "ova and parasites",
    ),
    (re.compile(r"\b(?:lipoprotein|Lp) ?\(a\)", re.IGNORECASE), "lipoprotein a"),
    (
        # How a film is taken.
        re.compile(
            r"(\b(?:X-?rays?|XR|films?|radiographs?)\b[^,;.]*?) (?:in )?(?:flex(?:ion)?|ext(?:ension)?)"
            r"(?: ?[-/&+] ?| and )(?:flex(?:ion)?|ext(?:ension)?)\b(?: views?)?",
            re.IGNORECASE,
        ),
        r"\1",
    ),
    (
        re.compile(
            r"\bbilirubin \((?:total (?:and|&|/) direct|direct (?:and|&|/) total|fractionated)\)", re.IGNORECASE
        ),
        "total and direct bilirubin",
    ),
    (re.compile(r"(?<=[a-z]):(?=[a-z])"), " "),  # "albumin:creatinine ratio"
    (
        re.compile(
            r"\b1,25[- ]?(?:(?:\(OH\)2|OH2?|di-?hydroxy)[- ]?(?:vit(?:amin)?[- ]?)?|vit(?:amin)?[- ]?)D3?\b",
            re.IGNORECASE,
        ),
        "calcitriol",
    ),
    (
        re.compile(r"\bbone (?:profile|panel|chemistry|biochemistry)\b", re.IGNORECASE),
        "calcium, phosphate, ALP, albumin",
    ),
    (re.compile(r"\b25[- ]?\(OH\)[- ]?(?:vit(?:amin)?[- ]?)?D3?\b", re.IGNORECASE), "25-hydroxyvitamin D"),
    (
        # What the laboratory adds by itself if the first test is positive.
        re.compile(
            r"\s*\b(?:with|w/|and) reflex(?:ive)? (?:to )?"
            r"(?:(?:RNA|PCR|viral load|titers?|confirm\w+|quant\w*|panel|patterns?|western blot|testing"
            r"|cultures?|cx|micro\w*)\b\s*)+",
            re.IGNORECASE,
        ),
        "",
    ),
    (
        re.compile(
            r"\b(AFB|acid[- ]fast(?: bacilli)?|TB|mycobacterial) (smear|stain|microscopy) ?(?:and|&|\+|/) ?cultures?\b",
            re.IGNORECASE,
        ),
        r"\1 \2 and \1 culture",
    ),
    (
        re.compile(
            r"\b(AFB|acid[- ]fast(?: bacilli)?|TB|mycobacterial) cultures? ?(?:and|&|\+|/) ?(smear|stain|microscopy)\b",
            re.IGNORECASE,
        ),
        r"\1 \2 and \1 culture",
    ),
    (
        # Several germs by one method.
        re.compile(
            r"\b(?:chlamydia|CT) ?/ ?(?:GC|gonorrh?o?ea) ?/ ?(TB|HSV|mycoplasma)(?= (?:PCR|NAAT))", re.IGNORECASE
        ),
        r"chlamydia and gonorrhea PCR, \1",
    ),
    (
        re.compile(
            r"\b(?:(?:chlamydia|CT)\s*(?:/|&|,|\band\b)\s*(?:gonorrh?o?ea|GC)"
            r"|(?:gonorrh?o?ea|GC)\s*(?:/|&|,|\band\b)\s*(?:chlamydia|CT))\b"
            r"(?= ?(?P<method>(?:/ ?TB )?"
            r"(?:NAATs?|PCR|nucleic|amplif\w*|cultures?|swabs?|tests?|testing|screen\w*)\b)?)",
            re.IGNORECASE,
        ),
        lambda found: (
            "chlamydia and gonorrhea"
            if found["method"] or found.string[: found.start()].rstrip()[-1:] not in ",;"
            else "chlamydia and gonorrhea PCR"
        ),
    ),
    (
        re.compile(r"\bevoked potentials \(((?:(?:visual|auditory|somatosensory|brain ?stem)\W*(?:and )?)+)\)"),
        lambda found: ", ".join(
            f"{kind} evoked potentials" for kind in re.findall(r"visual|auditory|somatosensory", found[1])
        ),
    ),
    (re.compile(r"\ballerg\w+ skin (?:prick )?test\w*", re.IGNORECASE), "skin prick test"),
    (
        # Where it is measured, not a count of these.
        re.compile(
            r"\b(?:erythrocyte|red (?:blood )?cell|RBC) (?=PBG|porphob|HMB|protoporph|transketol|cholinest)",
            re.IGNORECASE,
        ),
        "",
    ),
    (re.compile(r"\bL[-/]S (?=spine\b)", re.IGNORECASE), "lumbar "),
    (re.compile(r"\bTV ?(?:USS?|S|ultrasound|scan)\b", re.IGNORECASE), "transvaginal ultrasound"),
    (re.compile(r"\bU ?[+/] ?Es?\b", re.IGNORECASE), "U&E"),
    (re.compile(r"\b(?:blood )?group (?:and|&|\+) (?:save|hold|screen)\b", re.IGNORECASE), "blood group"),
    (re.compile(r"\b(?:CT|US|USS|ultrasound|image|X-ray)[- ]guided\s+", re.IGNORECASE), ""),
    (re.compile(r"\s*\b(?:with )?ECG[- ](?:gating|gated)\b", re.IGNORECASE), ""),
    (
        re.compile(
            r"\s*\b(?:(?:incl(?:uding|\b\.?)|with|and|plus)\s+)?(?:(?:posterior|right[- ]sided|right|additional)"
            r"\s*(?:and|,|&|/)?\s*)+leads?\b(?:\s*(?:and|[-–(,])?\s*\bV\d{1,2}R?\b\)?)*",
            re.IGNORECASE,
        ),
        "",
    ),
    (re.compile(r"^(?:please )?(?:look|check|assess|examine|evaluate|feel|inspect) for ", re.IGNORECASE), ""),
    (
        re.compile(
            rf"\b({_SWELLS}) ?(?:/|&|and|\+|or) ?({_SWELLS}) (o?edema|swelling)\b",
            re.IGNORECASE,
        ),
        r"\1 \3, \2 \3",
    ),
    (
        re.compile(r"\b(?:lying|supine|sitting) ?(?:/|&|\+|-|and|to|then|vs\.?) ?standing\b", re.IGNORECASE),
        "lying and standing",
    ),
    (re.compile(r"\bfields?(?: test(?:s|ing)?)? (?:by|to|with|on) confrontation\b", re.IGNORECASE), "fields"),
    (
        # What the abdomen is felt for is ordered by itself.
        re.compile(
            r"\b((?:abdomen|abdo|belly|tummy|abdominal)(?: exam(?:ination)?| palpation)?) for "
            r"(?:the |any |an? |signs of |evidence of |(?:an? )?enlarged |palpable )*(?=([^,;.]+))",
            re.IGNORECASE,
        ),
        lambda found: f"{found[0]}{found[2]}; " if _is_sign_alone(found[2]) or _is_organ(found[2]) else found[0],
    ),
    (
        re.compile(r"\b(o?edema|swelling) of (?:the )?face (?:and|&|/|or) (?:the )?(hand|leg|feet)s?\b", re.IGNORECASE),
        r"facial \1, \2 \1",
    ),
    (re.compile(r"\be?-?FAST (?:scan|exam(?:ination)?|ultrasound)\b|\be-?FAST\b|\bFAST\b"), "bedside ultrasound"),
    (
        re.compile(
            r"\bairway (?:exam(?:ination)?|assessment|inspection)\b|(?:^|(?<=[,;:] ))airway ?(?=[,;:]|$)", re.IGNORECASE
        ),
        "stridor and throat exam",
    ),
    (
        re.compile(
            r"(?:\b(?:cervical|supraclavicular|submandibular|axillary|inguinal|epitrochlear|occipital)\b[\s,&/]*"
            r"(?:(?:and|or)\s+)?){2,}(?=(?:lymph )?(?:nodes?|lymphadenopathy)\b)",
            re.IGNORECASE,
        ),
        "",
    ),
    (re.compile(r"\blook(?:ing)? (?:at|in|into|over|between|behind|under)\b", re.IGNORECASE), "examine"),
    (re.compile(r"(?<!protein )(?<!Protein )(?<!proteins )(?<!Proteins )\b(?:M,? ?)?C ?(?:&|and|\+) ?S\b"), "culture"),
    (
        re.compile(r"\bu(?:rine )?PCR\b\s*\(protein[^)]*\)|\buPCR\b|\burine PCR\b(?= ?(?:$|[,;.]))", re.IGNORECASE),
        "urine protein creatinine ratio",
    ),
    (re.compile(r"(?<=\bwith )gad\b|(?<=\bwithout )gad\b|(?<=\+)\s*gad\b", re.IGNORECASE), "gadolinium"),
    (
        re.compile(
            r"^(?!.*\b(?:sputum|afb|acid[- ]fast|csf|stool|fluid|swab|pap|cervical)\b)(.*[,;] ?)smear(?=$|[,;.])",
            re.IGNORECASE,
        ),
        r"\1blood smear",
    ),
    (
        re.compile(
            r"(\b(?:CBC|FBC|blood count|differential|diff)\b[^;,.]{0,40}?(?:\b(?:and|with|plus)\b|[,&+])\s*)smear\b",
            re.IGNORECASE,
        ),
        r"\1blood smear",
    ),
    (
        re.compile(
            r"(\b(?:lumbar puncture|LP|spinal tap|CSF|cerebrospinal fluid)\b[^;]*(?:[,&+(:]|\b(?:and|with|plus)\b)\s*)"
            r"(?:viral )?PCR(?=\s*(?:$|[,;.)]|and\b))",
            re.IGNORECASE,
        ),
        r"\1HSV PCR",
    ),
    (
        re.compile(
            r"\bpre-?(?: ?ductal)?(?: saturations?)?\s*(?:and|&|/|,)\s*post-? ?ductal"
            r"(?: (?:oxygen |o2 )?(?:saturations?|sats?|spo2|oximetry))?",
            re.IGNORECASE,
        ),
        "oxygen saturation, postductal oxygen saturation",
    ),
    (
        re.compile(
            r"\b(?:resting|rest) and (?:ambulatory|walking|exertional|exercise) "
            r"(?:oxygen saturations?|saturations?|sats?|SpO2|pulse oximetry|oximetry)\b",
            re.IGNORECASE,
        ),
        "oxygen saturation, walk test",
    ),
    (
        re.compile(r"\bafter (?:an? )?(?:\d+[- ]?(?:h|hours?)[- ]?(?:of )?)?fast(?:ing)?\b", re.IGNORECASE),
        "fasting",
    ),
    (
        re.compile(r"(?<=biopsy)([^,;]*?) (?:for|with) (?:DIF\b|direct immunofluorescence\b)", re.IGNORECASE),
        r"\1 with direct immunofluorescence",
    ),
    (
        re.compile(r"\b(?:fractionated bilirubin|bilirubin fraction(?:s|ation))\b", re.IGNORECASE),
        "total and direct bilirubin",
    ),
    (
        re.compile(
            r"\b(?:upper GI|UGI|upper gastrointestinal|upper gastro-?intestinal tract)"
            r" (?:series|(?:contrast|barium) (?:series|study|studies))\b",
            re.IGNORECASE,
        ),
        "upper GI contrast study",
    ),
    (
        re.compile(r"\b(viral PCR) ?(?:and|&|[+/]|plus) ?serolog(?:y|ies)\b(?! (?:for|of)\b)", re.IGNORECASE),
        r"\1 and viral serology",
    ),
    (
        re.compile(
            r"\b((?:urine|urinary|spot) (?:spot )?(?:protein|albumin)) ?/ ?creat(?:inine)?\b(?: ratio)?", re.IGNORECASE
        ),
        r"\1 creatinine ratio",
    ),
    (
        re.compile(r"(\b(?:CSF|LP|lumbar puncture|spinal tap)\b[^;.]*?)\bbiomarkers\b", re.IGNORECASE),
        r"\1amyloid and tau",
    ),
    (
        # Several parasites are looked for at once.
        re.compile(
            r"\b(?:(?:stool|fecal|faecal) )?"
            r"(?:(?:entamoeba(?: histolytica)?|cryptosporidium|cyclospora)(?:/|, | and )?)+ PCR\b(?! (?:of|on|from))",
            re.IGNORECASE,
        ),
        "stool pathogen PCR",
    ),
    (
        re.compile(r"\b(urine|urinary|spot) ACR ?(?:and|&|/|,|plus) ?(?:u?PCR|urine PCR)\b", re.IGNORECASE),
        r"\1 albumin creatinine ratio, urine protein creatinine ratio",
    ),
    (
        # "Serial peak flow at work and away from work"
        re.compile(
            r"\s*\b(?:at|in|on|during) (?:the )?work(?:place|ing days|days)?,? (?:and|vs\.?|versus|or)"
            r" (?:(?:away from|off|out of) (?:the )?work(?:place)?|at home|(?:on )?(?:days off|holidays?|weekends?))\b",
            re.IGNORECASE,
        ),
        "",
    ),
    (
        # Of one study, its vessels say where: "contrast CT chest with pulmonary angiography".
        re.compile(
            r"\bCT (?:scan )?(?:of (?:the )?)?(?:chest|thorax|abdomen|heart) with (?:a )?(?:CT )?"
            r"(?=(?:pulmonary|coronary|aortic|mesenteric|renal) angiogra)",
            re.IGNORECASE,
        ),
        "CT ",
    ),
    (
        re.compile(
            r"\b(?:intrapericardial (?:and|&|,) )?"
            r"(?:right (?:atrial|heart|ventricular)|intracardiac|(?:pulmonary )?(?:capillary )?wedge) pressures?\b",
            re.IGNORECASE,
        ),
        "right heart catheterization",
    ),
    (
        re.compile(
            r"\b(?:needle )?(?:biops(?:y|ies)|aspirat(?:e|ion)|sampling) of\s+(?:the\s+)?(?:affected |infected )?"
            r"(?:intervertebral )?dis[ck]s?(?: space)?"
            r"(?:\s+(?:and|or|/)\s+(?:the )?(?:vertebrae?|vertebral body|bone))?\b"
            r"|\bdis[ck](?: space)? (?:biops(?:y|ies)|aspirat(?:e|ion)|sampling|fluid)\b",
            re.IGNORECASE,
        ),
        "disc biopsy",
    ),
    (
        # A fluid that is drained, not the discharge of a wound.
        re.compile(
            r"\b(?:drainage|draining|tapping|evacuation) of (?:(?:the|a|an|any|loculated|encysted|left|right) )*"
            r"(?=(?:pericardial|pleural|ascitic|peritoneal|synovial|joint|knee|spinal|cerebrospinal)\b)",
            re.IGNORECASE,
        ),
        "",
    ),
    (
        re.compile(
            r"\s*\b(?:before and after|before or after|before|after) (?:(?:the|this|that) )?"
            r"(?:drainage|pericardiocentesis|thoracentesis|paracentesis)\b",
            re.IGNORECASE,
        ),
        "",
    ),
    (
        re.compile(r"(\bthroat\b[^;.]*?)\brapid (?:antigen|test)\b(?: (?:test|detection))?", re.IGNORECASE),
        r"\1rapid strep",
    ),
    (
        re.compile(
            r"(\b(?:CBC|FBC|blood count|differential|diff)\b\s*(?:,|[+&/]|\b(?:and|with|plus)\b)\s*)film\b",
            re.IGNORECASE,
        ),
        r"\1blood film",
    ),
    (re.compile(r"\bNPA\b"), "nasopharyngeal aspirate"),
    (re.compile(r"(?<!\bto )(?<!\bto-)\bstand(?:ing)? test\b", re.IGNORECASE), "standing ECG"),
    (
        re.compile(
            r"\b(?:active|passive) (?:and|&|/|or|,) ?(?:active|passive) (?=range|rom\b|movement)", re.IGNORECASE
        ),
        "",
    ),
    (
        re.compile(
            r"\bpupil(?:s|lary)?\b[^,;.]{0,20}? in (?:bright )?light and (?:in )?(?:the )?(?:dark(?:ness)?|dim light)\b"
            r"|\bpupil(?:s|lary)?\b[^,;.]{0,20}? in bright and (?:in )?dim light\b",
            re.IGNORECASE,
        ),
        "pupils, pupils in dim light",
    ),
    (
        re.compile(
            r"\b(?:saturations?|sats|oximetry|spo2)\s+(?:in|of|on|at|from)\s+(?:the )?(?:right )?(?:hand|arm) and "
            r"(?:(?:the|a|one|either|left|right) )*(?:foot|leg)\b",
            re.IGNORECASE,
        ),
        "saturation, postductal oxygen saturation",
    ),
    (
        re.compile(
            r"\b(?:blood pressures?|BPs?)\s+(?:in|of|on|at|from)\s+(?:(?:the|all|both|his|her|right|left)\s+)*"
            r"(?:arms?|upper (?:limbs?|extremit\w+))\s*(?:and|&|,|vs\.?|versus)\s*(?:(?:the|both|a|one|right|left)\s+)*"
            r"(?:legs?|lower (?:limbs?|extremit\w+))\b"
            r"|\b(?:upper and lower (?:limb|extremity)|arm and leg)\s+(?:blood pressures?|BPs?)\b",
            re.IGNORECASE,
        ),
        "four-limb blood pressure",
    ),
    (
        re.compile(
            r"\b(?:ultrasound|ultrasonography|US|USS) (?:(?:of|in|over) (?:the )?)?"
            r"(?:RLQ|right lower quadrant|right iliac fossa)\b"
            r"|\b(?:RLQ|right lower quadrant|right iliac fossa) (?:ultrasound|ultrasonography|US|USS)\b"
            r"|\b(?:ultrasound|ultrasonography) (?:for|to (?:look for|assess for|rule out)|looking for) (?:acute )?"
            r"appendicitis\b",
            re.IGNORECASE,
        ),
        "appendix ultrasound",
    ),
    (
        re.compile(
            r"\s*\b(?:with|and|plus|including|for)\s+(?:(?:a|the)\s+)?"
            r"(?=(?:sliding (?:test|sign|organs?)|(?:gentle )?probe pressure|gentle pressure)\b)",
            re.IGNORECASE,
        ),
        " ",
    ),
    (
        re.compile(
            r"\b(?:mark|outline|draw|trace)\b[^,;.]{0,40}\b(?:borders?|edges?|margins?|redness|erythema|rash|area)\b"
            r"(?:[^;.]{0,30}\b(?:re-?(?:check|assess|examine|evaluate)|repeat|review|look again|see)\b[^,;.]*)?",
            re.IGNORECASE,
        ),
        "repeat skin examination",
    ),
    (
        re.compile(
            r"\b(?:(?:three|two|3|2|serial|multiple)\s+(?:(?:early|morning|early-morning|consecutive|separate|induced)\s+)*"
            r"sputum\s+(?:(?:AFB|acid[- ]fast(?: bacilli)?)\s+)?(?:smears?|samples?|specimens?|AFBs?)(?:\s+for\s+(?:AFB"
            r"|acid[- ]fast bacilli|TB|tuberculosis))?|sputum\s+(?:for\s+)?(?:(?:AFB|acid[- ]fast(?: bacilli)?)\s*)"
            r"(?:smears?\s*)?[x×]\s?[23])(?=\W|$)",
            re.IGNORECASE,
        ),
        "sputum acid-fast smear, second sputum acid-fast smear",
    ),
    (
        re.compile(
            r"\burethral (?:swabs? )?(?:for )?(?=(?:NAAT|PCR|nucleic acid|chlamydia|gonorrh)\w*)(?![^,;]*\bcultur)",
            re.IGNORECASE,
        ),
        "urine NAAT ",
    ),
    (
        re.compile(
            r"^(?=.*\b(?:x-?rays?|films?|radiographs?|CXR|LP|lumbar puncture|spinal tap)\b)(.*)"
            r"\s*\b(?:in )?(?:the )?(?:left|right) lateral (?:decubitus|recumbent)(?: (?:position|view))?\b",
            re.IGNORECASE,
        ),
        r"\1",
    ),
    (
        re.compile(
            r"\s*\b(?:in|from|of)\s+(?:(?:the|all|both|first|second|third|fourth|last|final|and|to|&|\d)\s+){0,6}"
            r"tubes?\b(?:\s*(?:and|to|&|-|\d)(?=\W|$)){0,4}",
            re.IGNORECASE,
        ),
        "",
    ),
)
"""How doctors write things, and the same in words that are read elsewhere."""


@lru_cache(maxsize=4096)  # an order is matched against several charts
def one_line(order: str) -> str:
    """An order as one line: a list's lines, numbers and slashes become commas, a dash before an explanation a colon."""
    lines = [_NUMBERED.sub(", ", _undashed(line.strip())) for line in _unconditional(order)[0].split("\n")]
    line = _DASH.sub(": ", re.sub(r"(?:\s*[,;]\s*){2,}", ", ", ", ".join(lines)).strip(" ,;"))
    line = _POSSESSIVE.sub("", line)
    for written, meant in _WRITTEN_OUT:
        line = written.sub(meant, line)
    return _SLASHED.sub(lambda found: _without_slashes(found[0]), line) if "/" in line else line


def _is_sign_alone(text: str) -> bool:
    """Whether a text names a sign of the body and no test: "oedema", "bullae or crepitus"."""
    read = reading(_CONJUNCTION.split(text)[0])
    return bool(read.of("parts")) and not _tests(read) and not read.words


def _is_organ(text: str) -> bool:
    """Whether a text names an organ that is felt through the abdomen: "liver and spleen"."""
    read = reading(text)
    return _only_sites(read) and not read.words and all("abdomen" in vocabulary().wider[s] for s in read.of("sites"))


_CONJUNCTION = re.compile(r"\b(?:and|or)\b")


def _undashed(line: str) -> str:
    return _DASHED.sub(", ", line) if line[:1] in "-–" else line


_RESULT = (
    r"(?:positive|negative|abnormal|normal|non-?diagnostic|not diagnostic|inconclusive|indeterminate|equivocal|elevated"
    r"|raised|unclear|unremarkable|unrevealing|suspicious|borderline|confirmed|reactive|detected|shows?|too \w+"
    r"|high|low|falls?|drops?|rises?|above|below|present|absent|not possible|unavailable|contraindicated|reduced|seen"
    r"|persists?|(?:not )?found)\b"
)
_IF = re.compile(r"\b(?:if|unless|in case)\b", re.IGNORECASE)
_CONDITIONAL = re.compile(
    rf"\b(?:if|unless|in case)\b[^,;.]*?\b{_RESULT}[^,;.]*?,\s*(?:then\s+)?[^,;.]+"
    rf"|(?:\b(?:then|followed by|and|plus)\s+|[+&]\s*)?"
    rf"(?P<what>(?!\s*(?:if|unless|in case)\b)(?:(?!\b(?:then|followed by|and|plus)\b)[^,;.+&])*?\b"
    rf"(?:only )?(?:if|unless|in case)\b[^,;.]*?\b{_RESULT}(?:\([^)]*\)|[^,;.(])*)",
    re.IGNORECASE,
)
"""A test that is wanted only if another one has a certain result: "CT angiogram if positive"."""


def conditional(order: str) -> tuple[str, ...]:
    """The parts of an order that depend on a result; none if there is no other part."""
    return _unconditional(order)[1]


@lru_cache(maxsize=4096)
def _unconditional(order: str) -> tuple[str, tuple[str, ...]]:
    if not _IF.search(order):
        return order, ()
    waiting = tuple((found["what"] or found[0]).strip(" ,;.") for found in _CONDITIONAL.finditer(order))
    rest = _CONDITIONAL.sub("", order)
    return (rest, waiting) if reading(rest).named else (order, ())


_RATIO = re.compile(r"\bratio\b", re.IGNORECASE)
_SLASHED = re.compile(r"[^,;:()\[\]]*/[^,;:()\[\]]*")
_SLASH = re.compile(r"\s*/\s*(?!(?:kg|min|h|hr|hour|day|dose)\b)")


def _without_slashes(text: str) -> str:
    """Tests that are separated by slashes as a list: "CBC/BMP/TSH"; names with a slash, "PT/INR", stay as they are."""
    done, *rest = _SLASH.split(text)
    for piece in rest:
        last = done.rsplit(",", 1)[-1]
        apart = reading(last).phrases + reading(piece).phrases == reading(f"{last} {piece}").phrases
        apart = apart and not _RATIO.search(piece) and not _by_one_swab(last, piece)
        done += (", " if apart and _may_be_two(last, piece) else "/") + piece
    return done


def _may_be_two(last: str, piece: str) -> bool:
    """Whether a slash stands between two tests; one of them may be a word that we do not know: "LDH/hapto"."""
    both = (last, piece)
    alone = [_stands_alone(text) for text in both]
    reads = [reading(_without_reason(text)) for text in both]
    examined = [_only_sites(read) or set(read.by_kind) == {"systems"} for read in reads]
    if all(examined):
        return True  # "eyes/skin/joints for inflammation"
    unknown = [bool(_UNKNOWN.fullmatch(text)) and not reading(text).by_kind for text in both]
    return any(alone) and all(one or other for one, other in zip(alone, unknown, strict=True))


_UNKNOWN = re.compile(r"\s*[A-Za-z][A-Za-z0-9]{2,}\s*")


def _by_one_swab(last: str, piece: str) -> bool:
    """Whether germs are looked for in one specimen by one method: "vesicle swab VZV/HSV PCR"."""
    one, other = reading(last), reading(piece)
    germs = all(read.of("values") and read.of("values") <= _GERMS for read in (one, other))
    return germs and "pcr" in other.of("tests") and "pcr" not in one.of("tests")


def _stands_alone(text: str) -> bool:
    read = reading(text)
    if read.by_kind and read.of("values") and read.of("values") <= _CLASSES:
        return False  # "parvovirus IgM/IgG"
    return _tests(read) or any(read.of(kind) for kind in ("vitals", "parts", "methods", "systems"))


_CLASSES = frozenset({"igg", "iga", "igm", "ige"})


_OF_A_LESION = re.compile(
    r"\b(?:(?:ct|ultrasound|us|image|stereotactic)[ -]guided )?(?:percutaneous )?"
    r"(?=(?:core |fine )?(?:needle )?biopsy\b)"
    r"|(?:(?<=biopsy)|(?<=biopsies)) (?:of|from) (?:the |an? |this |that |any |all )?"
    r"(?:(?:right|left|apical|suspicious|solid|visible|seen|abnormal) )*"
    r"(?:lesion|mass(?:e(?=s))?|lump|nodule|tumou?r)s?\b",
    re.IGNORECASE,
)
"""Says of a biopsy nothing that tells it from others: a biopsy of the skin is no answer to it."""


@lru_cache(maxsize=4096)
def items(order: str) -> tuple[Item, ...]:
    found: list[Item] = []
    head: Item | None = None
    scope: Reading | None = None
    relatives = False
    order = _OF_A_LESION.sub("", fold(_RUN_TOGETHER.sub(" ", tidy(order)[:LONGEST_NAME])))
    order = _EPONYM.sub(lambda found: named if _is_sign(named := f"{found[1]} {found[2]}") else found[0], order)
    segments = [s for s in _segments(order) if reading(s.text).named or LABORATORY.search(s.text)]
    segments = _with_germs(_with_nouns(_with_skin(_sharing_words(segments)), order))
    for index, segment in enumerate(segments):
        read = reading(segment.text)
        if said_of_no_test(segment.text):
            bare = _GIVE.sub("", segment.text).strip()
            found.append(Item(bare if said_of_no_test(bare) else segment.text, Reading({}), given=True))
            continue
        if _OF_OTHERS.search(segment.text) and _tests(read):
            relatives = True  # and of those named next: "ECGs of mother and siblings"
            found.append(Item(segment.text, Reading({}), others=True))
            continue
        if relatives and not _tests(read) and not segment.begins:
            continue
        relatives = False
        # A whole order that names no test is quoted as it is.
        named = _POLITE.sub("", segment.text) if read.by_kind or segments[1:] else ""
        own = Item(named or segment.text, read, aimed=segment.aimed)
        introduces = not segment.listed and any(after.listed for after in segments[index + 1 : index + 2])
        if found and not read.by_kind and read.words and read.words <= _KINDS_OF_TEST:
            continue  # "anti-ganglioside (GM1) antibodies"
        if found and (
            _WHEN.match(segment.text)
            or (not read.by_kind and _LATER.match(segment.text))
            or (read.by_kind and set(read.by_kind) == {"timings"} and read.of("timings") <= _AGAIN)
        ):
            continue  # "repeat in 20 minutes" says when, not what
        scope = scope if segment.listed else None
        if introduces and _only_sites(read) and _SCREEN.search(segment.text):
            continue  # "liver screen: hepatitis B serology, ferritin"
        if introduces and not read.by_kind and len(segments) > index + 2:
            continue  # "septic screen: CBC, CRP"
        if introduces and set(read.by_kind) <= {"specimens", "panels"} and _is_fluid(read):
            scope = _only(read, "specimens")
            continue  # "stool: culture, parasites"
        if introduces and (_is_title(own) or re.search(r"\bscopes?$", own.text)):
            scope = _only(read, "specimens")
            continue
        if found and _is_fluid(read) and _is_rectal(found[-1].read):
            continue  # what a finger brings out: "rectal examination for prostate and stool"
        if read.of("values") and any(vocabulary().panels[panel].loose for panel in read.of("panels")):
            # "AFP and LDH tumor markers"
            own = replace(own, read=_without(read, "panels"))
        if scope is not None:
            own = _of_scope(own, scope)
        if found and _is_place_of_biopsy(found[-1], own):
            continue  # "biopsies of the antrum, body and ulcer edge"
        if found and _SIDE.match(segment.text) and _only_sites(read) and _is_of_one_place(found[-1].read, read):
            continue  # "intraocular pressure and gonioscopy, both eyes"
        if (
            introduces
            and not read.of("values")
            and (read.of("tests") == {"swab"} or _of_germs(read, segments[index + 1 :]))
        ):
            head = own  # the list says what is looked for
            continue
        if segment.listed and head is not None and any(vocabulary().panels[p].whole for p in head.read.of("panels")):
            own = _of_scope(own, _only(head.read, "specimens") or Reading({}))
        if segment.listed and head is not None and not head.measured and own.read.of("parts"):
            # The ascites of an examination is not a fluid.
            examined = [kind for kind in own.read.by_kind if kind not in ("panels", "specimens")]
            own = replace(own, read=_only(own.read, *examined) or own.read)
        if segment.joined and segment.listed and found and found[-1].within and _adds_nothing(own, found[-1]):
            continue  # "LP (cell count with differential)"
        if segment.listed and head is not None:
            if not head.measured and _is_detail(head, own):
                if head in found:
                    head = _replaced(found, head, replace(head, aimed=True))
                head = _examination_with(head, own, found, included=segment.included)
                continue
            if head.measured and not head.read.of("sites") and head.read.of("modalities") and _only_sites(own.read):
                head = _replaced(found, head, _with(head, own.read))  # "CT aortogram (chest and abdomen)"
                continue
            if own.read.of("values") and own.read.of("values") <= head.read.of("values"):
                continue  # "urinary antigens (Legionella)"
            if not own.read.by_kind and _is_method(head.read) and head not in found:
                # A germ that we do not know: "viral serology (Coxsackie)".
                found.append(_with(replace(own, text=f"{own.text} {min(head.read.of('tests'))}"), head.read))
                continue
            ordered = own.measured or own.sounds_measured or (segment.included and _orders_more(own))
            loose = any(vocabulary().panels[panel].loose for panel in head.read.of("panels"))
            ordered = ordered or (loose and not own.read.by_kind)  # "tumor markers (CEA, CYFRA)"
            if head.measured and (_how(head, own) or not ordered):
                continue
            if set(own.read.by_kind) == {"qualifiers"} and head in found:
                if segment.included and head.read.of("vitals"):  # "vital signs, including orthostatic ones"
                    found.append(_with(own, _only(head.read, "vitals")))
                else:
                    head = _replaced(found, head, _with(head, own.read))
                continue
            fluid = head.read.of("specimens") - {"blood"} and own.read.of("panels") <= _OF_ANY_FLUID
            taken = ["specimens"] if fluid and not own.read.of("specimens") else []
            taken += ["sites"] if "swab" in head.read.of("tests") else []
            taken += ["tests"] if set(own.read.by_kind) == {"values"} and _is_method(head.read) else []
            taken += ["values"] if set(own.read.by_kind) == {"tests"} and own.read.of("tests") <= _METHODS else []
            own = _with(own, _only(head.read, "qualifiers", *taken))
            head = _panel_of(head, own, found)
        elif (
            segment.joined and found and found[-1].measured and not _orders_more(own) and _adds_nothing(own, found[-1])
        ):
            continue
        if segment.joined and found and own.measured and not _taken(own.read):
            # "Pleural tap with LDH and protein"
            own = _of_fluid(own, found[-1].read)
        if own.read.by_kind == {"values": {"ketones"}} and _follows_blood_gas(found):
            own = replace(own, text="blood ketones", read=reading("blood ketones"))
        within = segment.listed and head is not None and head.measured and head in found
        closed = bool(found) and found[-1].within and not segment.listed  # "LP (protein, culture), glucose"
        apart = (segment.begins or closed) and set(own.read.by_kind) == {"values"}
        before = segments[index - 1] if index else segment
        same_list = f"{before.text} and {segment.text}" in order
        if (
            same_list
            and _only_sites(read)
            and found
            and found[-1].read.of("tests") - TAKEN
            and found[-1].read.of("sites")
        ):
            continue  # "dermoscopy of the hands and wrists"
        together = before.joined and same_list
        if not read.by_kind and (segment.joined or together):
            own = replace(own, detail=True)  # "with recall and cueing"
        ends = any(following.begins for following in segments[index + 1 : index + 2])
        after = [] if (introduces or ends) and _only_sites(read) else [reading(s.text) for s in segments[index + 1 :]]
        item = _completed(own, () if apart else found, after)
        if item is None:
            continue
        found.append(replace(item, within=within))
        if not segment.listed:
            head = found[-1]
    return tuple(map(_with_specimen, found))


def _follows_blood_gas(found: Sequence[Item]) -> bool:
    """Whether only values come between a blood gas and what follows: "blood gas with lactate and ketones"."""
    before = dropwhile(lambda item: set(item.read.by_kind) == {"values"}, reversed(found))
    return "blood gas" in next((item.read.of("panels") for item in before), ())


def _is_rectal(read: Reading) -> bool:
    return not _tests(read) and (read.of("systems") == {"rectal"} or read.of("sites") == {"rectum"})


def _with_specimen(item: Item) -> Item:
    """An item that only says what is done with a specimen, by the name of the specimen as well: "stool culture"."""
    named, of = reading(item.text), item.read.of("specimens") or item.read.of("sites")
    bare = set(named.by_kind) == {"tests"} and named.of("tests") <= _OF_SOME_SPECIMEN and not item.detail
    if not bare or len(of) != 1:
        return item
    source = min(of)
    return replace(item, text=f"{_WRITTEN.get(source, source)} {item.text}")


_OF_SOME_SPECIMEN = TAKEN - {"biopsy", "histopathology", "immunofluorescence", "immunohistochemistry"}
_WRITTEN = {"csf": "spinal fluid", "synovial": "joint fluid"}


_OF_OTHERS = re.compile(
    r"\b(?:of|in|for|from) (?:(?:the|her|his|their|patient|both|first degree) )*"
    r"(?:mother|father|parents?|siblings?|brothers?|sisters?|relatives?|famil\w+|partner|contacts?|husband|wife)\b"
)
"""Whose test it is: not the patient's."""
_SIDE = re.compile(r"(?:in |of |on |for )?(?:both|each|either|the (?:left|right)|left|right|bilateral)(?: the)? \w+$")


def _is_of_one_place(test: Reading, place: Reading) -> bool:
    """Whether a test can be of an eye or an ear alone, so that a place after it only names the side: gonioscopy."""
    only = bool(test.by_kind) and set(test.by_kind) <= {"tests", "parts"} and not test.of("tests") & TAKEN
    there = all(vocabulary().parts[part].of & place.of("sites") for part in test.of("parts"))
    return only and there and place.of("sites") <= {"eye", "ear"}


_EPONYM = re.compile(r"(\w+) \(\w+\) (\w+)")
"""Another name of a sign within its name: "supraclavicular (Virchow) node"."""
_NODES_IN = re.compile(r"\bnodes? (?:in|of|at|over)\b")
_OF_NODES = frozenset({"neck", "breast", "groin", "hernia", "elbow", "lymph node"})
"""Places whose lymph nodes are felt: the armpit is examined with the breast."""
_FURTHER = 4
"""The most names between a place and the word that it shares with the last one: more than any order we know has."""


def _is_sign(text: str) -> bool:
    """Whether the words of a text are one name of a part of an examination."""
    return any(kind == "parts" for kind, _ in vocabulary().named.get(words(american(text)), ()))


def _sharing_words(segments: Sequence[_Segment]) -> list[_Segment]:
    """Signs of a list with the word that they share: "facial and sacral edema", "nodes in the neck and armpits"."""
    done = list(segments)
    for place, segment in enumerate(segments):
        read, before = reading(segment.text), done[place - 1] if place else None
        kinds = set(read.by_kind)
        apart = before is not None and bool(reading(before.text).of("methods"))
        if method := _shared_method(read, segment.text, segments[place + 1 : place + 1 + _FURTHER], apart):
            done[place] = replace(segment, text=f"{segment.text} {method}")
        elif kinds == {"sites"} and read.of("sites") <= _OF_NODES and before and _NODES_IN.search(before.text):
            done[place] = replace(segment, text=f"nodes in {segment.text}")
        elif (
            kinds <= {"sites", "methods"}
            and "skin" not in read.of("sites")  # "rash on the buttocks, ankle swelling"
            and (shared := _shared_with(segment.text, segments[place + 1 :]))
        ):
            done[place] = replace(segment, text=f"{segment.text} {shared}")
        elif before and words(segment.text)[-1:] in _AT_PLACES and kinds == {"parts"} and len(words(segment.text)) == 1:
            # A bruit after "thyroid palpation", edema in the list of "right arm: color, edema".
            head = next((s for s in reversed(done[:place]) if not (segment.listed and s.listed)), before)
            sites = [name for name, concepts in reading(head.text).phrases if any(k == "sites" for k, _ in concepts)]
            sites += sorted(vocabulary().parts[part].main for part in reading(head.text).of("parts"))
            name = next((f"{site} {segment.text}" for site in sites if _is_sign(f"{site} {segment.text}")), "")
            done[place] = replace(segment, text=name or segment.text)
        elif read.of("values") == {"color"} and kinds <= {"values", "sites"} and before and _is_seen(before.text):
            done[place] = replace(segment, text="skin color")
        elif segment.listed and (name := _of_place(segment.text, read, done[:place])):
            done[place] = replace(segment, text=name)
    return done


def _of_place(text: str, read: Reading, before: Sequence[_Segment]) -> str:
    """The name of a sign with the place whose examination lists it: "expansion", of the chest; empty if it has none."""
    head = next((reading(segment.text) for segment in reversed(before) if not segment.listed), None)
    if head is None or read.of("sites") or _tests(head) or len(words(text)) > _FEW_WORDS:
        return ""
    places = [name for name, concepts in head.phrases if any(kind == "sites" for kind, _ in concepts)]
    for name in (f"{place} {text}" for place in (*places, *sorted(head.of("sites") | head.of("systems")))):
        own = reading(name).of("parts")
        if _is_sign(name) and own != read.of("parts") and not own & _ELSEWHERE_TOO:
            return name
    return ""


_FEW_WORDS = 3
_ELSEWHERE_TOO = frozenset({"edema"})
"""Signs that are named after a place without being those of its examination: the swelling of an ankle."""
_AT_PLACES = ((("bruit",)), (("edema",)), (("oedema",)))
"""Signs that an order names after the place that they are looked for at."""


def _is_seen(text: str) -> bool:
    """Whether what comes before a color is examined, so that it is that of the skin: not that of urine or a drum."""
    read = reading(text)
    return not _tests(read) and not read.of("specimens") and bool(read.by_kind) and "ear" not in read.of("sites")


def _shared_with(text: str, after: Sequence[_Segment]) -> str:
    """The last word of a sign that follows, if it names one with this place too: "subclavian and carotid bruits"."""
    for segment in islice(after, _FURTHER):
        if segment.begins or _EXAM_OF_PLACE.search(segment.text):  # "hands, examination of the legs for edema"
            break
        *first, last = segment.text.split() or [""]
        adjective = reading(" ".join(first))
        named = adjective.of("sites") or (adjective.words and first[-1] != "of")  # not "range of movement"
        if named and reading(segment.text).of("parts") and _suffix_with(text, last):
            return last
        if set(reading(segment.text).by_kind) - {"sites"}:
            break
    return ""


def _shared_method(read: Reading, text: str, after: Sequence[_Segment], apart: bool) -> str:
    """How a place is examined, if that is said with the next one too: "heart and lung auscultation".

    After another method, that also tells it from that: "thyroid palpation, heart and lung exam".
    """
    if not _only_sites(read) or EXAM.search(text):
        return ""
    for segment in after:
        named = reading(segment.text)
        if segment.begins or named.words or set(named.by_kind) - {"sites", "methods"} or not named.of("sites"):
            return ""
        last = segment.text.split()[-1]
        if apart and EXAM_OF.search(segment.text) and last.startswith("exam"):
            return last
        if named.of("methods"):
            if last == "auscultation" and not read.of("sites") & _HEARD:
                return ""  # "hands and feet, heart and lung auscultation"
            return last if _METHOD.match(last) and read.of("sites") != {"neck"} else ""  # "neck palpation" is a sign
    return ""


_METHOD = re.compile(r"(?:auscultat|palpat|percuss|inspect)ion$")
_HEARD = frozenset({"heart", "lung", "chest", "abdomen", "neck", "carotid", "back", "precordium", "skull", "thyroid"})


def _suffix_with(text: str, last: str) -> str:
    """The name that the last words of a text make with one more word; none if that is no part of an examination."""
    own = text.split()
    names = (" ".join((*own[start:], last)) for start in range(len(own)))
    return next((name for name in names if _is_sign(name)), "")


def _with_skin(segments: Sequence[_Segment]) -> list[_Segment]:
    """Places that are looked at for a sign of the skin, as the skin of these: "web spaces and genitals for burrows"."""
    done = list(segments)
    for last in [place for place, segment in enumerate(segments) if segment.on_skin]:
        first = last
        while first and not segments[first].begins and _is_looked_at(before := segments[first - 1].text):
            if "skin" in reading(before).of("sites"):
                break  # "the right knee, and skin and ears for tophi"
            first -= 1
        places = segments[first : last + 1]
        of = frozenset().union(*(_examined(reading(segment.text)) for segment in places))
        if _is_looked_at(segments[last].text) and (len(places) > 1 or of <= _OUTSIDE):
            done[first : last + 1] = [replace(place, text=f"skin of {place.text}") for place in places]
    return done


def _with_nouns(segments: Sequence[_Segment], order: str) -> list[_Segment]:
    """Segments with the noun that they share with the next one: "corrected and ionized calcium"."""
    done = list(segments)
    for place, (segment, after) in enumerate(pairwise(segments)):
        own, shared = reading(segment.text), after.text.split()
        if own.by_kind or own.sides or len(own.words) != 1 or len(shared) == 1 or segment.begins < after.begins:
            continue
        if f"{segment.text} and {after.text}" not in order and f"{segment.text} or {after.text}" not in order:
            continue
        nouns = (" ".join(shared[first:]) for first in range(1, len(shared)))
        if noun := next((noun for noun in nouns if _tests(reading(noun)) or noun in _PRECIPITINS), None):
            done[place] = replace(segment, text=f"{segment.text} {noun}")
    return done


_PRECIPITINS = frozenset({"precipitins", "precipitating antibodies"})


def _with_germs(segments: Sequence[_Segment]) -> list[_Segment]:
    """Antibodies named after the PCR of a germ, with this germ: "SARS-CoV-2 PCR and antibodies", "and IgM"."""
    done = list(segments)
    for place, (before, segment) in enumerate(pairwise(segments), start=1):
        tested, named = reading(before.text), before.text.split("swab ")[-1]
        germ = named.removesuffix(" pcr").removeprefix("for ")
        by_pcr = named.endswith(" pcr") and tested.of("values") and tested.of("values") <= _GERMS
        if by_pcr and not segment.begins and _ANTIBODIES.fullmatch(segment.text):
            done[place] = replace(segment, text=f"{germ} {segment.text}")
    return done


_ANTIBODIES = re.compile(r"(?:ig[agm] )?(?:antibod(?:y|ies)|abs?|ig[agm])(?: (?:and )?ig[agm])?")


def _is_looked_at(text: str) -> bool:
    read = reading(text)
    return bool(read.of("sites")) and set(read.by_kind) <= {"sites", "methods"} and read.words <= _LOOKING


_LOOKING = frozenset({"examine", "inspect", "look", "check"})
_OUTSIDE = frozenset({"musculoskeletal", "breast", "skin"})
"""Examinations of places whose skin is seen with the rest of it."""


def _is_place_of_biopsy(last: Item, own: Item) -> bool:
    """Whether an item is one more place in the organ that a biopsy before it is taken from."""
    biopsied = "biopsy" in last.read.of("tests") and last.read.of("sites") and _FROM.search(last.text)
    place = not own.read.by_kind or (
        _only_sites(own.read) or own.read.of("sites") <= _SEEN_ANYWHERE | last.read.of("sites")
    )
    return bool(biopsied) and place and set(own.read.by_kind) <= {"sites"} and not own.sounds_measured


def _is_method(read: Reading) -> bool:
    """Whether a reading says only how germs are looked for: "viral serology", "PCR"."""
    return set(read.by_kind) == {"tests"} and read.of("tests") <= _METHODS


def _of_germs(read: Reading, after: Sequence[_Segment]) -> bool:
    """Whether a method is followed by a list of germs: "viral serology (EBV, CMV)"."""
    listed = takewhile(lambda segment: segment.listed, after)
    return _is_method(read) and any(reading(segment.text).of("values") for segment in listed)


_SCREEN = re.compile(r"\b(?:screen|work ?up|panel|profile|studies|tests)$")
_AGAIN = frozenset({"repeat", "initial"})
_KINDS_OF_TEST = frozenset({"antibody", "autoantibody", "antigen", "ab"})
_LATER = re.compile(r"(?:again|later|afterwards?|after|serially|daily|now)\b")
_WHEN = re.compile(
    r"(?:at )?\d+ ?(?:h|hrs?|hours?|mins?|minutes?|days?|weeks?)$"
    r"|(?:baseline |again |repeat )?(?:at|in|after|every|q|within) ?\d+ ?"
    r"(?:h|hr|hrs|hours?|m|min|mins|minutes?|days?|weeks?)?\b[^,]*$"
)


def _of_scope(own: Item, scope: Reading) -> Item:
    """An item of a list whose title names a specimen: in "Urine: microscopy, culture", the culture of urine.

    What is measured in blood needs no such title; only what is taken from it does.
    """
    read, taken = own.read, scope.of("specimens")
    if not taken or _taken(read) or (taken == {"blood"} and not read.of("tests") & TAKEN):
        return own
    if not (_tests(read) or read.words):
        return own
    return _with(replace(own, text=f"{scope.phrases[0][0] if scope.phrases else min(taken)} {own.text}"), scope)


_DOSE = re.compile(r"\b\d+(?:[.,]\d+)?\s*(?:mg|mcg|ug|g|ml|l|units?|iu|puffs?|drops?|tablets?)\b(?: ?/? ?kg\b)?")
_GIVEN = re.compile(
    r"\b(?:iv|im|po|sc|subcutaneous(?:ly)?|intravenous(?:ly)?|intramuscular(?:ly)?|oral(?:ly)?|bolus|infusion|inhaled"
    r"|nebuli[sz]ed|by mouth|loading dose)\b"
)
_GIVE = re.compile(r"^(?:please )?(?:start|give|administer|prescribe|initiate|begin|treat)\b")
_CARE = re.compile(
    r"^(?:observe(?:$|(?: the)? patient\b| (?:closely|overnight|him|her|in|\d|for \d))"
    r"|(?:admit|refer|reassess|close monitoring|monitor closely|(?:keep )?(?:nil by mouth|nbm|npo))\b)"
    r"|\b(?:(?:iv|intravenous|maintenance) fluids?|fluid (?:resuscitation|bolus)|(?<!anti )antibiotics?|analgesi[ac]s?"
    r"|anti ?emetics?|oxygen therapy|ng tube|nasogastric tube|(?:needle|chest) (?:decompression|drain)|pci|thrombolysis"
    r"|epley|semont"
    r"|(?:insulin|gtn|heparin|amiodarone|magnesium|labetalol|oxytocin) (?:infusion|drip|pump)|sliding scale|[vf]riii"
    r"|ivf|(?:lr|ns|hartmanns?|saline) bolus|pain control"
    r"|(?:pericardial|surgical|abscess) drainage|pericardial window"
    r"|sumatriptan|continuous monitoring|high flow oxygen|15 ?l oxygen|supplemental oxygen"
    r"|neb(?:s|uli[sz]\w+)?|blood transfusion)\b"
)
_DRUG = re.compile(
    r"\b(?:iv|im|oral|inhaled|nebuli[sz]ed|topical|intravenous|intramuscular) (?:\w+ )?(?:dexamethasone|prednis\w+"
    r"|hydrocortisone|budesonide|(?:cortico)?steroids?|adrenaline|epinephrine|paracetamol|acetaminophen|ibuprofen"
    r"|morphine|amoxicillin|acyclovir|aciclovir)\b"
)
"""A drug with the way in which it is given."""
_PROVOKES = re.compile(r"\b(?:test|suppression|stimulation|challenge|sensitivity)\b")
_ARRANGEMENT = re.compile(
    r"^(?:urgent |same day |please )*(?:(?:iv|intravenous|venous|wide bore|large bore|arterial|central|\d) )*"
    r"(?:access|cannula\w*|lines?)(?: (?:x ?)?\d)?$"
    r"|\b(?:referrals?|refer|consults?|consultation|safety ?net\w*|counsel\w*|advice|advise|reassur\w+|education"
    r"|follow ?up (?:in|with|at|appointment|visit|clinic|call)"
    r"|(?:clinic|outpatient|gp) (?:review|follow ?up|appointment)"
    r"|contact tracing|notif(?:y|ication)|isolat(?:e|ion)|discharge (?:home|with|planning)|bed ?rest|sick note"
    r"|(?:inhaler|epi ?pen|injection|technique|diet\w*) (?:teaching|training)|teaching$"
    r"|^(?:avoid|hold|stop|withhold|continue) "
    r""
    r"|^no (?:sports?|driving|alcohol|exercise|school|work|smoking)\b"
    r"|informed consent|mdt|case conference|social work\w*|physio(?:therapy)?|keep warm|strict bed"
    r"|(?:apno?ea|cardiac|cardiorespiratory|continuous) monitor\w*|telemetry"
    r"|(?:screening|testing) (?:of|for) (?:the |her |his )?(?:siblings?|family|relatives?|partners?|contacts?)"
    r"|(?:family|partner|sibling|contact) (?:screening|testing|ecgs?|tracing|cascade screening)"
    r"|fluid balance(?: chart)?|(?:urinary|foley|indwelling) catheter(?! specimen| sample)"
    r"|\w+ (?:review|opinion|input)$)"
)
"""What is arranged for a patient, or told them: no test, and no treatment either."""
_REFERRAL = re.compile(r"\b(?:referral|consult|consultation)s?$")
_OXYGEN_TRIED = re.compile(
    r"^(?:(?:100%?|high flow|\d+ ?l(?:itres?)?) )*(?:o2|oxygen)\b.*\d+ ?l\b|^trial of (?:[\w%]+ )*(?:o2|oxygen)\b"
)
_SCORE = re.compile(
    r"\b(?:q?sofa|news ?2?|mews|pews|curb ?65|crb ?65|psi port|port score|wells|geneva|perc (?:rule|score|criteria)"
    r"|years criteria|centor"
    r"|mcisaac|fever ?pain|alvarado|air score|appendicitis score|heart (?:score|pathway)|timi|grace|chads2?|cha2ds2"
    r"|has ?bled|orbit score|abcd2|glasgow blatchford|gbs score|blatchford|rockall|ranson|glasgow imrie|imrie|bisap"
    r"|apache\w*|meld|child pugh|maddrey|fib ?4|caprini|padua|westley|kocher|duckett jones|jones criteria"
    r"|duke criteria|light s? ?criteria|ottawa (?:rules?|ankle|knee|sah)|canadian ct|nexus|stone score"
    r"|san francisco syncope|canadian syncope|lrinec|sirs|ecog|karnofsky|bode|gold stage|mmrc|eular|acr criteria"
    r"|slicc|sledai|das ?28|basdai|pasi|scorad|rome iv|pas score|pediatric appendicitis score|must score|frax|qrisk\d?"
    r"|stop ?bang|nihss|ascvd|hunt (?:and )?hess|wfns|fisher grade|rcri|asa grade|twist score|lake louise)\b"
)
"""Scores that a doctor works out from findings; bedside scales that are done with the patient are not among them."""
_UNDER = re.compile(r"\b(?:after|before|on|during|following|while|off)\b")
"""Begins the condition under which something is measured."""
_TRIED = re.compile(r"\b(?:trial|test|tolerance|suppression|stimulation|challenge|loading test|contrast)\b")
"""Drugs and sugar are also given to test what they do."""


def is_treatment(text: str) -> bool:
    """Whether part of an order gives a drug: "dexamethasone 0.6 mg/kg orally", "start ceftriaxone"."""
    text = fold(text)
    if _DRUG.search(text) and not _PROVOKES.search(text):
        return True
    bare = reading(_GIVE.sub("", _DOSE.sub("", text)))
    before, *condition = _UNDER.split(text, maxsplit=1)
    if condition and (reading(before).of("values") or reading(before).of("vitals")):
        return False  # "repeat carboxyhemoglobin after four hours of oxygen"
    if _TRIED.search(text) or any(bare.of(kind) for kind in ("modalities", "tests", "panels", "systems", "parts")):
        return False
    if _DOSE.search(text):
        return bool(_GIVEN.search(text)) or not _tests(bare)
    return bool(_CARE.search(text) or (_GIVE.search(text) and not _tests(bare)))


def said_of_no_test(text: str) -> str:
    """What is said of part of an order that is no test; empty if it may be one."""
    text = fold(text)
    if is_treatment(text):
        return "a treatment, not a test"
    if _SCORE.search(text) and not (LABORATORY.search(text) or _TRIED.search(text)):
        return "a score to work out from the findings, not a test"
    if _OXYGEN_TRIED.search(text):
        return "a treatment, not a test"
    if _REFERRAL.search(text):
        return "not a test"
    return "not a test" if _ARRANGEMENT.search(text) and not _tests(reading(text)) else ""


def _methodical(read: Reading) -> bool:
    """Whether germs are looked for in it by one method: "CSF PCR for HSV"."""
    return bool(read.of("values") and read.of("tests") & _METHODS)


def _is_title(own: Item) -> bool:
    """Whether an item only introduces a list: "Blood tests: CBC, CRP"."""
    general = set(own.read.by_kind) <= {"specimens"} or own.read.by_kind == {"modalities": frozenset({"imaging"})}
    if LABORATORY.search(own.text) and not own.measured:
        return True  # "Dementia bloods: CBC, TSH"
    return general and bool(own.read.by_kind) and not own.read.words


_OFTEN_ALONE = frozenset({"lactate"})
"""Values that are not in every report of a panel that may have them."""


def _adds_nothing(own: Item, last: Item) -> bool:
    """Whether what follows "with" only details the test before it: "ultrasound with Doppler"."""
    kinds, panels = set(own.read.by_kind), vocabulary().panels
    values = frozenset().union(*(panels[panel].values for panel in last.read.of("panels"))) - _OFTEN_ALONE
    return (
        not own.measured
        or (kinds == {"modalities"} and own.read.of("modalities") <= last.read.of("modalities"))
        or (kinds == {"values"} and own.read.of("values") <= values)
        or (own.read.by_kind == {"tests": {"microscopy"}} and bool(last.read.of("panels")))
        or (own.read.of("values") == {"differential"} and bool(last.read.of("panels") & _OF_ANY_FLUID))
        or (own.read.of("modalities") == {"ultrasound"} and "echocardiogram" in last.read.of("modalities"))
    )


def _how(head: Item, own: Item) -> bool:
    """Whether a list only says how the item before it is measured."""
    panels, seen = vocabulary().panels, {"smear", "microscopy"}
    if own.read.of("tests") and own.read.of("tests") <= seen and head.read.of("tests") & vocabulary().kinds["smear"]:
        return True  # "acid-fast bacilli (smear and culture)"
    return any(head.read.of("values") & panels[panel].values for panel in own.read.of("panels"))


def _orders_more(own: Item) -> bool:
    return bool(EXAM.search(own.text) or own.read.of("vitals") or own.read.of("systems"))


def _is_detail(head: Item, own: Item) -> bool:
    """Whether a listed item is a detail of the examination before it, not another order."""
    if head.read.of("vitals") or own.read.of("vitals") - {"temperature"} or EXAM_OF.search(own.text):
        return False
    if _EXAM_OF_PLACE.search(own.text):
        return False  # "cardiovascular examination including neck veins, joint examination of the hands"
    if {"joint"} < own.read.of("sites") and "musculoskeletal" not in _examined(head.read):
        return False  # "skin examination including scalp, small joints of the hands"
    if own.read.of("vitals") and not _examined(head.read) & _FELT_WARM:
        return False  # of the patient, not of the skin or a joint
    if set(own.read.by_kind) == {"sites", "methods"} and _examined(head.read) in ({"skin"}, {"neurological"}):
        return False  # "skin inspection including the ankles, heart auscultation"
    if head.read.of("systems") == {"general"}:  # "general examination: eyes, pallor"
        signs = {vocabulary().parts[part].main for part in own.read.of("parts")}
        return not (own.read.of("sites") or own.read.of("systems") or signs - {"general"})
    return not own.read.of("systems") - head.read.of("systems") and not _is_elsewhere(head.read, own.read)


_FELT_WARM = frozenset({"skin", "musculoskeletal", "vascular"})
"""Examinations in which the temperature is that of a place."""
_SEEN_ANYWHERE = frozenset({"wound", "lesion", "vesicle", "soft tissue"})
_OF_LIMBS = frozenset({"reflexes", "motor", "sensory", "range of motion", "limb pulses", "edema"})
_EVERYWHERE = frozenset({"general", "neurological", "lymphatic", "vascular", "cardiovascular"})
"""Examinations that are done at the limbs and the head too."""
_APART = frozenset({"cardiovascular", "respiratory", "abdominal", "skin"})


def _is_elsewhere(head: Reading, own: Reading) -> bool:
    """Whether a listed item names only a part of the body that the examination before it is not of."""
    systems, theirs = _examined(head), _examined(own)
    if set(own.by_kind) - {"sites", "methods"} or not own.of("sites") or systems == {"skin"}:
        return False
    if own.of("sites") <= _SEEN_ANYWHERE or (head.of("parts") & _OF_LIMBS and not systems and not theirs & _APART):
        return False  # a discharge; "reflexes (knee, ankle)"
    if "abdominal" in systems and theirs <= {"abdominal", "pelvic"}:
        return False  # the groins
    if systems & _EVERYWHERE:
        return bool(theirs & _APART - systems)
    if head.of("sites") and not any(same_site(a, b) for a in head.of("sites") for b in own.of("sites")):
        return True
    return not theirs & systems


def _examined(read: Reading) -> frozenset[str]:
    return read.of("systems").union(*(vocabulary().examined[site] for site in read.of("sites")))


def _examination_with(head: Item, own: Item, found: list[Item], *, included: bool) -> Item:
    """An examination with its list: parts narrow it down, unless they are "included"; tests are ordered separately."""
    if own.read.of("values") == {"color"}:
        return head  # of the drum
    if own.measured:
        found.append(own)
    if own.read.of("methods") and not EXAM.search(head.text):
        if _SIGN_OF_METHOD.fullmatch(own.text):
            return head
        return _replaced(found, head, _with(head, _only(own.read, "methods")))
    known = vocabulary().parts
    by = frozenset(how for part in own.read.of("parts") if (how := known[part].by))
    if head.read.of("methods") and by:
        # The bowel sounds of "abdomen: inspection, bowel sounds" are heard.
        head = _replaced(found, head, _with(head, Reading({"methods": by & _FINDS})))
    parts = frozenset(part for part in own.read.of("parts") if not known[part].by)
    systems, named = _examined(head.read), own.read.of("parts")
    neurological = "neurological" in head.read.of("systems")
    elicited = not neurological and any(known[part].by in _ELICITED for part in named)
    nerves = included and any("neurological" in known[part].of for part in named)
    if named and not systems and not any(known[part].within & head.read.of("parts") for part in named):
        found.append(own)  # "cranial nerves including fundoscopy"
    elif named == {"range of motion"} and not systems & {"musculoskeletal"}:
        pass  # the mobility of the drum
    elif named and systems and (nerves or not any(known[part].of & systems for part in named)):
        found.append(own)
    elif elicited or (set(own.read.by_kind) == {"sites"} and (own.read.of("sites") <= _SEEN_APART or _is_joint(own))):
        # A squeeze test in an examination of the hands is not of the feet.
        there = None if own.read.of("sites") else _only(head.read, "sites")
        found.append(replace(_with(own, there), detail=True))
    elif named and not neurological and "psychiatric" not in systems:
        found.append(replace(own, detail=True))  # it may be charted by itself
    # In a neurological examination the list is what is wanted; elsewhere it says what to look for.
    if not parts or not neurological or included or ALL_OF_IT.search(head.text):
        return head
    return _replaced(found, head, replace(head, listed=head.listed | parts))


_SIGN_OF_METHOD = re.compile(r"tenderness")
"""What is felt: "abdomen: distension, tenderness" is not palpation alone."""


def _is_joint(item: Item) -> bool:
    """Whether an item is one of the joints of a limb, which charts have apart from the limb."""
    return all("joint" in vocabulary().wider[site] for site in item.read.of("sites"))


def _replaced(found: list[Item], item: Item, better: Item) -> Item:
    found[found.index(item)] = better
    return better


def _panel_of(head: Item, own: Item, found: list[Item]) -> Item:
    """A panel with its values listed. If the panel is loose, only the list is wanted."""
    known = vocabulary().panels
    loose = frozenset(panel for panel in head.read.of("panels") if known[panel].loose)
    if not loose or not own.read.of("values") or head not in found:
        return head
    kept = {**head.read.by_kind, "panels": head.read.of("panels") - loose}
    better = replace(head, read=replace(head.read, by_kind={kind: named for kind, named in kept.items() if named}))
    at = found.index(head)
    found[at : at + 1] = [better] if better.measured else []
    return better


def _segments(order: str) -> Iterable[_Segment]:
    order = re.sub(r"\s*&\s*", " and ", order)
    order = _TYPES.sub(
        lambda match: ", ".join(
            f"{_SINGULAR.sub('', match[1])} {kind}" for kind in re.findall(r"\b(?:[a-ek]\d{0,2}|s|[ivx]+)\b", match[2])
        ),
        order,
    )
    order = _ENT.sub("ent", order)
    order = _FILM.sub(r"\1 blood ", order)
    order = _ASPIRATED.sub(" joint fluid ", order)
    order = _REGIONS.sub(r"\1 spine", order)
    order = _COMPLEMENT.sub("c3, c4", order)
    order = vocabulary().with_and.sub(lambda match: re.sub(r"\b(and|with)\b", r"_\1_", match[0]), order)
    together, reasoned, examined, begins, either, start = False, False, False, True, False, 0
    lists: list[str] = []  # what has opened the lists that we are in, the innermost last
    reason_in = 0  # how many lists there were when the reason began: it ends with its brackets
    for cut in (*_SPLIT.finditer(order), None):
        whole = re.sub(r"_(and|with)_", r"\1", order[start : cut.start() if cut else None])
        text = _without_reason(whole).strip()
        # A reason may be a list: "ultrasound for gallstones, cholecystitis or a dilated duct".
        given = text != whole.strip()
        if reasoned and not given:
            # "for atrophy or vascular disease": after "or" only a test is ordered.
            orders = _tests(reading(text)) if either else _orders(text)
            reasoned = not (orders or (examined and (_names_place(reading(text)) or _goes_on(order, start, text))))
        reasoned = given or reasoned
        if given:
            reason_in = len(lists)
            named = reading(text)
            site = set(named.by_kind) == {"sites"} and not reading(order[:start]).of("modalities")
            posture = named.of("methods") and named.of("tests") <= _POSTURES
            examined = bool(posture) or not _tests(named)
            examined = examined and (site or bool(EXAM.search(text)) or _names_examination(named))
        on_skin = given and "skin" in reading(whole).of("sites") - reading(text).of("sites")
        if not reasoned or given:
            for piece in _by_specimen(text):
                included = bool(lists) and lists[-1].startswith("inc")
                yield _Segment(piece, bool(lists), together, included, given, on_skin, begins)
                begins = False
        if cut:
            if cut["open"]:
                lists.append(cut["open"])
            elif cut["close"]:
                lists = _lists_after(cut["close"], lists)
            together, either = bool(cut["with"]), cut[0].strip() == "or"
            begins = begins or cut["close"] in _ENDS
            # A reason does not reach beyond its clause or its brackets.
            reasoned = reasoned and cut["close"] not in _ENDS and len(lists) >= reason_in
            start = cut.end()


def _lists_after(close: str, lists: list[str]) -> list[str]:
    """The lists that go on after the end of a clause (none) or of brackets (those that they are in)."""
    if close in _ENDS:
        return []
    opened = next((place for place in reversed(range(len(lists))) if lists[place] in "(["), None)
    return lists[:opened]


def _orders(text: str) -> bool:
    read = reading(text)
    if read.of("parts") and _BEGINS.match(text):
        return True
    named = EXAM.search(text) or LABORATORY.search(text) or _TEST.search(text)
    return _tests(read) or bool(named or read.of("vitals") or read.of("systems"))


_TEST = re.compile(r"\w (?:scan|test|assay|titre|titer|panel|screen)s?$")


def _names_examination(read: Reading) -> bool:
    return any(read.of(kind) for kind in ("systems", "parts", "methods"))


_AFTER_COMMA = re.compile(r",\s*(?:and\s+)?$")


def _goes_on(order: str, start: int, text: str) -> bool:
    """Whether a list of examinations goes on after the reason for one: "calves for tenderness, neck veins"."""
    read = reading(text)
    elsewhere = bool(read.of("sites") and read.of("parts"))  # "the spine for tenderness and lower limb power"
    return (bool(_AFTER_COMMA.search(order[:start])) or elsewhere) and _names_examination(read)


def _only_sites(read: Reading) -> bool:
    return set(read.by_kind) == {"sites"} and not read.words


def _names_place(read: Reading) -> bool:
    """Whether a text names a part of the body, not something that is looked for there: a fissure."""
    return _only_sites(read) and not read.of("sites") <= _SEEN_ANYWHERE


_BEGINS = re.compile(r"(?:please |also |then )*(?:check|look|listen|feel|assess|measure|test)\b")


def _by_specimen(text: str) -> list[str]:
    """Split a list without commas where a specimen begins another test: "TSH CBC urine culture"."""
    for cut in islice(_SPECIMEN.finditer(text), _MOST_SPECIMENS):
        before, after = reading(text[: cut.start()]), reading(text[cut.start() :])
        # "Acid-fast stain of sputum", "Gram stain of centrifuged joint fluid"
        of = re.search(r"\b(?:of|in|from|on)\s+(?:(?:the|an?|fresh|\w+ed)\s+)*$", text[: cut.start()])
        if of:
            continue
        if _tests(before) and _tests(after) and before.phrases + after.phrases == reading(text).phrases:
            return [text[: cut.start()].strip(), *_by_specimen(text[cut.start() :])]
    return [text] if text else []


def _tests(read: Reading) -> bool:
    return any(read.of(kind) for kind in MEASURED)


def _without_reason(segment: str) -> str:
    """Part of an order without its reason: "mixing study for PTT prolongation" orders no PTT.

    If only a kind of test comes before "for", what follows is ordered: "testing for HIV". So is what is to be done
    with a specimen: "biopsy for immunofluorescence".
    """
    reason = _REASON.search(segment)
    if not reason:
        return segment
    pathology = EXAM.search(segment[: reason.start()]) and "for" not in reason[0].split()[:1]
    if _CAUSE.match(reason[0]) or pathology:
        return segment[: reason.start()]  # "pelvic exam to exclude adnexal pathology"
    named, rest = reading(segment[: reason.start()]), reading(reason[0])
    kinds = set(named.by_kind) - {"specimens", "sites", "timings"}
    bare = kinds <= {"tests"} and named.of("tests") <= TAKEN | {"swab"}
    anywhere = not named.of("sites") or rest.of("tests") or (rest.of("values") and {"swab", "pcr"} & named.of("tests"))
    if bare and named.words <= {"antigen", "antibody", "fluid"} and anywhere and rest.by_kind:
        return segment
    if rest.of("tests") & TAKEN:
        return segment
    if set(named.by_kind) <= {"specimens", "panels"} and _is_fluid(named) and (rest.words or rest.of("values")):
        return segment  # "urine for hemosiderin", "stool for ova and parasites"
    posture = rest.of("tests") <= _POSTURES and not any(rest.of(kind) for kind in MEASURED if kind != "tests")
    if rest.of("parts") and not _tests(named) and posture and _looked_for(named, rest):
        return segment  # "examine the fingers for clubbing"
    if set(named.by_kind) == {"methods"} and not _tests(rest) and (rest.of("sites") or not rest.by_kind):
        return segment  # "listen for subclavian, carotid and abdominal bruits"
    listed = sum(1 for _, concepts in named.phrases if {kind for kind, _ in concepts} & set(MEASURED))
    if listed > 1:
        # A list without commas continues after the reason: "CBC retic smear for schistocytes LDH".
        return f"{segment[: reason.start()]} {reason[0].split(' ', 2)[-1]}"
    return segment[: reason.start()]


_CAUSE = re.compile(r"(?:if|due|because|since|as|given)\b")
"""Begins a reason that never says what is ordered, as "for" may."""


_POSTURES = frozenset({"leaning forward auscultation", "left lateral auscultation"})


def _looked_for(named: Reading, rest: Reading) -> bool:
    """Whether a sign is looked for in the place that an order names."""
    parts = [vocabulary().parts[part] for part in rest.of("parts")]
    if set(named.by_kind) == {"methods"}:
        return True  # "listen for a murmur"
    of = frozenset().union(*(part.of for part in parts))
    wider = vocabulary().wider
    around = frozenset().union(*(wider[site] for site in named.of("sites")))
    return bool(of & (named.of("sites") | named.of("systems") | around))


def _completed(own: Item, before: Sequence[Item], after: Sequence[Reading]) -> Item | None:
    """An item with the image, site or specimen named elsewhere in the order; None if it orders nothing by itself."""
    read = own.read
    last = before[-1].read if before else None
    kinds = set(read.by_kind) - {"timings"}
    if last is not None and _ALLERGENS.search(before[-1].text) and _is_allergen(read):
        pricked = bool(_PRICKED.search(before[-1].text))
        against = Reading({"values": _ON_SKIN if pricked else _ALLERGY}, words=read.words | read.of("values"))
        test = "skin prick test" if pricked else "specific ige"
        return replace(own, text=f"{test} to {own.text}", read=against)  # "prick tests to rye flour, cat, grass"
    if (
        last is not None
        and read.of("values") == _ALLERGY
        and "allergen" in own.text
        and _PRICKED.search(before[-1].text)
    ):
        return None  # "skin prick test with flour and bakery allergens"
    if own.detail and not read.by_kind and _PROVOKED.search(before[-1].text if before else ""):
        return None  # "inhalation challenge with flour"
    if kinds == {"sites"} and after and _at_limbs(read, after[0]) and after[0].of("parts") & _AT_A_LIMB:
        return _with(own, _only(after[0], "parts"))  # "ankle and knee reflexes"
    if kinds == {"sites"} and last is not None and last.of("parts") & _TESTED_AT_LIMBS and _at_limbs(last, read):
        return _with(
            own, _only(last, "parts")
        )  # "reflexes in the arms and legs", "power of hip flexors, knee extensors"
    if kinds == {"sites"} and not EXAM.search(own.text):
        if last is not None and (method := _method_before(last)):
            return replace(own, read=joined((method, own.read)))  # "auscultation of the heart and lungs"
        placed = last is not None and (len(last.of("sites")) > 1 or _SOMEWHERE.search(before[-1].text))
        if last is not None and "skin" in last.of("sites") and placed and not _tests(last):
            # "Skin of the legs and arms"
            return _with(own, Reading({"sites": frozenset({"skin"})}))
        if last is None and after and _is_placed(after[0]) and _may_be_at(after[0], read):
            return _with(own, _only(after[0], "parts"))
        known = next((item.read for item in reversed(before) if item.read.by_kind), last)
        imaged = _imaged(known, after)  # past what we do not know: "ultrasound of the ovaries, free fluid, appendix"
        if (
            imaged is None
            and before
            and before[-1].measured
            and (taken := before[-1].read.of("tests") & (TAKEN | {"swab"}))
        ):
            swabbed_for = last.of("values") if last is not None and taken <= _METHODS | {"swab"} else frozenset()
            return _with(own, Reading({"tests": taken, **({"values": swabbed_for} if swabbed_for else {})}))
        how = (
            " ".join(name for name, concepts in imaged.phrases if any(k == "modalities" for k, _ in concepts))
            if imaged
            else ""
        )
        return _with(replace(own, text=f"{how} {own.text}".strip()), _only(imaged, "modalities"))
    if kinds == {"methods"}:
        near = [*_next_of_methods(after), *([last] if last else []), *after[:1]]
        if read.of("methods") == {"auscultation"}:  # after the respiratory rate, before the liver edge: of the lungs
            near = [of for of in near if not of.of("parts") or _examined_by_part(of) & _HEARD_SYSTEMS]
        return _with(own, _examined_by(read, near))
    if read.of("parts") == {"range of motion"} and kinds == {"parts"} and last is not None:
        # "Spine examination with curvature, range of motion"
        last = next((item.read for item in reversed(before) if item.read.of("sites") or item.measured), last)
        places = [name for name, concepts in last.phrases if any(kind == "sites" for kind, _ in concepts)]
        if movement := next((f"{name} range of motion" for name in places if _is_sign(f"{name} range of motion")), ""):
            return replace(own, text=movement, read=reading(movement))
        return _with(own, _only(last, "sites")) if _at_limbs(last) else own
    if read.of("vitals") == {"temperature"} and _sensory(last, after):
        return None
    if last is not None and read.of("parts") == {"gait"} and "oxygen saturation" in last.of("vitals"):
        return replace(own, read=reading("walk test"))  # "saturation at rest and walking"
    if _is_fluid(read) and after and after[0].of("specimens") and after[0].of("values"):
        own = replace(own, read=_only(read, "specimens", "timings") or read)  # "fecal and plasma porphyrins"
        kinds = {"specimens"}
    if _is_fluid(read) and after and (panels := after[0].of("panels") & {"toxicology", "drug screen"}):
        screen = f"{own.text} {min(panels)}"  # "urine and serum toxicology"
        return replace(own, text=screen, read=reading(screen))
    if _is_fluid(read) and after and after[0].of("specimens") and after[0].of("tests") & TAKEN:
        what = " ".join(name for name, concepts in after[0].phrases if any(kind == "tests" for kind, _ in concepts))
        taken_from = replace(own, text=f"{own.text} {what}", read=_only(read, "specimens") or read)
        return _with(taken_from, _only(after[0], "tests"))  # "blood and urine cultures"
    if kinds == {"specimens"} and read.of("specimens") == {"blood"} and not after and last is not None:
        return None  # "oligoclonal bands in CSF and serum"
    if kinds == {"specimens"} and not read.words and after and after[0].of("values"):
        what = " ".join(name for name, concepts in after[0].phrases if any(kind == "values" for kind, _ in concepts))
        return _with(replace(own, text=f"{own.text} {what}"), _only(after[0], "values"))
    both_of_vessels = bool(after) and read.of("modalities") & after[0].of("modalities") & _VESSELS
    sited = read.of("modalities") <= _SITED or both_of_vessels
    if kinds == {"modalities"} and sited and after and _sited(after[0]):
        where = " ".join(n for n, concepts in after[0].phrases if any(kind == "sites" for kind, _ in concepts))
        return _with(
            replace(own, text=f"{own.text} {where}".strip()), _only(after[0], "sites")
        )  # "X-ray and MRI of the knee"
    by_another = read.words & _KINDS_OF_TEST  # "SARS-CoV-2 PCR, SARS-CoV-2 antibodies"
    if last is None:
        if (
            kinds == {"values"}
            and read.of("values") <= _GERMS
            and not by_another
            and (method := _method_of_list(after))
        ):
            return _with(own, method)
        if kinds == {"tests"} and read.of("tests") <= TAKEN and after and after[0].of("tests") & TAKEN:
            return _with(own, _only(after[0], "sites", "specimens"))
        return own
    if read.of("modalities") & _SITED and last.of("modalities") == {"mammography"} and not read.of("sites"):
        return _with(replace(own, text=f"breast {own.text}"), Reading({"sites": frozenset({"breast"})}))
    sliced = last.of("modalities") & _SLICED
    if sliced and last.of("sites") and kinds == {"modalities"} and read.of("modalities") < _VESSELS:
        done = f"{min(sliced)} {own.text}"  # "CT angiogram and venogram"
        return _completed(Item(done, reading(done)), before, after)
    pulmonary = (
        kinds == {"modalities", "sites"} and read.of("modalities") == {"angiography"} and "lung" in read.of("sites")
    )
    if sliced and pulmonary and any(same_site(site, "lung") for site in last.of("sites")):
        return replace(own, text="ct pulmonary angiography", read=reading("ct pulmonary angiography"))
    at_the_bedside = own.text.startswith("bedside ultrasound")  # of the belly and the heart, whatever came before it
    if read.of("modalities") & _SITED and not read.of("sites") and last.of("modalities") and not at_the_bedside:
        if not read.of("modalities") & _VESSELS:
            there = _only(last, "sites")
            where = " ".join(name for name, _ in there.phrases) if there else ""
            return _with(replace(own, text=f"{own.text} {where}".strip()), there)
        # "CT angiogram of head and neck, CT venogram"
        if any("face" in {site, *vocabulary().wider[site]} for site in last.of("sites")):
            return own  # the vessels of the head, not of the orbit
        kind = last.of("modalities")
        alike = takewhile(lambda item: item.read.of("modalities") == kind, reversed(before))
        sites = joined(reversed([part for item in alike if (part := _only(item.read, "sites"))]))
        where = " and ".join(name for name, _ in sites.phrases)
        return _with(replace(own, text=f"{own.text} {where}".strip()), sites)
    tissue = _tissue(before)
    if tissue is not None and read.of("parts") and read.of("parts") <= _NODES and kinds <= {"parts", "sites"}:
        return replace(own, read=joined((Reading({"sites": frozenset({"lymph node"})}), _only(last, "tests") or read)))
    if tissue is not None and _is_of_tissue(read) and "bone marrow" in tissue.of("tests"):
        # "Bone marrow aspirate and biopsy with cytogenetics"
        kept = read.of("tests") - {"biopsy"} | {"bone marrow"}
        named = replace(own, text=f"bone marrow {own.text}")
        own_report = read.of("tests") & (_OWN_REPORTS | {"biopsy", "histopathology"})
        apart = bool(own_report or read.of("values"))
        return replace(named, read=replace(read, by_kind={**read.by_kind, "tests": kept}), detail=not apart)
    if tissue is not None and read.of("tests") and read.of("tests") <= _LOOKED_AT and not _taken(read):
        return None  # part of what is said of the biopsy
    if tissue is not None and _is_of_tissue(read):
        source = _only(tissue, "sites", "specimens")
        again = read.of("tests") <= {"biopsy", "histopathology"} and not read.of("values")
        named = own if again or "biops" in own.text else replace(own, text=f"{own.text}{OF_BIOPSY}")
        if not source or not source.named:
            return None if again else named
        return replace(_with(named, source), detail=again)
    if kinds == {"tests", "values"} and "pcr" in read.of("tests"):
        swabbed = {"swab", "pcr"} <= last.of("tests") and last.of("sites")
        if swabbed and not read.of("values") & _IN_BLOOD_TOO:
            return _with(own, Reading({"tests": frozenset({"swab"}), "sites": last.of("sites")}))  # "rectal swab NAAT"
        if read.of("values") <= _GERMS and not read.words:
            # "CSF cell count, pneumococcal antigen and HSV PCR"
            bare = takewhile(lambda item: not item.read.of("sites"), reversed(before))
            last = next((item.read for item in bare if item.read.of("specimens")), last)
        return _of_fluid(own, last)
    swab = kinds == {"tests", "sites"} and read.of("tests") == {"swab"}
    if swab and last.of("sites") and _FROM.search(before[-1].text):
        # "Enterovirus PCR and HSV PCR from vesicle and throat swab"
        same_swab = takewhile(lambda item: _methodical(item.read), reversed(before))
        looked_for = [part for item in same_swab if (part := _only(item.read, "tests", "values"))]
        return _with(own, joined(looked_for)) if looked_for else own
    if "pcr" in read.of("tests") and kinds <= {"tests", "sites"} and last.of("values") & _CLASSES:
        germ = last.of("values") - _CLASSES  # "measles IgM and PCR throat swab"
        names = [name for name, concepts in last.phrases if any(("values", value) in concepts for value in germ)]
        return _with(replace(own, text=" ".join((*names, own.text))), Reading({"values": germ})) if germ else own
    elsewhere = last.of("specimens") & _NOT_PUNCTURED or read.of("tests") == {"serology"}
    if kinds == {"tests"} and read.of("tests") <= _METHODS and read.words and elsewhere:
        return own  # "stool microscopy, amoebic serology", "biopsy, Yersinia serology"
    if kinds == {"tests"} and read.of("tests") <= _METHODS & last.of("tests") and last.of("values") and not read.words:
        return None  # "Lyme serology with western blot"
    biopsied = kinds == {"tests", "sites"} and read.of("tests") == {"biopsy"}
    if biopsied and "colonoscopy" in last.of("tests") and read.of("sites") == {"colon"}:
        own = replace(own, text="biopsy", read=_only(read, "tests") or read)
        kinds = {"tests"}
    if kinds == {"tests"} and read.of("tests") <= TAKEN:
        reached = frozenset().union(*(vocabulary().reached.get(test, frozenset()) for test in last.of("tests")))
        if reached:
            if read.of("tests") == {"biopsy"}:
                own = replace(own, text="biopsy")  # "segmental biopsies"
            return _with(own, Reading({"sites": reached}))
        if not (read.of("tests") <= _METHODS and _methodical(last) and last.of("values") <= _GERMS):
            sources = (item.read for item in reversed(before) if _taken(item.read) or not _only_taken(item.read))
            last = next(sources, last)
        if last.of("modalities"):
            return own
        # A germ by another method, not the glucose: "HSV serology and PCR".
        by_germ = read.of("tests") <= _METHODS and not last.of("values") & _CHEMICAL
        by_germ = by_germ and not read.words  # not "interferon gamma release, Yersinia serology"
        if by_germ and read.of("tests") == {"serology"}:
            germs = [name for name, concepts in last.phrases if any(kind == "values" for kind, _ in concepts)]
            own = replace(own, text=" ".join((*germs, own.text)))
        taken_of = ["sites"] if read.of("tests") == {"biopsy"} else ["sites", "specimens"]  # "blood cultures, biopsy"
        return _with(own, _only(last, *taken_of, *(["values"] if by_germ else [])))
    if own.text in _CLASSES and _has_classes(before[-1]) and (own.text != "ige" or last.of("values") <= _ALLERGY):
        return None  # "EBV IgM/IgG"
    if kinds == {"qualifiers"} and "orthostatic" in read.of("qualifiers"):
        return _with(own, Reading({"vitals": frozenset({"vital signs"})}))
    if kinds == {"values"} and read.of("values") <= _GERMS and not by_another and (method := _method_of_list(after)):
        return _with(own, method)  # "Mycoplasma and Legionella PCR"
    if (
        kinds == {"values"}
        and read.of("values") <= _GERMS >= last.of("values")
        and _methodical(last)
        and not by_another
    ):
        return _with(own, _only(last, "specimens", "sites", "tests"))  # "CSF PCR for HSV and VZV"
    if read.of("values") == {"flow cytometry"} and kinds == {"values"} and "bone marrow" in last.of("tests"):
        return _with(replace(own, text=f"bone marrow {own.text}"), _only(last, "tests"))
    tapped = last.of("specimens") & _PUNCTURED and (last.of("panels") or last.of("values") & _IN_FLUIDS)
    if kinds == {"values"} and tapped and read.of("values") <= _OF_A_TAP:
        return _of_fluid(replace(own, text=f"{min(last.of('specimens') & _PUNCTURED)} {own.text}"), last)
    if kinds == {"values"} and last.of("specimens") & _PUNCTURED and last.of("tests") & TAKEN:
        return _with(own, _only(last, "specimens")) if read.of("values") <= _IN_FLUIDS else own
    sediment = read.of("values") and read.of("values") <= _IN_SEDIMENT and read.of("tests") <= {"microscopy"}
    if sediment and kinds <= {"values", "tests"} and "urine" in last.of("specimens"):
        return _with(own, _only(last, "specimens"))
    if read.of("panels") == {"bmp"} and last.of("specimens") & _PUNCTURED and _CHEMISTRY.match(own.text):
        return _of_fluid(replace(own, text=f"fluid {own.text}", read=_without(read, "panels")), last)
    timed = read.of("timings") and not last.of("timings")  # "urine sodium, morning cortisol"
    counted = kinds and not timed and kinds <= {"values", "panels", "qualifiers"} and read.of("panels") <= _OF_ANY_FLUID
    # How an image is taken says nothing about the values after it.
    qualified = last.of("qualifiers") and not any(last.of(kind) for kind in ("modalities", "tests", "vitals"))
    follows = last.of("values") or qualified or last.of("panels") & _OF_ANY_FLUID or read.of("panels")
    if counted and follows and read.of("values") <= vocabulary().of_fluids:
        fluid = all(vocabulary().panels[panel].whole or panel in _OF_ANY_FLUID for panel in last.of("panels"))
        # "Urine myoglobin, potassium": the second is as usual in blood, but not after the urine's sodium.
        chemistry = all(item.read.of("values") & _OF_URINE_TOO for item in before)
        urine = (chemistry and "urine" in before[0].read.of("specimens")) or last.of("values") & _OF_URINE_TOO
        fluid = fluid and bool(urine or "urine" not in last.of("specimens"))
        # Not "H. pylori stool antigen, creatinine".
        fluid = fluid and bool(last.of("values") & _OF_URINE_TOO or not last.of("specimens") & _NOT_PUNCTURED)
        # Not "CSF oligoclonal bands, B12".
        collected = vocabulary().collected
        together = bool(last.of("values") & collected) and read.of("values") <= collected | vocabulary().of_blood
        elsewhere = usually_in_blood() - vocabulary().of_blood - _OF_FLUIDS_TOO
        fluid = fluid and (together or not (read.of("values") & elsewhere or last.of("values") & collected))
        fluid = fluid and "blood" not in read.of("specimens")
        fluid = fluid and not (last.of("specimens") == {"blood"} and not read.of("values") & collected)
        fluid = fluid and bool("stool" not in last.of("specimens") or last.of("values") & vocabulary().of_blood)
        of = sorted(last.of("specimens") - read.of("specimens") - {"blood"}) if fluid else []
        named = replace(own, text=f"{of[0]} {own.text}") if len(of) == 1 and "urine" in of else own
        return _with(named, _only(last, "qualifiers", *(["specimens"] if fluid else [])))
    if read.of("vitals") == {"heart rate"} and kinds == {"vitals"} and last.of("vitals"):
        return _with(own, _only(last, "qualifiers"))
    return own


def _examined_by(method: Reading, near: Sequence[Reading]) -> Reading | None:
    """What is examined by a method that an order names without a place: what is named next to it; else the chest."""
    may_be_of = [*map(_place_or_system, near), Reading({"systems": frozenset({"respiratory"})})]
    percussed = method.of("methods") == {"percussion"}
    return next((of for of in may_be_of if of and of.by_kind and (not percussed or _examined(of) & _PERCUSSED)), None)


def _examined_by_part(read: Reading) -> frozenset[str]:
    return frozenset(vocabulary().parts[part].main for part in read.of("parts"))


_HEARD_SYSTEMS = frozenset({"cardiovascular", "respiratory"})


def _next_of_methods(after: Sequence[Reading]) -> list[Reading]:
    """The end of a list of methods, if it says of what: "inspect, palpate and percuss the lumbar spine"."""
    end = next((read for read in after if set(read.by_kind) != {"methods"}), None)
    return [end] if end and _method_before(end) else []


_PERCUSSED = frozenset({"respiratory", "abdominal", "musculoskeletal", "ent"})
"""Examinations that include percussion."""


def _place_or_system(read: Reading) -> Reading | None:
    """The place that is examined, or else the system that a sign belongs to."""
    main = frozenset(vocabulary().parts[part].main for part in read.of("parts")) & set(vocabulary().covers)
    system = Reading({"systems": main}) if main else None
    return _only(read, "systems", "sites") if not main or read.of("systems") or _is_placed(read) else system


def _method_of_list(after: Sequence[Reading]) -> Reading | None:
    """How the germs of a list are looked for, if that is said with the last of them: "RSV, influenza and COVID PCR"."""
    for read in after:
        if not read.of("values") or not read.of("values") <= _GERMS or read.words:
            return None
        if read.of("tests") & _METHODS:
            return _only(read, "tests", "specimens")
        if set(read.by_kind) != {"values"}:
            return None
    return None


def _has_classes(item: Item) -> bool:
    """Whether a class of immunoglobulins after an item is one more of its antibody: "EBV IgM, IgG"."""
    values = item.read.of("values") - _CLASSES
    several = bool(_CLASSES & set(item.text.split())) or "serology" in item.read.of("tests")
    return bool(values) and (several or values <= _OF_ANY_CLASS)


_OF_ANY_CLASS = _GERMS | {"ttg", "anticardiolipin", "beta 2 glycoprotein", "allergen testing"}
"""Of which antibodies of several classes are measured."""
_ALLERGY = frozenset({"allergen testing"})
_ON_SKIN = frozenset({"skin prick test"})
_ALLERGENS = re.compile(r"\b(?:ige|prick tests?|rast) (?:to|for|against)\b")
_PROVOKED = re.compile(r"\b(?:challenge|provocation)\b")
_PRICKED = re.compile(r"\bprick\b")
_ALSO_ALLERGENS = frozenset({"amylase", "aspergillus", "candida"})
"""Values of their own that are also allergens: the amylase of flour."""


def _is_allergen(read: Reading) -> bool:
    """Whether something that follows an allergen is one more of them: a thing that we do not know, or an enzyme."""
    values = read.of("values")
    return bool(read.words) and (not read.by_kind or (set(read.by_kind) == {"values"} and values <= _ALSO_ALLERGENS))


def _sited(read: Reading) -> bool:
    return bool(read.of("modalities") and read.of("sites"))


_SOMEWHERE = re.compile(r"\w (?:on|of|over) ")


def _is_placed(sign: Reading) -> bool:
    """Whether a place is named besides a sign: in "femoral and foot pulses", not in "skin and nails"."""
    named = [dict(concepts) for _, concepts in sign.phrases]
    return any("sites" in kinds and "parts" not in kinds for kinds in named)


def _may_be_at(sign: Reading, place: Reading) -> bool:
    """Whether a sign is looked for at a place too: not the buccal mucosa, in "skin and buccal mucosa"."""
    wider = vocabulary().wider
    there = _examined(place) | place.of("sites").union(*(wider[site] for site in place.of("sites")))
    return any(vocabulary().parts[part].of & there for part in sign.of("parts"))


_NODES = frozenset({"lymph nodes", "axillary nodes", "inguinal nodes", "supraclavicular nodes", "epitrochlear nodes"})
_TESTED_AT_LIMBS = frozenset({"reflexes", "motor", "sensory"})


def _at_limbs(*reads: Reading) -> bool:
    """Whether each names only places at the limbs."""
    wider = vocabulary().wider
    return all(read.of("sites") and all({"limb"} & {site, *wider[site]} for site in read.of("sites")) for read in reads)


_FROM = re.compile(r"\b(?:from|of)\b")
_IN_BLOOD_TOO = frozenset({"cmv", "ebv", "hhv 6", "hiv", "hepatitis b", "hepatitis c", "parvovirus", "tuberculosis"})
"""Germs that are looked for in blood or sputum rather than in the swab of something else."""
_TISSUE = frozenset({"biopsy", "fine needle aspiration", "bone marrow"})
_LOOKED_AT = frozenset({"microscopy", "smear", "histopathology"})
OF_BIOPSY = " of the biopsy"
"""Ends the names of what is done with tissue that was ordered before it."""
_OWN_REPORTS = frozenset({"genetic", "fish", "karyotype", "tumor genotype"}) | vocabulary().kinds["tumor genotype"]
"""Tests of tissue that are reported apart from what it looks like."""
_OF_TISSUE = (TAKEN - {"serology"}) | _OWN_REPORTS
_GERMS_OF_TISSUE = frozenset({"tuberculosis", "cmv", "ebv", "herpes"})
_IN_BLOOD_BY_PCR = frozenset({"cmv", "ebv"})


def _is_of_tissue(read: Reading) -> bool:
    """Whether something is done with the tissue that was taken before it: "biopsy for histology and AFB culture"."""
    if _taken(read) or set(read.by_kind) - {"tests", "values"}:
        return False
    if read.by_kind == {"values": {"flow cytometry"}}:
        return True
    germs = _GERMS_OF_TISSUE - (_IN_BLOOD_BY_PCR if read.of("tests") == {"pcr"} else _NOTHING)
    return read.of("tests") - {"biopsy"} <= _OF_TISSUE and bool(read.of("tests")) and read.of("values") <= germs


def _tissue(before: Sequence[Item]) -> Reading | None:
    """What was taken last, if nothing but what is done with it was ordered since."""
    for item in reversed(before):
        if item.read.of("tests") & _TISSUE:
            return item.read
        if not (item.detail or _is_of_tissue(_without(item.read, "sites"))):
            return None
    return None


def _method_before(read: Reading) -> Reading | None:
    """How a site is examined, if that is said before the site: not in "chest wall palpation, heart"."""
    kinds = [kind for _, concepts in read.phrases for kind in ("methods", "sites") if kind in dict(concepts)]
    return _only(read, "methods") if kinds[:1] == ["methods"] else None


def _is_fluid(read: Reading) -> bool:
    """Whether an item only names a fluid: "fecal" is also the name of everything about the stool."""
    taken = read.of("specimens") - _PUNCTURED
    return bool(taken) and all(name in vocabulary().fluids for name, _ in read.phrases) and not read.words


def _of_fluid(own: Item, last: Reading) -> Item:
    """An item of the fluid that the one before it was taken from."""
    fluid = last.of("specimens") & _PUNCTURED if "blood" not in own.read.of("specimens") else frozenset[str]()
    return _with(own, Reading({"specimens": fluid})) if fluid else own


def _taken(read: Reading) -> bool:
    return bool(read.of("sites") or read.of("specimens"))


def _only_taken(read: Reading) -> bool:
    """Whether an item says only what is done with a specimen, not where it is from."""
    return set(read.by_kind) <= {"tests", "values"} and bool(read.of("tests"))


def _sensory(last: Reading | None, after: Sequence[Reading]) -> bool:
    """Whether the neighboring items test sensation, so that "temperature" is not body temperature."""
    return any("sensory" in read.of("parts") for read in ((last,) if last else ()) + tuple(after[:1]))


def _imaged(last: Reading | None, after: Sequence[Reading]) -> Reading | None:
    if last is not None:
        return last if last.of("modalities") and last.of("sites") else None
    # "Brain, cervical and lumbar spine MRI"
    following = next((read for read in after if set(read.by_kind) - {"sites", "timings"}), None)
    return following if following is not None and following.of("modalities") else None


_OF_ONE_VALUE = frozenset({"surface antigen", "core antibody", "surface antibody", "e antigen"})
"""Qualifiers that say nothing about the items that follow: "HBsAg, creatinine"."""


def _only(read: Reading | None, *kinds: str) -> Reading | None:
    if read is None:
        return None
    named = {kind: read.of(kind) - (_OF_ONE_VALUE if kind == "qualifiers" else frozenset()) for kind in kinds}
    return Reading(
        {kind: concepts for kind, concepts in named.items() if concepts},
        tuple((name, concepts) for name, concepts in read.phrases if {kind for kind, _ in concepts} <= set(kinds)),
    )


def _without(read: Reading, kind: str) -> Reading:
    return replace(read, by_kind={other: named for other, named in read.by_kind.items() if other != kind})


def _with(item: Item, more: Reading | None) -> Item:
    return replace(item, read=joined((item.read, more))) if more else item
