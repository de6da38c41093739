"""The chart matcher: which facts a question or an order is about.

Used by the builtin patient and laboratory. It sees the role's own facts only and nothing of the truth.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from agentclinic.cases.model import Fact, Section
from agentclinic.knowledge.base import Test, knowledge
from agentclinic.knowledge.text import STOP_WORDS, content_words, fold, singular, words


class Asked(StrEnum):
    """What kind of thing a question is about: decides what silence of the chart means."""

    OPENING = "opening"
    SYMPTOM = "symptom"
    BACKGROUND = "background"
    FAMILY = "family"
    RESULT = "result"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Topic:
    """One thing a question or an order is about, and the facts that answer it."""

    name: str
    kind: Asked
    facts: tuple[Fact, ...]


# ---- what words speak of


@lru_cache(maxsize=16384)
def _stem(word: str) -> str:
    """A word without its ending, as far as that matters for meeting another form of it."""
    for ending in ("ing", "ness", "ed", "ly"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            word = word[: -len(ending)]
            break
    return word[:6].rstrip("ey") if len(word) > 4 else word


def _table(groups: Mapping[str, str]) -> dict[str, str]:
    return {_stem(singular(word)): name for name, listed in groups.items() for word in listed.split()}


# Different words for one thing; each is a thing a patient is asked about that is no finding of the knowledge base.
_SAME = _table(
    {
        "injury": "trauma injury injured accident collision fall fell hit struck blow crash",
        "exertion": "exertion exercise activity activities exercising strenuous exert workout gym sports running "
        "climbing "
        "stairs",
        "meals": "postprandial postprandially eat eats eating ate eaten meal meals food foods feed feeds feeding "
        "fed breastfeeding",
        "posture": "lying lie lies flat bending bend upright supine standing stand sitting sit position posture "
        "leaning "
        "recline reclining head-down gaze",
        "emotion": "crying cry cries excitement excited agitation agitated upset calm stress stressed anxiety "
        "emotional "
        "stressful",
        "rest": "rest rests resting",
        "daytime": "night nights nighttime evening evenings morning mornings nocturnal",
        "weather": "cold heat weather winter summer humidity sun sunlight temperature",
        "motion": "motion move moves movement movements rotate rotating rotation flexion extension reaching lifting "
        "twisting",
        "sex": "sex sexual sexually intercourse penetration",
        "breathing": "breathe breathing breath inspiration inhale",
        "light": "light lights bright photophobia",
        "noise": "noise noises sound sounds phonophobia",
        "urinating": "urinate urinating urination voiding",
        "menses": "menses menstrual menstruation period periods menarche lmp",
        "pregnancy": "pregnant pregnancy pregnancies gravida primigravida nulliparous para gravidity obstetric",
        "birth": "born birth delivery delivered preterm premature prematurity neonatal perinatal term prenatal "
        "antenatal "
        "gestation gestational",
        "vaccines": "vaccine vaccines vaccination vaccinations vaccinated immunization immunizations immunized shots "
        "immunised immunisation",
        "travel": "travel traveled travelled traveling trip trips abroad immigrated immigrant overseas",
        "surgery": "surgery surgeries surgical operation operations operated procedure procedures",
        "hospital": "hospital hospitalized hospitalization hospitalizations hospitalised admission admissions admitted",
        "sick contacts": "contacts contact exposure exposures exposed",
        "itch": "itch itchy itching pruritus pruritic",
        "rash": "rash rashes eruption",
        "scale": "scale scales scaly scaling flake flakes flaky flaking crust crusty crusting crusted dandruff",
        "redness": "red redness erythema erythematous reddened reddish",
        "vision": "vision visual sight eyesight",
        "hearing": "hearing auditory deafness",
        "stool": "stool stools bowel bowels feces defecation poop",
        "weak": "weak weakness strength weaker",
        "stiff": "stiff stiffness rigid rigidity",
        "appetite": "appetite hungry hunger",
        "mood": "mood sad sadness depressed depression",
        "walk": "walk gait walking unsteady unsteadiness balance imbalance staggering shuffling stumbling",
        "speech": "speech speaking slurred slurring articulation",
        "memory": "memory forgetful forgetfulness forgetting",
        "numb": "numb numbness tingling paresthesia paresthesias pins",
        "swelling": "swelling swollen swell edema oedema puffy puffiness",
        "lesion": "lesion lesions sore sores ulcer ulcers",
        "lump": "lump lumps mass masses nodule nodules bump bumps",
        "discharge": "discharge drainage secretions",
        "sleep": "sleep sleeping asleep insomnia",
        "bruise": "bruise bruises bruising",
        "bleed": "bleed bleeding blood bloody bled",
        "infection": "infection infections illness illnesses infected",
    }
)
# Parts of the body, each with the greater part it belongs to. Agreeing on the place alone is not agreeing.
_PLACES = {
    "head": "head scalp temple temporal forehead cranial",
    "face": "face facial cheek cheeks",
    "jaw": "jaw chin",
    "eyebrow": "eyebrow eyebrows eyelid eyelids lid lids eyelashes",
    "eye": "eye eyes ocular",
    "ear": "ear ears",
    "nose": "nose nasal nostril nostrils",
    "mouth": "mouth oral lip lips tongue gum gums tooth teeth",
    "throat": "throat pharynx",
    "neck": "neck cervical",
    "chest": "breastbone retrosternal chest thorax thoracic sternal substernal",
    "breast": "breast breasts nipple nipples",
    "back": "back spine lumbar spinal",
    "flank": "flank flanks side",
    "shoulder": "shoulder shoulders",
    "arm": "arm arms forearm",
    "elbow": "elbow elbows",
    "hand": "hand hands wrist wrists palm palms",
    "finger": "finger fingers nail nails fingertip fingertips",
    "limb": "limb limbs extremity extremities",
    "leg": "leg legs thigh thighs",
    "calf": "calf calves",
    "knee": "knee knees kneecap",
    "ankle": "ankle ankles",
    "foot": "foot feet toe toes heel",
    "hip": "hip hips buttock buttocks",
    "groin": "groin inguinal",
    "abdomen": "abdomen abdominal belly stomach tummy epigastric umbilicus umbilical",
    "pelvis": "pelvis pelvic",
    "genitals": "genital genitals penis penile vagina vaginal vulva vulvar scrotum scrotal testicle testicles "
    "testicular "
    "vestibule",
    "rectum": "rectum rectal anus anal perianal",
    "skin": "skin",
    "joint": "joint joints",
    "urine": "urine urinary bladder",
    "kidney": "kidney kidneys renal",
    "liver": "liver spleen hepatic",
    "heart": "heart cardiac",
    "lung": "lung lungs respiratory pulmonary",
}
_PLACE_OF = {singular(word): place for place, listed in _PLACES.items() for word in listed.split()}
_GREATER = {
    "finger": ("hand", "arm", "limb"), "hand": ("arm", "limb"), "elbow": ("arm", "limb", "joint"), "arm": ("limb",),
    "foot": ("leg", "limb"), "ankle": ("leg", "limb", "joint"), "calf": ("leg", "limb"), "leg": ("limb",),
    "knee": ("leg", "limb", "joint"), "hip": ("joint",), "shoulder": ("joint",), "eyebrow": ("face",),
    "nose": ("face",), "jaw": ("face",), "head": (), "groin": ("pelvis",), "genitals": ("pelvis",),
}  # fmt: skip
_UPPER_LOWER = re.compile(r"\b(upper|lower)\s+(?:limb|extremit)\w*", re.IGNORECASE)
_PAIN = re.compile(
    r"\b(?:pain\w*|aches?|aching|hurt\w*|sore|soreness|discomfort|tender\w*|cramp\w*|tension|\w+ache)\b", re.IGNORECASE
)
# Words that many facts share; agreeing on one of them alone says nothing.
_VAGUE = frozenset(
    "pain painful ache hurt sore soreness discomfort tender day week month year hour minute time ago since start "
    "started began begin change changed trouble problem issue difficulty normal history past medical health condition "
    "family last long often usually associated worse worsen worsened worsening better severe mild moderate new recent "
    "significant any anything else thing area body side left right able come go make take taken took taking use used "
    "during after before first second further detail specifically related concern kind type sign prior previous "
    "previously similar habit habits loss lose lost increase increased decrease decreased reduced sudden suddenly "
    "gradual frequent frequently frequency episode occur occurred happen happened notice developed develop continue "
    "ever even still keep current currently now today yesterday general generally including such especially when "
    "while without within whether only very more often too just really quite bit lot unusual unusually abnormal "
    "excessive persistent persistently constant continuous recurrent chronic acute one two three both upper lower "
    "around near along toward towards against under elsewhere somewhere small large poor initial own way away "
    "child mother father parent boy girl infant baby son daughter he she himself herself patient say said ask "
    "diagnosed disease disorder illness treatment treated presence absent present help need needed want wanted seem "
    "let know understand experience improve improves relieve relief trigger triggered provoke being done got had doing "
    "each every day age old everyday known done day-to-day along daily weekly weight degree extreme given another "
    "evaluation wide base based rapid per few several many number brought symptom associated complaint visit doctor "
    "clear".split()
)
_VAGUE_STEMS = frozenset(_stem(singular(word)) for word in _VAGUE)
_TRIGGERS = frozenset(
    "exertion meals posture emotion rest daytime weather motion sex breathing light noise urinating menses".split()
)


# What patients are asked for, in the words of doctors, charts and patients. Special before general: what one pattern
# has read in a question the later ones do not read again, so that "blood in the urine" is not any bleeding.
_SYMPTOMS = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in {
        "nocturnal breathlessness": r"orthopn|nocturnal dyspn|(?:trouble|short\w* of breath|difficulty)[^,.]* "
        r"(?:lying|flat)",
        "exposure to sickness": r"sick contacts?|(?:around|exposed to|contact with) (?:any(?:one|body) )?(?:sick"
        r"|ill)\b|exposure to"
        r" (?:sick|ill)",
        "suicide": r"suicid|self[- ]harm|harm(?:ing)? (?:yourself|himself|herself)|wish to die|death wish|kill "
        r"(?:your|him|her)self",
        "hallucination": r"hallucinat|hear(?:s|ing)? voices|see(?:s|ing)? things|voices telling|perceptual disturb",
        "delusion": r"delusion|paranoi|suspicious|being (?:watched|followed)|plotting|persecut",
        "guilt": r"guilt|worthless",
        "concentration": r"concentrat|distractib|focus(?:ing)?\b",
        "interest": r"anhedoni|loss of interest|disinterest|lost interest|apath|no longer enjoy",
        "mania": r"elevated (?:or \w+ )?mood|euphori|grandios|racing thoughts|need for sleep|mania|manic|pressured "
        r"speech",
        "aggression": r"aggress|violen|irritab|yell|hostil|agitat",
        "anxiety": r"anxi|worr(?:y|ies)|panic|nervous",
        "low mood": r"depress|sad(?:ness)?\b|hopeless|low mood|feeling down|empt(?:y|iness)|tearful|(?:low|depressed"
        r"|sad) mood|mood (?:change|swing|symptom)\w*",
        "behaviour": r"behaviou?r|personality change|disinhibit|inappropriate",
        "sleep": r"sleep|insomnia|awaken|wakes?\b|waking",
        "memory": r"memor|forget|amnes|recollection|recall (?:them|the|events)",
        "confusion": r"confus|disorient|delirium|mental status|alert|oriented|lethargic and confused",
        "consciousness": r"(?:loss of|lost|losing) conscious|unconscious|black(?:ed|ing)? ?out|faint|syncop"
        r"|pass(?:ed|ing)? out"
        r"|unresponsive|nonresponsive|collaps",
        "seizure": r"seizure|convuls|epilep|twitch|jerking|staring spell|grimac",
        "urinary incontinence": r"incontinen|leak(?:ing|age)? (?:of )?urine|wet(?:ting)? (?:him|her|your|my)self"
        r"|bladder control",
        "hematuria": r"hematuria|ha?ematuri|blood(?:y)?(?: in)?(?: the| his| her| your)? urine|(?:red|dark|brown"
        r"|cola|tea)[- ]"
        r"?(?:colou?red)? urine|urine (?:that is )?(?:red|dark)",
        "dysuria": r"dysuria|(?:burn|pain|discomfort|sting)\w*(?: \w+){0,2} (?:urinat|pass\w* urine|void|pee)\w*"
        r"|painful urinat",
        "urinary frequency": r"(?:urinary|urine|urination) (?:frequency|urgency)|frequen\w+ urinat|urinat\w+ (?:more"
        r"|frequent|often)"
        r"|polyuria|nocturia|(?:need|urge) to urinate|^frequency$|^urgency$|excessive urinat",
        "urinary change": r"(?:bladder|urinary) (?:habits?|changes?|symptoms?|problems?|function)|urinary habits"
        r"|foul[- ]smelling|cloudy",
        "urinary infection": r"urinary tract infection|\buti",
        "thirst": r"thirst|polydipsi",
        "melena and blood in stool": r"melena|hematochezia|(?:blood|bloody|black|tarry)(?:[ ,]\w+){0,4} (?:stool"
        r"|bowel|feces|diarrh)\w*"
        r"|(?:stools?|bowel movements?)[^,.]*(?:blood|black|tarry)|rectal bleed",
        "hematemesis": r"hematemesis|vomit\w*[^,.]{0,12}blood|blood[^,.]{0,10}vomit|coffee[- ]ground|bilious|bile",
        "diarrhea": r"diarrh|loose (?:stool|bowel)|watery stool",
        "constipation": r"constipat|hard stool|infrequent stool|pass(?:ing)? (?:gas|stool)|meconium",
        "bowel habits": r"bowel|stool|defecat",
        "nausea": r"nause|queasy",
        "vomiting": r"vomit|threw up|throw(?:ing|n|s)? up|emesis|spit(?:ting)? up|regurgit|reflux|heartburn",
        "swallowing": r"swallow|dysphag|odynophag|chok|drool",
        "appetite": r"appetite|anorexi|(?:poor|trouble|difficulty|diminished|decreased|problems?)(?: with)? (?:feed"
        r"|eat)\w*|feeding (?:"
        r"difficult|problem)\w*|not (?:eating|feeding)|eat(?:s|ing) less|refus\w+ (?:to )?(?:eat|feed)|hunger|craving",
        "weight": r"weight|gained? \d+|lost \d+|failure to thrive",
        "growth": r"milestone|development(?:al)?\b|growth",
        "abdominal swelling": r"(?:abdom\w+|belly) (?:size|girth|swell\w*|disten\w*|bloat\w*)|bloat|disten(?:ded"
        r"|sion)|increase in abdominal"
        r"|ascites",
        "jaundice": r"jaundice|yellow(?:ing)? (?:of )?(?:the |your )?(?:skin|eyes?|sclera)|icter",
        "hemoptysis": r"hemoptysis|cough\w* (?:up )?blood|blood[^,.]* sputum",
        "sputum": r"sputum|phlegm|productive|mucus",
        "cough": r"cough",
        "wheeze": r"wheez|stridor|noisy breath",
        "apnea": r"apnea|apneic|stop(?:s|ped)? breathing|not breathing|pauses in breathing",
        "breathlessness": r"dyspn|short(?:ness)? of breath|breathless|(?:trouble|difficult\w*|rapid|labou?red"
        r"|problems?) (?:in |with )?"
        r"breath\w*|breath\w+ (?:rapid\w*|fast|difficult\w*|problem\w*)|tachypn|winded|out of breath",
        "palpitations": r"palpitat|(?:racing|pounding|irregular|fast|skipp\w*) heart|heart (?:rac|pound|flutter"
        r"|skip)\w*",
        "chest pain": r"chest (?:pain|discomfort|pressure|tight\w*|heav\w*)|(?:pain|pressure|tight\w*)[^,.]{0,15} "
        r"chest|angina",
        "sore throat": r"(?:sore|pain\w*|scratchy) throat|throat (?:pain|sore\w*)|pharyngit|hoarse|voice change",
        "nasal": r"(?:runny|stuffy|blocked|congested) nose|nasal (?:congest|discharge)\w*|rhinorr|congestion|sneez"
        r"|cold symptoms"
        r"|upper respiratory|\bcold\b(?! weather| intoler| sweat)|\bflu\b|viral (?:illness|infection)",
        "night sweats": r"night sweats|sweat\w* at night",
        "sweating": r"sweat|diaphor",
        "fever": r"(?<!hay )fevers?\b|febrile|(?:high|elevated|body|raised) temperature|temperature\b(?! (?:sens"
        r"|intol))",
        "chills": r"chill|rigor|shiver",
        "fatigue": r"fatigue|tired|exhaust|letharg|low energy|lack of energy|malaise|unwell|sluggish",
        "temperature intolerance": r"(?:heat|cold) (?:or (?:heat|cold) )?intoleran|sensitiv\w* to (?:heat|cold)"
        r"|feel\w* (?:cold|hot)\b",
        "light and sound": r"photophob|phonophob|sensitiv\w* to (?:light|noise|sound)|light sensitiv|bright light"
        r"|noise/light",
        "neck stiffness": r"neck (?:stiff|rigid)\w*|stiff\w* (?:in (?:the|your) )?neck|meningism",
        "headache": r"headache|migraine|head pain",
        "vision": r"vision|visual|diplop|sight|double|blurr?|blind",
        "hearing": r"hearing|auditory screen|deaf|tinnitus|ringing",
        "ear": r"ear (?:pain|discharge|infect\w*|full\w*)|earache|otorrh",
        "vertigo": r"vertigo|spinning|dizz|lighthead|light-head|imbalance",
        "gait": r"gait|walk|ataxi|unstead|balance|coordinat|stumbl|wheelchair|limp|ambulat",
        "tremor": r"tremor|shak(?:y|iness|ing)|trembl",
        "involuntary movement": r"involuntary|chore|tics?\b|jerky|writhing|movement",
        "stiffness": r"stiff|rigid",
        "speech": r"speech|slur|articulat|aphasi|dysarthr|speak",
        "numbness": r"numb|tingl|paresthes|pins and needles|sensory|loss of sensation|sensation (?:loss|change)"
        r"|(?:reduced|decreased|altered|abnormal|diminished) sensation",
        "weakness": r"weak|(?:reduced|decreased|loss of|lack of) (?:muscle )?(?:strength|tone)|paraly|difficult\w* "
        r"(?:in )?climbing|drop"
        r"(?:ping|s) things|fatigab",
        "face droop": r"fac\w+ (?:droop|weak|asymm)\w*|droop|ptosis",
        "muscle pain": r"myalg|muscle (?:pain|ache|tender|cramp|sore)\w*|body aches|cramp",
        "joint": r"joint|arthralg|arthrit",
        "back pain": r"back (?:pain|ache)|backache|flank pain|pain in (?:the|your|his|her) (?:lower )?back",
        "swelling": r"swell|swollen|edema|puff",
        "bruising": r"bruis|petechi|purpur|ecchym",
        "nosebleed": r"nosebleed|nose bleed|epistax|gum bleed|bleed\w*(?: \w+){0,3} gums|mucous membrane bleed"
        r"|mucosal bleed",
        "vaginal bleeding": r"(?:vaginal|postcoital|intermenstrual|uterine) (?:bleed|spot)\w*|spotting|bleed\w* "
        r"between periods|heavy (?:period"
        r"|menst|bleed)\w*|menorrhag",
        "bleeding": r"bleed|hemorrh",
        "vaginal discharge": r"(?:vaginal|penile|urethral|genital) discharge|discharge from the (?:vagina|penis)",
        "menses": r"menst|menses|menarche|periods?\b(?! of)|\blmp\b|amenorr|cycles?\b|menopaus|hot flash",
        "pregnancy": r"pregnan|gravid|gestation|miscarr|conceiv|obstetric|nullipar|fertil",
        "sex pain": r"dyspareun|(?:pain|discomfort|tension)[^,.]*(?:sex|intercourse|penetration)",
        "sexual function": r"erecti|libido|sex drive|sexual (?:dysfunction|desire)|erectile",
        "genital lesion": r"(?:genital|penile|vaginal|vulvar) (?:sore|ulcer|lesion|wart|rash)\w*",
        "breast": r"breast|nipple|galactorr|lactat",
        "hair": r"hair|alopeci|bald|hirsut|eyelash|eyebrow loss|thinning of the eyebrow",
        "itch": r"itch|prurit",
        "skin lesion": r"rash|lesion|skin (?:change|lesion|eruption)\w*|macule|papul|vesicl|blister|plaque|patch"
        r"|hives|urticar|mole|ulcer",
        "scale": r"scal(?:e|y|ing)|flak|crust|dandruff|peel",
        "redness": r"\bred(?:ness|dish)?\b|erythem",
        "warmth": r"\bwarm(?:th)?\b",
        "cyanosis": r"cyano|blu(?:e|ish) (?:lips|skin|disc|finger|nail)|turn\w* blue",
        "pallor": r"pallor|\bpale\b",
        "lump": r"\blumps?\b|\bmass(?:es)?\b|nodul|enlarged (?:lymph )?(?:node|gland)|swollen (?:lymph )?(?:node"
        r"|gland)|lymph",
        "eye": r"eye (?:pain|red|discharge|irritat|itch)\w*|(?:red|painful|itchy|watery|dry) eyes?|cloudy lens|tearing",
        "mouth": r"mouth (?:sore|ulcer)\w*|oral (?:ulcer|lesion|sore)\w*|dry mouth|taste",
        "injury": r"trauma|injur|accident|collision|\bfall(?:s|en)?\b|\bfell\b|fractur|\bhit\b|wound",
        "bite": r"\bbit(?:e|es|ten)\b|\bticks?\b|sting|mosquito|insect",
        "exposure": r"expos|toxin|chemical|asbestos|carbon monoxide|pesticide|mold",
        "infection": r"infect|illness(?:es)?|\bsick\b|pneumonia",
        "vaccination": r"vaccin|immuniz|immunis|\bshots\b",
        "birth": r"\bborn\b|\bbirth|deliver(?:y|ed)|preterm|prematur|full[- ]term|prenatal|perinatal|\bnicu\b|neonat"
        r"|gestation",
        "stress": r"stress|life event|bereave|divorce|loss of (?:a|job)|terminated|exams",
        "previous episode": r"(?:similar|previous|prior|past) (?:similar )?(?:episode|attack|problem|symptom|event"
        r"|lesion)\w*|happened before"
        r"|had this before|anything like this|like this before|first time",
        "function": r"daily (?:living|activit\w+)|activities of daily|function|perform\w+|brush|dress(?:ing)?\b|job "
        r"performance",
    }.items()
}
# "Any neurological symptoms?" asks for all of these.
_SYSTEMS = {
    re.compile(pattern, re.IGNORECASE): frozenset(members.split("|"))
    for pattern, members in (
        (
            r"neuro(?:logic\w*)? (?:symptom|sign|change|deficit|problem|complaint|issue)\w*",
            "weakness|numbness|vision|speech|gait|headache|seizure|confusion|memory|tremor|consciousness|vertigo"
            "|face droop",
        ),
        (r"respiratory symptom\w*|breathing (?:symptom|problem)\w*", "cough|breathlessness|wheeze|sputum|hemoptysis"),
        (
            r"(?:gastrointestinal|gi|digestive|stomach|abdominal) (?:symptom|problem|issue|complaint|upset)\w*",
            "nausea|vomiting|diarrhea|constipation|bowel habits|melena and blood in stool|appetite|abdominal swelling",
        ),
        (
            r"(?:urinary|bladder) (?:symptom|problem|issue|complaint|change)\w*",
            "dysuria|urinary frequency|hematuria|urinary incontinence|urinary change",
        ),
        (
            r"(?:constitutional|systemic|b|general) symptom\w*",
            "fever|chills|night sweats|weight|fatigue|appetite",
        ),
        (r"cardiac symptom\w*|heart symptom\w*", "chest pain|palpitations|breathlessness|swelling|consciousness"),
        (r"(?:psychiatric|psychotic|mood) symptom\w*", "low mood|anxiety|hallucination|delusion|mania|suicide"),
        (r"skin (?:symptom|change|problem|finding)\w*", "skin lesion|itch|redness|scale|bruising"),
        (
            r"cold or flu|flu[- ]like|viral symptoms|infectious symptoms",
            "fever|cough|nasal|sore throat|chills|infection",
        ),
    )
}


@lru_cache(maxsize=32768)
def _told_symptoms(text: str) -> frozenset[str]:
    """Every symptom a statement speaks of."""
    return frozenset(name for name, pattern in _SYMPTOMS.items() if pattern.search(text))


@lru_cache(maxsize=32768)
def _implied_symptoms(text: str) -> frozenset[str]:
    """The symptoms a statement speaks of as a whole: "no urinary symptoms", "no change in bowel habits"."""
    names = [members for system, members in _SYSTEMS.items() if system.search(text)]
    names += [members for name, members in _IMPLIED.items() if _SYMPTOMS[name].search(text)]
    return frozenset().union(*names)


_IMPLIED = {
    "bowel habits": frozenset({"diarrhea", "constipation", "melena and blood in stool"}),
    "urinary change": frozenset({"dysuria", "urinary frequency", "hematuria", "urinary incontinence"}),
    "infection": frozenset({"nasal"}),
}


@lru_cache(maxsize=8192)
def _asked_symptoms(text: str) -> tuple[frozenset[str], str]:
    """The symptoms a part of a question asks for, and what else it says.

    Where a general symptom is part of a special one's name, the special one alone.
    """
    found: set[str] = set()
    for system, members in _SYSTEMS.items():
        if system.search(text):
            found |= members
            text = system.sub(" ", text)
    for name, pattern in _SYMPTOMS.items():
        if pattern.search(text):
            found.add(name)
            text = _rest_of_word(pattern).sub(" ", text)
    return frozenset(found), text


@lru_cache(maxsize=256)
def _rest_of_word(pattern: re.Pattern[str]) -> re.Pattern[str]:
    return re.compile(rf"(?:{pattern.pattern})\w*", re.IGNORECASE)


@dataclass(frozen=True)
class Reading:
    """What a statement, or a part of a question, speaks of."""

    findings: frozenset[str]
    things: frozenset[str]
    """Its meaningful words, different words for one thing made one."""
    places: frozenset[str]
    pain: bool


@lru_cache(maxsize=32768)
def reading(text: str) -> Reading:
    """Read a statement: kept, because a chart's statements are read at every question."""
    plain = _UPPER_LOWER.sub(lambda m: "arm" if m[1].lower() == "upper" else "leg", text)
    named = [word for word in words(plain) if word not in STOP_WORDS]
    places = frozenset(_PLACE_OF[word] for word in named if word in _PLACE_OF)
    stems = {_stem(word) for word in named if word not in _PLACE_OF and not word.isdigit()}
    known = knowledge()
    return Reading(
        frozenset(mention.key for mention in known.finding_terms.find(text)),
        frozenset(_SAME.get(stem, stem) for stem in stems if stem not in _VAGUE_STEMS or stem in _SAME),
        places,
        bool(_PAIN.search(text)),
    )


