import json

from django.apps import AppConfig


class RoutingConfig(AppConfig):
    name = "routing"
    verbose_name = "Models and routing"

    def ready(self) -> None:
        from annotation import failures
        from annotation.common import append_only
        from annotation.ports import connect_routing
        from routing import checks, error_codes, jobs, models  # noqa: F401 - two of them register themselves
        from routing.label_set import replace  # noqa: F401 - what breaks a certificate is registered there
        from routing.ports import Routing
        from routing.sources.backends import backend_classes

        append_only.register(
            "routing_pilotitem",
            "routing_draw",
            "routing_drawitem",
            "routing_certificate",
            "routing_commitment",
            "routing_ledgerentry",
            "routing_route",
            "routing_givenlosses",
            "routing_wantedlosses",
            "routing_spend",
            "routing_runsource",
            "routing_measuredsource",
            "routing_measureditem",
            "routing_promptversion",
            "routing_mendversion",
            "routing_sentanswer",
            "routing_auditeditem",
            "routing_finalsample",
            "routing_finalcertificate",
            "routing_rounditem",
        )
        erased = {"reason": f"'{models.ERASED_REASON}'", "reason_quotes": "''"}
        append_only.register_emptied("routing_prediction", raw=f"'{json.dumps(models.REMOVED)}'", **erased)
        append_only.register_emptied("routing_itemscore", **erased)
        append_only.register_emptied("routing_roundnote", text="''")
        append_only.register_columns(
            "routing_guidelineround",
            fixed=models.GuidelineRound.FIXED_COLUMNS,
            once={"closed_at": "IS NULL", "closed_by_id": "IS NULL"},
            message="a guideline round cannot be changed once it began: start another one",
        )
        append_only.register_columns(
            "routing_run",
            fixed=models.Run.PLAN_COLUMNS,
            once={
                "pool_hash": "= ''",
                "alpha_spent": "IS NULL",
                "randomness": "= ''",
                "chains": "IS NULL",
                # Fixed together with the chains, if at all.
                "slices": "IS NULL AND OLD.chains IS NULL",
            },
            message="the plan of a run cannot be changed after its draw: start a new run",
        )
        append_only.register_columns(
            "routing_rosterentry",
            fixed=("run_id", "user_id", "role", "name", "share"),
            once={"left_at": "IS NULL"},
            message="the roster of a run cannot be changed: start a new run",
        )
        append_only.register_columns(
            "routing_expertrequest",
            fixed=("run_id", "item_id"),
            once={"why": f"IN {models.ExpertRequest.STILL_OPEN}"},
            message="why the expert was asked cannot be changed",
        )
        append_only.register_columns(
            "routing_finalaudit",
            fixed=models.FinalAudit.FIXED_COLUMNS,
            once={},
            message="a final audit is drawn once and cannot be changed",
        )
        append_only.register_columns(
            "routing_measurement",
            fixed=models.Measurement.FIXED_COLUMNS,
            once={"pool_hash": "= ''", "finished_at": "IS NULL"},
            message="a measurement cannot be changed: measure again",
        )
        append_only.register_columns(
            "routing_promptcandidate",
            fixed=models.PromptCandidate.FIXED_COLUMNS,
            once={},
            message="a candidate prompt cannot be changed: write another one",
        )
        append_only.register_columns(
            "routing_intake",
            fixed=("run_id", "number", "last", "created_by_id", "created_at"),
            once={
                "items": "IS NULL",
                "people": "IS NULL",
                "finished_at": "IS NULL AND OLD.abandoned_at IS NULL",
                "abandoned_at": "IS NULL AND OLD.finished_at IS NULL",
            },
            message="what was taken in by a run cannot be changed",
        )
        append_only.register_columns(
            "routing_poolitem",
            fixed=("run_id", "item_id", "intake_id", "position", "v"),
            once={"u": "IS NULL"},
            message="the frozen pool of a run cannot be changed: start a new run",
        )
        jobs.register()
        failures.register_loader(backend_classes)
        connect_routing(Routing())
