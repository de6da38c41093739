"""How a question is split and answered where the author says which questions facts answer."""

from __future__ import annotations

import pytest

from agentclinic.cases.matcher import Asked, asked_of_patient
from agentclinic.cases.matcher.asked_parts import MOST_ASKED, as_asked, at_this_place, parts_of
from agentclinic.cases.matcher.reader import read
from agentclinic.cases.matcher.spoken import asked_directly
from agentclinic.cases.matcher.talk import Talk, small_talk
from agentclinic.cases.matcher.topics import listed_noun
from agentclinic.cases.model import Fact, Facts, Section


def fact(path: str, text: str, *asked: str, section: Section = Section.HISTORY) -> Fact:
    return Fact(path, section, (), text, denied=text.startswith("No "), says=f"{text}.", asked=asked)


CHART = Facts(
    (
        fact("stiff", "Hands stiff for two hours", "Are your hands stiff?", "How long does the stiffness last?"),
        fact("use", "Stiffness eases with use", "Does moving help the stiffness?", "Is it better with use?"),
        fact("smoke", "Smoked for 30 years", "Do you smoke?", "How long have you smoked?", section=Section.SOCIAL),
        fact("aunt", "Aunt had arthritis", "Any arthritis in the family?", section=Section.FAMILY),
        fact("skin", "No psoriasis in the family", "Does psoriasis run in the family?", section=Section.FAMILY),
        fact("sugar", "No diabetes", "Do you have diabetes?", section=Section.PAST),
        fact("mouth", "Can open the mouth", "Is it hard to open your mouth?"),
        fact("air", "Breathes well", "Do you have trouble breathing?"),
    )
)


def told(question: str) -> list[str]:
    return list(dict.fromkeys(fact.path for topic in asked_of_patient(question, CHART) for fact in topic.facts))


@pytest.mark.parametrize(
    ("question", "paths"),
    [
        ("Are your hands stiff, and for how long?", ["stiff"]),  # not how long the patient smoked
        ("Does anyone in the family have arthritis, or perhaps psoriasis? Any diabetes?", ["aunt", "skin", "sugar"]),
        ("How are you managing with opening your mouth and breathing?", ["mouth", "air"]),
        ("Take your time. Do you smoke?", ["smoke"]),
    ],
)
def test_each_thing_asked_gets_its_fact_and_nothing_else_is_told(question: str, paths: list[str]) -> None:
    assert told(question) == paths


def test_what_nothing_in_the_chart_is_like_is_denied_beside_the_answers() -> None:
    topics = asked_of_patient("Do you smoke? Have you had a nosebleed?", CHART)
    assert [(topic.kind, bool(topic.facts)) for topic in topics] == [(Asked.SYMPTOM, True), (Asked.SYMPTOM, False)]


def test_a_word_that_no_one_knows_is_asked_back_about() -> None:
    (topic,) = asked_of_patient("Any zorbling or quaxly?", CHART)[:1]
    assert topic.kind is Asked.UNCLEAR


def test_a_denial_is_of_each_thing_asked() -> None:
    topics = asked_of_patient("Have you ever had asthma, heartburn or hay fever?", CHART)
    assert [topic.kind for topic in topics] == [Asked.SYMPTOM] * 3
    assert not any(topic.facts for topic in topics)


def test_how_and_when_are_not_denied() -> None:
    topics = asked_of_patient("When was your last meal, and how big was it?", CHART)
    assert {topic.kind for topic in topics} == {Asked.DETAIL}


def test_a_worry_is_answered_beside_a_fact() -> None:
    topics = asked_of_patient("Do you smoke, and what worries you most about this?", CHART)
    assert [topic.name for topic in topics if topic.kind is Asked.TALK] == [Talk.WORRY]
    assert [fact.path for topic in topics for fact in topic.facts] == ["smoke"]


@pytest.mark.parametrize("question", ["Anything else?", "Is there anything else you noticed?", "What else?"])
def test_anything_else_asks_for_more_of_the_story(question: str) -> None:
    assert [topic.kind for topic in asked_of_patient(question, CHART)] == [Asked.MORE]


