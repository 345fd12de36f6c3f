"""References other than "one person's label": a blind procedure whose outcome is right by definition.

Formulas: docs/statistics.md, "Who is right". With the reference `settled` two people label an item and a
third decides where they differ: the run is an ordinary one whose last source costs as much
(`words.settled_cost`, `words.settled_label`). With the reference `expert`, people are a fallible source
among others. What a run with an expert needs, in its order; all of it is pure, and what is frozen is plain
numbers and texts.

1. **Plan**: `plan.ExpertPlan` around an ordinary plan whose last cost is that of a person's label: the
   expert's cost, r and w.  `plan.validate_expert_plan` refuses what cannot be carried out.
2. **Freeze**, when the first model has answered the pool and all models the pilot, and before the draw:
   `chain.build_reference_chains` makes the chains.  To be stored: `documents.frozen_document`, plain JSON,
   from which `documents.read_frozen` reads enough to certify; with it r, w, and the `roster.Roster`, salt and
   shares.  `Roster.annotators` then says whose each item of the pool is, for
   good: nobody takes an item over, and a new annotator gets only items of a new roster that were not asked.
3. **Draw**, as ever.  With n known, so are n_B (`ExpertPlan.rechecked`), the recheck set, the first n_B
   asked items in draw order, and `ExpertPlan.levels`, the critical values; to be stored before any label.
4. **Label**: annotators label their asked items, blind; all models answer all asked items.  Then
   `sources.unanimous` and `sources.to_label` say which asked items the expert labels: those on which not all
   agree, a missing answer included, and the recheck set.  They are shuffled into her one queue
   (`table.expert_queue`), without a reason.  Her labels, and who did not answer, are locked together.
5. **Certify**: `certify.certify_with_expert` takes plan, chains and the rows of the draw, with the labels of
   annotators and expert; it returns the choice, its evidence, people's error and what is promised.
   `documents.expert_certificate` makes the certificate of version 5, which `routing.core.verify` recomputes.
   ``selection.sources`` gives the source of every item of the pool.
6. **Route**: in a random order.  `sources.deliver` says for each item whose label is
   delivered and why the expert sees it: `checked` needs her where the person's label is not the best model's,
   and an annotator who left is replaced by her alone.  Where that is impossible, the number of such items
   goes into `certify.certify_with_expert` once more, and so into the certificate (``replaced``).
7. **Audit**: `audit.audited` marks the items before they are labelled; `audit.audit_wealth` is computed after
   each audited one, in the order of the queue.  At `audit.ALARM` the run is marked, and open items go to the
   expert.  `final.judge_final` and `final.final_document` make a certificate without any assumption on
   people, which `routing.core.verify` recomputes, too.
8. **Tell**: `estimate.people_estimate` and `estimate.by_annotator`; without an expert
   `overlap.two_people_differ`, which every run with overlap shows.
"""

from __future__ import annotations

from routing.core.reference import final, plan, promise, roster, sources, table, words

SAYING = (final, plan, promise, roster, sources, table, words)
"""The modules that say something: their templates are known once this package is imported."""
