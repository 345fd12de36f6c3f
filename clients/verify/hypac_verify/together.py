"""Several certificates of one project: what their ledgers say together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hypac_verify.certificate import Checked


def compared(every: Sequence[Checked]) -> tuple[list[str], list[str]]:
    """Faults and notes about certificates of one project together: their ledgers must be beginnings of one
    another, and each draw has one certificate.
    """
    made = [one for one in every if one.made is not None]
    faults = list(_differing(made))
    if len(made) < len(every):
        notes = [f"{len(every) - len(made)} certificates hold no ledger that others can be compared with."]
    else:
        notes = []
    longest = max((one.made.entries for one in made if one.made), key=len, default=[])
    here = {one.run for one in made}
    if missing := [str(e["run"]) for e in longest if e["kind"] == "draw" and e["run"] not in here]:
        notes.append(f"No certificate is here of these runs, which were drawn: {', '.join(missing)}.")
    elif made:
        notes.append("Every run that was drawn until the last of these certificates is here.")
    return faults, notes


def _differing(made: Sequence[Checked]) -> Iterator[str]:
    for place, one in enumerate(made):
        for other in made[:place]:
            if one.made is None or other.made is None:
                continue
            short = min(len(one.made.entries), len(other.made.entries))
            if one.made.first["project"] != other.made.first["project"]:
                yield f"the certificates of the runs {one.run} and {other.run} are of two projects"
            elif one.made.entries[:short] != other.made.entries[:short]:
                yield f"the certificates of the runs {one.run} and {other.run} hold two different ledgers"
            elif one.run == other.run and one.certificate_id != other.certificate_id:
                yield f"there are two certificates of run {one.run}, and a draw has one"
