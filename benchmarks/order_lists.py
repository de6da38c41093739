"""How many items of a list the laboratory loses: each is ordered alone and in random lists, for random charts.

python benchmarks/order_lists.py                 400 lists of examinations and 400 of tests
python benchmarks/order_lists.py --lists 2000 --seed 7
python benchmarks/order_lists.py --show          print each item that was lost

An item is lost if nothing of what it returns alone is in the reply to the list. A list is wrong if its reply has
something that none of its items returns alone.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from agentclinic.cases.completion import completion
from agentclinic.cases.model import Case
from agentclinic.cases.registry import load_cases
from agentclinic.clinic.laboratory import matched, results_line
from agentclinic.clinic.payloads import LaboratoryPayload
from agentclinic.clinic.pending import hours_for

EXAMINATIONS = """abdomen; abdominal examination; abdominal palpation; back; bowel sounds; breast examination; breasts
calf examination; calves; capillary refill; cardiovascular examination; cervical and axillary lymph nodes; chest wall
coordination; cranial nerves; deep tendon reflexes; digital rectal examination; ears; ENT examination; eye examination
eyes; feet; fingers; full skin examination; fundoscopy; gait; general appearance; genital examination; hands
hands and feet; heart; heart auscultation; hernial orifices; hips; hydration status; joint examination; joints; JVP
knees; leg edema; legs; liver and spleen; lung auscultation; lungs; lymph nodes; mental status examination; mouth
mouth and throat; mucous membranes; muscle strength; nails; nails and hair; neck; neck examination; neck lymph nodes
neck stiffness; neurological examination; oral mucosa; palms; perianal inspection; peripheral pulses; power; pupils
reflexes; respiratory examination; scalp; sensation; sinuses; skin; skin examination; skin turgor; soles; spine
temporal arteries; testes; throat; thyroid; tremor; visual acuity; visual fields"""
TESTS = """12-lead ECG; 24-hour urine protein; abdominal ultrasound; abdominal X-ray; ACTH; albumin
aldosterone and renin; ammonia; amylase; ANA; ANCA; anti-CCP; aPTT; arterial blood gas; audiometry
bilirubin total and direct; blood cultures; blood film; blood group and antibody screen; BMP; BNP; bone marrow biopsy
C. difficile toxin; CA 125; calcium; carotid ultrasound; CBC; CBC with differential; CEA; chest X-ray
chlamydia and gonorrhea NAAT; CK; CMP; coagulation screen; colonoscopy; complement C3 and C4; CRP
CSF cell count, protein and glucose; CSF culture; CT abdomen and pelvis with contrast; CT chest; CT head
CT head without contrast; CT pulmonary angiogram; D-dimer; Doppler ultrasound of the legs; EBV serology; ECG
echocardiogram; EEG; electrolytes and creatinine; ESR; fecal calprotectin; ferritin; fibrinogen; fingerstick glucose
folate; free T4; full blood count; GGT; glucose; haptoglobin; HbA1c; hepatitis B and C serology
high-sensitivity troponin; HIV test; Holter monitor; HSV PCR; immunoglobulins; interferon gamma release assay
iron studies; ketones; lactate; LDH; LFTs; lipase; liver function tests; lumbar puncture; Lyme serology; magnesium
morning cortisol; MRI brain; MRI spine; nasopharyngeal swab for influenza and COVID PCR; nerve conduction studies
orthostatic blood pressure; peak flow; pelvic ultrasound; peripheral smear; phosphate; pregnancy test; procalcitonin
prolactin; PSA; PT/INR; PTH; rapid strep test; renal function; renal ultrasound; reticulocyte count
rheumatoid factor; serum osmolality; serum protein electrophoresis; skin biopsy; spirometry
spirometry with bronchodilator; sputum AFB smear; sputum culture; stool culture; syphilis serology; testosterone
throat swab; thyroid function tests; tissue transglutaminase antibodies; tonometry; total IgA; toxicology screen
transthoracic echocardiogram; troponin; TSH; two sets of blood cultures; U&E; upper endoscopy; uric acid; urinalysis
urine culture; urine dipstick; urine drug screen; urine microscopy; urine osmolality; urine sodium; venous blood gas
vitamin B12; vitamin D"""
DETAILS = {
    "skin examination": ("palms", "soles", "scalp", "nails", "finger webs", "mucous membranes", "trunk", "back"),
    "full skin examination": ("hands and feet", "scalp", "palms and soles", "nails"),
    "abdominal examination": ("liver", "spleen", "hernial orifices", "bowel sounds", "masses"),
    "neurological examination": ("gait", "reflexes", "cranial nerves", "power", "sensation", "speech"),
    "cardiovascular examination": ("JVP", "peripheral pulses", "murmurs", "edema"),
    "joint examination": ("hands", "knees", "spine"),
    "ENT examination": ("throat", "ears", "nose"),
    "eye examination": ("pupils", "visual acuity", "fundoscopy"),
    "neck examination": ("thyroid", "lymph nodes", "JVP"),
}
"""With which these examinations are ordered half of the time."""
WITH = (" including ", " with ", ", including ")


def listed(lines: str) -> list[str]:
    """The items of a text."""
    return [item for line in lines.split("\n") for item in line.split("; ")]


def a_list(among: Sequence[str], chance: random.Random) -> tuple[list[str], str]:
    """Some items, and one order for all of them."""
    chosen = chance.sample(among, chance.randint(3, 6))
    written = list(chosen)
    for place, item in enumerate(chosen):
        if item in DETAILS and chance.random() < 0.5:
            details = chance.sample(DETAILS[item], chance.randint(1, 3))
            written[place] = item + chance.choice(WITH) + chance.choice((", ", " and ")).join(details)
    return chosen, ", ".join(written[:-1]) + chance.choice((", ", " and ")) + written[-1]


def reply(case: Case, order: str) -> str:
    """What the laboratory says of a completed chart."""
    payload = LaboratoryPayload(case.exam_facts, order, "completed", completion(case), hours_for(case), None)
    return results_line(matched(payload), payload)[0]


def results(text: str) -> set[str]:
    """The results of a reply, without the headings that they stand under."""
    told = re.split(r"(?<=[.;]) ", text.removeprefix("RESULTS: "))
    return {piece.rsplit(": ", 1)[-1].strip(" .;") for piece in told}


def main() -> None:
    """Print how many of the items were lost."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lists", type=int, default=400, help="how many lists of each kind (default 400)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print what was lost, and what was told besides")
    given = parser.parse_args()
    cases = load_cases("OpenOSCE")
    for kind, among in (("examinations", listed(EXAMINATIONS)), ("tests", listed(TESTS))):
        chance = random.Random(given.seed)
        asked = lost = wrong = 0
        for _ in range(given.lists):
            case = chance.choice(cases)
            chosen, order = a_list(among, chance)
            whole = reply(case, order)
            alone = {item: told for item in chosen if (told := reply(case, item)).startswith("RESULTS:")}
            left_out = [item for item, told in alone.items() if not any(one in whole for one in results(told))]
            more = [one for one in results(whole) if kind == "tests" and not any(one in t for t in alone.values())]
            asked, lost, wrong = asked + len(alone), lost + len(left_out), wrong + bool(more)
            if given.show and (left_out or more):
                print(f"{case.name}: {order}\n    lost: {left_out}\n    besides: {more}")
        also = f"; {wrong} of {given.lists} lists with something that no item returns alone" if kind == "tests" else ""
        print(f"{kind}: {lost} of {asked} items lost{also}", flush=True)


if __name__ == "__main__":
    main()
