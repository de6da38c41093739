"""The short and loose ways in which doctors write orders, each with the same in words that are read elsewhere."""

from __future__ import annotations

import re
from collections.abc import Callable

from agentclinic import lazy
from agentclinic.cases.matcher.order_kinds import is_measured, only_sites
from agentclinic.cases.matcher.order_words import reading, vocabulary

WITH_SPATULA = lazy.regex(
    r"\s*\b(?:with|without|using)(?: using)? (?:an? |the )?(?:tongue (?:depressor|blade)|spatula)\b", re.IGNORECASE
)
"""How the throat is looked at: the tongue is not what is ordered."""
OXYGEN_TRIAL = lazy.regex(
    r"\b(?:trial of (?:[\w%-]+ ){0,3}(?:oxygen|O2)|(?:high[- ]flow )?oxygen trial)\b"
    r"(?: (?:at )?\d+ ?L/min)?(?: (?:by|via) (?:[\w-]+ )?mask)?(?: during (?:an? |the )?(?:attack|bout|episode)s?)?",
    re.IGNORECASE,
)
"""What oxygen does to an attack: a test with a result of its own, though it is done during the attack."""
_ABBREVIATIONS = {
    "AS OCT": "anterior segment OCT",
    "AS-OCT": "anterior segment OCT",
    "C3/4": "C3, C4",
    "COW": "circle of Willis",
    "ECoG": "electrocochleography",
    "HRCT": "high resolution CT",
    "HRM": "esophageal manometry",
    "NIHSS": "neurological examination",
    "PET bloods": "bloods",  # of pre-eclampsia
    "PR tone": "anal tone",
    "TAB": "temporal artery biopsy",
    "TOE": "TEE",
    "U/S": "ultrasound",
    "u/s": "ultrasound",
}
"""Those that mean the same wherever they stand, in these capitals."""
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
_FLUID = r"(?:serum|blood|plasma|CSF|urine|stool)"
_MYCOBACTERIA = r"(?:AFB|acid[- ]fast(?: bacilli)?|TB|mycobacterial)"
_SEEN = r"(?:smear|stain|microscopy)"
_SWELLS = "ankle|pedal|leg|peripheral|pretibial|sacral|facial|face|periorbital|hand|arm"
_SPINE = {"C": "cervical", "T": "thoracic", "L": "lumbar"}
_CULTURES = {"B": "blood cultures", "U": "urine culture", "S": "sputum culture"}
_PLUS = lazy.regex(r" ?(?:[/+&]|\band\b) ?", re.IGNORECASE)
_CONJUNCTION = lazy.regex(r"\b(?:and|or)\b")


def _is_sign_alone(text: str) -> bool:
    """Whether a text names a sign of the body and no test: "oedema", "bullae or crepitus"."""
    read = reading(_CONJUNCTION.split(text)[0])
    return bool(read.of("parts")) and not is_measured(read) and not read.words


def _is_organ(text: str) -> bool:
    """Whether a text names an organ that is felt through the abdomen: "liver and spleen"."""
    read = reading(text)
    return only_sites(read) and not read.words and all("abdomen" in vocabulary().wider[s] for s in read.of("sites"))


