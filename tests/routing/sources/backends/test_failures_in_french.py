"""Why a model could not answer at all reaches each reader in their language, whatever the worker speaks."""

import json

import joblib
import pytest
from django.utils.translation import override

from annotation import failures
from annotation.models import Job
from routing.sources.backends import BackendError, open_backend
from routing.sources.backends.label_studio_ml import calls
from testbed.scripted_server import Reply, ScriptedServer
from tests.routing.sources.backends.asking import collected, items, open_api
from tests.routing.sources.backends.label_studio import items_of, open_it


def shown(error: BaseException | None) -> tuple[str, str]:
    """What a job that failed with it keeps in English, and what its page says in French."""
    assert isinstance(error, BackendError)
    job = Job(state=Job.State.FAILED, **json.loads(json.dumps(failures.columns_of(error))))
    with override("fr"):
        return job.error, job.error_in_words


@pytest.mark.parametrize(
    ("reply", "english", "french"),
    [
        (Reply(401), "refuses the API key (401)", "refuse la clé d’API (401)"),
        (Reply(402, {"error": "Pay"}), "no credit left (402): Pay.", "plus de crédit (402): Pay."),
        (Reply(400, {"error": "top_k"}), "refuses every call (400): top_k.", "tous les appels (400): top_k."),
        (Reply(500), "the server failed (status 500). Items", "le serveur a échoué (statut 500). Les"),
        (Reply(200, {}), "the answer is no chat completion. I", "n’est pas celle d’un dialogue (chat"),
        (Reply(429, headers={"Retry-After": "4000"}), "called for 4,000 s", "appelé pendant 4,000 s"),
    ],
)
def test_what_a_model_server_answers(server, reply: Reply, english: str, french: str) -> None:
    server.default = reply
    with override("fr"):
        said = shown(collected(open_api(server, retries=0).predict(items(2)))[1])
    assert english in said[0]
    assert french in said[1]


def test_a_server_that_is_not_there(server) -> None:
    server.stop()
    with override("fr"), pytest.raises(BackendError) as caught:
        open_api(server).fingerprint()
    english, french = shown(caught.value)
    assert english.startswith("The model server cannot be reached: Nobody accepts connections at")
    assert french.startswith("Le serveur de modèles est injoignable\xa0: Personne n’accepte")


def test_a_model_that_the_server_lists_no_more(server) -> None:
    server.route("GET", "/v1/models", {"data": [{"id": f"model-{n}"} for n in range(12)]})
    with override("fr"), pytest.raises(BackendError) as caught:
        open_api(server).fingerprint()
    english, french = shown(caught.value)
    assert english.endswith("model-9 and 2 more. (parameter model)")
    assert french.endswith("model-9 et 2 autres. (paramètre model)")


def test_a_label_studio_backend_that_is_away(monkeypatch) -> None:
    monkeypatch.setattr(calls, "PAUSES", ())
    with ScriptedServer() as server:
        server.route("POST", "/setup", {"model_version": "1.0"})
        server.route("POST", "/predict", Reply(503))
        with override("fr"):
            said = shown(collected(open_it(server).predict(items_of("miau", "wuff")))[1])
    assert said[0] == "The server cannot be reached: the server takes no requests now (status 503)."
    assert said[1].endswith("le serveur n’accepte pas de requêtes pour le moment (statut 503).")


def test_a_file_that_holds_no_model(settings, tmp_path) -> None:
    settings.HYPAC_SKLEARN_MODELS = str(tmp_path)
    joblib.dump({}, tmp_path / "empty.joblib")
    with override("fr"):
        said = shown(collected(open_backend("sklearn", {"model": "empty"}, None).predict(items(1)))[1])
    assert "empty.joblib holds no dictionary" in said[0]
    assert "empty.joblib ne contient pas de dictionnaire" in said[1]
