"""The rule `every_score`: each model's label is kept where the model's own score is low enough.

What docs/statistics.md says under "every_score", in the order of a run.  All of it is pure; what is frozen
is plain JSON.

1. **Freeze**, when the first model has answered the pool and all models the pilot, and before a label can
   exist: `build.build_score_chains` makes `ScoreChains` from the plan, the first model's (U, V) on the pool
   and the pilot (`routing.core.pilot.PilotData` with ``own_scores``).  `documents.chains_document` is what to
   store, `documents.read_score_chains` reads it.  For the target "population" the draw comes first, and
   neither chains nor pilot look at it.
2. **Label**: people answer the asked items, blind; the labels are locked.
3. **Call**, only then, and only what is needed: `certify.certify_every_score` raises
   `select.AnswersMissingError`, whose ``missing`` names models and rows of the asked items, in draw order.
   Let them answer these, store the answers, try again.  A model that is not dear (`ScoreChains.lazy` false)
   is best called on all asked items at once, as it is needed on all; a dear one runs only on what is reached,
   up to the first policy that fails, and on all only where `reserve` finds that this pays.  Nobody may see
   how far the tests have come.
4. **Certify**: the same call returns a `certify.ScoreCertification`; `documents.score_certificate` makes the
   certificate of version 4, and `routing.core.verify` recomputes it.  `select.PilotCosts` are the pilot's
   part of the estimated costs.
5. **Route**: ``selection.chain`` has a ``shape`` and ``models``; ``thresholds`` are those of the chosen
   policy: one key for a model alone, (t1, th, t2) for a cascade, one per model on the first score.  Items
   between t1 and th are sent to the last model first, and only its own key then says whether it or people
   label; `chain.ScoreChain.delivers` and `calls` say so for any items.

An item's V for model k is `routing.core.sampling.tie_breaks` with ``model=k``; an answer that cannot be used,
or lacks its score, has the last key of all, `items.EVERYTHING`, and is never delivered.
"""
