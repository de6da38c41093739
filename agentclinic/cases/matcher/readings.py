"""What a text talks about: findings, places and things, with synonyms merged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from agentclinic.vocabulary.base import knowledge
from agentclinic.vocabulary.text import STOP_WORDS, singular, words


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """A word without its ending, so that it matches its other forms."""
    for ending in ("ing", "ness", "ed", "ly"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            word = word[: -len(ending)]
            break
    return word[:6].rstrip("ey") if len(word) > 4 else word


def _table(groups: Mapping[str, str]) -> dict[str, str]:
    return {stem(singular(word)): name for name, listed in groups.items() for word in listed.split()}


# Synonyms for things a patient is asked about that are not findings of the knowledge base.
SAME = _table(
    {
        "injury": "trauma injury injured accident collision fall fell hit struck blow crash",
        "exertion": "exertion exercise activity activities exercising strenuous exert workout gym sports running "
        "climbing stairs",
        "meals": "postprandial postprandially eat eats eating ate eaten meal meals food foods feed feeds feeding "
        "fed breastfeeding",
        "lying": "lying lie lies flat supine recline reclining prone",
        "upright": "upright standing stand sitting sit stands sits",
        "bending": "bending bend bends leaning lean stooping squatting head-down",
        "gaze": "gaze gazing fixate fixating",
        "position": "position positional posture postural turning",
        "emotion": "crying cry cries excitement excited agitation agitated upset calm anger angry laughing emotional",
        "rest": "rest rests resting",
        "night": "night nights nighttime nocturnal overnight bedtime",
        "morning": "morning mornings waking awakening",
        "evening": "evening evenings",
        "cold": "cold winter",
        "heat": "heat summer hot warm humidity",
        "sun": "sun sunlight",
        "motion": "motion move moves moving movement movements rotate rotating rotation rotated flexion flex flexed "
        "flexing extension extend extended extending reaching reach overhead lifting lift twisting holding hold "
        "holds gripping grip raising raise passive throwing",
        "chewing": "chewing chew",
        "coughing": "coughing sneezing jumping",
        "touch": "touch touching touched press pressing pressed pressure palpation percussion",
        "alcohol": "alcohol wine beer drinking",
        "ice": "ice",
        "walking": "walking walk walks",
        "stimulation": "stimulation tactile stimulating stimulated",
        "sex": "sex sexual sexually intercourse penetration",
        "breathing": "breathe breathing breath inspiration inhale",
        "light": "light lights bright photophobia",
        "noise": "noise noises sound sounds phonophobia",
        "urinating": "urinate urinating urination voiding",
        "menses": "menses menstrual menstruation period periods menarche lmp",
        "pregnancy": "pregnant pregnancy pregnancies gravida primigravida nulliparous para gravidity obstetric",
        "birth": "born birth delivery delivered preterm premature prematurity neonatal perinatal term prenatal "
        "antenatal gestation gestational",
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
        "walk": "gait unsteady unsteadiness balance imbalance staggering shuffling stumbling",
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
# Parts of the body. A shared place alone is not a match.
_PLACES = {
    "trunk": "trunk torso",
    "armpit": "armpit armpits axilla underarm axillary",
    "head": "head dandruff scalp temple temporal forehead cranial",
    "face": "face facial cheek cheeks",
    "jaw": "jaw chin beard",
    "eyebrow": "eyebrow eyebrows eyelid eyelids lid lids eyelashes",
    "eye": "eye eyes ocular",
    "ear": "ear ears",
    "nose": "nose nasolabial nasal nostril nostrils",
    "mouth": "mouth oral lip lips tongue gum gums tooth teeth",
    "throat": "throat pharynx",
    "neck": "neck cervical",
    "chest": "rib ribs breastbone retrosternal chest thorax thoracic sternal substernal",
    "breast": "breast breasts nipple nipples",
    "back": "back spine lumbar spinal",
    "flank": "flank flanks",
    "shoulder": "shoulder shoulders scapula clavicle collarbone",
    "arm": "arm arms forearm",
    "elbow": "elbow elbows",
    "hand": "hand hands wrist wrists palm palms thumb thumbs",
    "finger": "finger fingers nail nails fingertip fingertips",
    "limb": "limb limbs extremity extremities",
    "leg": "leg legs thigh thighs shin shins",
    "calf": "calf calves",
    "knee": "knee knees kneecap",
    "ankle": "ankle ankles",
    "foot": "foot feet toe toes heel sole soles",
    "hip": "hip hips buttock buttocks",
    "groin": "groin inguinal",
    "abdomen": "abdomen abdominal belly stomach tummy epigastric umbilicus umbilical",
    "pelvis": "pelvis pelvic adnexal",
    "genitals": "genital genitals penis penile vagina vaginal vulva vulvar scrotum scrotal testicle testicles "
    "testicular vestibule",
    "rectum": "rectum rectal anus anal perianal",
    "skin": "skin",
    "joint": "joint joints",
    "muscle": "muscle muscles muscular",
    "bone": "bone bones bony femur tibia",
    "urine": "urine urinary bladder",
    "kidney": "kidney kidneys renal",
    "liver": "liver spleen hepatic",
    "heart": "heart cardiac",
    "lung": "lung lungs respiratory pulmonary",
}
PLACE_OF = {singular(word): place for place, listed in _PLACES.items() for word in listed.split()}
_UPPER_LOWER = re.compile(r"\b(upper|lower)\s+(?:limb|extremit)\w*", re.IGNORECASE)
_PAIN = re.compile(
    r"\b(?:pain\w*|aches?|aching|hurt\w*|sore|soreness|discomfort|tender\w*|cramp\w*|tension|\w+ache)\b", re.IGNORECASE
)
# Words that many facts share: one of them alone is not a match.
_VAGUE = frozenset(
    "doe pain painful ache hurt sore soreness discomfort tender day week month year hour minute time ago since start "
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
    "visit doctor clear".split()
)
VAGUE_STEMS = frozenset(stem(singular(word)) for word in _VAGUE)
"""The same, without their endings."""


@dataclass(frozen=True)
class Reading:
    """What a statement or part of a question talks about."""

    findings: frozenset[str]
    things: frozenset[str]
    """Its meaningful words, with synonyms merged."""
    places: frozenset[str]
    pain: bool
    numbers: frozenset[str]


@lru_cache(maxsize=32768)
def reading(text: str) -> Reading:
    """Read a statement. Cached: every question reads all the chart's statements."""
    plain = _UPPER_LOWER.sub(lambda m: "arm" if m[1].lower() == "upper" else "leg", text)
    named = [word for word in words(plain) if word not in STOP_WORDS]
    places = frozenset(PLACE_OF[word] for word in named if word in PLACE_OF)
    stems = {stem(word) for word in named if word not in PLACE_OF and not word.isdigit()}
    known = knowledge()
    return Reading(
        frozenset(mention.key for mention in known.finding_terms.find(text)),
        frozenset(SAME.get(stem, stem) for stem in stems if stem not in VAGUE_STEMS or stem in SAME),
        places,
        bool(_PAIN.search(text)),
        frozenset(word for word in named if word.isdigit()),
    )
