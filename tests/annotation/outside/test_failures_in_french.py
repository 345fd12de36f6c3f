"""What others' servers did reaches each reader in their language, and programs and logs in English."""

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from django.utils.translation import override

from annotation import failures
from annotation.common.storage import StorageError
from annotation.errors import HypacError
from annotation.outside import buckets
from annotation.outside.net import GuardedClient, NetError, NetResponse
from annotation.outside.object_store import _told
from annotation.outside.secrets import decrypt
from testbed.servers import dead_port


def nobody_there() -> None:
    with dead_port() as port:
        GuardedClient().request("GET", f"http://127.0.0.1:{port}/")


def inside() -> None:
    GuardedClient().request("GET", "http://10.0.0.1/")


def no_json() -> None:
    NetResponse(200, {}, b"<html>").json()


def of_the_object_store(error: Exception) -> None:
    with _told():
        raise error


def refused_by_the_object_store() -> None:
    answer = {"Error": {"Code": "SlowDown"}, "ResponseMetadata": {"HTTPStatusCode": 503}}
    of_the_object_store(ClientError(answer, "GetObject"))


def away() -> None:
    of_the_object_store(EndpointConnectionError(endpoint_url="http://store.example"))


def refused_by_a_bucket() -> None:
    raise buckets.refusal(NetResponse(403, {}, b"<Code>AccessDenied</Code>"))


def disk_full() -> None:
    raise StorageError("No space left on device")


def key_lost() -> None:
    decrypt("of another key", where="secret")


@pytest.mark.parametrize(
    ("fail", "english", "french"),
    [
        (nobody_there, "Nobody accepts connections at 127.0.0.1", "Personne n’accepte"),
        (inside, "10.0.0.1 is in the network of this server", "10.0.0.1 est dans le réseau"),
        (no_json, "The answer (status 200) is no JSON.", "La réponse (statut 200)"),
        (refused_by_the_object_store, "the object store answered 503 SlowDown.", "a répondu 503 SlowDown."),
        (away, "could not be asked (EndpointConnectionError).", "être interrogé (EndpointConnectionError)."),
        (refused_by_a_bucket, "connection: The store refused this (403 AccessDenied)", "a refusé (403 Acc"),
        (disk_full, "The storage of files cannot be used", "Le stockage des fichiers"),
        (key_lost, "secret: The stored key cannot be read any more", "La clé enregistrée"),
    ],
)
def test_whatever_the_worker_speaks(settings, fail, english: str, french: str) -> None:
    settings.HYPAC_PRIVATE_HOSTS = ["127.0.0.1"]
    with override("fr"), pytest.raises(HypacError) as caught:
        fail()
    kept = failures.columns_of(caught.value)
    assert english in kept["error"]
    with override("fr"):
        assert french in failures.in_words(kept["error_code"], kept["error_params"])


def test_a_net_error_still_tells_its_kind(settings) -> None:
    settings.HYPAC_PRIVATE_HOSTS = ["127.0.0.1"]
    with pytest.raises(NetError) as caught:
        nobody_there()
    assert (caught.value.kind, caught.value.code) == ("connect", "nobody_there")
