"""Codes of errors that are about models and runs (annotation.error_codes)."""

from annotation.error_codes import register_codes

register_codes(
    400,
    {
        "suggestions_refused": (
            "With this plan people have to label without a suggestion",
            "Leave suggestions out, or change the plan as detail says.",
        ),
    },
)
register_codes(
    403, {"still_blind": ("What models answered is not shown yet", "Ask again once the run is analysed.")}
)
register_codes(
    409,
    {
        # Sources
        "too_many_sources": ("The project has as many sources as it may", "Remove one that no run uses."),
        "too_many_spellings": ("The spellings were changed as often as they may", "Add another source."),
        "too_many_prices": ("The price list has as many lines as it may", "Delete one first."),
        "price_in_use": ("Sources name this price", "Give these sources another price first."),
        "order_in_use": ("A run is under way with the models in this order", "Finish or cancel it first."),
        "source_of_a_run": ("The source belongs to a run", "Keep it, so that the run can be explained."),
        "source_in_use": ("A run is under way with the source as it is", "Cancel the run, or add a source."),
        "source_not_reached": (
            "A source cannot be asked now",
            "Put it right as detail says, then try again.",
        ),
        "source_not_as_planned": (
            "A source was changed after the run was planned",
            "Put it back as it was, or start a new run.",
        ),
        "source_not_as_measured": (
            "A source was changed after it was measured",
            "Discard the measurement, or measure again.",
        ),
        "source_unanswered": ("The source has not answered anything yet", "Start a run that asks it."),
        "answers_being_sent": ("Predictions are being taken in", "Wait until that job has ended."),
        "price_set_by_hand": ("The source has one price, set by hand", "Take that price."),
        "no_usable_answer": ("No answer of the trial could be used", "Look at the answers, mend the source."),
        "all_items_blind": ("All items belong to a run not analysed yet", "Wait, or import further items."),
        "no_items": ("There is no item", "Import data first."),
        "too_many_candidates": ("The source has as many candidates as it may", "Put one in force."),
        "no_development_items": ("No development item has a label", "Label some first."),
        "no_items_of_rounds": ("No item of a closed round has a label", "Draw development items."),
        # Plan, start, budget
        "too_many_runs": ("The project has as many runs as it may", "Go on in a copy of the project."),
        "started_just_now": ("The run was started just now", "Go on with it: do not start it again."),
        "other_run_under_way": ("Another run is under way", "Finish or cancel it first."),
        "import_under_way": ("An import is under way", "Wait until its job has ended."),
        "being_measured": ("The models are being measured", "Wait until that job has ended, or discard it."),
        "nothing_measured": ("Nothing was measured", "Go on: there is nothing to discard."),
        "items_changed_meanwhile": ("Items were added or removed meanwhile", "Start it again."),
        "run_cancelled": ("The run was cancelled", "Start a new run."),
        "cannot_cancel": ("The run can no longer be cancelled", "Read its state."),
        "run_not_spending": ("The models of the run cost nothing more", "Leave its budget as it is."),
        "no_confirmation_awaited": ("The run waits for no confirmation", "Read its state."),
        "no_randomness_awaited": ("The run waits for no randomness", "Read its state."),
        # Analysis, routing, later items
        "cannot_analyse_now": ("The run cannot be analysed in its state", "Read its state, and wait."),
        "analysed_already": ("The run has been analysed", "Take its certificate; for more start a new run."),
        "run_analysed": ("The run was analysed meanwhile", "Take its certificate."),
        "being_analysed": ("The run is being analysed", "Wait until its job has ended."),
        "calibration_unlabelled": (
            "Calibration items are not labelled yet",
            "Have them labelled or given up.",
        ),
        "calibration_disputed": (
            "People differ about calibration items",
            "Have a reviewer decide about each.",
        ),
        "suggestions_beside": (
            "People would be shown a model's answer about items that they have to label blind",
            "Finish or cancel the run that detail names.",
        ),
        "not_analysed_yet": ("The run is not analysed", "Analyse it first."),
        "routed_already": ("The run has been routed", "Go on: nothing is to be done."),
        "being_routed": ("The run is being routed", "Wait until its job has ended."),
        "no_images_here": ("The items are addresses of images", "Take the shape of Label Studio."),
        "no_run_due": ("No run is to be started now", "Go on: it is what was asked for. detail says why."),
        "no_routed_items": ("The run has no routed items that people label now", "Read its state."),
        "no_boxes_asked": ("The project asks for no boxes or masks", "Take another shape."),
        "no_calibration_items": ("The calibration set is not being labelled now", "Read its state."),
        "labelled_here_alone": (
            "Only this server can see to it that the plan holds",
            "Have them labelled here.",
        ),
        "losses_computed_here": ("The losses of the run are computed here", "Analyse its labels."),
        "commitment_hidden": (
            "What a run committed to is hidden until it is analysed",
            "Note the hash, and ask again after the analysis.",
        ),
        "cannot_ask_losses_now": ("Losses cannot be asked for in this state", "Read the state of the run."),
        "losses_not_asked": (
            "The losses of the run are measured elsewhere",
            "Have them asked for, and send them.",
        ),
        "no_losses_wanted_now": ("Nothing is to be measured in this state", "Read the state of the run."),
        "losses_missing": ("Losses of answers are missing", "Send those of the items that detail names."),
        "order_by_chance": ("The order of this run stays by chance", "Leave it as it is."),
        "covers_own_items": ("The run covers no later items", "Start one whose target is population."),
        "cannot_take_in_now": ("The run takes in nothing in its state", "Read its state."),
        "certificate_broken": ("Something broke the certificate of the run", "Start a new run."),
        "nothing_certified": ("The run certified nothing", "Start a new run."),
        "labels_changed": (
            "The labels are not those of the certificate",
            "Put them back, or start a new run.",
        ),
        "nobody_labels_blind": ("Nobody may label the audit blind", "Invite an annotator first."),
        "nothing_new": ("There is nothing to take in", "Go on: import items first, if there are any."),
        # Experts, rosters
        "no_expert": ("The run has no expert", "Analyse its labels."),
        "cannot_ask_expert_now": ("The expert cannot be asked in this state", "Read the state of the run."),
        "not_on_roster": ("The person does not label by a roster here", "Read the roster of the run."),
        "no_open_item": ("The person has no open item in this run", "Go on: nothing is to be handed over."),
        "no_final_audit": ("No final audit is planned for this run", "Plan one with the next run."),
        "final_audit_open": ("A final audit is not analysed yet", "Analyse it first."),
        "final_audit_drawn": ("The final audit is drawn already", "Have the expert label it."),
        "final_audit_not_drawn": ("The final audit is not drawn yet", "Have it drawn first."),
        "run_not_complete": ("Not everything of the run is labelled", "Wait until the run is complete."),
        "final_audit_hopeless": ("The final audit would certify nothing", "Take the certificate as it is."),
        "nothing_to_audit": ("No label of an annotator is left to audit", "Take the certificate as it is."),
        "final_audit_analysed": ("The final audit has been analysed", "Take its certificate."),
        "final_audit_unlabelled": ("Items of the final audit are not labelled yet", "Wait for the expert."),
        # Rounds, held-out items, items, deliveries
        "too_many_rounds": ("The project has as many rounds as it may", "Go on in a copy of the project."),
        "other_round_open": ("A guideline round is open", "Close it before you start another one."),
        "round_open": ("The guideline round is open", "Close it: then its answers are seen."),
        "item_in_use": ("Something under way rests on the item", "Wait until it has ended, or cancel it."),
        "held_out_by_chance": ("The item was drawn at random to be held out", "Leave it held out."),
        "held_out_since_a_draw": ("Something was drawn without the item", "Leave it held out."),
        "held_out_known": ("Somebody has been given the held-out item", "Leave it held out."),
        "no_item_changes": ("None of the items can be changed in that way", "Read the items again."),
        "cannot_take_back": ("The change cannot be taken back", "Read the items again."),
        "run_not_routed": ("The run is not routed", "Route it first."),
        "nothing_to_deliver": ("The run has nothing to deliver yet", "Route it first."),
        "other_object_there": ("Something else has this name in the bucket", "Choose another prefix."),
        "folder_of_other_project": ("The folder holds another project's delivery", "Choose another folder."),
        "models_not_shown": ("What models answered is not shown now", "Ask again once the run is analysed."),
        "no_labels_yet": ("There are no labels to give yet", "Route the run first."),
    },
)