def test_of_a_very_long_list_only_the_first_items_are_looked_up() -> None:
    topics = asked_of_patient("Any " + ", ".join(f"pain in toe {number}" for number in range(200)) + "?", CHART)
    assert len(topics) <= MOST_ASKED


@pytest.mark.parametrize("question", ["", "???", "...", "or and, or", "\u0000", "🙂🙂", "a" * 100_000])
def test_what_is_no_question_gets_no_fact(question: str) -> None:
    assert not [fact for topic in asked_of_patient(question, CHART) for fact in topic.facts if topic.kind != Asked.MORE]


def test_a_sentence_that_names_nothing_is_not_asked_back_about() -> None:
    topics = asked_of_patient("Hi, congratulations on your little one. Do you smoke?", CHART)
    assert [topic.kind for topic in topics] == [Asked.SYMPTOM]


WHOLE_CHART = Facts(
    (
        Fact(
            "numb",
            Section.SYMPTOMS,
            ("Symptoms", "Primary_Symptom"),
            "Numb legs for twelve days",
            told="volunteered",
            says="My legs have been numb for twelve days.",
            asked=("What brings you in?", "What is the matter?"),
        ),
        fact("spread", "Numbness began in the right foot", "Where did the numbness begin?"),
        fact("brother", "Brother has eczema", "Does anyone in the family have eczema?", section=Section.FAMILY),
        fact("eczema", "Eczema as a child", "Did you have eczema?", "Any eczema as a child?", section=Section.PAST),
        fact("pill", "Takes candesartan", "Are you on candesartan?", section=Section.DRUGS),
        fact("statin", "Takes atorvastatin", "Do you take a statin?", section=Section.DRUGS),
        fact("arms", "No swelling of the arms", "Are your arms swollen?"),
    )
)


@pytest.mark.parametrize(
    ("question", "paths"),
    [
        ("Did you have eczema as a child, and does anyone in the family have it?", {"eczema", "brother"}),
        ("What medicines do you take?", {"pill", "statin"}),
        ("Do you have any pets? And what medicines do you take, a statin for example?", {"pill", "statin"}),
        ("When did it start?", {"numb"}),
        ("I hear your legs are numb - can you tell me about it?", {"numb"}),
        ("You said that your brother has eczema. What medicines do you take?", {"pill", "statin"}),
        ("Are you on any regular tablets, and do you smoke?", {"pill", "statin"}),
        ("When did you first notice the numbness?", {"numb"}),
        ("Sit down, please. How can I help you today?", {"numb"}),
        ("That leg looks weak. Would you tell me what happened?", {"numb"}),
        ("Hello. What would you like to talk about today?", {"numb"}),
    ],
)
def test_what_a_question_asks_for_as_a_whole_is_told_whole(question: str, paths: set[str]) -> None:
    assert paths <= {fact.path for topic in asked_of_patient(question, WHOLE_CHART) for fact in topic.facts}


def test_what_a_doctor_only_tells_asks_for_nothing() -> None:
    topics = asked_of_patient("So you had eczema as a child. What medicines do you take?", WHOLE_CHART)
    assert "eczema" not in {fact.path for topic in topics for fact in topic.facts}


def test_a_statement_before_a_colon_asks_for_nothing() -> None:
    topics = asked_of_patient("I ask everybody with eczema this: what medicines do you take?", WHOLE_CHART)
    assert {fact.path for topic in topics for fact in topic.facts} == {"pill", "statin"}


def test_a_feeling_is_asked_for_in_words_of_feeling_only() -> None:
    topics = asked_of_patient("Tell me about the eczema. When was it, and was there any blood?", WHOLE_CHART)
    assert Talk.FEEL not in {topic.name for topic in topics}


def test_what_only_follows_is_denied_where_nothing_is_near() -> None:
    topics = asked_of_patient("Do you have eczema? Did they ever turn blue?", WHOLE_CHART)
    assert [(topic.kind, bool(topic.facts)) for topic in topics][-1] == (Asked.SYMPTOM, False)


