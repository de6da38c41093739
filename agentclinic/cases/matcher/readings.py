"""What words speak of: symptoms, places, things, under the many names they go by."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from agentclinic.knowledge.base import knowledge
from agentclinic.knowledge.text import STOP_WORDS, singular, words


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """A word without its ending, as far as that matters for meeting another form of it."""
    for ending in ("ing", "ness", "ed", "ly"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            word = word[: -len(ending)]
            break
    return word[:6].rstrip("ey") if len(word) > 4 else word


def _table(groups: Mapping[str, str]) -> dict[str, str]:
    return {stem(singular(word)): name for name, listed in groups.items() for word in listed.split()}


# Different words for one thing; each is a thing a patient is asked about that is no finding of the knowledge base.
SAME = _table(
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
PLACE_OF = {singular(word): place for place, listed in _PLACES.items() for word in listed.split()}
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
    "evaluation dose dosage wide base based rapid per few several many number brought symptom associated complaint "
    "visit doctor "
    "clear".split()
)
_VAGUE_STEMS = frozenset(stem(singular(word)) for word in _VAGUE)
TRIGGERS = frozenset(
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
        "restlessness": r"restless|(?:sit|remain|keep|stay) still|fidget|\bpac(?:es|ing)\b|urge to move|on edge"
        r"|akathis",
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
        "vomiting": r"vomit|threw up|throw(?:ing|n|s)? up|emesis|spit(?:ting)? up",
        "reflux": r"regurgit|reflux|heartburn|acid taste",
        "choking": r"chok|gag",
        "swallowing": r"swallow|dysphag|odynophag|drool",
        "appetite": r"appetite|anorexi|(?:poor|trouble|difficulty|diminished|decreased|problems?)(?: with)? (?:feed"
        r"|eat)\w*|feeding (?:"
        r"difficult|problem)\w*|not (?:eating|feeding)|eat(?:s|ing) (?:less|well|normally|poorly|enough)|refus\w+ "
        r"(?:to )?(?:eat|feed)|hunger|craving",
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
def told_symptoms(text: str) -> frozenset[str]:
    """Every symptom a statement speaks of."""
    return frozenset(name for name, pattern in _SYMPTOMS.items() if pattern.search(text))


@lru_cache(maxsize=32768)
def implied_symptoms(text: str) -> frozenset[str]:
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
def asked_symptoms(text: str) -> tuple[frozenset[str], str]:
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
    places = frozenset(PLACE_OF[word] for word in named if word in PLACE_OF)
    stems = {stem(word) for word in named if word not in PLACE_OF and not word.isdigit()}
    known = knowledge()
    return Reading(
        frozenset(mention.key for mention in known.finding_terms.find(text)),
        frozenset(SAME.get(stem, stem) for stem in stems if stem not in _VAGUE_STEMS or stem in SAME),
        places,
        bool(_PAIN.search(text)),
    )


def same_place(asked: frozenset[str], charted: frozenset[str]) -> bool:
    """Whether a place asked for is one charted, or a part of it, or the greater part."""
    return any(a == c or a in _GREATER.get(c, ()) or c in _GREATER.get(a, ()) for a in asked for c in charted)