def _same_place(asked: frozenset[str], charted: frozenset[str]) -> bool:
    """Whether a place asked for is one charted, or a part of it, or the greater part."""
    return any(a == c or a in _GREATER.get(c, ()) or c in _GREATER.get(a, ()) for a in asked for c in charted)


# ---- questions to the patient

_OPENING = re.compile(
    r"what (?:(?:brings|brought)(?! (?:it|this|them|the \w+) on)|seems|can i|made you|is going on|has been going"
    r"|are your (?:main )?(?:symptoms|concerns))"
    r"|how can i help|what's (?:going on|been|wrong|the (?:matter|problem))|main (?:concern|complaint|problem)"
    r"|tell me (?:more |a bit more )?about (?:your (?:symptoms?|problem|complaint)|what|how|yourself|why)"
    r"|(?:describe|explain) (?:your|the|all (?:your|the)|his|her) (?:current |main )?(?:symptoms?|problem|complaint)"
    r"|in your own words|how are you feeling|what (?:symptoms|happened)|reason for (?:your|the|this) visit"
    r"|why (?:have you come|are you here)|what is (?:the matter|wrong|bothering)",
    re.IGNORECASE,
)
_TIME = (
    r"\d+[\s-]*(?:minute|hour|day|week|month|year)s?\b(?!-old)|\b(?:past|last|several|few|couple of|an?|one|two|three"
    r"|four|five|six|seven|eight|nine|ten|many) (?:few |several |couple of )?(?:minute|hour|day|week|month|year)s?\b"
    r"|\bago\b|\bsince\b|\bsudden(?:ly)?\b|\bgradual(?:ly)?\b|\binsidious|\byesterday\b|\bthis morning\b|\bovernight\b"
    r"|\b(?:minute|hour|day|week|month|year)s?-long\b|\bprogressive(?:ly)?\b|\babrupt(?:ly)?\b|\blast night\b"
)
_TIMED = re.compile(_TIME, re.IGNORECASE)
_CHANGED = re.compile(
    r"\bwors(?:e|en\w*)\b|\bimprov\w+|\bbetter\b|\brelie(?:f|ve\w*)\b|\balleviat\w+|\baggravat\w+|\bexacerbat\w+"
    r"|\btrigger\w*|\bprovok\w+|\bbrought on\b|\bbrings? (?:it |them )?on\b|\beas(?:e|es|ed|ing)\b|\bfluctuat\w+"
    r"|\bcome[s]? and go|\bgo(?:es)? away\b|\bsubsid\w+|\bdisappear\w*|\bintermittent\w*|\bresolv\w+|\bintensif\w+"
    r"|\bespecially\b|\bdecreases?\b"
    r"|\bhelps?\b|\bprogress(?:ed|es|ing|ive|ively)\b|\bincreas(?:ed|ing|es)\b (?:in )?(?:frequency|severity|over)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Aspect:
    """A side of the complaint that questions ask for, and how statements that tell it read."""

    name: str
    asked: re.Pattern[str]
    told: re.Pattern[str]


def _aspect(name: str, asked: str, told: str) -> _Aspect:
    return _Aspect(name, re.compile(asked, re.IGNORECASE), re.compile(told, re.IGNORECASE))


_ASPECTS = (
    _aspect(
        "timing",
        r"\bwhen (?:did|was|were|do|does)?\b.{0,60}\b(?:start\w*|beg[aiu]n\w*|occur\w*|happen\w*|first|notice\w*|onset"
        r"|appear\w*|come on|develop\w*|last)\b|\bhow long\b|\bsince when\b|\bonset\b|\bduration\b|\bsuddenly\b"
        r"|\bsudden or\b|\bgradual(?:ly)?\b|\bhow (?:fast|quickly|many (?:minutes|hours|days|weeks|months|years))\b"
        r"|\bfor how\b|\btimeline\b|\btime course\b|\bdid (?:it|this|they|the \w+) (?:start|begin|come on)\b",
        _TIME,
    ),
    _aspect(
        "frequency",
        r"\bhow (?:often|frequent\w*|many (?:times|episodes))\b|\bfrequency of\b",
        r"\btimes\b|\bepisodes?\b|\bfrequen|\bdaily\b|\bevery\b|\bonce\b|\btwice\b|\brecurr|\boccasional|\bper "
        r"(?:day|week)"
        r"|\bconstant|\bintermittent",
    ),
    _aspect(
        "course",
        r"\bfluctuat|\bcome[s]? and go|\bconstant or\b|\b(?:get|gett|becom|grow)(?:s|ing|ten|en)? (?:worse"
        r"|better)\b(?!\s+"
        r"(?:with|when|after|during|while|at|on|in)\b)|\bhow (?:has|have|did) .{0,40}\b(?:chang|progress|evolv|develop)"
        r"|\bprogress|\bchanged over\b|\bhas (?:it|this|that|the \w+) (?:changed|grown|spread)\b|\bbetter,? or "
        r"worse\b|\bworse,? or better\b|\bmake[s]? (?:it|them|the \w+|this|your "
        r"\w+) (?:any )?(?:better|worse)|\bwhat (?:makes|helps|relieves|triggers|brings|worsens|aggravates|improves)"
        r"|\banything (?:that )?(?:make|help|relieve|trigger|worsen|aggravate|improve|eas)|\b(?:aggravat|alleviat"
        r"|reliev"
        r"|exacerbat)\w+ (?:or \w+ )?factors|\bany triggers\b|\bworsened or improved\b|\bimproved or worsened\b",
        _CHANGED.pattern,
    ),
    _aspect(
        "severity",
        r"\bhow (?:severe|bad|intense|strong)\b|\bscale\b.{0,25}\b(?:10|ten)\b|\b(?:10|ten)[- ]point|\brate (?:the"
        r"|your)\b"
        r"|\bseverity\b",
        r"\bsevere\w*|\bmild\w*|\bmoderate\w*|/10\b|\bintens|\bout of (?:10|ten)\b|\bworst\b|\bunbearable\b|\blow "
        r"grade\b",
    ),
    _aspect(
        "character",
        r"\bsharp\b.{0,20}\bor\b|\bdull\b|\bwhat (?:does|is) (?:it|the \w+|this|your \w+) (?:feel )?like\b|\bdescribe "
        r"(?:the|your|this) (?:pain|discomfort|headache|sensation|cough|rash)|\bcharacter\b|\bquality of\b|\bkind "
        r"of pain\b"
        r"|\btype of pain\b",
        r"\bsharp|\bdull|\bburning|\bcramp|\bthrob|\bstab|\bsqueez|\baching|\bpressure|\bcolicky|\btight|\btearing"
        r"|\bsevere"
        r"|\bcrushing|\bshooting|\bdescribe|\bdry\b|\bproductive|\bpulsat",
    ),
    _aspect(
        "spread",
        r"\bradiat|\bspread|\bmove (?:anywhere|elsewhere|to)\b|\btravel (?:anywhere|to|down)\b|\bgo anywhere else\b",
        r"\bradiat|\bspread|\bmov(?:ed|es) to|\bmigrat|\bshoot(?:s|ing)|\bextend|\bdistribut|\bother (?:areas|parts)",
    ),
    _aspect(
        "treatment",
        r"\btried\b|\btaken anything\b|\btake anything for\b|\btreat(?:ed|ing|ments?)\b(?! with)|\bhome remed"
        r"|\bdone anything for\b",
        r"\btried\b|\btook\b|\btaken\b|\btaking\b|\btreat|\brelie[fv]|\bibuprofen|\bacetaminophen|\bmedicat|\bcream"
        r"|\bointment|\bantibiotic|\buse of\b|\bover-the-counter",
    ),
)  # fmt: skip
_ASPECTS_WITH_PLACE = ("where", re.compile(r"\bwhere (?:is|are|does|do|did|exactly|else)\b|\blocat|\bpoint to\b", re.I))
# "Any fever or sudden pain?" lists symptoms; it does not ask when they began.
_LISTED = re.compile(
    r"(?:and |or |also )?(?:any|have you (?:had|noticed|ever|been|experienced)|are there|is there|do you have|has "
    r"(?:he|she))\b",
    re.IGNORECASE,
)
_HOW = re.compile(
    r"\b(?:when did|how|what makes|where|better or worse|worse or better|anything (?:that )?(?:make|help|relieve"
    r"|trigger)"
    r"|tried|triggers|factors|come and go|fluctuat|getting (?:worse|better))",
    re.IGNORECASE,
)
_EXAMINED = re.compile(
    r"\b(?:let me|i(?:'d| would) like to|can i|may i|i will|i'll) (?:examine|check|listen|look|palpate|feel|measure)"
    r"|\bblood pressure (?:today|reading|now)|\bon (?:\w+ )?(?:exam|examination|palpation|auscultation|inspection)\b"
    r"|\b(?:test|lab|scan|x-?ray|biopsy|imaging|ecg|ekg|mri|ct) (?:results?|show)"
    r"|\b(?:maneuver|manoeuvre|impingement test|\w+ (?:test|sign) (?:positive|negative))\b"
    r"|\bresults? of\b|\bwhat (?:is|was|are) your (?:temperature|blood pressure|heart rate|pulse|vital|oxygen)",
    re.IGNORECASE,
)
_STORY = (Section.HISTORY, Section.SYMPTOMS, Section.REVIEW)
_ABOUT_SYMPTOMS = (*_STORY, Section.PAST)
_KIN = (
    r"mother|father|parents?|brothers?|sisters?|siblings?|uncle|aunt|cousin|grand(?:mother|father|parents?|ma|pa)"
    r"|relatives?|family"
)
_FAMILY_TOLD = re.compile(
    rf"\bfamily history\b|\bin the family\b|\bfamily or personal\b|\bruns in\b|\bhereditary\b"
    rf"|\b(?:{_KIN})\b(?!['’]?s? (?:reports?|notes?|states?|says?|mentions?|notice[sd]?|brings?|brought|describes?"
    rf"|denie[sd]"
    rf"|deny|gave|think|believe|is worried|are worried))[^.;,]{{0,25}}\b(?:has|had|have|with|died|history|suffer\w*"
    rf"|diagnosed"
    rf"|committ\w+|similar|healthy|immune)\b",
    re.IGNORECASE,
)
_DRUGS_TOLD = re.compile(
    r"\bmedications?\b|\bmedicines?\b|\btak(?:es|ing)\b|\btaken (?!to\b)|\btook\b|\bprescribed\b|\btreated with\b|\bon "
    r"[a-z]+(?:mab|pril|olol|statin|formin|sartan|azole|cillin|ine|one|ide|arin)\b|\btreatment includes\b"
    r"|\buse of [a-z]+(?:ine|ol|en|in)\b|\bsupplements?\b|\bvitamins?\b|\bcontracepti|\bantibiotics?\b|\bibuprofen\b"
    r"|\baspirin\b|\bacetaminophen\b|\bcontrolled with\b|\binsulin\b|\bwarfarin\b",
    re.IGNORECASE,
)
_WELL = re.compile(
    r"\b(?:no|denies|without)\b(?: (?:any|known|significant|relevant|prior|previous|chronic|serious|major|other|past"
    r"|personal|family or personal|history of|notable|important|underlying|medical|pre-?existing|or|reported"
    r"|\w+ical))* "
    r"(?:medical|health|past illness\w*|illness(?:es)?|diseases?|conditions?|history(?! of)|issues|problems|surgical"
    r"|diagnos[ei]s)\b"
    r"|\b(?:previously|generally|otherwise|usually|always) (?:been )?healthy\b|\bunremarkable\b|\binsignificant\b"
    r"|\bnoncontributory\b"
    r"|\bsignificant past illness",
    re.IGNORECASE,
)
_NOT_WELL = re.compile(
    r"\brecent (?:illness|infection)|\bbirth\b|^(?:no |negative )?family history\b|\bsocial history\b", re.IGNORECASE
)
_PAST_TOLD = re.compile(
    r"\bhistory of\b(?! smoking| alcohol| travel)|\bdiagnosed\b|\b(?:has|had|known) (?:type|diabetes|hypertension"
    r"|asthma)"
    r"|\bpast medical history\b|\bsignificant (?:past )?(?:medical )?history\b|\bprevious surger|\bpreviously healthy"
    r"|\bchronic (?:disease|condition|illness)",
    re.IGNORECASE,
)
_ALSO_YOU = re.compile(
    r"\byou(?:r|rself)? (?:or|and)\b|\bpersonal\b|\bdo you (?:have|or)\b|\bor (?:in )?(?:your )?family\b", re.IGNORECASE
)
_SICKNESS = re.compile(
    r"\b(?:diseases?|disorders?|conditions?|syndrome|cancers?|tumou?rs?|asthma|eczema|atopy|atopic|diabetes"
    r"|hypertension|hyperlipidemia|thrombosis|sexually-transmitted|infarction|high blood pressure|hay fever"
    r"|allergic rhinitis|migraines?|strokes?|epilepsy|heart attacks?"
    r"|\w+(?:itis|osis|oma|opathy|emia|aemia|philia|iasis|plasia)|sti|stis|std|stds|lupus|gout|hiv|depression"
    r"|bipolar|psychosis|schizophrenia|dementia|anxiety disorder|tuberculosis|tb"
    r"|surger\w*|operations?|hospitali\w+|(?:kidney|heart|liver|lung|thyroid|bleeding|skin|stomach|mental health"
    r"|medical|clotting|autoimmune|blood|psychiatric|neurologic\w*) (?:issues?|problems?|trouble)|cirrhosis|clots?)\b",
    re.IGNORECASE,
)
_PAST_CUE = re.compile(
    r"\bhistory of\b|\bdiagnosed\b|\bever (?:had|been|have)\b|\bprior\b|\bprevious(?:ly)?\b|\bin the past\b|\bhave "
    r"you had"
    r"|\bpersonal history\b|\bdo you have\b|\bany known\b|\bunderlying\b|\bany other\b",
    re.IGNORECASE,
)
_BACKGROUND: tuple[tuple[Section, Asked, re.Pattern[str]], ...] = tuple(
    (section, kind, re.compile(pattern, re.IGNORECASE))
    for section, kind, pattern in (
        (
            Section.FAMILY,
            Asked.FAMILY,
            r"\bfamily\b|\bparents?\b(?! notice)|\bmother|\bfather|sibling|\brelatives?\b|\bruns? in\b|heredit"
            r"|\bgenetic",
        ),
        (Section.ALLERGIES, Asked.BACKGROUND, r"\ballerg(?:y|ies|ic to)\b|\ballergic\b(?! rhinitis)"),
        (
            Section.DRUGS,
            Asked.BACKGROUND,
            r"medications?|medicines?|\bmeds\b|prescri|\bpills?\b|supplements?|over.the.counter"
            r"|taking any(?:thing)?\b|what drugs|\bdrugs? (?:do|are) you\b|\bnsaids?\b|\bantibiotics?\b|\bsteroids?\b"
            r"|\bblood thinners?\b|\bcontracepti|\bherbal",
        ),
        (
            Section.PAST,
            Asked.BACKGROUND,
            r"(?:past |previous |medical |prior |health |surgical )(?:medical |health )?(?:history|conditions?"
            r"|problems?"
            r"|illness(?:es)?|issues)|chronic (?:conditions?|illness(?:es)?|diseases?|medical)|surger|operations?\b"
            r"|hospitali|\bother (?:health|medical)|underlying|\bserious illness|\bmajor illness|\bbeen healthy\b",
        ),
        (
            Section.SOCIAL,
            Asked.BACKGROUND,
            r"smok|tobacco|cigarette|\bvap(?:e|ing)|alcohol|\bdrink\b(?! (?:enough|plenty))|recreational|illicit"
            r"|street drugs|drug use|use (?:any )?drugs|\binject|occupation|\bjob\b|\bwhat (?:kind|type|sort) of work\b"
            r"|(?<!affect )(?<!affected )(?<!affecting )(?<!with )\byour work\b|\bdo you work\b|for a living|\bwho "
            r"do you live|\blive (?:with|alone)|\bliving situation"
            r"|(?<!it )(?<!pain )\btravel(?:ed|led|ing|ling)?\b(?! (?:down|to your))|sexually active|sexual "
            r"(?:history|partners?"
            r"|activity)|\bpartners?\b|condom|\bdiet\b|\bhobb|\bpets?\b|\banimals?\b|lifestyle|social history"
            r"|\bsubstance|\bmarried\b|\boccupational",
        ),
        (
            Section.DEMOGRAPHICS,
            Asked.BACKGROUND,
            r"how old|\b(?:your|his|her|their|patient['’]?s|child['’]?s|baby['’]?s|infant['’]?s) (?:exact )?age\b"
            r"|what age"
            r"|\bage and (?:sex|gender)|\byour (?:sex|gender)\b",
        ),
    )
)
_SOCIAL_TOPICS = {
    "smoking": r"smok|tobacco|cigarette|\bvap|\bpacks?\b",
    "alcohol": r"alcohol|\bdrink|\bwine|\bbeer|\bliquor",
    "drugs": r"recreational|illicit|\bdrugs?\b|marijuana|cocaine|cannabis|substance|heroin|\binject",
    "work": r"occupation|\bwork(?:s|ed|ing)?\b|\bjob|employ|retired|for a living|student|profession|\bschool"
    r"|\bgrade\b|teacher"
    r"|engineer|nurse|farmer|worker|clerk|driver",
    "travel": r"travel|\btrip|abroad|immigra",
    "sex": r"sexual|partner|condom|\bmarried|\bhusband|\bwife",
    "diet": r"\bdiet|\beat\b|\beats\b",
    "animals": r"\bpets?\b|animal|\bcats?\b|\bdogs?\b|livestock",
    "home": r"\blives?\b|living situation|\bliving with|\balone\b",
}  # fmt: skip
_SOCIAL = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _SOCIAL_TOPICS.items()}
_SOCIAL_ASKED = {**_SOCIAL, "work": re.compile(_SOCIAL_TOPICS["work"].replace(r"|\bgrade\b", ""), re.IGNORECASE)}
# What is set aside in a question: "besides the rash", "along with the ataxia", "that could lower the threshold".
_ASIDE = re.compile(
    r"\b(?:besides|other than|apart from|aside from|along with|in addition to|that (?:could|might|may|would)|which "
    r"(?:could"
    r"|may|might)|with (?:the|these|this)|suggest(?:ing|ive)|to suggest|before the|prior to the)\b[^,;?()]*",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"[?;]+\s*|—|\s[-–]\s|(?:,\s*|(?<!you)(?<!\byour)\s+)(?:and|or)\s+(?=(?:do|does|did|is|are|was|were|have|has|had"
    r"|when|how|what|where|whether"
    r"|can|could|any|who|which)\b)|,\s+(?=(?:do|does|did|have|has|when|how|what|where|whether|can)\b)|\.\s+",
    re.IGNORECASE,
)
_ITEM = re.compile(
    r"[,:!()/\[\]]|\b(?:or|and|plus|like|such as|including|e\.g\.?|i\.e\.?|versus|vs|as well as|nor)\b", re.IGNORECASE
)
# "Neurological symptoms such as weakness" asks for weakness.
_HEADING = re.compile(r"\b(?:\w+ ){0,2}symptoms?\s*(?=\(|:|\blike\b|\bsuch as\b|\bincluding\b)", re.IGNORECASE)
_TRIGGERED = re.compile(
    r"\b(?:when|whenever|with|after|during|while|on|by|at|from|upon|following|toward|towards)\b", re.I
)
_EARLIER = re.compile(r"\b(?:similar|previous(?:ly)?|prior|before|in the past|childhood|as a child)\b", re.IGNORECASE)
_BROAD = re.compile(
    r"\b(?:symptoms?|problems?|issues?|trouble|complaints?|changes?|difficult(?:y|ies)|concerns?)\b", re.I
)
_BODY_QUESTION = re.compile(r"\b(?:do|does|did|have|has|had|are|is|was|were|any|ever|can|could)\b", re.IGNORECASE)
_NOTHING_ELSE = re.compile(
    r"\b(?:no|denies|without)\b(?: any)? (?:other|additional|further|associated)(?: significant| associated| specific"
    r"| notable| new| relevant| major)* (?:symptoms?|complaints?|concerns?|issues)\b|\ball other systems\b",
    re.IGNORECASE,
)
_ANYTHING_ELSE = re.compile(
    r"\b(?:any|other|additional|associated|new|what) (?:other |additional |associated |new )*symptoms?\b[^,(:]{0,25}$"
    r"|\banything else\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Item:
    """One thing of a list that a question asks for."""

    text: str
    read: Reading
    named: frozenset[str]
    """Words of the findings' names in it."""
    symptoms: frozenset[str]
    """The symptoms it asks for."""
    places: frozenset[str]
    """Where, beyond the names of findings and symptoms."""

    @property
    def triggers(self) -> frozenset[str]:
        """What it says brings something on, beyond a finding's own name: "burning with urination" is one name."""
        own = {_SAME.get(_stem(word), "") for word in self.named}
        return self.read.things & _TRIGGERS - own

    @property
    def modified(self) -> bool:
        """Whether it asks what makes something come, go or change, rather than whether it is there."""
        return bool(self.triggers and (_CHANGED.search(self.text) or _TRIGGERED.search(self.text)))


@lru_cache(maxsize=8192)
def _in_order(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(mention.key for mention in knowledge().finding_terms.find(text)))


@lru_cache(maxsize=8192)
def _items(clause: str) -> tuple[_Item, ...]:
    plain = _HEADING.sub(" ", _ASIDE.sub("", clause))
    items = [_item(part.strip(" .")) for part in _ITEM.split(plain) if part.strip(" .")]
    seen = {key for item in items for key in item.read.findings}
    # A name with "and" in it, or one whose words the list shares, is found in the whole only.
    rest = [mention for mention in knowledge().finding_terms.find(plain) if mention.key not in seen]
    items += [_item(" ".join(mention.words)) for mention in rest]
    places = frozenset(place for item in items for place in item.places)
    return tuple(replace(item, places=places) if not item.places and item.symptoms & _LOCAL else item for item in items)


def _item(part: str) -> _Item:
    named = frozenset(word for mention in knowledge().finding_terms.find(part) for word in mention.words)
    symptoms, left = _asked_symptoms(part)
    rest = reading(" ".join(word for word in words(left) if word not in named))
    return _Item(part, reading(part), named, symptoms, rest.places)


def asked_of_patient(question: str, facts: Sequence[Fact]) -> list[Topic]:
    """What a question to the patient is about, part by part, each with the facts that answer it."""
    topics: list[Topic] = []
    for clause in _clauses(question):
        for topic in _asked_in(clause, facts):
            _add(topics, topic)
    if any(topic.facts for topic in topics):
        # Beside an answer, what nobody could name and what the door tells is left unsaid.
        topics = [t for t in topics if t.facts or (t.kind is not Asked.UNCLEAR and t.name != "demographics")]
    clear = [topic for topic in topics if topic.kind is not Asked.UNCLEAR]
    return clear or [Topic(question.strip(), Asked.UNCLEAR, ())]


@lru_cache(maxsize=8192)
def _clauses(question: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in _CLAUSE.split(question.replace("’", "'")) if part and part.strip())


def _add(topics: list[Topic], topic: Topic) -> None:
    """Add a topic, or its facts to an earlier one of the same name."""
    for place, earlier in enumerate(topics):
        if earlier.name == topic.name and earlier.kind is topic.kind:
            topics[place] = Topic(topic.name, topic.kind, tuple(dict.fromkeys(earlier.facts + topic.facts)))
            return
    topics.append(topic)


def _asked_in(clause: str, facts: Sequence[Fact]) -> list[Topic]:
    if _EXAMINED.search(clause):
        return [Topic("examination or result", Asked.RESULT, ())]
    topics = _background_topics(clause, facts)
    if _OPENING.search(clause) and not topics:
        return [Topic("opening", Asked.OPENING, _opening_facts(facts))]
    aspects = [] if topics else _aspect_topics(clause, facts)
    if aspects:
        return aspects
    items = _symptom_topics(clause, facts, background=bool(topics))
    return topics + items


# ---- background: who, what was before, drugs, habits, kin


def _background_topics(clause: str, facts: Sequence[Fact]) -> list[Topic]:
    topics = [
        Topic(section.value.replace("_", " "), kind, tuple(_background(section, clause, facts)))
        for section, kind, pattern in _BACKGROUND
        if pattern.search(clause)
    ]
    sick = _PAST_CUE.search(clause) and _SICKNESS.search(clause)
    if any(topic.kind is Asked.FAMILY for topic in topics) and not _ALSO_YOU.search(clause):
        return [topic for topic in topics if topic.name != Section.PAST.value.replace("_", " ")]
    past = Section.PAST.value.replace("_", " ")
    if sick and not any(topic.name == past for topic in topics):
        topics.append(Topic(past, Asked.BACKGROUND, tuple(_this_sickness(clause, facts))))
    return topics


def _background(section: Section, clause: str, facts: Sequence[Fact]) -> list[Fact]:
    match section:
        case Section.SOCIAL:
            return _social(clause, facts)
        case Section.FAMILY:
            return [f for f in facts if f.section is section or _FAMILY_TOLD.search(f.text)]
        case Section.DRUGS:
            return [f for f in facts if f.section is section or _tells_drugs(f)]
        case Section.ALLERGIES:
            return [f for f in facts if f.section is section or "allerg" in f.text.lower()]
        case Section.PAST:
            return _past(clause, facts)
    return [f for f in facts if f.section is section]


def _tells_drugs(fact: Fact) -> bool:
    return fact.section in (*_ABOUT_SYMPTOMS, Section.SOCIAL) and bool(_DRUGS_TOLD.search(fact.text))


def _past(clause: str, facts: Sequence[Fact]) -> list[Fact]:
    """Everything that was before, or what of it was asked for."""
    specific = re.search(r"surger|operations?\b|hospitali", clause, re.IGNORECASE)
    general = re.search(
        r"histor(?:y|ies)\b(?! of)|conditions?|problems?|illness|issues|disease|underlying", clause, re.I
    )
    if specific and not general:
        return _this_sickness(clause, facts)
    return [
        f
        for f in facts
        if f.section is Section.PAST
        or (f.section in _STORY and (_PAST_TOLD.search(f.text) or _is_well(f)) and not _FAMILY_TOLD.search(f.text))
    ]


# One illness under several names.
_ALIASES = (
    (re.compile(r"\bhigh blood pressure\b|\bhtn\b|\belevated blood pressure\b", re.I), "hypertension"),
    (re.compile(r"\bheart attacks?\b|\bmi\b", re.I), "myocardial infarction"),
    (re.compile(r"\bhigh cholesterol\b|\bdyslipid\w+|\bhypercholesterol\w+", re.I), "hyperlipidemia"),
    (re.compile(r"\bblood clots?\b|\bdvt\b", re.I), "thrombosis"),
    (re.compile(r"\bhay fever\b", re.I), "rhinitis"),
    (re.compile(r"\bst[id]s?\b|\bsexually transmitted (?:infections?|diseases?)", re.I), "sexually-transmitted"),
)


@lru_cache(maxsize=16384)
def _by_one_name(text: str) -> str:
    for pattern, name in _ALIASES:
        text = pattern.sub(name, text)
    return text


def _this_sickness(clause: str, facts: Sequence[Fact]) -> list[Fact]:
    """What the chart says of the illnesses named, and what it says of all illness."""
    clause = _by_one_name(clause)
    items = [item for item in _items(clause) if _SICKNESS.search(item.text)]
    wanted = [item.read.things | {place for place in item.read.places if place != "skin"} for item in items]
    told = [f for f in facts if f.section in _ABOUT_SYMPTOMS and any(_tells_all(f, named) for named in wanted)]
    return [f for f in facts if f in told or _is_well(f)]


def _tells_all(fact: Fact, named: frozenset[str]) -> bool:
    read = reading(_by_one_name(fact.text))
    return bool(named) and named <= read.things | read.places


def _is_well(fact: Fact) -> bool:
    return (
        fact.section in (Section.PAST, Section.HISTORY, Section.REVIEW)
        and bool(_WELL.search(fact.text))
        and not _NOT_WELL.search(fact.text)
    )


def _social(clause: str, facts: Sequence[Fact]) -> list[Fact]:
    wanted = [name for name, pattern in _SOCIAL_ASKED.items() if pattern.search(clause)]
    if not wanted:
        return [f for f in facts if f.section is Section.SOCIAL]
    told = []
    for fact in facts:
        if fact.section not in (Section.SOCIAL, Section.HISTORY, Section.PAST):
            continue
        about = [name for name, pattern in _SOCIAL.items() if pattern.search(_whole(fact))]
        if fact.section is Section.SOCIAL and not about:
            about = ["work"]  # "Graphic designer."
        if fact.section is not Section.SOCIAL:
            about = [name for name in about if name in ("smoking", "alcohol", "drugs", "travel", "sex")]
            about = [name for name in about if name != "drugs" or not _DRUGS_TOLD.search(fact.text)]
        if set(about) & set(wanted):
            told.append(fact)
    return told


def _opening_facts(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """What a patient says first: the main complaint and how the story begins."""
    primary = [f for f in facts if any(fold(head) == "primary symptom" for head in f.heads)]
    story = [f for f in facts if f.section is Section.HISTORY]
    return tuple(dict.fromkeys(primary + story[:2])) or tuple(facts[:1])


# ---- the complaint: its sides, and other symptoms


def _aspect_topics(clause: str, facts: Sequence[Fact]) -> list[Topic]:
    if _LISTED.match(clause) and not _HOW.search(clause):
        return []
    story = [f for f in facts if f.section in _STORY and _of_the_complaint(f)]
    topics = []
    for aspect in _ASPECTS:
        if not aspect.asked.search(clause):
            continue
        here = story
        if aspect.name == "timing":
            here = [*story, *(f for f in facts if f.section is Section.PAST and _of_the_complaint(f))]
        told = [f for f in here if aspect.told.search(f.text)]
        topics.append(Topic(aspect.name, Asked.SYMPTOM, tuple(_about_the_same(clause, told, here))))
    name, asked = _ASPECTS_WITH_PLACE
    if asked.search(clause):
        told = [f for f in story if reading(f.text).places and not f.denied]
        topics.append(Topic(name, Asked.SYMPTOM, tuple(_about_the_same(clause, told, story))))
    return topics


def _of_the_complaint(fact: Fact) -> bool:
    """Whether a statement of the story is not, in truth, one about habits or kin."""
    habit = _SOCIAL["smoking"].search(fact.text) or _SOCIAL["alcohol"].search(fact.text)
    return not habit and not _FAMILY_TOLD.search(fact.text) and not (fact.section is Section.PAST and fact.denied)


def _about_the_same(clause: str, told: list[Fact], story: list[Fact]) -> list[Fact]:
    """Of the statements that tell a side, those about the symptom asked for, where the chart knows it."""
    items = [
        item for item in _items(clause) if item.read.findings or item.symptoms or item.read.pain or item.read.things
    ]
    known = [f for f in story if any(_speaks_of(item, f) for item in items)]
    if not known:
        return [f for f in told if f.section is not Section.PAST] if _names_symptom(items) else told
    if not any(f.section is Section.HISTORY for f in known):
        known += [f for f in told if f.section is Section.HISTORY][:1]
    # "These symptoms", "it": a statement that names no other symptom goes with the one before.
    return [f for f in told if f in known or _refers_back(f)]


def _names_symptom(items: list[_Item]) -> bool:
    return any(item.read.findings for item in items)


def _speaks_of(item: _Item, fact: Fact) -> bool:
    read = reading(fact.text)
    if item.read.findings & read.findings or item.symptoms & _told_symptoms(fact.text):
        return True
    if item.read.pain and read.pain and (not item.read.places or _same_place(item.read.places, read.places)):
        return True
    return bool(item.read.things & read.things - _TRIGGERS)


def _refers_back(fact: Fact) -> bool:
    read = reading(fact.text)
    if not read.findings and not read.pain and not _told_symptoms(fact.text) and not fact.denied:
        return True
    return bool(
        re.search(
            r"\b(?:these|the|this|those) (?:symptoms?|episodes?|attacks?|condition)\b|\bof symptoms\b|^(?:it|they)\b",
            fact.text,
            re.I,
        )
        or re.match(
            r"(?:worse|worsen\w*|better|exacerbat\w*|relie[fv]\w*|improve\w*|sudden|gradual|aggravat\w*)\b",
            fact.text,
            re.I,
        )
    )


_DEFINITE = re.compile(
    r"^(?:and |or |so )?(?:is|are|was|were|does|do|did|has|have|can|could)\s+(?:the|your|this|these|that|those|his"
    r"|her|its"
    r"|their|my)\s+",
    re.IGNORECASE,
)
_SUBJECT_REACH = 3
"""Words a subject may have: "the double vision", "your right knee pain"."""


@lru_cache(maxsize=8192)
def _beyond_the_known(clause: str) -> str:
    """A clause without the symptom it takes as known: "Is the rash itchy?" asks for the itch.

    Where nothing is left that could be asked for, the symptom itself is: "Has your appetite changed?"
    """
    begins = _DEFINITE.match(clause)
    if not begins:
        return clause
    subject = clause[begins.end() :].split()
    for reach in range(min(_SUBJECT_REACH, len(subject) - 1), 0, -1):
        known, left = _item(" ".join(subject[:reach])), " ".join(subject[reach:])
        if known.symptoms or known.read.findings or known.read.pain:
            rest = _item(left)
            asks = rest.symptoms or rest.read.findings or rest.read.things or rest.read.pain
            return f"Is it {left}" if asks else clause
    return clause


@lru_cache(maxsize=1)
def _symptom_names() -> frozenset[str]:
    return frozenset(finding.name for finding in knowledge().findings.values() if finding.kind == "symptom")


def _symptom_topics(clause: str, facts: Sequence[Fact], *, background: bool) -> list[Topic]:
    here = [fact for fact in facts if fact.section in _ABOUT_SYMPTOMS]
    if _ANYTHING_ELSE.search(clause) and not background and not any(i.read.findings for i in _items(clause)):
        return [Topic("other symptoms", Asked.SYMPTOM, _other_symptoms(facts))]
    clause = _beyond_the_known(clause)
    topics: list[Topic] = []
    silent = open_ = False
    nameless: list[str] = []
    for item in _items(clause):
        if background and _said_as_background(item):
            continue
        about = tuple(_answering(item, here, facts))
        names = [knowledge().findings[key].name for key in _in_order(item.text)]
        if background and not about:
            names = [name for name in names if name in _symptom_names()] if not _SICKNESS.search(item.text) else []
        if names:
            _add(topics, Topic(names[0], Asked.SYMPTOM, about))
            for name in names[1:]:
                _add(topics, Topic(name, Asked.SYMPTOM, ()))
            silent |= not about and not item.modified
        elif about:
            _add(topics, Topic(_label(item), Asked.SYMPTOM, about))
        elif item.read.things or item.symptoms or item.read.pain:
            nameless.append(_label(item))
            open_ |= not item.modified
    asks = bool(_BODY_QUESTION.search(clause)) and not background
    if nameless and not topics and asks:
        topics.append(Topic(" ".join(nameless), Asked.SYMPTOM, ()))
    if asks and (silent or (open_ and not any(topic.facts for topic in topics))):
        nothing = tuple(f for f in facts if f.section is Section.REVIEW and _NOTHING_ELSE.search(f.text))
        if nothing:
            topics.append(Topic("other symptoms", Asked.SYMPTOM, nothing))
    if not topics and not background:
        topics.append(Topic(clause, Asked.UNCLEAR, ()))
    return topics


def _label(item: _Item) -> str:
    return " ".join(sorted(content_words(item.text))) or item.text


def _other_symptoms(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    return tuple(
        f
        for f in facts
        if (f.section is Section.SYMPTOMS and not any(fold(head) == "primary symptom" for head in f.heads))
        or (f.section is Section.REVIEW and _NOTHING_ELSE.search(f.text))
    )


def _said_as_background(item: _Item) -> bool:
    """Whether an item is part of a background question: "medications", "smoke", "in your family"."""
    return any(pattern.search(item.text) for _, _, pattern in _BACKGROUND) or bool(_SICKNESS.search(item.text))


def _answering(item: _Item, here: Sequence[Fact], facts: Sequence[Fact]) -> list[Fact]:
    """The statements that answer one item."""
    read = item.read
    earlier = _EARLIER.search(item.text)
    if item.modified:
        found = [f for f in here if _brought_on(item, f)]
    elif _CHANGED.search(item.text) and not read.findings:
        found = [f for f in here if _CHANGED.search(f.text) and _speaks_of(item, f)]
    elif read.findings or item.symptoms:
        found = [f for f in here if read.findings & reading(f.text).findings or item.symptoms & _told_symptoms(f.text)]
        found = _closest(item, [f for f in found if _fits(item, f)]) if found else _by_things(item, _wider(facts))
        found = found or [f for f in here if f.denied and item.symptoms & _implied_symptoms(f.text)]
    elif read.things:
        found = _by_things(item, _wider(facts))
    elif read.pain:
        found = [
            f
            for f in here
            if reading(f.text).pain and (not read.places or _same_place(read.places, reading(f.text).places))
        ]
    elif read.places and _BROAD.search(item.text):
        found = [f for f in here if read.places & reading(f.text).places]
    else:
        found = []
    return [f for f in found if _EARLIER.search(f.text)] if earlier else found


def _wider(facts: Sequence[Fact]) -> list[Fact]:
    return [f for f in facts if f.section in (*_ABOUT_SYMPTOMS, Section.SOCIAL)]


def _brought_on(item: _Item, fact: Fact) -> bool:
    """Whether a statement says that what the item names brings something on, or takes it away."""
    read = reading(fact.text)
    if not item.triggers & read.things:
        return False
    return bool(
        item.read.findings & read.findings
        or item.symptoms & _told_symptoms(fact.text)
        or _CHANGED.search(fact.text)
        or (read.pain and _TRIGGERED.search(fact.text))
    )


def _fits(item: _Item, fact: Fact) -> bool:
    """Whether a statement is about the place asked for; a general denial is about all places."""
    charted = reading(fact.text).places
    return not item.places or _same_place(item.places, charted) or (fact.denied and not charted)


def _closest(item: _Item, found: list[Fact]) -> list[Fact]:
    """Of the statements found, those that share the most of the symptoms asked for."""
    shared = [len(item.symptoms & _told_symptoms(f.text)) for f in found]
    most = max(shared, default=0) if len(item.symptoms) < _A_SYSTEM else 0
    return [f for f, count in zip(found, shared, strict=True) if count >= most or f.denied]


_A_SYSTEM = 4
"""So many symptoms in one item are a system asked for by its name, not one symptom closely described."""


# Three of five words, two of three, both of two: less is another thing.
_ENOUGH = 0.6


def _by_things(item: _Item, here: Sequence[Fact]) -> list[Fact]:
    """Statements that share the most of an item's words, if that is enough, and the place where both name one."""
    asked = item.read.things
    if not asked:
        return []
    scores = []
    for fact in here:
        read = reading(fact.text)
        shared = len(asked & read.things)
        if shared < _ENOUGH * len(asked):
            continue
        if item.read.places and read.places and not _same_place(item.read.places, read.places):
            continue
        if item.read.places and not read.places and not fact.denied and asked & _COMMON:
            continue
        scores.append((shared, fact))
    most = max((shared for shared, _ in scores), default=0)
    return [fact for shared, fact in scores if shared == most]


# Things that happen anywhere on the body: said of one place, they say nothing of another.
_LOCAL = frozenset(
    {"redness", "swelling", "numbness", "weakness", "stiffness", "skin lesion", "lump", "itch", "scale", "warmth"}
)
_COMMON = frozenset(
    {"redness", "scale", "rash", "swelling", "numb", "weak", "stiff", "lesion", "lump", "itch", "injury"}
)


def _whole(fact: Fact) -> str:
    return " ".join((*fact.heads, fact.text))


# ---- orders to the laboratory


@dataclass(frozen=True)
class Ordered:
    """One thing an order names, and the chart's answer."""

    name: str
    facts: tuple[Fact, ...]
    equivalent: str | None = None
    """Name of the test that stands in for the one ordered."""


_SEPARATORS = re.compile(r"\s*(?:,|;|\+|\band\b|&|\bwith\b|\bplus\b)\s*", re.IGNORECASE)
_WHOLE_EXAMINATION = re.compile(
    r"^(?:a |full |complete |comprehensive |thorough |general |focused |detailed |repeat )*(?:physical "
    r"exam(?:ination)?\b"
    r"(?! (?:of|for|on) )|physical$|head to toe exam|examination$|exam$)|^full exam",
    re.IGNORECASE,
)
# "Physical examination" alone is the hands' and eyes' part; who wants all says so.
_WITH_VITALS = re.compile(r"\b(?:full|complete|comprehensive|thorough|head to toe|vitals?)\b", re.IGNORECASE)
_REASON = re.compile(r"\b(?:for|to|if|due|because|in order|regarding|given|by|per)\b.*$")
# Abbreviations and other words for one procedure, so that an order and a heading meet.
_SPELLED = {
    "fna": "fine needle aspiration",
    "fnac": "fine needle aspiration cytology",
    "ekg": "ecg",
    "electrocardiogram": "ecg",
    "electrocardiography": "ecg",
    "xray": "x ray",
    "radiograph": "x ray",
    "radiography": "x ray",
    "us": "ultrasound",
    "ultrasonography": "ultrasound",
    "sonography": "ultrasound",
    "sonogram": "ultrasound",
    "tte": "transthoracic echocardiogram",
    "tee": "transesophageal echocardiogram",
    "echo": "echocardiogram",
    "echocardiography": "echocardiogram",
    "tomography": "ct",
    "fundus": "fundoscopy",
    "funduscopic": "fundoscopy",
    "fundoscopic": "fundoscopy",
    "funduscopy": "fundoscopy",
    "ophthalmoscopy": "fundoscopy",
    "retinal": "fundoscopy",
    "rom": "range of motion",
    "strength": "motor strength",
    "dtr": "reflex",
    "gram": "gram",
    "genetics": "genetic",
    "dna": "genetic dna",
    "mammogram": "mammography",
    "histology": "histopathology",
    "pathology": "histopathology",
    "ca": "calcium",
    "na": "sodium",
    "k": "potassium",
    "mg": "magnesium",
    "wbc": "wbc",
    "leukocyte": "wbc",
    "hb": "hemoglobin",
    "hgb": "hemoglobin",
    "hct": "hematocrit",
    "plt": "platelet",
    "thrombocyte": "platelet",
    "bp": "blood pressure",
    "hr": "heart rate",
    "rr": "respiratory rate",
    "temp": "temperature",
    "spo2": "oxygen saturation",
    "ldh": "lactate dehydrogenase",
    "bun": "urea nitrogen",
    "ptt": "partial thromboplastin time",
    "aptt": "partial thromboplastin time",
    "pt": "prothrombin time",
    "spep": "serum protein electrophoresis",
    "upep": "urine protein electrophoresis",
    "ck": "creatine kinase",
    "cpk": "creatine kinase",
}
# A heading of one of these alone, with no site, answers any order of the kind.
_KINDS = frozenset(
    "biopsy genetic mri ct x ray ultrasound endoscopy histopathology angiography cytology aspiration needle fine "
    "culture "
    "excisional incisional punch core".split()
)
_ORGANS = frozenset(
    "brain thyroid muscle bone marrow node lymph prostate uterus endometrial cervix ovary ovarian colon esophagus "
    "gastric "
    "duodenal bowel artery vein aorta sinus orbit mass lesion nodule tumor wound mucosa gland parotid pancreas "
    "gallbladder "
    "bladder nerve tissue".split()
)
# Words that say how a test is to be done rather than which test it is.
_MANNER = frozenset(
    "test testing level serum plasma blood study panel result finding urgent stat repeat complete full total "
    "routine examination exam scan imaging contrast without please order request check measurement value "
    "screening screen analysis bilateral left right bedside detailed focused w wo clinical assessment evaluation "
    "of the for to with and by per on in or a an including quantitative qualitative formal standard initial "
    "baseline follow "
    "followup labs lab laboratory profile workup finding findings report physical specialist view imaging".split()
)
# A value under one of these is not the blood's: the glucose of a spinal tap is no blood glucose.
_SPECIMENS = frozenset(
    "csf cerebrospinal lumbar spinal synovial joint arthrocentesis urine urinalysis urinary stool sputum pleural "
    "ascitic peritoneal".split()
)


def asked_of_measurement(order: str, facts: Sequence[Fact]) -> list[Ordered]:
    """What an order names, each with the charted facts that answer exactly that."""
    order = re.sub(r"[()\[\]:]", ",", fold(order)).strip(" .:,")
    if _WHOLE_EXAMINATION.search(order):
        return [Ordered("Physical examination", _examined(order, facts))]
    known = knowledge()
    answers: list[Ordered] = []
    covered: set[str] = set()
    for mention in known.test_names.find(_without_reasons(order)):
        test = known.tests[mention.key]
        if any(answer.name == test.name for answer in answers):
            continue
        covered.update(mention.words)
        answers.append(_answer(test, facts, _part_about(mention.words, order)))
    for part in _SEPARATORS.split(order):
        left = [word for word in words(_without_reasons(part)) if word not in covered]
        if set(left) - _MANNER:
            found = _by_words(part, facts)
            if found or not answers:
                answers.append(Ordered(part, found))
    return _once(answers) or [Ordered(order, ())]


def _examined(order: str, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """The examination, with the vital signs that are named, or with all where everything is wanted.

    "Physical exam abdomen" and a focused examination are of what they name.
    """
    whole = bool(_WITH_VITALS.search(order))
    named = set(_spelled(order)) | ({"heart", "rate"} if "pulse" in words(order) else set())
    vitals = [f for f in facts if f.section is Section.VITALS and (whole or set(_spelled(f.heads[-1])) <= named)]
    found = [f for f in facts if f.section is Section.EXAMINATION]
    if not whole and (
        order.startswith("focused")
        or re.search(
            r"\bexam(?:ination)? (?!with\b|including\b"
            r"|and\b)\w",
            order,
        )
    ):
        found = [f for f in found if _of_system(f, order)] or found
    chosen = {f.path for f in (*vitals, *found)}
    return tuple(f for f in facts if f.path in chosen)


def _of_system(fact: Fact, order: str) -> bool:
    """Whether an examination's finding stands under one of the systems an order names, by whatever name."""
    named = set(_spelled(order)) - _MANNER
    asked = frozenset().union(*(_tests_named(f"{word} examination") for word in named))
    return bool(fact.heads) and bool(asked & _tests_named(fact.heads[0]) or named & _head_words(fact))


def _without_reasons(order: str) -> str:
    """An order without what it is for: "mixing study for PTT prolongation" orders no PTT.

    Where nothing but the kind of test stands before "for", what follows is what is ordered: "testing for HIV".
    """
    parts = []
    for part in re.split(r"[,;]", order):
        named = _REASON.sub("", part)
        parts.append(named if set(words(named)) - _MANNER - _ANY_TEST else part)
    return ", ".join(parts)


_ANY_TEST = frozenset(
    "serology culture pcr swab antibody antigen stain smear titer assay sample specimen cytology".split()
)


@lru_cache(maxsize=16384)
def _spelled(text: str) -> tuple[str, ...]:
    """The words of an order or a heading, abbreviations written out."""
    return tuple(full for word in words(text) for full in words(_SPELLED.get(word, word)))


def _part_about(named: tuple[str, ...], order: str) -> str:
    """The part of an order that names a test, with what else it says of it: the site, the side."""
    return next((part for part in _SEPARATORS.split(order) if set(named) <= set(words(part))), " ".join(named))


def _answer(test: Test, facts: Sequence[Fact], part: str) -> Ordered:
    own = _charted(test, facts)
    if own:
        return Ordered(test.name, _narrowed(test, own, part))
    for other in test.equivalents:
        stand_in = _standing_in(test, knowledge().tests[other], facts)
        if stand_in:
            return Ordered(test.name, stand_in, knowledge().tests[other].name)
    return Ordered(test.name, _by_words(part, facts))


def _narrowed(test: Test, own: tuple[Fact, ...], part: str) -> tuple[Fact, ...]:
    """Of an examination, the findings an order names by their own heading: "cranial nerves" of a neurological one."""
    if test.category != "examination":
        return own
    wanted = frozenset(_spelled(part)) - _MANNER
    named = tuple(f for f in own if len(f.heads) > 1 and wanted <= set(_spelled(" ".join(f.heads[1:]))) - _MANNER)
    return named if wanted and named else own


def _standing_in(test: Test, other: Test, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """What another test's result says of this one: of a whole panel, the values that were ordered alone."""
    wanted = {words(component) for component in test.components}
    others = {words(component) for component in other.components} - wanted
    return tuple(fact for fact in _charted(other, facts) if words(fact.heads[-1]) not in others)


def _charted(test: Test, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    if test.category == "vital":
        vitals = tuple(f for f in facts if f.section is Section.VITALS)
        names = {words(component) for component in test.components}
        return vitals if test.id == "vital_signs" else tuple(f for f in vitals if words(f.heads[-1]) in names)
    components = {words(component) for component in test.components}
    return tuple(
        fact
        for fact in facts
        if fact.section is not Section.VITALS
        and (_headed(test, fact.heads) or (fact.heads and words(fact.heads[-1]) in components and _open(fact.heads)))
    )


def _headed(test: Test, heads: tuple[str, ...]) -> bool:
    return test.id in _tests_named(". ".join(heads))


@lru_cache(maxsize=16384)
def _tests_named(heading: str) -> frozenset[str]:
    return frozenset(mention.key for mention in knowledge().test_names.find(heading))


def _open(heads: tuple[str, ...]) -> bool:
    """Whether a value stands alone or under a heading that names no test of its own.

    The white cells of a joint fluid are not those of a blood count.
    """
    above = ". ".join(heads[:-1])
    return not _tests_named(above) and not _SPECIMENS & set(words(above))


def _by_words(part: str, facts: Sequence[Fact]) -> tuple[Fact, ...]:
    """Facts whose heading and the order's words name the same thing, word for word."""
    part = _without_reasons(part)
    exact = tuple(fact for fact in facts if fact.heads and words(fact.heads[-1]) == words(part) and _open(fact.heads))
    wanted = _without_manner(part)
    if exact or not wanted:
        return exact
    elsewhere = _SPECIMENS - set(words(part)) if len(wanted) == 1 or _of_blood(part) else frozenset()
    return tuple(fact for fact in facts if _names(fact, wanted) and not elsewhere & _head_words(fact))


def _of_blood(part: str) -> bool:
    """Whether a value is one of a blood test, as far as its name tells."""
    tests = (knowledge().tests[mention.key] for mention in knowledge().test_components.find(part))
    return any(not _SPECIMENS & set(words(" ".join((test.name, *test.synonyms)))) for test in tests)


def _names(fact: Fact, wanted: frozenset[str]) -> bool:
    if not fact.heads:
        return wanted <= set(_spelled(fact.text))
    heads = _head_words(fact)
    last = _without_manner(fact.heads[-1])
    # "Right leg" under "Range of motion" is no answer to every order that concerns the right leg.
    own = last and last <= wanted and not all(word in _PLACE_OF for word in last)
    return wanted <= heads or bool(own) or _same_kind(fact, wanted)


def _same_kind(fact: Fact, wanted: frozenset[str]) -> bool:
    """Whether a result whose heading names no site is of the kind ordered for one: "Biopsy" answers a skin biopsy."""
    kind = frozenset(word for word in wanted if not _is_site(word))
    heads = _head_words(fact)
    return (
        fact.section is Section.TESTS
        and kind != wanted
        and bool(kind & _KINDS)
        and kind <= heads | _KINDS
        and bool(kind & heads & _KINDS)
        and not any(_is_site(word) for word in heads)
    )


def _is_site(word: str) -> bool:
    return word in _PLACE_OF or word in _ORGANS


@lru_cache(maxsize=16384)
def _all_spelled(heads: tuple[str, ...]) -> frozenset[str]:
    return frozenset(word for head in heads for word in (*_spelled(head), *words(head)))


def _head_words(fact: Fact) -> frozenset[str]:
    return _all_spelled(fact.heads)


@lru_cache(maxsize=16384)
def _without_manner(text: str) -> frozenset[str]:
    named = _spelled(text)
    # Every pressure but this one can do without the word before it.
    return frozenset(named) - (_MANNER - {"blood"} if "pressure" in named else _MANNER)


def _once(answers: list[Ordered]) -> list[Ordered]:
    """Leave out of later answers what an earlier one already told, and answers left empty by that."""
    told: set[str] = set()
    kept = []
    for answer in answers:
        fresh = tuple(f for f in answer.facts if f.path not in told)
        told.update(f.path for f in fresh)
        if fresh or not answer.facts:
            kept.append(Ordered(answer.name, fresh, answer.equivalent))
    return kept
