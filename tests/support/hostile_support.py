"""Records in which every text is an attack on the page that shows it."""

from __future__ import annotations

from report_support import Json, wrong

RAN = "window.__ran = (window.__ran || 0) + 1"
"""What an attack does when it succeeds."""
ATTACKS = {
    "script": f"<script>{RAN}</script>",
    "script_end": f"</script><script>{RAN}</script>",
    "script_end_in_data": f"</script ><!--><script>{RAN}//",
    "image": f'<img src=x onerror="{RAN}">',
    "image_far": '<img src="https://attack.example/pixel.png">',
    "svg": f'"><svg onload="{RAN}"><animate onbegin="{RAN}" attributeName=x dur=1s></svg>',
    "attribute": f"' autofocus onfocus='{RAN}' x='",
    "attribute_double": f'" onmouseover="{RAN}" style="display:none',
    "address": f"javascript:{RAN}",
    "link": f'<a href="javascript:{RAN}">here</a>',
    "frame": '<iframe src="https://attack.example/"></iframe>',
    "frame_document": f'<iframe srcdoc="<script>parent.{RAN}</script>"></iframe>',
    "style_link": '<link rel="stylesheet" href="https://attack.example/x.css">',
    "style": "</style><style>body{display:none;background:url(https://attack.example/x)}</style>",
    "import": "@import url(https://attack.example/x.css);",
    "title": f"</title><script>{RAN}</script>",
    "comment": f"<!--><script>{RAN}</script>-->",
    "cdata": f"]]><![CDATA[<script>{RAN}</script>]]>",
    "refresh": '<meta http-equiv="refresh" content="0;url=https://attack.example/">',
    "base": '<base href="https://attack.example/">',
    "form": f'<form action="https://attack.example/"><button autofocus onfocus="{RAN}">x</button></form>',
    "object": '<object data="https://attack.example/x"></object><embed src="https://attack.example/y">',
    "template": "{{constructor.constructor('" + RAN + "')()}} ${" + RAN + "} <%= 7 * 7 %> {0} {name} %s $& $1 $title",
    "mutation": f'<math><mtext><table><mglyph><style><img src=x onerror="{RAN}"></style></table></mtext></math>',
    "textarea": f'</textarea><img src=x onerror="{RAN}">',
    "escaped": "&lt;script&gt;alert(1)&lt;/script&gt; \\u003cscript\\u003e &#60;b&#62;",
    "prototype": "__proto__",
    "bidi": "\u202ereversed\u202c \u2066isolated\u2069 \u200f",
    "controls": f"\x00\x07\x1b[31m<script>{RAN}</script>\x7f\x85",
    "separators": "one\u2028two\u2029three\r\nfour\tfive",
    "marks": "`code` **bold** | table | [x](javascript:alert(1)) @everyone #1",
    "formula": '=HYPERLINK("https://attack.example/","x")',
    "huge": "A" * 70_000 + f"<script>{RAN}</script>",
}


def hostile(number: int, attack: str) -> Json:
    """A record in which every text that a model, a case's author or a user can write is an attack."""
    stated = {
        "source": "stated",
        "other": 0.1,
        "hypotheses": [{"diagnosis": attack, "probability": 0.9, "reason": attack}],
    }
    told = {"topic": attack, "provenance": "chart", "paths": [attack]}
    said = [
        {"turn": 1, "role": "doctor", "text": attack, "action": "question", "differential": stated, "notes": [attack]},
        {"turn": 1, "role": attack, "text": attack, "disclosures": [told], "details": {attack: attack}},
        {"turn": 2, "role": "doctor", "text": f"REQUEST TEST: {attack}", "action": "test"},
        {"turn": 2, "role": "measurement", "text": attack, "disclosures": [told]},
        {"turn": 3, "role": "doctor", "text": f"DIAGNOSIS READY: {attack}", "action": "diagnosis"},
    ]
    annotations = {
        "Specialty": attack, "Difficulty": attack, "Harm_If_Missed": 4, "case_id": f"a{number}",
        "twin_of": f"a{number ^ 1}",
        "Must_Not_Miss": [{"name": attack, "excluded_by": attack}],
        "Key_Findings": [{"any_of": [attack, f"Test_Results/{attack}"], "role": attack, "weight": 1}],
        "Answer_Key": {"accept": [attack], "partial": [attack], "reject": [{"text": attack, "reason": attack}]},
        attack[:200]: {attack[:200]: [attack]},
    }  # fmt: skip
    return wrong(
        number,
        said=attack,
        dataset=attack,
        ground_truth=f"{attack} x",
        door={"objective": attack, "demographics": attack},
        doctor=attack,
        doctor_llm=attack,
        patient_llm=attack,
        measurement_llm=attack,
        moderator_llm=attack,
        doctor_bias=attack,
        missing_test=attack,
        resource_level=attack,
        fault={"role": attack, "error": attack, "message": attack},
        judgement={"relation": attack, "reason": attack, "correct_lenient": False},
        differential=stated,
        transcript=said,
        annotations=annotations,
    )
