"""The short and loose ways in which doctors write orders, each with the same in words that are read elsewhere."""

from __future__ import annotations

import re

from agentclinic.cases.matcher.order_kinds import is_measured, only_sites
from agentclinic.cases.matcher.order_words import reading, vocabulary

WITH_SPATULA = re.compile(
    r"\s*\b(?:with|without|using)(?: using)? (?:an? |the )?(?:tongue (?:depressor|blade)|spatula)\b", re.IGNORECASE
)
"""How the throat is looked at: the tongue is not what is ordered."""
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


def _is_sign_alone(text: str) -> bool:
    """Whether a text names a sign of the body and no test: "oedema", "bullae or crepitus"."""
    read = reading(_CONJUNCTION.split(text)[0])
    return bool(read.of("parts")) and not is_measured(read) and not read.words


def _is_organ(text: str) -> bool:
    """Whether a text names an organ that is felt through the abdomen: "liver and spleen"."""
    read = reading(text)
    return only_sites(read) and not read.words and all("abdomen" in vocabulary().wider[s] for s in read.of("sites"))


_CONJUNCTION = re.compile(r"\b(?:and|or)\b")
OXYGEN_TRIAL = re.compile(
    r"\b(?:trial of (?:[\w%-]+ ){0,3}(?:oxygen|O2)|(?:high[- ]flow )?oxygen trial)\b"
    r"(?: (?:at )?\d+ ?L/min)?(?: (?:by|via) (?:[\w-]+ )?mask)?(?: during (?:an? |the )?(?:attack|bout|episode)s?)?",
    re.IGNORECASE,
)
"""What oxygen does to an attack: a test with a result of its own, though it is done during the attack."""
WRITTEN_OUT = (
    (
        # When an image is taken after the contrast.
        re.compile(
            r"(?:\s*,)?\s*\b(?:(?:in|with|and|including) )?(?:the )?"
            r"(?:(?:early|late|arterial|portal|venous|delayed|nephrographic|excretory|equilibrium|parenchymal)\b"
            r"\s*(?:(?:,|/|&|and|or)\s*)*)+phases?\b",
            re.IGNORECASE,
        ),
        "",
    ),
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
    (OXYGEN_TRIAL, "oxygen trial"),
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
