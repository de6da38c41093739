"""The chart matcher: which facts a question or an order is about.

Used by the builtin patient and laboratory, and by scoring. It sees the role's own facts only and nothing of the truth.
"""

from agentclinic.cases.matcher.orders import Ordered, asked_of_measurement
from agentclinic.cases.matcher.questions import asked_of_patient
from agentclinic.cases.matcher.topics import Asked, Topic

__all__ = ["Asked", "Ordered", "Topic", "asked_of_measurement", "asked_of_patient"]