@pytest.mark.parametrize("question", ["Is it with solids only, or with drinks too?", "Is it at night or by day?"])
def test_neither_of_two_choices_is_denied(question: str) -> None:
    topics = asked_of_patient(f"{question} And do you take a statin?", WHOLE_CHART)
    assert not [topic for topic in topics if topic.kind is Asked.SYMPTOM and not topic.facts]


def test_a_choice_is_not_denied() -> None:
    topics = asked_of_patient("Does the rash stay there, or does it come and go?", WHOLE_CHART)
    assert not [topic for topic in topics if topic.kind is Asked.SYMPTOM and not topic.facts]


def test_one_odd_word_is_not_asked_back_about() -> None:
    topics = asked_of_patient("Have you noticed a zorbling kind of cough or bloody phlegm?", WHOLE_CHART)
    assert Asked.UNCLEAR not in {topic.kind for topic in topics}


def test_a_fact_is_asked_for_directly_in_the_words_of_its_questions_only() -> None:
    direct = asked_directly("Do you smoke? And how is your mood?", Facts.of(CHART))
    assert direct
    assert direct < {fact.path for fact in CHART}
    assert not asked_directly("Any rash on your legs?", Facts.of(CHART))


def test_what_is_asked_before_a_worry_is_asked_for_as_well() -> None:
    said = small_talk("What medicines have you taken for it, and what worries you most about this?")
    assert said.rest == "What medicines have you taken for it?"
    assert said.mixed == "What medicines have you taken for it, and what worries you most about this?"
    assert len(said.kinds) == 1


@pytest.mark.parametrize(
    ("text", "before", "noun"),
    [
        ("hot flushes", "Any night sweats or ", "hot flushes"),
        ("Any carbon monoxide risk, such as a gas heater", "", "carbon monoxide risk"),
        ("TB", "Have you ever had cancer, ", "TB"),
        ("a lump in your tummy", "Have you had any fevers, weight loss or ", "lump in the tummy"),
        ("poor flow", "Any stinging, ", "poor flow"),
        ("erections", "Any pain, or trouble with your bladder, bowels or ", ""),
        ("burn incense", "Does anybody smoke around her, ", ""),
        ("itchy", "Any blisters, ", ""),
        ("been abroad", "Any fever, or have you ", ""),
        ("hard to wake", "Has he been floppy or ", ""),
        ("any better", "", ""),
        ("a torn", "Has anyone had ", ""),
        ("torn ligaments", "Has anyone had ", "torn ligaments"),
        ("many infections", "Has she had ", "infections"),
        ("have you lost any weight", "", ""),
        ("with anything in particular", "Do you have ", ""),
    ],
)
def test_what_stands_in_a_list_of_nouns_is_denied_by_its_noun(text: str, before: str, noun: str) -> None:
    assert listed_noun(text, before) == noun


def test_both_things_of_a_part_with_or_are_looked_up() -> None:
    assert {"stiff", "smoke"} <= set(told("Are your hands stiff, or do you smoke?"))
    (part,) = read("Is it painful or stiff?")
    assert [piece.text for piece in part.pieces] == ["Is it painful", "stiff"]


def test_a_question_within_a_part_is_another_part() -> None:
    assert [part.text for part in read("Did it come on suddenly, where is it, and is it worse at night?")] == [
        "Did it come on suddenly",
        "where is it",
        "is it worse at night",
    ]


HOME_CHART = Facts(
    (
        fact("knee", "Pain in the knee", "Does your knee hurt?", "Any pain in your knees?"),
        fact("chest", "No pain in the chest", "Do you have chest pain?", "Does your chest hurt?"),
        fact("blood", "No blood in the phlegm", "Do you cough up blood?", "Any blood when you cough?"),
        fact("stool", "Diarrhea for two days", "Do you have diarrhea?", "Tell me about the diarrhea."),
        fact("speech", "Speech is clear", "Is your speech clear?", section=Section.SYMPTOMS),
        fact("son", "Son has a cough", "Does anyone at home have a cough?", "Is anyone around you coughing?"),
        fact("wife", "Lives with his wife", "Who do you live with?", section=Section.SOCIAL),
        fact("bus", "Drives a bus", "What work do you do?", section=Section.SOCIAL),
        fact("cocaine", "No drugs", "Do you use drugs?", "Do you use any drugs?", section=Section.SOCIAL),
        fact("pill", "Takes ramipril", "What medicines do you take?", section=Section.DRUGS),
        fact("father", "Father died of a stroke", "Any strokes in your family?", section=Section.FAMILY),
        fact("cancer", "No cancer in the family", "Any cancer in your family?", section=Section.FAMILY),
    )
)


