"""Recognize what an order names that is not a test: treatments, scores, what is arranged for a patient."""

from __future__ import annotations

from agentclinic import lazy
from agentclinic.cases.matcher.order_kinds import LABORATORY, is_measured
from agentclinic.cases.matcher.order_words import reading
from agentclinic.vocabulary.text import fold

_DOSE = lazy.regex(r"\b\d+(?:[.,]\d+)?\s*(?:mg|mcg|ug|g|ml|l|units?|iu|puffs?|drops?|tablets?)\b(?: ?/? ?kg\b)?")
_GIVEN = lazy.regex(
    r"\b(?:iv|im|po|sc|subcutaneous(?:ly)?|intravenous(?:ly)?|intramuscular(?:ly)?|oral(?:ly)?|bolus|infusion|inhaled"
    r"|nebuli[sz]ed|by mouth|loading dose)\b"
)
GIVE = lazy.regex(r"^(?:please )?(?:start|give|administer|prescribe|initiate|begin|treat)\b")
_CARE = lazy.regex(
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
_DRUG = lazy.regex(
    r"\b(?:iv|im|oral|inhaled|nebuli[sz]ed|topical|intravenous|intramuscular) (?:\w+ )?(?:dexamethasone|prednis\w+"
    r"|hydrocortisone|budesonide|(?:cortico)?steroids?|adrenaline|epinephrine|paracetamol|acetaminophen|ibuprofen"
    r"|morphine|amoxicillin|acyclovir|aciclovir)\b"
)
"""A drug with the way in which it is given."""
_PROVOKES = lazy.regex(r"\b(?:test|suppression|stimulation|challenge|sensitivity)\b")
_ARRANGEMENT = lazy.regex(
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
    r"|\w+ (?:review|opinion|input|call)$)"
)
"""What is arranged for patients or explained to them: neither a test nor a treatment."""
_REFERRAL = lazy.regex(r"\b(?:referral|consult|consultation)s?$")
_OXYGEN = lazy.regex(r"^(?:(?:100%?|high flow|\d+ ?l(?:itres?)?) )*(?:o2|oxygen)\b.*\d+ ?l\b")
_SCORE = lazy.regex(
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
"""Scores that a doctor works out from findings. Bedside scales have results of their own, except that of strokes."""
_UNDER = lazy.regex(r"\b(?:after|before|on|during|following|while|off)\b")
"""Begins the condition under which something is measured."""
_TRIED = lazy.regex(r"\b(?:trial|test|tolerance|suppression|stimulation|challenge|loading test|contrast)\b")
"""Drugs and sugar are also given to test their effect."""


def is_treatment(text: str) -> bool:
    """Whether part of an order gives a drug: "dexamethasone 0.6 mg/kg orally", "start ceftriaxone"."""
    text = fold(text)
    if _DRUG.search(text) and not _PROVOKES.search(text):
        return True
    bare = reading(GIVE.sub("", _DOSE.sub("", text)))
    before, *condition = _UNDER.split(text, maxsplit=1)
    if condition and (reading(before).of("values") or reading(before).of("vitals")):
        return False  # "repeat carboxyhemoglobin after four hours of oxygen"
    if _TRIED.search(text) or any(bare.of(kind) for kind in ("modalities", "tests", "panels", "systems", "parts")):
        return False
    if _DOSE.search(text):
        return bool(_GIVEN.search(text)) or not is_measured(bare)
    return bool(_CARE.search(text) or (GIVE.search(text) and not is_measured(bare)))


def said_of_no_test(text: str) -> str:
    """What is said of part of an order that is not a test; empty if it may be one."""
    text = fold(text)
    if is_treatment(text):
        return "a treatment, not a test"
    if _SCORE.search(text) and not (LABORATORY.search(text) or _TRIED.search(text)):
        return "a score to work out from the findings, not a test"
    if _OXYGEN.search(text):
        return "a treatment, not a test"
    if _REFERRAL.search(text):
        return "not a test"
    return "not a test" if _ARRANGEMENT.search(text) and not is_measured(reading(text)) else ""
