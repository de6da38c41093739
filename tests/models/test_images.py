"""Images in the form an endpoint accepts."""

from __future__ import annotations

import pytest

from agentclinic.errors import InputError
from agentclinic.models.wire import image_url


@pytest.mark.parametrize("address", ["a\0b.png", "file:///a%00b", "file://[x", "~nosuchuser/a.png", "a" * 3000, "/"])
def test_an_address_without_an_image_is_an_error_that_names_it(address: str) -> None:
    with pytest.raises(InputError, match=r"image|home folder"):
        image_url(address)