@pytest.mark.parametrize(
    ("question", "told", "untold"),
    [
        ("Any pain, swelling or redness in your knees?", {"knee"}, {"chest"}),
        ("Tell me about the diarrhea. Was there any blood in it?", {"stool"}, {"blood"}),
        ("Has anyone around you, at home or at work, had a cough?", {"son"}, set()),
        ("Tell me a little about your life at home.", {"wife", "bus"}, {"speech"}),
        ("Do you use any drugs?", {"cocaine"}, {"pill"}),
        ("Does anyone in your family have cancer, or any other illness?", {"cancer", "father"}, set()),
        ("Have you noticed anything else, for example a sore knee?", {"knee"}, {"speech"}),
    ],
)
def test_only_what_is_asked_is_told(question: str, told: set[str], untold: set[str]) -> None:
    topics = asked_of_patient(question, HOME_CHART)
    paths = {fact.path for topic in topics for fact in topic.facts}
    assert told <= paths
    assert not untold & paths


def test_nothing_else_is_not_denied_beside_an_answer() -> None:
    topics = asked_of_patient("Have you noticed anything else, for example pain in your knee?", HOME_CHART)
    assert all(topic.facts for topic in topics)


@pytest.mark.parametrize("before", ["You said that you have diarrhea, ", "Going back to the diarrhea - "])
def test_what_a_doctor_repeats_before_asking_is_not_told_again(before: str) -> None:
    topics = asked_of_patient(f"{before}does your knee hurt?", HOME_CHART)
    assert [fact.path for topic in topics for fact in topic.facts] == ["knee"]


def test_a_place_after_or_has_the_complaint_before_it() -> None:
    topics = asked_of_patient("Any pain in your belly or chest?", HOME_CHART)
    assert "chest" in {fact.path for topic in topics for fact in topic.facts}


def test_hope_for_a_child_is_no_hope_for_the_visit() -> None:
    topics = asked_of_patient("Do you smoke, and are you hoping for children?", HOME_CHART)
    assert Talk.HOPE not in {topic.name for topic in topics}


def test_a_question_about_anything_is_not_denied_beside_its_examples() -> None:
    topics = asked_of_patient("Have you noticed anything elsewhere, such as pain in your knee?", HOME_CHART)
    assert [fact.path for topic in topics for fact in topic.facts] == ["knee"]
    assert all(topic.facts for topic in topics)


def test_an_adjective_alone_is_of_what_the_one_before_is_of() -> None:
    assert [part.text for part in parts_of("Have your eyes been red or painful?")][-1] == "Have your eyes been painful"


def test_what_people_do_in_general_is_not_asked() -> None:
    topics = asked_of_patient("When people are low, they sometimes use drugs. Does your knee hurt?", HOME_CHART)
    assert [fact.path for topic in topics for fact in topic.facts] == ["knee"]


def test_what_an_illness_does_to_life_at_home_is_not_life_at_home() -> None:
    topics = asked_of_patient("How does the knee affect your life at home?", HOME_CHART)
    assert "bus" not in {fact.path for topic in topics for fact in topic.facts}


