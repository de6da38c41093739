"""The story in a discharge note."""

from __future__ import annotations

from agentclinic.generate.mimic.story import note_drugs, note_story, sections


def test_a_note_without_headings_has_no_sections_and_tells_nothing() -> None:
    for note in ("", "Seen and discharged.", "\n\n"):
        assert sections(note) == {}
        assert note_story(note, lambda _: False) == ()
        assert note_drugs(note, lambda _: False) == ()


def test_each_section_ends_where_the_next_begins() -> None:
    note = "Chief Complaint: toe pain\nSocial History:\nworks\nalone"
    assert sections(note) == {"chief complaint": "toe pain", "social history": "works\nalone"}