_RULES: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    #
    # Abbreviations and signs.
    #
    (
        rf"(?-i:(?<!\w)(?:{'|'.join(map(re.escape, _ABBREVIATIONS))})(?!\w))",
        lambda found: _ABBREVIATIONS[found[0]],
    ),
    (r"\bw ?/ ?(?:(?:and|&|\+|/) ?w ?/ ?o\b|wo\b)", "with and without"),
    (r"\bw ?/ ?o\b", "without"),
    (r"\bw/ ?|(?<![/\w])w (?=[a-z])", "with "),
    (r"(?<=\bwith )gad\b|(?<=\bwithout )gad\b|(?<=\+)\s*gad\b", "gadolinium"),
    (r"(?<=[a-z] )vs\.?(?= [a-z])", "and"),
    (
        r"(?-i:\b([RL])\b)\.? "
        r"(?=knee|hip|shoulder|ankle|wrist|elbow|foot|hand|leg|arm|eye|ear|kidney|lung)",
        lambda found: {"R": "right ", "L": "left "}[found[1]],
    ),
    (
        r"\banti-IF\b|(?-i:\bIF)(?: (?:abs?|antibod(?:y|ies))\b|(?= ?(?:/|and|&) ?(?:GPC|PCA|parietal)))",
        "intrinsic factor antibodies",
    ),
    (
        r"\b([BUS])Cx(?:s|[23])?\b|(?-i:\b([BUS])Cs?(?= ?x ?\d|\d\b| ?(?:$|[,;./)+]|and\b|from\b|before\b)))",
        lambda found: _CULTURES[(found[1] or found[2]).upper()],
    ),
    (r"(?-i:(?<!protein )(?<!Protein )(?<!proteins )(?<!Proteins )\b(?:M,? ?)?C ?(?:&|and|\+) ?S\b)", "culture"),
    (r"\bU ?[+/] ?Es?\b", "U&E"),
    (
        r"(?-i:\bG ?(?:&|and|\+) ?[SH]\b|\bT ?& ?[SC]\b|\b(?:XM|X-match)\b)"
        r"|\b(?:blood )?group (?:and|&|\+) (?:save|hold|screen)\b|(?<!blood )\bgroup (?:and|&) rh(?:esus|d)?\b",
        "blood group",
    ),
    (r"(?-i:\bASA(?= (?:and|&|level|lvl|conc)| ?/ ?(?:APAP|tylenol|acet)))", "salicylate"),
    (r"\b(ACL|B2GP1|anticardiolipin)\b(.{1,20}?)\bLA\b", r"\1\2lupus anticoagulant"),
    (r"(\bESR\W{1,3})(?-i:PV)\b", r"\1plasma viscosity"),
    (r"(?-i:\bPV\b)(?! exam)(?=$| ?(?:[,;.)]|and\b))", "pelvic exam"),
    (rf"(?-i:\bPR\b(?=,? ?(?:and|/|&)? ?{_BESIDE_VITALS}\b)|(?<=BP, )PR\b|(?<=RR, )PR\b)", "pulse rate"),
    (r"(?-i:\bPR\b(?! (?:interval|segment|prolongation|depression|exam)))", "rectal exam"),
    (
        r"(?-i:\bBM(?:A|B|AT)?\b (?=biops|bx|aspirat|trephine|exam)|\bBMA(?:T|B|&T|/T)?\b)",
        "bone marrow ",
    ),
    (r"(?-i:\bBMs?\b(?=$| ?[,;./)&+]| (?:and|stat|now)\b))", "fingerstick glucose"),
    (r"(?-i:\bHS\b(?= ?(?:$|[,;./+&()]|and\b|with\b)))", "heart sounds"),
    (r"^(?=.*\b(?:nystagmus|skew|hallpike|roll|vestibul\w*|gaze)\b)(.*)\bHIT\b", r"\1head impulse test"),
    (r"(?-i:\be?-?FAST\b(?: (?:scan|exam(?:ination)?|ultrasound)\b)?)", "bedside ultrasound"),
    (r"(?:^|(?<=[,;] ))lap(?=\s*(?:$|[,;.]))", "laparoscopy"),
    (
        # Of the marrow or the blood, by what is beside it.
        r"^(?=.*\b(?:cytogen\w+|marrow|smear|film|leuk\w+|lymphoma|immunophenotyp\w+|biops\w+)\b)(.*)\bflow\b"
        r"(?=\s*(?:$|[,;.)/+&]|and\b|for\b))",
        r"\1flow cytometry",
    ),
    (
        # Of a tumor, not of the kidneys.
        r"^(?=.*\b(?:biops\w+|histology|ALK|PD-?L1|ROS1|KRAS|BRAF|mutations?|cytology|aspirat\w+)\b)(.*)"
        r"(?-i:\bEGFR\b)(?: (?:mutations?|status|testing))?",
        r"\1tumor EGFR",
    ),
    #
    # What is suspected, why, when, by whom, and on whose lap: no part of what is ordered.
    #
    (r"\bresults? of (?:the |her |his )?(?:pending|outstanding) ", ""),
    (r"\b(?=[\dqhots])(?:(?:\d{1,2}|one|two|four|six)[- ]?)?hourly\b ?|\bq ?\d{1,2} ?h(?:rs?|ourly)?\b", ""),
    # "abdo USS ?intussusception"
    (r"(?<=\w) (?:\?\s?(?=\w)|query (?=\w))(?:(?!\b(?:and|plus|then)\b)[^,;.?+(){}])*(?<! )", ""),
    (r"(?<=PCR) for (?:viruses|viral|bacteria\w*)(?: and (?:bacteria|viruses))?\b", ""),
    (
        r"\s*\bby (?:an? |the )?(?:(?:senior|experienced|skilled|expert|specialist|consultant) )*"
        r"(?:sonographer|radiologist|operator|examiner|specialist|expert|consultant)s?\b",
        "",
    ),
    (
        # How a child is examined, not another test.
        r",?\s*\b(?:while )?(?:observing|keeping|leaving) (?:him|her|the (?:child|baby|infant|toddler|boy|girl))\b"
        r"[^,;.]*\b(?:lap|arms)\b[^,;.]*"
        r"|\s*\b(?:while )?(?:(?:sitting|seated|held|sat) )?(?:on|in) (?:(?:his|her|the|a|its) )?"
        r"(?:mother|father|parent|carer|caregiver|mum|mom|dad|grand\w+)(?:['’]?s)? (?:lap|arms)\b",
        "",
    ),
    (
        # Looked for as part of an examination: what is listed is what is wanted.
        r"(?:^|(?<=[,;.] )|(?<= and ))(?:please )?(?:also )?"
        r"(?:check|look|assess|inspect|feel|examine|evaluate) for (?:any |signs of |evidence of )*(?=([^,;.]+))",
        lambda found: found[0] if found.start() and not _is_sign_alone(found[1]) else "",
    ),
    (r"\s*,?\s*\bcompared? (?:with|to|against)\b[^,;.]*", ""),
    (
        # "serial peak flow at work and away from work"
        r"\s*\b(?:at|in|on|during) (?:the )?work(?:place|ing days|days)?,? (?:and|vs\.?|versus|or)"
        r" (?:(?:away from|off|out of) (?:the )?work(?:place)?|at home|(?:on )?(?:days off|holidays?|weekends?))\b",
        "",
    ),
    (
        r"\s*\b(?:before and after|before or after|before|after) (?:(?:the|this|that) )?"
        r"(?:drainage|pericardiocentesis|thoracentesis|paracentesis)\b",
        "",
    ),
    (r"\bafter (?:an? )?(?:\d+[- ]?(?:h|hours?)[- ]?(?:of )?)?fast(?:ing)?\b", "fasting"),
    (
        # What the laboratory adds by itself if the first test is positive.
        r"\s*\b(?:with|and) reflex(?:ive)? (?:to )?(?:(?:RNA|PCR|viral load|titers?|confirm\w+|quant\w*|panel"
        r"|patterns?|western blot|testing|cultures?|cx|micro\w*)\b\s*)+",
        "",
    ),
    #
    # How an image is taken.
    #
    (
        # When it is taken after the contrast.
        r"(?:\s*,)?\s*\b(?:(?:in|with|and|including) )?(?:the )?"
        r"(?:(?:early|late|arterial|portal|venous|delayed|nephrographic|excretory|equilibrium|parenchymal)\b"
        r"\s*(?:(?:,|/|&|and|or)\s*)*)+phases?\b",
        "",
    ),
    (r",? \(?no (?:IV )?contrast\b\)?", " without contrast"),
    (
        r"\s*\b(?:with |and )?(?:(?:IV|PO|oral|rectal)(?: ?(?:and|&|/|\+) ?)?)+ contrast\b"
        r"(?! (?:study|series|swallow|enema))",
        " with contrast",
    ),
    (
        # The views of a film.
        r"\b(?:AP|PA)\b ?(?:\+|&|/|and|,)? ?\b(?:lat|lateral)\b|\b(?:lat|lateral)\b ?(?:\+|&|/|and) ?(?:AP|PA)\b"
        r"|\b(?:(?:AP|PA|lateral|axillary|axial|oblique|skyline|sunrise|scapular[- ]Y|outlet|mortise|odontoid)\b"
        r"(?:\s*(?:,|and|&|/)\s*)?)+ ?views?\b",
        "",
    ),
    (
        r"(\b(?:X-?rays?|XR|films?|radiographs?)\b[^,;.]*?) (?:in )?(?:flex(?:ion)?|ext(?:ension)?)"
        r"(?: ?[-/&+] ?| and )(?:flex(?:ion)?|ext(?:ension)?)\b(?: views?)?",
        r"\1",
    ),
    (
        r"^(?=.*\b(?:x-?rays?|films?|radiographs?|CXR|LP|lumbar puncture|spinal tap)\b)(.*)"
        r"\s*\b(?:in )?(?:the )?(?:left|right) lateral (?:decubitus|recumbent)(?: (?:position|view))?\b",
        r"\1",
    ),
    (r"\s*\b(?:with |and )?(?:an? )?(?:delayed )?films? (?:at|after) \d+ ?h(?:ours?|rs?)?\b", ""),
    (r"\s*\bwith (?:power |colou?r )?dopplers?\b|\bcolou?r[- ](?=(?:flow )?(?:duplex|doppler|ultrasound)\b)", ""),
    (r"\b(?:CT|US|USS|ultrasound|image|X-ray)[- ]guided\s+", ""),
    (r"\s*\b(?:with )?ECG[- ](?:gating|gated)\b", ""),
    (
        r"\s*\b(?:(?:incl(?:uding|\b\.?)|with|and|plus)\s+)?(?:(?:posterior|right[- ]sided|right|additional)"
        r"\s*(?:and|,|&|/)?\s*)+leads?\b(?:\s*(?:and|[-–(,])?\s*\bV\d{1,2}R?\b\)?)*",
        "",
    ),
    (
        r"\s*\b(?:with|and|plus|including|for)\s+(?:(?:a|the)\s+)?"
        r"(?=(?:sliding (?:test|sign|organs?)|(?:gentle )?probe pressure|gentle pressure)\b)",
        " ",
    ),
    #
    # Which image.
    #
    (
        # Both ways to an image of the heart.
        r"\b(transthoracic|transo?esophageal)(?: echo\w*)?\W+(?:(?:and|or|plus|then|followed by)\W+){1,2}"
        r"(transthoracic|transo?esophageal)(?= echo)",
        r"\1 echocardiogram, \2",
    ),
    (r"\b(CT|MRI?) (or|and|/) (CT|MRI?) (venogra\w+|angiogra\w+)", r"\1 \4 \2 \3 \4"),
    (r"\bCT (?:of (?:the )?)?body\b", "CT chest abdomen pelvis"),
    (
        r"\b(CTA|CT angio\w*) (?:from )?(?:aortic )?arch to (?:circle of Willis|vertex)\b",
        r"\1 head and neck",
    ),
    (
        r"\b(?:CTA|CT angio\w*) (?:of (?:the )?)?abdo?(?:men|minal)?(?: and | ?[/&+,] ?)pelvis\b",
        "CT angiography abdomen",
    ),
    (
        # Of one study, its vessels say where: "contrast CT chest with pulmonary angiography".
        r"\bCT (?:scan )?(?:of (?:the )?)?(?:chest|thorax|abdomen|heart) with (?:a )?(?:CT )?"
        r"(?=(?:pulmonary|coronary|aortic|mesenteric|renal) angiogra)",
        "CT ",
    ),
    (r"\b(?:MRI? )?vessel[- ]wall (?:imaging|MRI?|study)\b", "MR angiography"),
    (
        r"\bMRI (?:(?:of (?:the )?)?(?:brain|head) )?(?:with (?:contrast|gadolinium) )?"
        r"(?:including|incl\.?|and|with|\+|/) (?:the )?"
        r"(?:pituitary(?: protocol)?(?: (?:and|\+|/|&) (?:the )?cavernous sinus(?:es)?)?|cavernous sinus(?:es)?)\b",
        "MRI cavernous sinus",
    ),
    (
        r"\bMRI (?:of )?(?:the )?(?:brain|head) ?(?:/|and|&|\+|with) ?(?:the )?"
        r"(?:IAMs?|IACs?|internal (?:auditory|acoustic) (?:meat\w+|canals?))\b",
        "MRI internal auditory canals",
    ),
    (
        r"(\bMRI (?:of (?:the )?)?(?:brain|head)) ?(?:&|and|\+|/) ?(?:the )?(?:whole )?(?:spinal )?cord\b",
        r"\1, MRI spine",
    ),
    (r"\bL[-/]S (?=spine\b)", "lumbar "),
    (
        r"(?-i:([/,&+]?)\s*\b([CTL])(?:[- ]?spine)? ?(?:[/&+,]|and) ?([CTL])(?: ?(?:[/&+,]|and) ?([CTL]))?[- ]spine\b)",
        lambda found: (
            (", " if found[1] else " ") + ", ".join(f"{_SPINE[part]} spine" for part in found.groups()[1:] if part)
        ),
    ),
    (
        # The levels of the spine and of nerve roots.
        r"(?-i:\(?(?<!PD-)(?<!PD )\b(?:[CTLS]\d{1,2} ?(?:-|–|to) ?[CTLS]?\d{1,2}|L[1-5])\b"
        r"(?:\s*(?:,|/|and|&|-|–|to)\s*[LS]\d\b)*\)?)",
        "",
    ),
    (
        r"\b(?:obs?|obst|obstetric)\.? (?:USS?|ultrasound|scan|dopplers?)\b"
        r"|\b(?:USS?|ultrasound|scan) (?:for )?(?:fo?etal )?growth\b"
        r"(?: ?(?:/|,|and|&|\+) ?(?:liquor|dopplers?|AFI|EFW|fluid)\b)*",
        "obstetric ultrasound",
    ),
    (
        r"^(?=.*\b(?:umbilical|growth scan|CTG|cardiotocogra\w+|biophysical|fo?etal|liquor|amniotic)\b)(.*)"
        r"\b(?:MCA|middle cerebral artery|uterine artery) dopplers?\b",
        r"\1obstetric ultrasound",
    ),
    (r"\b(?:transvaginal|TV) ?(?:pelvic )?(?:ultrasound|USS?|S|scan)\b", "transvaginal ultrasound"),
    (r"\b(?:USS?|ultrasound)(?: of)? KUB\b|\bKUB (?:USS?|ultrasound)\b", "renal ultrasound"),
    (r"\b(?:musculoskeletal|MSK) (?=ultrasound|USS?\b)", ""),
    (r"\bB[- ]?scans?\b(?! (?:ultraso\w+|USS?\b))(?: of (?:the |both )?eyes?)?", "ocular ultrasound"),
    (
        # The great veins of the belly; the lower vena cava alone is seen with its organs.
        r"\b(?:iliac(?: veins?)?|pelvic veins?|IVC ?(?:/|and|&|\+) ?(?:the )?iliacs?(?: veins?)?)"
        r"(?: ?(?:/|and|&|\+) ?(?:the )?IVC)? (?=US\b|USS\b|ultraso\w+|duplex|dopplers?\b)",
        "iliac vein ",
    ),
    (r"\bIVC (?=US\b|USS\b|ultraso\w+|duplex|dopplers?\b)", "abdominal "),
    (
        r"\b((?:duplex|dopplers?)\b[^,;]*?) ?(?:\+|\band\b|&|/|\bincl\w*\b\.?|\bwith\b) ?(?:the )?"
        r"(?:iliacs?|IVC)(?: veins?)?(?: ?(?:/|and|&) ?(?:IVC|iliacs?)(?: veins?)?)?(?=\s*(?:$|[,;.]))",
        r"\1, iliac vein ultrasound",
    ),
    (
        r"\b(?:(?:USS?|ultrasound|venous|duplex|leg) )*(?:dopplers?|duplex) (?:to )?"
        r"(?:r/o|for|rule out|exclude) ?DVT\b",
        "leg vein ultrasound",
    ),
    (
        r"\b(?:temporal (?:arter(?:y|ies) )?(?:and|&|/|\+) (?:the )?axillary"
        r"|axillary (?:arter(?:y|ies) )?(?:and|&|/|\+) (?:the )?temporal)(?: arter(?:y|ies)\b)?"
        r"(?! (?:lymph|nodes?))",
        "temporal and axillary artery",
    ),
    (
        r"\b(?:ultrasound|ultrasonography|US|USS) (?:(?:of|in|over) (?:the )?)?"
        r"(?:RLQ|right lower quadrant|right iliac fossa)\b"
        r"|\b(?:RLQ|right lower quadrant|right iliac fossa) (?:ultrasound|ultrasonography|US|USS)\b"
        r"|\b(?:ultrasound|ultrasonography) (?:for|to (?:look for|assess for|rule out)|looking for) (?:acute )?"
        r"appendicitis\b",
        "appendix ultrasound",
    ),
    (
        r"\b(?:upper GI|UGI|upper gastrointestinal|upper gastro-?intestinal tract)"
        r" (?:series|(?:contrast|barium)\b(?: (?:series|study|studies))?)"
        r"|\b(?:gastrografin|water[- ]soluble(?: contrast)?|contrast|small bowel|barium)(?: small bowel)? "
        r"(?:follow[- ]?through|challenge|meal and follow[- ]?through)(?: study)?\b",
        "upper GI contrast study",
    ),
    #
    # What is taken from where, and what it is tested for.
    #
    (
        r"\b(skin|lymph node|muscle|nerve|liver|kidney|renal|bone) and (?=(?:[a-z]+ )?[a-z]+ biops(?:y|ies)\b)",
        r"\1 biopsy and ",
    ),
    (r"(\bbiops\w+ (?:with|for|and|\+|&) (?:histology (?:and|\+|&) )?)(?-i:D?IF)\b", r"\1immunofluorescence"),
    (
        r"(?<=biopsy)([^,;]*?) (?:for|with) (?:DIF\b|direct immunofluorescence\b)",
        r"\1 with direct immunofluorescence",
    ),
    (
        # The muscle, not the sign that is named after it.
        r"\b(biopsy (?:of|from) (?:the )?(?:(?:right|left) )?(?:ilio)?psoas)\b(?: muscle\b)?"
        r"|\b(psoas)(?= (?:needle )?(?:biopsy|bx|aspirat\w+)\b)",
        r"\1\2 muscle",
    ),
    (
        r"\b(?:needle )?(?:biops(?:y|ies)|aspirat(?:e|ion)|sampling) of\s+(?:the\s+)?(?:affected |infected )?"
        r"(?:intervertebral )?dis[ck]s?(?: space)?"
        r"(?:\s+(?:and|or|/)\s+(?:the )?(?:vertebrae?|vertebral body|bone))?\b"
        r"|\bdis[ck](?: space)? (?:biops(?:y|ies)|aspirat(?:e|ion)|sampling|fluid)\b",
        "disc biopsy",
    ),
    (
        # A fluid that is drained, not the discharge of a wound.
        r"\b(?:drainage|draining|tapping|evacuation) of (?:(?:the|a|an|any|loculated|encysted|left|right) )*"
        r"(?=(?:pericardial|pleural|ascitic|peritoneal|synovial|joint|knee|spinal|cerebrospinal)\b)",
        "",
    ),
    (
        # What a specimen is tested for, not everything about it.
        r"\b(stool|fa?ecal|urine|saliva)(?: (?:test(?:s|ing)?|samples?|specimens?|analysis)){1,2} for\b",
        r"\1 for",
    ),
    (
        rf"(?:^|(?<=[,;+] ))([^,;+()]+) \(({_FLUID})(?: ?(?:\+|&|/|and|,) ?({_FLUID}))?\)",
        lambda found: ", ".join(f"{fluid} {found[1]}" for fluid in found.groups()[1:] if fluid),
    ),
    (r"\b([\w-]+ PCR) (?=(?:stool|faeces|CSF|sputum)\b(?! (?:PCR|culture|for|antigen|studies|sample)))", r"\1 of "),
    (
        rf"\b((?:[\w-]+ )?PCR|cultures?) (?:of |on |from |in )?({_TAKEN_FROM}(?: ?[/+] ?{_TAKEN_FROM})+)"
        r"|\b([\w-]+ PCR) (?:on|of|in|from) (?:both )?"
        r"((?:blood|serum|plasma|CSF) (?:and|&) (?:blood|serum|plasma|CSF))\b",
        lambda found: ", ".join(f"{of} {found[1] or found[3]}" for of in _PLUS.split(found[2] or found[4])),
    ),
    (
        rf"\b({_TAKEN_FROM}(?: ?(?:[/+&]|\band\b) ?{_TAKEN_FROM})+) "
        r"((?:swabs? )?(?:(?:for )?(?:[\w-]+ )?(?:PCR|NAAT)|(?<=swab )cultures?|(?<=swabs )cultures?))\b",
        lambda found: ", ".join(f"{of} {found[2]}" for of in _PLUS.split(found[1])),
    ),
    (
        # One result, whatever it was looked for in.
        r"(\bPCR\b[^,;.]*?\b(?:swab|aspirate|blood|sputum|saliva)) (?:and|&|\+) urine\b(?=\s*(?:$|[,;.]))",
        r"\1",
    ),
    (r"\b((?:FBC|CBC|CRP|lactate|U&Es?|BMP|CMP|LFTs?) ?[,/+] ?)cultures(?= ?(?:$|[,;./+]|x ?\d))", r"\1blood cultures"),
    (
        # Those of blood, if the order names nothing else that is cultured.
        r"^(?=.*[/,+;] ?cultures)"
        r"(?!.*\b(?:LP|lumbar|CSF|joint|aspirat\w+|swabs?|fluid|biops\w+|bx|sputum|urine|urinalysis|stool|tap"
        r"|BAL|wash\w*|pus|abscess|tissue|collection|viral|PCR|\w*centesis|puncture|wound|throat|ear|eye|skin"
        r"|cell count|crystals|gram|bronch\w*|lavage|drain\w*|nodes?|marrow|blood)\b)"
        r"(.*[/,+;] ?)cultures(?= ?(?:$|[,;.+/]|x ?\d))",
        r"\1blood cultures",
    ),
    (
        r"\b(UA|urinalysis|urine(?: dip| cultures?)?)\s*"
        r"\([^)]*\b(?:cath\w*|bag|clean|mid\w*|catch|suprapubic)\b[^)]*\)",
        r"\1",
    ),
    (r"\burine for (?:(?:sterile|any) )*(?:pyuria|ha?ematuria|proteinuria|dip\w*|WBCs?|leu[ck]ocytes)\b", "urinalysis"),
    (r"\b((?:dip ?stick|urinalysis|\bUA)\b[^,;]*?) (?:with|including|and) (?:urine |urinary )?pH\b", r"\1"),
    (r"(\burine colou?r) (?:on|after|when|over|in)\b[^,;.]*", r"\1"),
    (
        r"\b(?:NG|nasogastric)(?: tube)?\b[^,;.]*\b(?:aspirat\w+|drainage|drained|output|returns?|contents?)\b[^,;.]*",
        "gastric aspirate appearance",
    ),
    (
        r"\s*\b(?:in|from|of)\s+(?:(?:the|all|both|first|second|third|fourth|last|final|and|to|&|\d)\s+){0,6}"
        r"tubes?\b(?:\s*(?:and|to|&|-|\d)(?=\W|$)){0,4}",
        "",
    ),
    (
        r"\bglucose (?:paired )?with (?:paired |simultaneous )?(serum|plasma|blood)\b(?: glucose)?",
        r"glucose, \1 glucose",
    ),
    (r"(\b(?:CSF|LP|lumbar puncture|spinal tap)\b[^;.]*?)\bbiomarkers\b", r"\1amyloid and tau"),
    #
    # Germs, and how they are looked for.
    #
    (
        # How soon a PCR finds a germ: part of its report.
        r"\s*[(,]?\s*\b(?:with |and |including )?(?:the )?(?:cycle[- ]threshold|(?-i:C[tT]))(?: \(Ct\))? ?"
        r"(?:\(Ct(?: values?)?\)|values?)\)?",
        "",
    ),
    (
        r"^(?=.*\b(?:AFB|acid))(?!.*\b(?:CSF|LP|lumbar|pleural|gastric|urine|stool|biops\w+|node|tissue|BAL|wash\w*"
        r"|joint|FNA\w*|fine|pericard\w*|ascit\w*|periton\w*|fluid|pus|abscess|skin)\b)(.*?)"
        r"(?<!sputum )\b(AFB|acid[- ]fast)(?= (?:smears?|stain|cx|culture|x ?\d))",
        r"\1sputum \2",
    ),
    (
        r"^(?=.*\b(?:AFB|acid[- ]fast|IGRA|quantiferon)\b)"
        r"(.*(?:^|[,;:(+/]\s*|\b(?:and|sputum|smears?|cultures?|AFB|fast) ))NAATs?\b(?! (?:for|of))",
        r"\1TB PCR",
    ),
    (
        rf"\b({_MYCOBACTERIA}) (?:({_SEEN}) ?(?:and|&|\+|/) ?cultures?|cultures? ?(?:and|&|\+|/) ?({_SEEN}))\b",
        r"\1 \2\3 and \1 culture",
    ),
    (
        r"\b(?:(?:three|two|3|2|serial|multiple)\s+(?:(?:early|morning|early-morning|consecutive|separate|induced)\s+)*"
        r"sputum\s+(?:(?:AFB|acid[- ]fast(?: bacilli)?)\s+)?(?:smears?|samples?|specimens?|AFBs?)(?:\s+for\s+(?:AFB"
        r"|acid[- ]fast bacilli|TB|tuberculosis))?|sputum\s+(?:for\s+)?(?:(?:AFB|acid[- ]fast(?: bacilli)?)\s*)"
        r"(?:smears?\s*)?[x×]\s?[23])(?=\W|$)",
        "sputum acid-fast smear, second sputum acid-fast smear",
    ),
    (r"\b(?:bacterial|aerobic|anaerobic) (?:,|and|&|/) ?((?:myco\w+|AFB|TB|fungal) cultures?)\b", r"culture and \1"),
    (r"\bper-?nasal swabs?(?: (?:for )?(?:pertussis )?(?:PCR|cultures?))?", "pertussis PCR"),
    (
        r"\bcultures? (?:of|from) (?:an? |the )?(?:nasopharyngeal|NP) (?:swab|aspirate)s?\b"
        r"|\b(?:nasopharyngeal|NP) (?:swab|aspirate)s? (?:for )?cultures?\b",
        "nasopharyngeal culture",
    ),
    (
        r"^(?!.*\b(?:lumbar puncture|LP|spinal tap|CSF|cerebrospinal|skin|vesicle)\b)"
        r"(.*?)(?<!blood )(?<!serum )(?<!plasma )(?<!stool )(?<!respiratory )\bviral PCR(?: swab)?\b"
        r"(?! ?\(?(?:of |on |from )?(?:the )?(?:blood|serum|plasma|stool|biops|myocard|tissue))",
        r"\1respiratory viral PCR",
    ),
    (
        r"(\b(?:lumbar puncture|LP|spinal tap|CSF|cerebrospinal fluid)\b[^;]*(?:[,&+(:]|\b(?:and|with|plus)\b)\s*)"
        r"(?:viral )?PCR(?=\s*(?:$|[,;.)]|and\b))",
        r"\1HSV PCR",
    ),
    (r"\b(viral PCR) ?(?:and|&|[+/]|plus) ?serolog(?:y|ies)\b(?! (?:for|of)\b)", r"\1 and viral serology"),
    (
        # Several parasites are looked for at once.
        r"\b(?:(?:stool|fecal|faecal) )?"
        r"(?:(?:entamoeba(?: histolytica)?|cryptosporidium|cyclospora)(?:/|, | and )?)+ PCR\b(?! (?:of|on|from))",
        "stool pathogen PCR",
    ),
    (r"\bova ?[,/&]? ?(?:and )?cysts? ?[,/&]? ?(?:and |& )?parasites\b", "ova and parasites"),
    (
        r"\b(?:(?:chlamydia|CT)\s*(?:/|&|,|\band\b)\s*(?:gonorrh?o?ea|GC)"
        r"|(?:gonorrh?o?ea|GC)\s*(?:/|&|,|\band\b)\s*(?:chlamydia|CT))\b"
        r"(?= ?(?P<method>(?:NAATs?|PCR|nucleic|amplif\w*|cultures?|swabs?|tests?|testing|screen\w*)\b)?)",
        lambda found: (
            "chlamydia and gonorrhea"
            if found["method"] or found.string[: found.start()].rstrip()[-1:] not in ",;"
            else "chlamydia and gonorrhea PCR"
        ),
    ),
    (
        r"\burethral (?:swabs? )?(?:for )?(?=(?:NAAT|PCR|nucleic acid|chlamydia|gonorrh)\w*)(?![^,;]*\bcultur)",
        "urine NAAT ",
    ),
    (r"(\bspeculum\b[^,;]*?)\s*\b(?:with|and|plus)?\s*\bswabs?\b(?! (?:for|of))", r"\1, high vaginal swab"),
    (r"(\bthroat\b[^;.]*?)\brapid (?:antigen|test)\b(?: (?:test|detection))?", r"\1rapid strep"),
    #
    # Values and panels.
    #
    (r"\bbone (?:profile|panel|chemistry|biochemistry)\b", "calcium, phosphate, ALP, albumin"),
    (r"\b(?:serum )?(?:trans|amino ?trans)(?:amin|fer)ases\b", "ALT, AST"),
    (
        r"\bbilirubin (?:\((?:total ?(?:and|&|/) ?direct|direct ?(?:and|&|/) ?total|fractionated)\)|fractions)",
        "total and direct bilirubin",
    ),
    (
        r"\b(?:serum |quantitative )?immunoglobulins?\b(?! ?[AEGM]\b)(?= ?(?:$|[,;.)+/]|and\b|levels?\b))",
        "serum IgG, serum IgA, serum IgM",
    ),
    (
        r"\b(?:(?:renal|kidney|liver|hepatic|thyroid)\s*(?:,|/|&|\+|\band\b)\s*)+"
        r"(?:renal|kidney|liver|hepatic|thyroid) (?:function|profiles?|panels?)(?: tests?)?\b",
        lambda found: ", ".join(
            f"{organ} function" for organ in re.findall(r"(?i)renal|kidney|liver|hepatic|thyroid", found[0])
        ),
    ),
    (
        r"\b(?:(?:[A-Z][A-Z0-9]{2,7} ?/ ?)+|(?:[A-Z]{2,6}\d[A-Z0-9]* ?(?:/|,|and|&) ?)+)[A-Z][A-Z0-9]{2,7} "
        r"(?=(?:gene )?panel\b)",
        "gene ",
    ),
    (r"\b(capillary|venous|arterial) gas(?:es)?\b", r"\1 blood gas"),
    (
        r"^(?!.*\b(?:CSF|lumbar|LP|fluid|paired|ratio|urine)\b)(.*?)"
        r"\b(?:venous )?(?:plasma|serum|laboratory|lab) glucose\b(?! tolerance)",
        r"\1glucose",
    ),
    (
        r"^(?!.*\b(?:sputum|afb|acid[- ]fast|csf|stool|fluid|swab|pap|cervical)\b)(.*[,;] ?)smear(?=$|[,;.])",
        r"\1blood smear",
    ),
    (
        r"(\b(?:CBC|FBC|blood count|differential|diff)\b\s*(?:,|[+&/]|\b(?:and|with|plus)\b)\s*)film\b",
        r"\1blood film",
    ),
    (
        r"(\b(?:CBC|FBC|blood count|differential|diff)\b[^;,.]{0,40}?(?:\b(?:and|with|plus)\b|[,&+])\s*)smear\b",
        r"\1blood smear",
    ),
    (
        # Where it is measured, not a count of these.
        r"\b(?:erythrocyte|red (?:blood )?cell|RBC) (?=PBG|porphob|HMB|protoporph|transketol|cholinest)",
        "",
    ),
    (r"\b(?:lipoprotein|Lp) ?\(a\)", "lipoprotein a"),
    (
        r"\b1,25[- ]?(?:(?:\(OH\)2|OH2?|di-?hydroxy)[- ]?(?:vit(?:amin)?[- ]?)?|vit(?:amin)?[- ]?)D3?\b",
        "calcitriol",
    ),
    (r"\b25[- ]?\(OH\)[- ]?(?:vit(?:amin)?[- ]?)?D3?\b", "25-hydroxyvitamin D"),
    (r"\b(?:epinephrine|adrenaline) ?[(/] ?(?:epinephrine|adrenaline)\)?", "epinephrine"),
    (r"\b((?:plasma|serum|urine|urinary)(?: free| fractionated)*) mets\b", r"\1 metanephrines"),
    (r"\bmetanephrines ?/ ?cats\b", "metanephrines/catecholamines"),
    (
        r"\b(?:24[- ]?(?:h|hr|hours?) )?urin(?:e|ary) (?:fractionated )?"
        r"(?:metanephrines(?: and |/)catecholamines|catecholamines(?: and |/)metanephrines)\b",
        "urine catecholamine metabolites",
    ),
    (
        r"\b24[- ]?h(?:ou)?r?s? (?:urine |urinary )?(?:protein electrophoresis|UPEP)\b",
        "24 hour urine protein, urine protein electrophoresis",
    ),
    (r"\b((?:24[- ]?h(?:ou)?r?s?|spot)(?= U [A-Z])|24[- ]?h(?:ou)?r?s?(?= protein\b))(?: U\b)?", r"\1 urine"),
    (
        r"\b((?:24[- ]?h\w*|spot) urine) (Ca|Na|K|calcium|sodium|protein|Prot|Cu|copper) ?/ ?"
        r"(?:Cr|creat\w*)\b(?! ratio)",
        r"\1 \2, urine creatinine",
    ),
    (
        r"\b((?:urine|urinary|spot) (?:spot )?(?:protein|albumin)) ?[:/] ?creat(?:inine)?\b(?: ratio)?",
        r"\1 creatinine ratio",
    ),
    (r"(?-i:(?<=[a-z]):(?=[a-z]))", " "),  # "kappa:lambda ratio"
    (
        # Of one ratio; of a list that begins with a collection of urine.
        r"^(?=.*\bPCR\b)(.*\b(?:24[- ]?h\w*|urin\w+|spot)\b[^;]*(?:[,/+]|\bor|\bACR (?:and|&|plus)) ?)"
        r"PCR(?= ?(?:$|[,;/+.]))(?<!culture, PCR)",
        r"\1urine protein creatinine ratio",
    ),
    (
        r"\burine PCR\b(?:\s*\(protein[^)]*\)|(?= ?(?:$|[,;.])))|\bspot PCR\b",
        "urine protein creatinine ratio",
    ),
    (r"\b(?:paired )?(serum|plasma) ?(?:/|&|and) ?(urine) (osmolalit\w+|sodium|electrolytes)", r"\1 \3, \2 \3"),
    #
    # Tests of function.
    #
    (OXYGEN_TRIAL.pattern, "oxygen trial"),
    (
        r"(?<!flow )(?<!PEF )(?<!PEFR )\b(?:pre|before) ?(?:\+|/|&|and) ?(?:post|after)"
        r" ?(?:BD|bronchodilators?|salbutamol|albuterol)\b",
        "bronchodilator response",
    ),
    (
        r"\bevoked potentials \(((?:(?:visual|auditory|somatosensory|brain ?stem)\W*(?:and )?)+)\)",
        lambda found: ", ".join(
            f"{kind} evoked potentials" for kind in re.findall(r"(?i)visual|auditory|somatosensory", found[1])
        ),
    ),
    (
        r"\b((?:nerve conduction (?:stud\w+|tests?|velocit\w+)|NCS|EMG|repetitive (?:nerve )?stimulation|RNS)"
        r"(?: (?:and|&) (?:EMG|NCS))?(?: at [\d-]+ ?Hz)?) (?:of|in|for|on) "
        rf"(?:(?:the|right|left|both|bilateral) )*{_NERVES}(?:\s*(?:,|and|&|/)\s*{_NERVES})*",
        r"\1",
    ),
    (
        r"\b(?:hydrogen |methane )*breath test(?:s|ing)? for (?:suspected )?"
        r"((?:lactose|fructose|SIBO|small|bacterial)[\w -]*?)"
        r"(?: (?:and|or) (?:suspected )?((?:lactose|fructose|SIBO|small|bacterial)[\w -]*?))?(?=$|[,;.])",
        lambda found: ", ".join(f"{what} breath test" for what in found.groups() if what),
    ),
    (r"\ballerg\w+ skin (?:prick )?test\w*", "skin prick test"),
    (r"\b(?:lumbar |CSF |spinal |large[- ]volume )*tap test\b[^,;.]*", "gait after removal of 40 ml spinal fluid"),
    (
        r"\b(?:intrapericardial (?:and|&|,) )?"
        r"(?:right (?:atrial|heart|ventricular)|intracardiac|(?:pulmonary )?(?:capillary )?wedge) pressures?\b",
        "right heart catheterization",
    ),
    (
        r"\b(?:resting|rest) and (?:ambulatory|walking|exertional|exercise) "
        r"(?:oxygen saturations?|saturations?|sats?|SpO2|pulse oximetry|oximetry)\b",
        "oxygen saturation, walk test",
    ),
    (r"(?<!\bto )(?<!\bto-)\bstand(?:ing)? test\b", "standing ECG"),
    #
    # Examinations: vital signs.
    #
    (
        r"(\b(?:weight|height|length|circumference|signs|vitals)(?:,|,? and)) growth(?=\s*(?:$|[,;.]|and\b))",
        r"\1 growth chart",
    ),
    (r"\bweigh (?:(?:the|this) )?(?:patient|him|her|baby|child|infant)\b", "weight"),
    (
        r"\b(?:lying|supine|sitting) ?(?:/|&|\+|-|and|to|then|vs\.?) ?(?:standing\b|sitting(?= BPs?\b| blood))"
        r"|(?<=\bBP )(?:lying|supine) ?(?:/|&|\+|and|to) ?sitting\b|(?<=pressure )(?:lying|supine) (?:and|to) sitting\b"
        r"|(?-i:\bL ?(?:/|&|and) ?S)(?= BPs?\b| blood)",
        "lying and standing",
    ),
    (
        r"\b(?:orthostatic|postural) (?:pulse and )?(?:pressures?|pulse|vitals|vital signs|obs)\b",
        "lying and standing blood pressure",
    ),
    (
        r"\b(?:blood pressures?|BPs?)\s+(?:in|of|on|at|from)\s+(?:(?:the|all|both|his|her|right|left)\s+)*"
        r"(?:arms?|upper (?:limbs?|extremit\w+))\s*(?:and|&|,|vs\.?|versus)\s*(?:(?:the|both|a|one|right|left)\s+)*"
        r"(?:legs?|lower (?:limbs?|extremit\w+))\b"
        r"|\b(?:upper and lower (?:limb|extremity)|arm and leg|(?:4|four)[- ]limbs?)\s+(?:blood pressures?|BPs?)\b"
        r"|\bBPs? (?:in )?(?:all )?(?:4|four) limbs?\b",
        "four-limb blood pressure",
    ),
    (
        r"\bpre-?(?: ?ductal)?(?: saturations?)?\s*(?:and|&|/|,)\s*post-? ?ductal"
        r"(?: (?:oxygen |o2 )?(?:saturations?|sats?|spo2|oximetry))?"
        r"|\b(?:saturations?|sats|oximetry|spo2)\s+(?:in|of|on|at|from)\s+(?:the )?(?:right )?(?:hand|arm) and "
        r"(?:(?:the|a|one|either|left|right) )*(?:foot|leg)\b",
        "oxygen saturation, postductal oxygen saturation",
    ),
    (r"\bBeck triad ?[:(] ?(?=\w)", ""),
    (r"\bBeck triad\b", "JVP, heart sounds, BP"),
    (r"\bCushing (?:triad|response|reflex)\b", "BP, HR, RR"),
    #
    # Examinations: the trunk.
    #
    (
        r"\bairway (?:exam(?:ination)?|assessment|inspection)\b"
        r"|(?:^|(?<=[,;:] )|\b(?:check|assess|examine|inspect) )(?:the )?(?:upper )?airways? ?(?=for\b|[,;:]|$)",
        "stridor and throat exam ",
    ),
    (WITH_SPATULA.pattern, ""),
    (r"(\bbreath (?:odou?r|smell)s?) ?\([^)]*\)", r"\1"),
    (
        r"\bhyper[- ]?resonan(?:ce|t(?: (?:note|percussion))?)\b|\b(?:stony )?dullness to percussion\b"
        r"|\bstony dullness\b",
        "chest percussion",
    ),
    (
        r"^(?=.*\b(?:JVP|JVD|neck veins?|jugular|paradox\w*|tamponade|pericard\w*|CVS|heart|cardi\w+)\b)"
        r"(.*)\bKussmaul\b(?! (?:sign|breath|resp))",
        r"\1Kussmaul sign",
    ),
    (r"(?-i:\b(?:MR|AR|AS|MS|TR|PS|VSD|ASD)) (?=murmurs?\b)", ""),
    (
        r"\b(?:auscultat\w+|listen\w*) (?:(?:of|to|over|at) )?(?:(?:the|both) )*([^,;.]+?)"
        r"(?: (?:arter(?:y|ies)|vessels?))? for (?:(?:any|a) )?bruits?\b",
        r"\1 bruits",
    ),
    (r"\bfemorals\b", "femoral pulses"),
    (r"\btympan(?:y|ism|i(?:ti)?c (?:note|percussion))\b", "abdominal percussion"),
    (r"(\b(?:abdom\w+|guarding|rebound|periton\w+)\b[^.;]*?)\brigidity\b", r"\1guarding"),
    (
        # What the abdomen is felt for is ordered by itself.
        r"\b((?:abdomen|abdo|belly|tummy|abdominal)(?: exam(?:ination)?| palpation)?) for "
        r"(?:the |any |an? |signs of |evidence of |(?:an? )?enlarged |palpable )*(?=([^,;.]+))",
        lambda found: f"{found[0]}{found[2]}; " if _is_sign_alone(found[2]) or _is_organ(found[2]) else found[0],
    ),
    (
        # Looked for at the bedside, if the order does not sample it.
        r"(?<!\bof )(?<!\bfrom )(?<!\btap )\bascites\b"
        r"(?! (?:fluid|tap|culture|cell|albumin|protein|analysis|sample|drain|for))",
        "shifting dullness",
    ),
    (
        r"(\bherni\w+(?: orifices?| sites?)?) ?"
        r"\((?:(?:and|inguinal|femoral|umbilical|incisional|groins?|both)\b[\s,/&+]*)+\)",
        r"\1",
    ),
    (r"\s*\b(?:including|and|with) (?:the )?femoral canals?\b", ""),
    (
        r"\b(testicular|scrotal|genital|penile) (?:and|&|/) (?:inguinal )?(hernial?) exam(?:ination)?\b"
        r"|\b(hernial?) (?:and|&|/) (testicular|scrotal|genital|penile) exam(?:ination)?\b",
        lambda found: f"{found[1] or found[4]} examination, {found[2] or found[3]} examination",
    ),
    (r"\b((?:anal |sphincter )?tone) and squeeze\b", r"\1"),
    #
    # Examinations: skin, nodes and swelling.
    #
    (
        # Crackling under the skin, not that of a joint or of the lungs.
        r"(\b(?:neck|chest wall|supraclavicular|collarbones?|clavicles?|axillae?)\b[^;.]*?\b(?:for|feeling)\b"
        r"[^;.]*?)(?<!subcutaneous )(?<!surgical )\b(?:crepit(?:us|ations?)|crackling|emphysema)\b",
        r"\1subcutaneous emphysema",
    ),
    (
        r"^(?=.*\b(?:bulla\w*|blister\w*|necro\w+|cellulitis|skin|wound|fasciitis)\b)(.*?)(?<!joint )(?<!knee )"
        r"(?<!chest )(?<!neck )\b(?:soft[- ]tissue )?crepitus\b",
        r"\1soft tissue crepitus",
    ),
    (
        r"^(?=.*\b(?:bulla\w*|blister\w*|crepitus|cellulitis|skin|wound|fasciitis)\b)(.*?)"
        r"(?<!skin )(?<!tissue )(?<!tumor )(?<!vascular )(?<!fat )\bnecrosis\b(?! factor)",
        r"\1tissue necrosis",
    ),
    (r"^(?=.*\b(?:crepitus|necrosis)\b)(.*?)\bblisters\b", r"\1bullae"),
    (
        r"\b(?:mark|outline|draw|trace)\b[^,;.]{0,40}\b(?:borders?|edges?|margins?|redness|erythema|rash|area)\b"
        r"(?:[^;.]{0,30}\b(?:re-?(?:check|assess|examine|evaluate)|repeat|review|look again|see)\b[^,;.]*)?",
        "repeat skin examination",
    ),
    (
        r"\b(?:blanching|glass|tumbler) test(?: (?:of|on) (?:the |any )?(?:rash|spots|skin))?"
        r"(?: with an? (?:glass|tumbler))?|\b(?:herpes zoster|zoster|shingles) rash\b",
        "skin rash",
    ),
    (r"\bportals? of entry\b", "skin"),
    (r" (?:arthroscop\w+ )?portals\b(?: sites?| scars?| wounds?)?(?! of)", ""),
    (rf"\b({_SWELLS}) ?(?:/|&|and|\+|or) ?({_SWELLS}) (o?edema|swelling)\b", r"\1 \3, \2 \3"),
    (
        r"\b(o?edema|swelling) of (?:the )?face (?:and|&|/|or) (?:the )?(hand|leg|feet)s?\b",
        r"facial \1, \2 \1",
    ),
    (
        r"(?:\b(?:cervical|supraclavicular|submandibular|axillary|inguinal|epitrochlear|occipital)\b[\s,&/]*"
        r"(?:(?:and|or)\s+)?){2,}(?=(?:lymph )?(?:nodes?|lymphadenopathy)\b)",
        "",
    ),
    (
        # Felt for nodes, unless an order is about the skin.
        r"^(?!.*\b(?:skin|rash|web|burrows?|freckl\w+|hair|abscess\w*|breasts?|swab|temp\w*)\b)(.*?)"
        r"(?:^|(?<=[,;:+] )|(?<=\band ))(?:(?:the|both) )*(?:axillae?|armpits?)(?=\s*(?:$|[,;.+]|and\b))",
        r"\1axillary nodes",
    ),
    (
        r"\bpalpat(?:ion|e)(?: of)?(?: the)? neck\b"
        r"(?!,? (?:lymph|node|gland|muscle|and thyroid|for (?:lymph|node|thyroid|goit)))",
        "neck palpation",
    ),
    (
        # In an examination for thyroid disease the hands are looked at for a tremor.
        r"^(?=.*\bthyroid\b)(?!.*\b(?:tremor|X-?rays?|films?|radiograph\w*)\b)(.*)\bhands\b(?! (?:for|and feet)\b)",
        r"\1hands, tremor",
    ),
    #
    # Examinations: nerves, eyes and limbs.
    #
    (r"\bNIH stroke scale\b", "neurological examination"),
    (
        # A neurological examination includes it; that of a psychiatrist is another one.
        r"(\bneurolog\w+ exam(?:ination)?) (?:with|and) mental status(?: exam(?:ination)?)?(?=\s*(?:$|[;.]))",
        r"\1",
    ),
    (
        r"(?-i:\bHINTS)(?:[- ]plus)?(?: exam(?:ination)?)?\b|\bhints exam\b",
        "head impulse test, nystagmus, test of skew",
    ),
    (r"\b(cranial nerves?|CNs?) (?:(?-i:[IVX]+)\b(?:\s*(?:[-–,/&+]|and|to)\s*)?)+", r"\1 "),
    (
        r"\bpupil(?:s|lary)?\b[^,;.]{0,20}? in (?:bright )?light and (?:in )?(?:the )?(?:dark(?:ness)?|dim light)\b"
        r"|\bpupil(?:s|lary)?\b[^,;.]{0,20}? in bright and (?:in )?dim light\b",
        "pupils, pupils in dim light",
    ),
    (r"\bfields?(?: test(?:s|ing)?)? (?:by|to|with|on) confrontation\b", "fields"),
    (r"\bvibration(?: sense)? (?:with|using|by) (?:an? |the )?(?:\d+ ?Hz )?tuning fork\b", "vibration sense"),
    (
        r"\b(?:median|ulnar|radial|peroneal|tibial|sciatic) nerve (?:exam(?:ination)?|testing|function)\b",
        "strength and sensation",
    ),
    (
        r"\b(?:distal )?neuro[- ]?vascular(?: (?:exam(?:ination)?|status|assessments?|checks?|obs(?:ervations)?"
        r"|function|integrity)\b)?",
        "distal pulses, capillary refill, power, sensation",
    ),
    (
        r"\b(?:palpat\w+|feel) (?:of )?(?:the )?(?=(?:(?:neck|shoulder)\b[\s,/&]*(?:and )?)*"
        r"(?:pericranial|temporal|temporalis|masseter|jaw|scalp|suboccipital|occipital)\b)"
        r"(?:(?:pericranial|temporal|temporalis|masseters?|jaw|scalp|suboccipital|occipital|cervical|neck|shoulder"
        r"|trapezius|paraspinal|sternocleidomastoid)\b[\s,/&]*(?:and )?)+muscles?\b",
        "pericranial muscles",
    ),
    (r"\b(?:active|passive) (?:and|&|/|or|,) ?(?:active|passive) (?=range|rom\b|movement)", ""),
    (r"\blook(?:ing)? (?:at|in|into|over|between|behind|under)\b", "examine"),
    (
        r",?\s*\b(?:with|paying)? ?(?:special |particular |close |careful )?"
        r"(?:attention (?:paid )?to|focus(?:ing)? on)\b",
        " including",
    ),
)
WRITTEN_OUT = tuple((lazy.regex(pattern, re.IGNORECASE), meant) for pattern, meant in _RULES)
"""How doctors write things, and the same in words that are read elsewhere; applied one after another.

Capitals matter only within `(?-i:...)`.
"""
