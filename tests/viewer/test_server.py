"""The server answers pages of its own only, on this machine only unless there is a password."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from viewer_support import serving

from agentclinic import privacy
from agentclinic.errors import InputError
from agentclinic.privacy import DataClass
from agentclinic.viewer.connections import Pace
from agentclinic.viewer.server import LOOPBACK, listen, make_app, password_for


def asked(
    address: str, method: str = "GET", path: str = "/data", source: str = LOOPBACK, **headers: str
) -> tuple[int, dict[str, str], str]:
    """Status, headers and text of the answer to a request; in names of headers, `_` stands for `-`."""
    connection = HTTPConnection(urlsplit(address).netloc, source_address=(source, 0))
    connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, dict(answer.getheaders()), text


def data(request: Request) -> Response:
    if "bad" in request.query_params:
        raise InputError("a.jsonl, line 3: not a record")
    if "secret" in request.query_params:
        privacy.raise_data_class(DataClass.CREDENTIALED)
    if "broken" in request.query_params:
        raise ZeroDivisionError("the chart of Frobisher")
    return JSONResponse({"fine": True})


ROUTES = [Route("/data", data, methods=["GET", "POST"]), Route("/games/{number:int}", data)]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving(make_app(ROUTES)) as address:
        yield address


def test_requests_of_other_sites_and_for_other_names_are_refused(address: str) -> None:
    own = urlsplit(address).netloc
    port = own.rpartition(":")[2]
    assert asked(address)[0] == 200
    assert asked(address, Host=f"localhost:{port}")[0] == 200
    assert asked(address, Origin=f"http://{own}")[0] == 200
    assert asked(address, Sec_Fetch_Site="cross-site", Sec_Fetch_Dest="document")[0] == 200, "a link that was followed"
    refused: list[tuple[int, str, dict[str, str]]] = [
        (421, "GET", {"Host": "attack.example"}),
        (421, "GET", {"Host": f"attack.example:{port}"}),
        (421, "GET", {"Host": f"127.0.0.1.attack.example:{port}"}),
        (421, "GET", {"Host": ""}),
        (403, "GET", {"Origin": "http://attack.example"}),
        (403, "GET", {"Origin": "null"}),
        (403, "GET", {"Origin": f"http://localhost:{port}"}),
        (403, "GET", {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Dest": "script"}),
        (403, "GET", {"Sec_Fetch_Site": "same-site", "Sec_Fetch_Dest": "empty"}),
        (403, "POST", {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Dest": "document"}),
        (403, "POST", {}),
    ]
    for status, method, headers in refused:
        assert asked(address, method, **headers)[0] == status, headers
    assert asked(address, "POST", Origin=f"http://{own}")[0] == 200


def test_every_answer_has_the_headers_of_safety(address: str) -> None:
    for path in ("/data", "/base.css", "/nothing-there"):
        headers = asked(address, path=path)[1]
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self';")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert "server" not in headers


def test_an_error_is_explained(address: str) -> None:
    status, _, text = asked(address, path="/data?bad=1")
    assert (status, json.loads(text)) == (400, {"error": "a.jsonl, line 3: not a record"})


def test_a_number_with_thousands_of_digits_in_an_address_is_no_crash(address: str) -> None:
    assert asked(address, path=f"/games/{'9' * 900}")[0] == 200
    assert asked(address, path=f"/games/{'9' * 5000}")[::2] == (414, "There is no page with such a long address.")


def test_a_crash_with_credentialed_data_shows_where_but_not_what(capfd: pytest.CaptureFixture[str]) -> None:
    with serving(make_app(ROUTES)) as address:
        assert asked(address, path="/data?broken=1")[0] == 500
    assert "the chart of Frobisher" in capfd.readouterr().err
    with serving(make_app(ROUTES)) as address:
        assert asked(address, path="/data?secret=1&broken=1")[0] == 500
    shown = capfd.readouterr().err
    assert f"ZeroDivisionError: {privacy.LEFT_OUT}" in shown
    assert "test_server.py" in shown
    assert "Frobisher" not in shown


def test_other_machines_need_a_password_and_get_no_credentialed_data() -> None:
    assert password_for(LOOPBACK, {}) is None
    for environment in ({}, {"AGENTCLINIC_PASSWORD": "short"}):
        with pytest.raises(InputError, match="AGENTCLINIC_PASSWORD"):
            password_for("0.0.0.0", environment)
    password = password_for("0.0.0.0", {"AGENTCLINIC_PASSWORD": "a good password"})
    with serving(make_app(ROUTES, host="0.0.0.0", password=password)) as address:
        given = {"Authorization": f"Basic {base64.b64encode(b'me:a good password').decode()}"}
        wrong = {"Authorization": f"Basic {base64.b64encode(b'me:another one').decode()}"}
        odd = {"Authorization": "Basic ?"}, {"Authorization": "Basic \xff"}, {"Authorization": "Bearer a good password"}
        for headers in ({}, wrong, *odd):
            assert asked(address, **headers)[0] == 401
        assert asked(address, **given, Host="clinic.example:80")[0] == 200
        assert asked(address, **given, Host="clinic.example:80", Origin="http://attack.example")[0] == 403
        try:
            assert asked(address, path="/data?secret=1", **given)[::2] == (
                403,
                "These runs hold credentialed data, which is shown on this machine only: start without --host.",
            )
        finally:
            privacy.reset()


def test_guessing_passwords_is_slowed_down_but_not_for_those_who_know_it() -> None:
    now = [0.0]
    right, wrong = (f"Basic {base64.b64encode(f'me:{word}'.encode()).decode()}" for word in ("a good password", "bad"))
    app = make_app(ROUTES, host="0.0.0.0", password="a good password", guesses=Pace(3, 2.0, lambda: now[0]))
    with serving(app) as address:
        status, headers, _ = asked(address, Authorization=right)
        known = headers["set-cookie"].partition(";")[0]
        assert (status, "HttpOnly" in headers["set-cookie"]) == (200, True)
        assert [asked(address)[0] for _ in range(9)] == [401] * 9, "a browser that has not asked its user yet"
        statuses = [asked(address, Authorization=wrong)[::2] for _ in range(4)]
        assert [status for status, _ in statuses] == [401, 401, 401, 429]
        assert json.loads(statuses[-1][1])["error"].endswith("from your address: try again in 2 s.")
        status, headers, _ = asked(address, Authorization=right)
        assert (status, headers["retry-after"]) == (429, "2"), "or guessing would go on"
        assert "set-cookie" not in headers
        assert asked(address, Authorization=right, Cookie=known)[0] == 200
        assert asked(address, Authorization=wrong, Cookie=known)[0] == 401
        assert asked(address, Authorization=right, Cookie=f"{known}x")[0] == 429
        assert asked(address, source="127.0.0.2", Authorization=right)[0] == 200
        now[0] += 4
        assert asked(address, Authorization=right)[0] == 200


def test_a_port_that_is_taken_is_named() -> None:
    with listen() as listener, pytest.raises(InputError, match=f"port {listener.getsockname()[1]} .*--port"):
        listen(LOOPBACK, listener.getsockname()[1])
