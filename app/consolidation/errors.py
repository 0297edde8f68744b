"""Problems of consolidation."""

from app.kit.errors import Conflict


class ConsolidationOff(Conflict):
    """The chat's consolidation is switched off, so nothing is learnt from its messages."""

    code = "consolidation_off"
    title = "Consolidation is off"
