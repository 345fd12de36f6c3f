from django.apps import AppConfig


class RoutingConfig(AppConfig):
    name = "routing"
    verbose_name = "Models and routing"

    def ready(self) -> None:
        from annotation import append_only, hooks
        from routing import hooks as answers
        from routing import jobs

        append_only.register(
            "routing_prediction",
            "routing_itemscore",
            "routing_pilotitem",
            "routing_draw",
            "routing_drawitem",
            "routing_certificate",
            "routing_route",
            "routing_spend",
        )
        jobs.register()
        answers.register(hooks.hooks)