def test_the_story_is_told_from_the_beginning() -> None:
    topics = asked_of_patient("Please tell me from the beginning how this illness has gone.", WHOLE_CHART)
    assert {"numb", "spread"} <= {fact.path for topic in topics for fact in topic.facts}


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        (
            "If you cover one eye, does the double vision go away?",
            "does the double vision go away if you cover one eye?",
        ),
        (
            "When it came on, was it at its worst, and was it sharp?",
            "was it at its worst when it came on, and was it sharp?",
        ),
        ("Any lung, heart or liver disease?", "Any lung disease, heart disease or liver disease?"),
        ("Any blood in your stool or water?", "Any blood in your stool or blood in your water?"),
        ("Do you have dry eyes or mouth?", "Do you have dry eyes or dry mouth?"),
        ("Do you or anyone at home smoke?", "Do you smoke or does anyone at home smoke?"),
        ("Tell me when it started, and is it worse?", "Tell me when it started, and is it worse?"),
    ],
)
def test_conditions_and_shared_nouns_are_put_where_the_network_knows_them(question: str, asked: str) -> None:
    assert as_asked(question) == asked


PAST_CHART = Facts(
    (
        fact("pressure", "High blood pressure", "What illnesses do you have?", section=Section.PAST),
        fact("chill", "Shaking chill last night", "Did you have a shaking chill?"),
        fact("asthma", "Asthma since childhood", "Do you have asthma?", section=Section.PAST),
        fact("hernia", "Hernia operated on at 49", "Have you ever had surgery?", section=Section.PAST),
        fact("shots", "Vaccinated against pneumonia", "Are you vaccinated?", section=Section.PAST),
        fact("memory", "Memory is good", "How is your memory?", section=Section.SYMPTOMS),
        fact("grandfather", "Grandfather had a tremor", "Any tremor in your family?", section=Section.FAMILY),
        fact("clots", "No clots in the family", "Any blood clots in your family?", section=Section.FAMILY),
        fact("wife", "Lives with his wife", "Are you married?", section=Section.SOCIAL),
        fact("worse", "Effort makes it worse", "What makes it worse?"),
        fact("weight", "Lost 5 kilograms", "Have you lost weight?"),
    )
)


@pytest.mark.parametrize(
    ("question", "told", "untold"),
    [
        ("What illnesses have you had in the past?", {"pressure", "asthma", "hernia"}, {"shots"}),
        ("Does anyone in your family have tremor, or memory problems?", {"grandfather"}, {"memory"}),
        ("Have you ever had blood clots?", set(), {"clots"}),
        ("Is there anything that makes it better?", set(), {"worse"}),
        ("Besides the asthma, do you have chills?", {"chill"}, {"asthma"}),
        ("Who is at home with you?", {"wife"}, set()),
        ("I understand that you have lost some weight. How much?", {"weight"}, set()),
    ],
)
def test_what_is_told_of_the_past_of_relatives_and_of_opposites(
    question: str, told: set[str], untold: set[str]
) -> None:
    paths = {fact.path for topic in asked_of_patient(question, PAST_CHART) for fact in topic.facts}
    assert told <= paths
    assert not untold & paths


def test_what_works_is_said_to_work() -> None:
    (hearing,) = asked_of_patient("How is your hearing?", PAST_CHART)
    assert (hearing.kind, hearing.words) == (Asked.DETAIL, "hearing")


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("How much coffee do you drink in a day?", "severity"),
        ("Where did you grow up?", "personal"),
        ("Who told you that?", "personal"),
        ("What do you usually eat?", "meals"),
    ],
)
def test_what_every_patient_knows_is_a_detail_of_its_own(question: str, name: str) -> None:
    assert [(topic.kind, topic.name) for topic in asked_of_patient(question, PAST_CHART)] == [(Asked.DETAIL, name)]


LIFE_CHART = Facts(
    (
        fact("beer", "Beer at weekends", "Do you drink?", section=Section.SOCIAL),
        fact("low", "Mood low since ill", "How is your mood?", section=Section.SOCIAL),
        fact("orchard", "Runs an orchard", "What work do you do?", section=Section.SOCIAL),
        fact("wife", "Lives with his wife", "Who do you live with?", section=Section.SOCIAL),
        fact("pill", "Ramipril daily", "What medicines do you take?", section=Section.DRUGS),
        fact("lozenges", "Tried lozenges, little help", "Did anything help your throat?"),
        fact("family", "Father died of a stroke", "Any strokes in your family?", section=Section.FAMILY),
    )
)


