"""`/label-studio/<project>/` has the labels of the newest routed run; what may follow names another one."""

from django.urls import URLPattern, include, path

from routing.label_studio import views


def _requests(name: str) -> list[URLPattern]:
    return [
        path("health", views.Health.as_view(), name=f"{name}_health"),
        path("setup", views.Setup.as_view(), name=f"{name}_setup"),
        path("versions", views.Versions.as_view(), name=f"{name}_versions"),
        path("predict", views.Predict.as_view(), name=f"{name}_predict"),
        path("webhook", views.Ignored.as_view(), name=f"{name}_webhook"),
        path("train", views.Ignored.as_view(), name=f"{name}_train"),
    ]


urlpatterns = [
    path("<slug:slug>/", include(_requests("api_label_studio"))),
    path("<slug:slug>/runs/<row:number>/", include(_requests("api_label_studio_run"))),
    path("<slug:slug>/sources/<row:source_id>/", include(_requests("api_label_studio_source"))),
]
