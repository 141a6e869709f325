"""GET /openapi.json."""

from __future__ import annotations

import falcon

from spark_elastic.rest.lookup import as_json
from spark_elastic.rest.openapi import document


class Document:
    """The description of this API."""

    def on_get(self, _: falcon.Request, response: falcon.Response) -> None:
        """Show it."""
        response.text = as_json(document())
