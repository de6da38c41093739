"""Take the reason off a part of an order: "ultrasound for gallstones"."""

from __future__ import annotations

from agentclinic import lazy
from agentclinic.cases.matcher.order_kinds import EXAM, MEASURED, TAKEN, is_fluid, is_measured
from agentclinic.cases.matcher.order_words import Reading, reading, vocabulary

_REASON = lazy.regex(
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
_CAUSE = lazy.regex(r"(?:if|due|because|since|as|given)\b")
"""Begins a reason that never says what is ordered, as "for" may."""
POSTURES = frozenset({"leaning forward auscultation", "left lateral auscultation"})


def without_reason(segment: str) -> str:
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
    if set(named.by_kind) <= {"specimens", "panels"} and is_fluid(named) and (rest.words or rest.of("values")):
        return segment  # "urine for hemosiderin", "stool for ova and parasites"
    posture = rest.of("tests") <= POSTURES and not any(rest.of(kind) for kind in MEASURED if kind != "tests")
    if rest.of("parts") and not is_measured(named) and posture and _looked_for(named, rest):
        return segment  # "examine the fingers for clubbing"
    if set(named.by_kind) == {"methods"} and not is_measured(rest) and (rest.of("sites") or not rest.by_kind):
        return segment  # "listen for subclavian, carotid and abdominal bruits"
    listed = sum(1 for _, concepts in named.phrases if {kind for kind, _ in concepts} & set(MEASURED))
    if listed > 1:
        # A list without commas continues after the reason: "CBC retic smear for schistocytes LDH".
        return f"{segment[: reason.start()]} {reason[0].split(' ', 2)[-1]}"
    return segment[: reason.start()]


def _looked_for(named: Reading, rest: Reading) -> bool:
    """Whether a sign is looked for in the place that an order names."""
    parts = [vocabulary().parts[part] for part in rest.of("parts")]
    if set(named.by_kind) == {"methods"}:
        return True  # "listen for a murmur"
    of = frozenset().union(*(part.of for part in parts))
    wider = vocabulary().wider
    around = frozenset().union(*(wider[site] for site in named.of("sites")))
    return bool(of & (named.of("sites") | named.of("systems") | around))