@pytest.mark.parametrize(
    ("question", "paths"),
    [
        ("Could you tell me a bit about your life?", {"orchard", "wife", "beer"}),
        ("Tell me a little about your work and home.", {"orchard", "wife", "beer"}),
        ("Tell me about your home situation.", {"wife"}),
        ("Tell me a little about your daily life: what do you do?", {"orchard", "wife", "beer"}),
        ("What medicines are you taking?", {"pill", "lozenges"}),
    ],
)
def test_a_section_of_the_background_is_told_without_what_is_not_of_it(question: str, paths: set[str]) -> None:
    assert {fact.path for topic in asked_of_patient(question, LIFE_CHART) for fact in topic.facts} == paths


def test_home_and_work_come_first() -> None:
    (topic,) = asked_of_patient("Could you tell me a bit about your life?", LIFE_CHART)
    assert [fact.path for fact in topic.facts][-1] == "beer"


@pytest.mark.parametrize(
    "question",
    [
        "In the past few weeks, have you had asthma?",
        "Do you have asthma, or any other product?",
    ],
)
def test_what_asks_for_nothing_by_itself_is_not_denied(question: str) -> None:
    assert [[fact.path for fact in topic.facts] for topic in asked_of_patient(question, PAST_CHART)] == [["asthma"]]


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        (
            "Have you coughed up any phlegm or blood, or noticed any pain or swelling in your legs?",
            ["Have you coughed up any phlegm", "blood", "noticed any pain in your legs", "swelling in your legs"],
        ),
        (
            "Do you have any pain, swelling or change in your testicles?",
            ["Do you have any pain in your testicles", "swelling in your testicles", "change in your testicles"],
        ),
        ("When did you last eat or drink?", ["When did you last eat", "when did you last drink"]),
        (
            "Does the headache get worse when you lie down or cough?",
            ["Does the headache get worse when you lie down", "Does the headache get worse when you cough"],
        ),
        (
            "Do you take any medicines, either from a doctor or bought yourself, and are you allergic to anything?",
            ["Do you take any medicines", "are you allergic to anything"],
        ),
        (
            "How long have you and your partner been trying for a baby?",
            ["How long have you been trying for a baby"],
        ),
        (
            "You mentioned an operation, what was it, and when was it?",
            ["what was the operation", "when was the operation"],
        ),
    ],
)
def test_a_part_has_what_it_shares_with_the_one_beside_it_and_no_more(question: str, parts: list[str]) -> None:
    assert [part.text.lower() for part in parts_of(question)] == [part.lower() for part in parts]


def test_choices_that_name_complaints_are_read() -> None:
    question = "Do you get short of breath, either when you walk or with pain in your chest?"
    assert any("chest" in part.text for part in parts_of(question))
    assert any("heart" in part.text for part in parts_of("Any trouble, either with your heart or lungs?"))


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("Have you noticed any changes in your skin or your eyes?", "changes in your eyes"),
        (
            "Have you seen sores in her mouth, and are there spots anywhere else, her bottom?",
            "are there spots on your bottom",
        ),
    ],
)
def test_a_place_alone_is_asked_for_what_was_asked_of_the_place_before(question: str, asked: str) -> None:
    before, one = parts_of(question)[-2:]
    there = at_this_place(before, one, question)
    assert there is not None
    assert there.text.lower().endswith(asked.lower())


def test_the_rest_is_not_denied_if_something_was_left_out() -> None:
    chart = Facts(
        (fact("short", "Short-sighted", "Are you short-sighted?", "Is there something wrong with your eyes?"),)
    )
    topics = asked_of_patient(
        "You mentioned being short-sighted. Are you very tall or bendy in the joints, or has anyone ever talked about a"
        " condition affecting your eyes, bones or heart?",
        chart,
    )
    assert [[one.path for one in topic.facts] for topic in topics] == [["short"]]


def test_what_someone_does_is_no_noun() -> None:
    assert not listed_noun("bought yourself", "Do you take any medicines, either from a doctor or ")
