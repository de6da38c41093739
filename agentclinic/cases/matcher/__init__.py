"""The chart matcher: which facts a question or an order is about.

The builtin patient and laboratory use it, and so does scoring. It sees only the role's own facts, never the diagnosis.
"""

from agentclinic.cases.matcher.cues import Asked
from agentclinic.cases.matcher.orders import Ordered, as_written, asked_of_measurement
from agentclinic.cases.matcher.questions import asked_of_patient
from agentclinic.cases.matcher.topics import Topic

__all__ = ["Asked", "Ordered", "Topic", "as_written", "asked_of_measurement", "asked_of_patient"]
